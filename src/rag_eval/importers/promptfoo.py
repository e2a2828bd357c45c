"""promptfoo results as trace rows, and the tests in them as gold rows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, count, product
from typing import Any

from rag_eval.importers import FIELDS, VERDICT, ImportInputs, Row, retrieved, unwrap
from rag_eval.importers.conversion import NOT_READ, Conversion, Draft
from rag_eval.importers.documents import beginning, csv_header, csv_rows, csv_table, objects, yaml_value

_ONE_OF = ("contains", "icontains", "contains-any", "icontains-any")
_EXPECTED = ("context-recall", "factuality", "similar", "equals", "answer-relevance")
_CHECKS = set(FIELDS["promptfoo"]["checks"])
_CHECK = re.compile(r"(?s)(not-)?([a-z]+(?:-[a-z]+)*)(?:\([\d.]+\))?(?::\s*(.*))?")
_FORMS = "Write the results with: promptfoo eval --output results.json"
_READ = FIELDS["promptfoo"]["read"]
_JUDGED = ("success", "score", "namedScores", "gradingResult")
_REFERENCES = FIELDS["promptfoo"]["references"]
_VARIABLES = {
    *unwrap.QUESTION_KEYS, *retrieved.CONTEXT_KEYS, *retrieved.SOURCE_KEYS, *unwrap.QID_KEYS, *_REFERENCES,
    "id", "answerable", "citations", "messages",
}  # fmt: skip
_JUDGED_OUTPUT = re.compile(r"(?s)\[(PASS|FAIL|ERROR)\] \([^\n]*\)\s*(.*?)\s*(?:(?:Pass|Fail) Reason: (.*))?")
_ERROR = 2  # failureReason: the provider failed; 1 is an assertion


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each result; providers, prompts and repeats are runs."""
    results = [(conversion.place, result) for result in _results(conversion)]
    prompts: dict[str, set[Any]] = {}  # promptIdx counts the columns: prompts times providers
    for _, result in results:
        prompts.setdefault(_provider(result), set()).add(result.get("promptIdx"))
    seen: Counter[tuple[str, Any, str]] = Counter()
    answers: list[tuple[str, Draft]] = []
    for conversion.place, result in results:
        name = _provider(result)
        name += f"-prompt{result.get('promptIdx')}" if len(prompts[name]) > 1 else ""
        key = (name, result.get("testIdx"), str(result["vars"]))
        seen[key] += 1
        draft = _draft(conversion, result)
        draft.run = f"{name}-{seen[key]}"
        answers.append((name, draft))
    if max(seen.values(), default=1) == 1:  # nothing is repeated
        names = {name for name, _ in answers}
        for name, draft in answers:
            draft.run = name if len(names) > 1 else None
    yield from (draft for _, draft in answers)


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each test."""
    seen: set[str] = set()
    for result in _results(conversion):
        test, variables = unwrap.as_dict(result.get("testCase")), result["vars"]
        metadata = {**unwrap.as_dict(test.get("metadata")), **unwrap.as_dict(result.get("metadata"))}
        question, qid = conversion.question(variables, result), _qid(conversion, result)
        if question is None:
            hint = "Name the variable that holds it: --question /vars/NAME"
            conversion.problem("/vars", "no variable contains the question", hint)
        elif qid not in seen:
            seen.add(qid)
            substrings, expected, refused = _assertions(conversion, test.get("assert") or ())
            stated = variables.get("answerable", metadata.get("answerable"))
            answerable = not refused if stated is None else str(stated).lower() not in ("false", "0", "no")
            cited = variables.get("citations") or metadata.get("gold_citations") or []
            ids = list(map(str, unwrap.as_list(cited)))
            expected = unwrap.first_id(_REFERENCES, variables) if expected is None else expected
            labels = unwrap.scalars(test.get("metadata"))
            other = (*unwrap.QID_KEYS, "id", "answerable")
            meta = {name: value for name, value in labels.items() if value != "" and name not in other}
            more = {"substrings": substrings, "answerable": answerable, "meta": meta}
            conversion.drop_unread(test, ("vars", "assert", "metadata"), " of tests")
            yield conversion.gold_row(qid, question, expected, ids, **more)


def _results(conversion: Conversion) -> Iterator[Row]:
    """Yield each result with its variables.

    Newer versions number the repeats of a test as tests: they get the number of one test.
    """
    results = [(conversion.place, {**result, "vars": _variables(result)}) for result in _records(conversion)]
    tests: dict[str, int] = {}  # with the number of the first repeat
    for _, result in results:
        number = result.get("testIdx") or 0
        tests[_test_of(result)] = min(tests.get(_test_of(result), number), number)
    is_repeated = len(tests) < len({result.get("testIdx") for _, result in results})
    numbers = {test: index for index, test in enumerate(sorted(tests, key=tests.__getitem__))}
    for conversion.place, result in results:
        yield {**result, "testIdx": numbers[_test_of(result)]} if is_repeated else result


def _test_of(result: Row) -> str:
    test = unwrap.as_dict(result.get("testCase"))
    return str((result["vars"], test.get("assert"), test.get("description")))


def _records(conversion: Conversion) -> Iterator[Row]:
    for path in conversion.inputs.paths:
        for number, (line, value) in enumerate(_values(conversion, path)):
            conversion.place = path, line
            inner = value.get("results")
            results = inner.get("results") if isinstance(inner, dict) else inner
            if isinstance(results, list):
                conversion.drop_unread(value, ("results", "evalId"))
                conversion.drop_unread(unwrap.as_dict(inner), ("results", "version"), " of results")
                yield from (result for result in results if isinstance(result, dict))
            elif isinstance(tests := value.get("tests"), list):  # a configuration
                conversion.drop_unread(value, ("tests",))
                index = count()
                for test in [test for test in tests if isinstance(test, dict)]:
                    lists = {
                        name: item if isinstance(item, list) else [item] for name, item in _variables(test).items()
                    }
                    for values in product(*lists.values()):  # a test with lists is one for each combination
                        variables = dict(zip(lists, values, strict=True))
                        yield {"testIdx": next(index), "testCase": test, "vars": variables}
            elif "assert" in value and "testCase" not in value:  # a file of tests
                yield {"testIdx": number, "testCase": value}
            elif "response" in value or "vars" in value or "testCase" in value:
                yield value
            else:
                version = inner.get("version") if isinstance(inner, dict) else None
                what = f"has results of version {version} without a list of results" if version else "has no results"
                conversion.problem("/results", what, _FORMS)


def _values(conversion: Conversion, path: str) -> Iterator[tuple[int, Row]]:
    """Yield line and value of each object of JSON or YAML, or of each result or test of CSV."""
    inputs = conversion.inputs
    head = beginning(inputs, path)
    if not head:
        return  # empty, or unreadable, which is reported
    if head[:1] in (b"{", b"["):
        yield from objects(inputs, path, "a file of results")
    elif "Grader Reason" in csv_header(head) or VERDICT.search(head):
        yield from _results_of_csv(inputs, path)
    elif any(name.startswith("__expected") for name in csv_header(head)):
        for line, cells in csv_rows(inputs, path):
            yield line, _test_of_csv(cells)
    elif isinstance(value := yaml_value(inputs, path), dict):
        yield 1, value
    elif value is not None:
        inputs.problem(path, 1, "", "has no results", _FORMS)


def _results_of_csv(inputs: ImportInputs, path: str) -> Iterator[tuple[int, Row]]:
    """Yield the results of a table with variables first, then some columns for each provider and prompt."""
    table = csv_table(inputs, path)
    header = next(table, (1, []))[1]
    outputs = [index for index in range(len(header) - 1) if header[index + 1] == "Status"]
    columns = outputs or [index for index, name in enumerate(header) if name.startswith("[")]
    names = header[: columns[0]] if columns else []
    for test, (line, cells) in enumerate(table):
        variables = {name: cell for name, cell in zip(names, cells, strict=False) if name != "Description"}
        for prompt, column in enumerate(columns):
            provider = header[column][1:].partition("] ")[0]
            if outputs:
                output, status, reason = cells[column], cells[column + 1], cells[header.index("Grader Reason", column)]
            elif judged := _JUDGED_OUTPUT.fullmatch(cells[column]):  # older versions write the verdict into the cell
                status, output, reason = judged.groups()
            else:
                status, output, reason = "" if cells[column] else "ERROR", cells[column], "no output"
            failed = {"error": output or reason or "error", "failureReason": _ERROR} if status == "ERROR" else {}
            yield line, {
                "testIdx": test, "promptIdx": prompt, "provider": provider, "vars": variables, **failed,
                "response": {} if failed else {"output": output},
            }  # fmt: skip


def _test_of_csv(cells: dict[str, str]) -> Row:
    """Return the test in a row of CSV: variables, checks (``TYPE: VALUE`` or a value), and other special columns."""
    test: Row = {"vars": {}, "assert": [], "metadata": {}}
    for name, cell in cells.items():
        if name.startswith("__metadata:"):
            test["metadata"][name.partition(":")[2]] = cell
        elif name.startswith("__expected") and cell:
            match = _CHECK.fullmatch(cell)
            stated = match if match and match[2] in _CHECKS else None
            kind, text = (f"{stated[1] or ''}{stated[2]}", stated[3] or "") if stated else ("equals", cell)
            test["assert"].append({"type": kind, "value": text.split(",") if kind.endswith("-any") else text})
        else:
            (test if name.startswith("__") else test["vars"])[name] = cell
    return test


def _draft(conversion: Conversion, result: Row) -> Draft:
    response = unwrap.as_dict(result.get("response"))
    output = recorded = response.get("output")
    if isinstance(recorded, str) and recorded.lstrip()[:1] == "{":
        output = unwrap.decoded(recorded)  # a structured answer in CSV, or of a model that writes JSON
    question, answer = conversion.question(result["vars"], result), conversion.answer(output, result)
    if answer is None and isinstance(recorded, (str, int, float)):  # YAML and JSON have numbers and truth values
        answer = recorded if isinstance(recorded, str) else json.dumps(recorded)
    draft = Draft(conversion.place, str(result.get("id") or ""), question, answer, qid=_qid(conversion, result))
    failed = result.get("error") and result.get("failureReason") == _ERROR
    if failed or (response.get("error") and answer is None):
        draft.ok = False
        if answer is None:
            draft.error = str(result.get("error") or response.get("error"))
    draft.chunks = _chunks(conversion, result, (response.get("metadata"), result.get("metadata"), output))
    draft.abstained = True if response.get("isRefusal") is True else None
    if response.get("cached"):
        conversion.account.dropped("latency and cost of cached responses", "they come from the cache")
    else:
        if (latency := unwrap.number(result.get("latencyMs")) or 0) > 0:
            draft.latency_ms["total"] = latency
        draft.usage = unwrap.usage(cost=result.get("cost", response.get("cost")))
    draft.usage |= unwrap.usage(result.get("tokenUsage") or response.get("tokenUsage"))
    draft.citations = retrieved.stated_citations(output)
    conversion.drop_unread(result, _READ, "", _JUDGED)
    conversion.drop_unread(result["vars"], _VARIABLES, " of vars")
    return draft


def _chunks(conversion: Conversion, result: Row, sources: tuple[Any, ...]) -> list[Row] | None:
    value = conversion.resolve("chunks", result)
    value = unwrap.decoded(retrieved.contexts_in(result["vars"], *sources) if value is None else value)
    if value is None:
        return None
    if isinstance(value, str):
        value = conversion.one_text(value)
    documents = retrieved.documents_in(value) or []
    unread = [document for document in documents if isinstance(document, str) and document.startswith("file://")]
    if unread:
        hint = "Name the place of the texts with --chunks POINTER, such as /response/metadata/documents."
        conversion.problem("/vars", f"a chunk is the path of a file: '{unread[0][:60]}'", hint)
        return None
    return conversion.chunks(documents)


def _assertions(conversion: Conversion, assertions: Any) -> tuple[list[str], str | None, bool]:
    """Return substrings of a right claim, the expected answer, and whether only a refusal is right."""
    substrings: list[str] = []
    expected: str | None = None
    kinds = []
    sets = (item.get("assert") or () if item.get("type") == "assert-set" else [item] for item in assertions)
    for assertion in chain.from_iterable(sets):
        kind, value = str(assertion.get("type") or ""), assertion.get("value")
        kinds.append(kind)
        texts = [text for text in unwrap.as_list(value) if isinstance(text, str)]
        if kind in _ONE_OF:
            long = [text for text in texts if len(text) >= 5]
            substrings += long
            why = "a substring needs at least five characters"
            conversion.account.dropped(f"short values of {kind}", why, len(texts) - len(long))
        elif kind in _EXPECTED and texts and expected in (None, texts[0]):
            expected = texts[0]
        elif kind != "is-refusal":
            all_of = "all its values must match, but here one matching substring is enough"
            conversion.account.dropped(f"assertion {kind}", all_of if kind.endswith("contains-all") else NOT_READ)
    if sum(kind in _ONE_OF for kind in kinds) > 1:
        why = "all of them must match, but here one matching substring is enough"
        conversion.account.lacking(f"tests with several assertions of substrings: {why}")
    refused = kinds == ["is-refusal"]
    if refused:
        conversion.account.renamed("assertion is-refusal", "answerable: false")
    return substrings, expected, refused


def _variables(result: Row) -> Row:
    return unwrap.as_dict(result.get("vars")) or unwrap.as_dict(unwrap.at(result, "/testCase/vars"))


def _qid(conversion: Conversion, result: Row) -> str:
    variables, labels = result["vars"], unwrap.as_dict(unwrap.as_dict(result.get("testCase")).get("metadata"))
    qid = conversion.qid(labels, variables, result.get("metadata")) or unwrap.first_id(("id",), variables, labels)
    return qid or f"promptfoo-{result.get('testIdx', 0)}"


def _provider(result: Row) -> str:
    provider = result.get("provider")
    return unwrap.first_id(("label", "id"), provider) or (provider if isinstance(provider, str) else "")

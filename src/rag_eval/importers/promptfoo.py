"""promptfoo results as trace rows, and the tests in them as gold rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag_eval.importers import unwrap
from rag_eval.importers.conversion import Conversion, Draft, Options
from rag_eval.importers.documents import objects

if TYPE_CHECKING:
    from rag_eval.importers import Inputs, Numbered
    from rag_eval.importers._account import Account

Row = dict[str, Any]
_QUESTIONS = ("question", "query", "q", "input", "prompt", "user_input")
_CONTEXTS = ("context", "contexts", "documents", "retrieved", "chunks")
_ONE_OF = ("contains", "icontains", "contains-any", "icontains-any")
_EXPECTED = ("context-recall", "factuality", "similar", "equals", "answer-relevance")
_FORMS = "Write the results with: promptfoo eval --output results.json"
_READ = (
    "vars", "testCase", "testIdx", "promptIdx", "provider", "response", "id", "error", "failureReason", "latencyMs",
    "cost", "tokenUsage", "metadata",
)  # fmt: skip
_JUDGED = ("success", "score", "namedScores", "gradingResult")
_ERROR = 2  # failureReason: the provider failed; 1 is an assertion


def rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and trace row of each result; providers, prompts and repeats are runs."""
    conversion = Conversion(inputs, options, account, " Do not set PROMPTFOO_STRIP_RESPONSE_OUTPUT.")
    found = list(_results(conversion))
    prompts: dict[str, set[Any]] = {}  # promptIdx counts the columns: prompts times providers
    for _, _, result in found:
        prompts.setdefault(_provider(result), set()).add(result.get("promptIdx"))
    names = [
        f"{_provider(result)}" + (f"-prompt{result.get('promptIdx')}" if len(prompts[_provider(result)]) > 1 else "")
        for _, _, result in found
    ]
    seen: Counter[tuple[str, Any, str]] = Counter()
    keys = [
        (name, result.get("testIdx"), str(_variables(result)))
        for name, (_, _, result) in zip(names, found, strict=True)
    ]
    repeated = any(count > 1 for count in Counter(keys).values())
    drafts = []
    for (path, line, result), name, key in zip(found, names, keys, strict=True):
        seen[key] += 1
        draft = _draft(conversion, path, line, result)
        if repeated or len(set(names)) > 1:
            draft.run = f"{name}-{seen[key]}" if repeated else name
        drafts.append(draft)
    yield from conversion.rows("promptfoo", drafts)


def gold_rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and gold row of each test."""
    conversion = Conversion(inputs, options, account)
    seen: set[str] = set()
    for path, line, result in _results(conversion):
        test, variables = unwrap.as_dict(result.get("testCase")), _variables(result)
        metadata = {**unwrap.as_dict(test.get("metadata")), **unwrap.as_dict(result.get("metadata"))}
        question, qid = _question(conversion, result), _qid(conversion, result)
        if question is None:
            _no_question(conversion, path, line)
            continue
        if qid in seen:
            continue
        seen.add(qid)
        substrings, expected, refused = _assertions(conversion, test.get("assert") or ())
        stated = variables.get("answerable", metadata.get("answerable"))
        answerable = not refused if stated is None else str(stated).lower() not in ("false", "0", "no")
        cited = variables.get("citations") or metadata.get("gold_citations") or []
        yield line, conversion.gold_row(
            qid, question, expected, [str(one) for one in (cited if isinstance(cited, list) else [cited])],
            substrings=substrings, answerable=answerable,
        )  # fmt: skip
    conversion.finish()


def _results(conversion: Conversion) -> Iterator[tuple[str, int, Row]]:
    for path in conversion.inputs.paths:
        for line, value in objects(conversion.inputs, path, "a file of results"):
            inner = value.get("results")
            results = inner.get("results") if isinstance(inner, dict) else inner
            if isinstance(results, list):
                conversion.left_out(value, ("results", "evalId"))
                conversion.left_out(unwrap.as_dict(inner), ("results", "version"), " of results")
                yield from ((path, line, one) for one in results if isinstance(one, dict))
            elif "response" in value or "vars" in value or "testCase" in value:
                yield path, line, value
            else:
                version = inner.get("version") if isinstance(inner, dict) else None
                what = f"has results of version {version} without a list of results" if version else "has no results"
                conversion.inputs.problem(path, line, "/results", what, _FORMS)


def _draft(conversion: Conversion, path: str, line: int, result: Row) -> Draft:
    account = conversion.account
    response = unwrap.as_dict(result.get("response"))
    output = response.get("output")
    draft = Draft(
        path, line, str(result.get("id") or ""), _question(conversion, result), conversion.answer(output, result)
    )
    draft.qid = _qid(conversion, result)
    if (result.get("error") and result.get("failureReason") == _ERROR) or (
        response.get("error") and draft.answer is None
    ):
        draft.ok = False
        if draft.answer is None:
            draft.error = str(result.get("error") or response.get("error"))
    draft.chunks = _chunks(conversion, path, line, result, response)
    if response.get("isRefusal") is True:
        draft.abstained = True
    _measure(draft, result, response, account)
    if isinstance(output, dict) and isinstance(output.get("citations"), list):
        draft.citations = [str(one) for one in output["citations"]]
    conversion.left_out(result, _READ, "", _JUDGED)
    return draft


def _measure(draft: Draft, result: Row, response: Row, account: Account) -> None:
    """Latency, cost and tokens; those of the cache are not those of the system."""
    if response.get("cached"):
        account.dropped("latency and cost of cached responses", "they are those of the cache")
    else:
        if isinstance(result.get("latencyMs"), (int, float)) and result["latencyMs"] > 0:
            draft.latency_ms["total"] = result["latencyMs"]
        if isinstance(cost := result.get("cost", response.get("cost")), (int, float)):
            draft.usage["cost_usd"] = cost
    tokens = unwrap.as_dict(result.get("tokenUsage") or response.get("tokenUsage"))
    for field, name in (("input_tokens", "prompt"), ("output_tokens", "completion")):
        if isinstance(tokens.get(name), int):
            draft.usage[field] = tokens[name]


def _chunks(conversion: Conversion, path: str, line: int, result: Row, response: Row) -> list[Row] | None:
    places = (_variables(result), response.get("metadata") or {}, result.get("metadata") or {}, response.get("output"))
    value = conversion.pointed("chunks", result)
    if value is None:
        value = next(
            (one[name] for one in places if isinstance(one, dict) for name in _CONTEXTS if one.get(name)), None
        )
    if value is None:
        return None
    if isinstance(value, str):
        conversion.account.lacking("contexts that are one text: each is one chunk, not cut")
        value = [value]
    documents = unwrap.documents_in(value) or []
    unread = [one for one in documents if isinstance(one, str) and one.startswith("file://")]
    if unread:
        hint = "Name where the texts are with --chunks POINTER, such as /response/metadata/documents."
        conversion.inputs.problem(path, line, "/vars", f"a chunk is the path of a file: '{unread[0][:60]}'", hint)
        return None
    return conversion.chunks(documents, path, line)


def _assertions(conversion: Conversion, assertions: Any) -> tuple[list[str], str | None, bool]:
    """Substrings of a right claim, the expected answer, and whether only a refusal is right."""
    substrings: list[str] = []
    expected: str | None = None
    kinds = []
    for one in assertions:
        kind, value = str(one.get("type") or ""), one.get("value")
        kinds.append(kind)
        texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
        if kind in _ONE_OF:
            long = [text for text in texts if len(text) >= 5]
            substrings += long
            conversion.account.dropped(
                f"short values of {kind}", "a substring has five characters or more", len(texts) - len(long)
            )
        elif kind in _EXPECTED and texts and expected is None:
            expected = texts[0]
        elif kind != "is-refusal":
            why = (
                "all of its values must match, and one substring decides here"
                if kind == "contains-all"
                else "no metric reads it"
            )
            conversion.account.dropped(f"assertion {kind}", why)
    refused = kinds == ["is-refusal"]
    if refused:
        conversion.account.renamed("assertion is-refusal", "answerable: false")
    return substrings, expected, refused


def _variables(result: Row) -> Row:
    return unwrap.as_dict(result.get("vars") or unwrap.as_dict(result.get("testCase")).get("vars"))


def _question(conversion: Conversion, result: Row) -> str | None:
    variables = _variables(result)
    stated = next((variables[name] for name in _QUESTIONS if variables.get(name)), None)
    return conversion.question(stated, result)


def _no_question(conversion: Conversion, path: str, line: int) -> None:
    hint = "Name the variable that holds it: --question /vars/NAME"
    conversion.inputs.problem(path, line, "/vars", "no variable holds the question", hint)


def _qid(conversion: Conversion, result: Row) -> str:
    variables, test = _variables(result), unwrap.as_dict(result.get("testCase"))
    stated = conversion.qid(test.get("metadata"), variables, result.get("metadata")) or unwrap.as_id(
        variables.get("id")
    )
    return stated or f"promptfoo-{result.get('testIdx', 0)}"


def _provider(result: Row) -> str:
    provider = result.get("provider")
    if isinstance(provider, dict):
        return str(provider.get("label") or provider.get("id") or "")
    return str(provider or "")

"""Search of values in records of other tools: the question, the answer, ids, tokens, costs and times."""

from __future__ import annotations

import hashlib
import math
import re
from calendar import monthrange, timegm
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from rag_eval.importers import FIELDS

Value = Any
QUESTION_KEYS = FIELDS["unwrap"]["question_keys"]
QUESTION_FIELDS = (*QUESTION_KEYS, *FIELDS["unwrap"]["question_fields"])
ANSWER_FIELDS = FIELDS["unwrap"]["answer_fields"]
QID_KEYS = FIELDS["unwrap"]["qid_keys"]
THREAD_KEYS = ("session_id", "conversation_id", "thread_id")
REDACTED = "__REDACTED__"
_USERS = ("user", "human", "HumanMessage", "HumanMessageChunk", "userMessage")
_ASSISTANTS = tuple("assistant ai model AIMessage AIMessageChunk apiMessage gpt chatgpt bot chatbot".split())
ROLES = (*_USERS, *_ASSISTANTS, "system", "developer", "tool", "function")
_ROLES = {role.casefold(): role for role in ROLES} | {"function_call": "assistant", "observation": "tool"}
_PART = {"type", "text", "annotations", "citations"}  # fields of a part of a message; documents have others
TOKEN_KEYS = FIELDS["unwrap"]["token_keys"]
USAGES = FIELDS["unwrap"]["usages"]
"""Where responses count tokens."""
COSTS = FIELDS["unwrap"]["costs"]
OLLAMA_COUNTS, MODELS = ("prompt_eval_count", "eval_count"), ("model", "modelVersion")
_ISO = re.compile(
    r"([12]\d{3})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?\s?(?:Z|UTC|([+-])(\d\d):?(\d\d))?"
)
_CODE_BLOCK = re.compile(r"\s*```(?:json)?\s*([\[{].*[\]}])\s*```\s*", re.DOTALL)
_TRACEBACK = re.compile(r"Traceback(?: \(most recent call last\))?:")
_WORD = re.compile(r"_([a-z0-9])")
_FAILURE = re.compile(
    r"(?i)error|fail|filter|safety|block|prohibit|recitation|bad request|not.?found|unavailable|exhausted|denied|reject"
    r"|abort|cancel|expire|interrupt|time.?out|\b[45]\d\d\b"
)
_REASONS = ("candidates/0/finishReason", "choices/0/finish_reason", "finish_reason", "stop_reason", "status")


def at(value: Value, pointer: str) -> Value:
    """Return the value that a JSON Pointer (RFC 6901) leads to; None if it leads nowhere."""
    for part in pointer.split("/")[1:] if pointer else ():
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name[:9]) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def decoded(value: Value, layers: int = 1) -> Value:
    """Return a value whose text is JSON, decoded at most ``layers`` times; other text is unchanged.

    The JSON may be in a code block, as models write it.
    """
    if isinstance(value, str) and (block := _CODE_BLOCK.fullmatch(value)):
        value = block[1]
    while layers and isinstance(value, str) and value.lstrip()[:1] in ('"', "{", "["):
        try:
            value = msgspec.json.decode(value)
        except (ValueError, RecursionError):
            break
        layers -= 1
    return value


def message_text(message: Value) -> str | None:
    """Return the text of a chat message of any usual shape; None if it has none or is only a tool call."""
    if not isinstance(message, dict):
        return message if isinstance(message, str) else None
    message = message.get("kwargs", message) if message.get("lc") else message
    message = as_dict(message.get("message")) or as_dict(message.get("data")) or message  # the latter of LangChain
    names = ("content", "parts", "message.content", "contents", "text", "refusal", "value")
    content = next((message[key] for key in names if message.get(key)), None)
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    texts = [text for part in parts if (text := _part_text(part)) is not None]
    is_divided = any(not {"citations", "annotations"}.isdisjoint(as_dict(part)) for part in parts)
    return ("" if is_divided or _is_stream(texts) else "\n").join(texts) if texts else None


def _is_stream(texts: Sequence[str]) -> bool:
    """Return whether texts are the parts of one text, with the space between its words at their ends."""
    return any(text[:1].isspace() or text[-1:].isspace() for text in texts)


def _part_text(part: Value) -> str | None:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else None
    part = part.get("message_content", part)
    kind = part.get("type", part.get("message_content.type", "text"))
    if kind not in ("text", "output_text", "input_text", "refusal") or part.get("thought"):  # the latter of Gemini
        return None
    text = next((part[key] for key in ("text", "content", "message_content.text", "refusal") if key in part), None)
    text = as_dict(text).get("value", text)  # of OpenAI's assistants
    return text if isinstance(text, str) else None


def as_dict(value: Value) -> dict[str, Value]:
    """Return the value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def first_keys(row: dict[str, Value]) -> str:
    """Return the names of the first fields of a record, for a message."""
    return ", ".join(list(row)[:6]) or "none"


def without_envelope(value: Value) -> Value:
    """Return an object with the fields of the body of a response or log entry in it."""
    fields = as_dict(value)
    inner = [name for name, item in fields.items() if isinstance(item, (dict, list))]
    name = next((name for name in ("body", "jsonPayload") if name in inner), "")
    if len(inner) == 1 and inner[0] in ("data", "results", "chat"):
        name = inner[0]
    if not isinstance(fields.get(name), dict):
        return value
    return fields[name] | {key: item for key, item in fields.items() if key != name}


def with_haystack_answer(value: dict[str, Value]) -> dict[str, Value]:
    """Return a record with the fields of Haystack's answer, also of the first one in the outputs of a pipeline."""
    lists = [as_dict(part).get("answers") for part in value.values()]
    answer = next((as_dict(answers[0]) for answers in lists if isinstance(answers, list) and answers), value)
    answers = value.get("answers")
    if isinstance(answers, list) and answers and "documents" in value and "answer" not in value:  # of deepset
        return value if isinstance(answers[0], str) else {**value, "answer": as_dict(answers[0]).get("answer")}
    fields = as_dict(answer.get("init_parameters", answer))
    if not fields.keys() >= {"data", "query", "documents"}:
        return value
    others = {} if answer is value else {name: part for name, part in value.items() if not isinstance(part, dict)}
    return others | {("answer" if name == "data" else name): item for name, item in fields.items()}


def output_of(recorded: Value) -> Value:
    """Return a recorded answer, which may be JSON, without the envelope of an API."""
    return without_envelope(decoded(recorded))


def as_list(value: Value) -> list[Value]:
    """Return a value as a list: a text or number is its only element."""
    return value if isinstance(value, list) else [] if value is None else [value]


def camel(row: dict[str, Value]) -> dict[str, Value]:
    """Return a record with its keys in camel case: some services write them in snake case."""
    return {_WORD.sub(lambda match: match[1].upper(), name): value for name, value in row.items()}


def merged(older: dict[str, Value], newer: dict[str, Value]) -> dict[str, Value]:
    """Merge two records of one id: the newer one replaces values, but erases none."""
    values = {name: value for name, value in newer.items() if value not in (None, "", {}, []) or name not in older}
    return older | values


def role_of(message: Value) -> str:
    """Return the role of a chat message, '' if it states none."""
    if not isinstance(message, dict):
        return ""
    if message.get("lc") and isinstance(message.get("id"), list) and message["id"]:
        return str(message["id"][-1])
    inner = as_dict(message.get("message")) or message
    by_user = inner.get("isCreatedByUser")  # of LibreChat
    author = ("user" if by_user else "assistant") if isinstance(by_user, bool) else ""
    stated = first_id(("role", "message.role", "from", "type"), inner) or author
    return _ROLES.get(stated.casefold(), stated)


def question_text(value: Value) -> tuple[str | None, int]:
    """Return the question in a recorded input, and the number of earlier turns of a conversation before it."""
    if isinstance(value, str):
        inner = decoded(value)  # inputs that a tool wrote as JSON into a message
        is_chat = isinstance(inner, list) and bool(_asked(_messages(inner)))
        is_wrapped = is_chat or not as_dict(inner).keys().isdisjoint(QUESTION_FIELDS)
        return question_text(inner) if is_wrapped else (value, 0)
    if isinstance(value, list):
        value = _messages(value)
        if asked := _asked(value):
            return question_text(message_text(value[asked[-1]]))[0], len(asked) - 1
        return (value[0] if len(value) == 1 and isinstance(value[0], str) else None), 0
    fields = as_dict(value)
    for inner in (*(fields[key] for key in QUESTION_FIELDS if fields.get(key)), _parts(fields)):
        text, turns = question_text(inner) if inner else (None, 0)
        if text:
            return text, turns
    return (message_text(value) if role_of(value) in _USERS or fields.keys() == {"content"} else None), 0


def answer_text(value: Value) -> str | None:
    """Return the answer in a recorded output; None if it has no such text.

    In a list it is the last message of the assistant that has text, after the last question, and that no result of
    a tool follows; in a list of lists that of the last one. The parts of a stream are joined.
    """
    if isinstance(value, list):
        return _answer_in_list(value)
    if not isinstance(value, dict):
        return value if isinstance(value, str) else None
    if value.get("lc") or role_of(value) in _ASSISTANTS:
        return message_text(value)
    for key in ("choices", "candidates", "generations"):
        if isinstance(value.get(key), list) and value[key]:
            # several may be in the order of their arrival
            first = min(value[key], key=lambda choice: number(as_dict(choice).get("index")) or 0)
            first = as_dict(first[0] if isinstance(first, list) and first else first)
            return message_text(first.get("message") or first.get("content", first)) or message_text(first.get("text"))
    outputs = (*(value[key] for key in ANSWER_FIELDS if value.get(key)), _parts(value))
    return next((text for output in outputs if output and (text := answer_text(output))), None)


def _answer_in_list(value: list[Value]) -> str | None:
    """Return the answer in the chunks of a stream, in messages, in parts of one message, or in a single text."""
    if value and all(as_dict(item).get("object") == "chat.completion.chunk" for item in value):
        return "".join(text for item in value if isinstance(text := at(item, "/choices/0/delta/content"), str)) or None
    value = _messages(value)
    after = max(_asked(value), default=-1) + 1
    messages = [message for message in value[after:] if role_of(message) in (*_ASSISTANTS, "message")]
    messages = [message for message in messages if message is value[-1] or not as_dict(message).get("tool_calls")]
    texts = [text for message in messages if (text := message_text(message))]
    if not texts and value and all(isinstance(item, str) for item in value):
        return "".join(value) if len(value) == 1 or _is_stream(value) else None
    are_parts = not texts and all(as_dict(part) and part.keys() <= _PART for part in value)
    return message_text({"content": value}) if are_parts else texts[-1] if texts else None


def _asked(messages: list[Value]) -> list[int]:
    """Return the positions of the user's messages that have text; results of tools may have the same role."""
    return [index for index, item in enumerate(messages) if role_of(item) in _USERS and message_text(item)]


def turns_of(value: Value) -> list[list[Value]]:
    """Return the messages of each turn of a conversation, from a question to the next one; the first has all before."""
    messages = _messages(value) if isinstance(value, list) else []
    positions = [0, *_asked(messages)[1:], len(messages)]
    return [messages[begin:end] for begin, end in pairwise(positions)] if messages else []


def _messages(items: list[Value]) -> list[Value]:
    """Return the messages in a list, or in the last of several lists."""
    messages = [_message(item) for item in items]
    return _messages(messages[-1]) if messages and all(isinstance(item, list) for item in messages) else messages


def _message(item: Value) -> Value:
    """Return a message; a pair of role and content, which LangChain accepts as a message, as an object."""
    is_pair = isinstance(item, list) and len(item) == 2 and item[0] in ROLES
    return {"role": item[0], "content": item[1]} if is_pair else item


def _parts(value: dict[str, Value]) -> dict[str, Value]:
    """Return the fields of all parts of an object of objects, such as the inputs of a pipeline by component.

    The message of an error is no answer.
    """
    is_nested = all(isinstance(part, dict) for part in value.values())
    parts = [part for key, part in value.items() if key != "error"] if is_nested else []
    return {name: item for part in parts for name, item in part.items()}


def failure_of(output: Value, status: Value = None) -> Value:
    """Return why there is no answer: an error in the output or its last message, or a reason or status that names one.

    ``status`` is that of the record.
    """
    fields = as_dict(output[-1] if isinstance(output, list) and output else output)
    if error := fields.get("error"):
        return as_dict(error).get("content") or error
    if reason := at(fields, "/promptFeedback/blockReason"):
        return f"blocked: {reason}"
    if fields.get("done") is False:
        return "incomplete: done is false"
    texts = (as_id(value) or "" for value in (*(at(fields, f"/{name}") for name in _REASONS), status))
    return next(filter(_FAILURE.search, texts), None)


def error_text(text: str) -> str:
    """Return the message of an error without the traceback that some tools record with it."""
    message, *frames = _TRACEBACK.split(text, maxsplit=1)
    return message.strip() or frames[0].strip().rpartition("\n")[2] if frames else text


def as_id(value: Value) -> str | None:
    """Return an id as text (7 and "7" are one id); None if the value is no id."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, float) and value.is_integer():  # pandas writes the ids of a column with gaps so
        return str(int(value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def as_text(value: Value) -> str | None:
    """Return a text, number or truth value as text; None for any other value."""
    if isinstance(value, (bool, float)) and as_id(value) is None:
        return msgspec.json.encode(value).decode()
    return as_id(value)


def scalars(value: Value) -> dict[str, str | int | float | bool]:
    """Return the texts, numbers and truth values of an object."""
    return {name: item for name, item in as_dict(value).items() if isinstance(item, (str, int, float, bool))}


def usage(*sources: Value, cost: Value = None) -> dict[str, Value]:
    """Return the input and output tokens that the first of some mappings counts, under any usual name, and the cost."""
    counts: dict[str, Value] = {}
    for field, names in TOKEN_KEYS.items():
        values = (number(as_dict(source).get(name)) for source in sources for name in names)
        if (count := next((value for value in values if value is not None and 0 <= value < 10**18), None)) is not None:
            counts[field] = int(count)
    amount = number(cost)
    return counts if amount is None else counts | {"cost_usd": amount}


def with_tokens(value: dict[str, Value]) -> dict[str, Value]:
    """Return a record with the tokens and the model of its ``usage`` as columns of their own."""
    name = next((name for name in ("usage", "token_usage", "metrics") if isinstance(value.get(name), dict)), "")
    columns = usage(value.get(name), cost=_cost_in({"usage": value.get(name)}))
    if not columns:
        return value
    if model := first_id(MODELS, value[name]):
        columns[f"{name}/model"] = model
    return {**columns, **{key: item for key, item in value.items() if key != name or name == "metrics"}}


def _cost_in(response: Value) -> Value:
    """Return the cost that a response states in US dollars."""
    is_usd = at(response, "/metadata/usage/currency") in (None, "USD")
    amounts = (number(at(response, f"/{name}")) for name in COSTS if is_usd)
    return next((amount for amount in amounts if amount is not None), None)


def usage_of(output: Value) -> dict[str, Value]:
    """Return the tokens that the response of a model's API counts, and its model."""
    response = as_dict(output[-1] if isinstance(output, list) and output else output)  # or the end of a stream
    sources = [as_dict(at(response, f"/{name}")) for name in USAGES]
    counts = usage(*sources, {name: response.get(name) for name in OLLAMA_COUNTS}, cost=_cost_in(response))
    if "input_tokens" in counts:  # Anthropic counts cached tokens apart
        cached = (number(sources[0].get(f"cache_{name}_input_tokens")) for name in ("read", "creation"))
        counts["input_tokens"] += int(sum(count or 0 for count in cached))
    model = first_id(MODELS, response)
    return {"model": model, **counts} if model and counts else counts


def number(value: Value) -> float | None:
    """Return a number, or parse the text of one as in CSV; None if the value is neither, or not finite."""
    try:
        result = float(value) if isinstance(value, str) else value
        is_number = isinstance(result, (int, float)) and not isinstance(result, bool) and math.isfinite(result)
    except (ValueError, OverflowError):
        return None
    return result if is_number else None


def nanoseconds(value: Any) -> int | None:
    """Return a time as nanoseconds since 1970, from ISO 8601 (UTC if it states no offset) or milliseconds.

    Numbers that would be milliseconds after the year 5000 are microseconds or nanoseconds.
    """
    if isinstance(value, bool) or value in (None, ""):
        return None
    if isinstance(value, (int, float)):
        return round(value * (1 if value >= 1e17 else 1_000 if value >= 1e14 else 1_000_000))
    match = _ISO.fullmatch(str(value).strip())
    if match is None:
        return None
    *clock, fraction, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = map(int, clock)
    if not (1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1] and hour < 24 and minute < 60 and second < 61):
        return None
    offset = (int(hours or 0) * 60 + int(minutes or 0)) * (-60 if sign == "-" else 60)
    seconds = timegm((year, month, day, hour, minute, second)) - offset
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def milliseconds(start: int | None, end: int | None) -> float | None:
    """Return the milliseconds between instants in nanoseconds, with three decimals; None if not positive."""
    if start is None or end is None or end <= start:
        return None
    return round(end - start, -3) // 1000 / 1000


def as_plain_id(value: Value) -> str | None:
    """Return an id as text; Langfuse's SDK records the text ``q1`` in metadata as the JSON text ``"q1"``."""
    return as_id(decoded(value) if isinstance(value, str) and value[:1] == '"' else value)


def question_id(tool: str, question: str) -> str:
    """Return a qid made of the question's text, the same for gold and traces.

    It is ``TOOL-`` and 12 hex digits of the text's sha256.
    """
    return f"{tool}-{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def first_id(names: Iterable[str], *mappings: Value) -> str | None:
    """Return the first id that one of some mappings has under one of ``names``."""
    ids = (as_id(as_dict(mapping).get(name)) for mapping in mappings for name in names)
    return next((identity for identity in ids if identity), None)

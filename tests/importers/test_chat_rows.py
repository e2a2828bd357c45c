"""Logs with a message in each row, conversations in one record, and documents in messages."""

from __future__ import annotations

import json

from table import each_row

U, A = "How long?", "30 days."
U2, A2 = "And abroad?", "Not at all."
CHAT = [("user", U), ("assistant", A), ("user", U2), ("assistant", A2)]
TRACES = [(U, A), (U2, A2)]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def messages(chat, **more):
    return [{"role": role, "content": text, **more} for role, text in chat]


def sharegpt(chat):
    names = {"user": "human", "assistant": "gpt"}
    return [{"from": names.get(role, role), "value": text} for role, text in chat]


def timed(rows):
    return [{**row, "created_at": f"2026-11-01T09:00:{index:02}Z"} for index, row in enumerate(rows)]


def in_csv(chat):
    return "Conversation,Role,Message,id\n" + "".join(f"c1,{role.title()},{text},{text}\n" for role, text in chat)


TWO = [
    row
    for pair in zip(
        messages(CHAT, session_id="s1"),
        messages([("user", "Why?"), ("assistant", "So.")] * 2, session_id="s2"),
        strict=True,
    )
    for row in pair
]
READ = [
    ("rows.jsonl", lines(messages(CHAT)), TRACES),
    ("rows.csv", in_csv(CHAT), TRACES),
    ("newest-first.jsonl", lines(timed(messages(CHAT))[::-1]), TRACES),
    ("two-conversations.jsonl", lines(TWO), [(U, A), ("Why?", "So."), (U2, A2), ("Why?", "So.")]),
    (
        "bot.jsonl",
        lines({"sender": "bot" if role == "assistant" else role, "text": text} for role, text in CHAT),
        TRACES,
    ),
    (
        "langchain.jsonl",
        lines(
            {"session_id": "s", "message": {"type": {"user": "human"}.get(role, "ai"), "data": {"content": text}}}
            for role, text in CHAT
        ),
        TRACES,
    ),
    (
        "ids-in-objects.jsonl",
        lines(
            {**row, "conversation": {"id": number}}
            for pair in zip(messages(CHAT[:2]), messages(CHAT[2:]), strict=True)
            for number, row in enumerate(pair)
        ),
        TRACES,
    ),
    ("greeting.jsonl", lines(messages([("assistant", "Hello!"), *CHAT])), TRACES),
    ("lists.jsonl", lines([messages(CHAT[:2]), messages(CHAT[2:])]), TRACES),
    ("openai.jsonl", lines([{"messages": messages([("system", "Be brief."), *CHAT])}]), TRACES),
    ("sharegpt.json", json.dumps([{"id": "c1", "conversations": sharegpt(CHAT)}], indent=1), TRACES),
    (
        "sharegpt.jsonl",
        lines([{"id": "c1", "conversations": sharegpt(CHAT[:2])}, {"id": "c2", "conversations": sharegpt(CHAT[2:])}]),
        TRACES,
    ),
]


@each_row("name, content, traces", READ)
def test_a_trace_for_each_turn(command, tmp_path, name, content, traces):
    (tmp_path / name).write_text(content, encoding="utf-8")
    code, out, err = command("import", "auto", tmp_path / name)
    assert code == 0, err
    assert [(row["q"], row["answer_json"]["claim"]) for row in map(json.loads, out.splitlines())] == traces


def test_turns_are_paired_by_conversation(command, tmp_path):
    (tmp_path / "chat.jsonl").write_text(lines(messages(CHAT, session_id="s1")), encoding="utf-8")
    golds = [
        {
            "qid": f"g{turn}",
            "conversation": "s1",
            "turn": turn,
            "question": text,
            "answerable": True,
            "gold_claim_substr": ["30 days"],
            "gold_citations": [],
        }
        for turn, text in ((1, "Asked otherwise"), (2, "Asked so"))
    ]
    (tmp_path / "gold.jsonl").write_text(lines(golds), encoding="utf-8")
    code, out, err = command("import", "auto", tmp_path / "chat.jsonl", "--gold", tmp_path / "gold.jsonl")
    assert code == 0, err
    assert [(row["qid"], row["turn"]) for row in map(json.loads, out.splitlines())] == [("g1", 1), ("g2", 2)]
    (tmp_path / "whole.jsonl").write_text(lines([{"messages": messages(CHAT)}]), encoding="utf-8")
    code, out, _ = command("import", "auto", tmp_path / "whole.jsonl", "--turns", "last")
    assert (code, [json.loads(line)["q"] for line in out.splitlines()]) == (0, [U2])


@each_row("role", ["author", "role"])
def test_gold_items_with_an_author_are_no_messages(command, tmp_path, role):
    golds = [{"question": text, "expected_answer": A, role: author} for text, author in ((U, "human"), (U2, "ai"))]
    (tmp_path / "gold.jsonl").write_text(lines(golds), encoding="utf-8")
    code, out, err = command("import", "auto", tmp_path / "gold.jsonl", "--as", "gold")
    assert (code, [json.loads(line)["question"] for line in out.splitlines()]) == (0, [U, U2]), err


@each_row(
    "content, message",
    [
        (
            lines(messages(CHAT[::-1])),
            "FILE:1: begins a conversation that ends with a question. Sort the messages by time",
        ),
        (lines([*messages(CHAT), {"role": "robot", "content": "Hm"}]), "FILE:5: has no known role of a message."),
    ],
)
def test_what_is_refused(command, tmp_path, content, message):
    (tmp_path / "log.jsonl").write_text(content, encoding="utf-8")
    code, out, err = command("import", "auto", tmp_path / "log.jsonl")
    assert (code, out) == (2, "")
    assert message in err.replace(str(tmp_path / "log.jsonl"), "FILE")


TEXTS = ["Staff have 30 days.", "Leave lapses in March."]
FOUND = [{"id": f"d{number}", "text": text, "score": 0.5} for number, text in enumerate(TEXTS)]
SEARCH_RESULTS = [
    {"type": "search_result", "source": "hr/leave", "title": "Leave", "content": [{"type": "text", "text": text}]}
    for text in TEXTS
]
DOCUMENTS = [{"type": "document", "title": "Leave", "source": {"type": "text", "data": text}} for text in TEXTS]
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}}
ASKED = {"type": "text", "text": U}


def tool(content):
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}],
    }
    return {
        "messages": [
            {"role": "user", "content": U},
            call,
            {"role": "tool", "content": content},
            {"role": "assistant", "content": A},
        ]
    }


def request(*asked, content=()):
    turns = [{"role": "user", "content": list(asked)}]
    if content:
        turns.append({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]})
        turns.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}]})
    return {"request": {"messages": turns}, "response": {"role": "assistant", "content": [{"type": "text", "text": A}]}}


DROPPED = "left out: results of tools or documents without text"


@each_row(
    "record, texts, named",
    [
        (tool(json.dumps(FOUND)), TEXTS, ""),
        (tool(json.dumps({"results": FOUND})), TEXTS, ""),
        (tool([{"type": "text", "text": json.dumps(FOUND)}]), TEXTS, ""),
        (tool("22 degrees"), [], DROPPED),
        (tool(json.dumps([{"text": "sunny"}])), [], DROPPED),
        (request(*DOCUMENTS, ASKED), TEXTS, ""),
        (request(*SEARCH_RESULTS, ASKED), TEXTS, ""),
        (request(PDF, ASKED), [], DROPPED),
        (request(ASKED, content=SEARCH_RESULTS), TEXTS, ""),
        (request(ASKED, content=json.dumps(FOUND)), TEXTS, ""),
        (request(ASKED, content=[{"type": "text", "text": "22 degrees"}]), [], DROPPED),
    ],
)
def test_documents_in_messages(command, tmp_path, record, texts, named):
    (tmp_path / "log.jsonl").write_text(lines([record]), encoding="utf-8")
    code, out, err = command("import", "auto", tmp_path / "log.jsonl")
    assert code == 0, err
    row = json.loads(out)
    assert (row["q"], row["answer_json"]["claim"]) == (U, A)
    assert [chunk["text"] for chunk in row.get("chunks", ())] == texts
    assert named in err
    assert (DROPPED in err) is bool(named)

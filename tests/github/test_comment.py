from __future__ import annotations

import cmarkgfm
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fake_github import BOT, FakeGitHub, Fault
from rag_eval.github.posting import MOST_CHARACTERS, Marker, attempt, find, last_line, post, run_address
from seams import Comment, GitHub, GitHubError, Network, UsageError, marker, parse_marker

pytest.importorskip("urllib3")

HEAD = "0123456789abcdef0123456789abcdef01234567"
ID = "rag-eval"


@pytest.fixture
def github(fake):
    return GitHub(fake.url, "token", "octo/hello", Network(sleep=lambda _: None))


def body(text="All gates passed.", run=5, comment_id=ID, workflow="", failed=False):
    return f"{marker(comment_id, HEAD, run, workflow, failed=failed)}\n{text}"


def bodies(fake):
    return [row["body"] for row in fake.comments[2]]


def send(github, text, run=5, mode="always", failed=False, comment_id=ID, workflow=""):
    return post(github, 2, body(text, run, comment_id, workflow, failed), mode)


def test_the_marker_is_one_invisible_line():
    assert marker("nightly", HEAD, 7) == f"<!-- rag-eval-action id=nightly head={HEAD} run=7 -->"
    assert cmarkgfm.github_flavored_markdown_to_html(body("text")).endswith("-->\n<p>text</p>\n")


printable = st.text(min_size=1, max_size=100).filter(str.isprintable)


@given(printable, st.text(), st.integers(min_value=0, max_value=10**18 - 1), st.text("ab/@>-"))
@example("--> head=0 run=9 -->", "a b-->", 1, "-->")
def test_a_marker_is_read_as_it_was_written(comment_id, head, run, workflow):
    line = marker(comment_id, head, run, workflow)
    output = parse_marker(f"{line}\r\nrest")
    assert output is not None
    assert (output.id, output.run) == (comment_id, run)
    assert line.count("-->") == line.count("<") == line.count(">") == 1
    assert line.isascii()
    assert "\n" not in line


@given(printable, printable)
def test_different_ids_have_different_markers(one, other):
    assert (marker(one, HEAD, 1) == marker(other, HEAD, 1)) == (one == other)


@pytest.mark.parametrize("length", [1, 40, 64, 65])
def test_a_hash_is_written_up_to_the_length_of_sha_256(length):
    assert parse_marker(marker(ID, "a" * length, -1)) == Marker(ID, "a" * min(length, 64), 0)


@pytest.mark.parametrize("head", ["", "-->", "\n"])
def test_a_head_that_is_no_hash_is_not_written(head):
    assert parse_marker(marker(ID, head, 1)) == Marker(ID, "unknown", 1)


@pytest.mark.parametrize("comment_id", ["", "a" * 101, "a\nb", "\ud800", "\u202e"])
def test_an_id_that_does_not_fit_is_refused(comment_id):
    with pytest.raises(UsageError, match="comment-id"):
        marker(comment_id, HEAD, 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f" {marker(ID, HEAD, 1)}",
        f"Look:\n{marker(ID, HEAD, 1)}",
        f"{marker(ID, HEAD, 1)} and more",
        f"<!-- rag-eval-action id= head={HEAD} run=1 -->",
        f"<!-- rag-eval-action id=x head={HEAD} run=\u0661 -->",
        f"<!-- rag-eval-action id=x head={HEAD} run={'9' * 5000} -->",
    ],
)
def test_what_is_not_exactly_a_marker_is_none(text):
    assert parse_marker(text) is None


def test_only_our_own_comment_with_our_id_is_found():
    comments = [
        Comment(1, "mallory", body(run=99), ""),
        Comment(2, BOT, body(comment_id="other"), ""),
        Comment(3, BOT, f"> {body()}", ""),
        Comment(4, BOT, body(), ""),
        Comment(5, "", body(), ""),
    ]
    assert find(comments, BOT, ID) == comments[3]
    assert find(comments[:3], BOT, ID) is None


def test_of_several_the_newest_run_counts_then_the_oldest_comment():
    runs = [Comment(number, BOT, body(run=run), "") for number, run in ((1, 5), (2, 6), (3, 6), (4, 4))]
    assert find(runs, BOT, ID) == runs[1]


def test_the_first_run_creates_and_the_second_updates(fake, github):
    first, second = send(github, "red", run=1), send(github, "green", run=2)
    assert (str(first), str(second)) == ("comment created", "comment updated")
    assert (first.written, second.written) == (True, True)
    assert first.url == second.url == fake.comments[2][0]["html_url"]
    assert bodies(fake) == [body("green", 2)]


def test_ours_is_found_behind_two_hundred_others_and_a_forged_one(fake, github):
    fake.add_comment(2, body("forged", run=10**9), author="mallory")
    for i in range(200):
        fake.add_comment(2, f"comment {i}", author="someone")
    fake.add_comment(2, body("red", run=1))
    assert send(github, "green", run=2).action == "updated"
    assert (len(bodies(fake)), bodies(fake)[-1]) == (202, body("green", 2))
    assert bodies(fake)[0] == body("forged", run=10**9)


def test_an_app_of_its_own_keeps_one_comment_too():
    with FakeGitHub(author="my-app[bot]").serving() as fake:
        fake.add_pull(2, "1" * 40, "2" * 40)
        github = GitHub(fake.url, "token", "octo/hello", Network(sleep=lambda _: None))
        first, second, third = (send(github, text, run) for run, text in enumerate(("red", "red", "green"), 1))
    assert [item.action for item in (first, second, third)] == ["created", "updated", "updated"]
    assert (bodies(fake), first.needs_attention) == ([body("green", 3)], False)


def test_a_comment_that_the_next_run_will_not_find_is_told_of():
    with FakeGitHub(author="my-app[bot]").serving() as fake:
        fake.graphql = False
        fake.add_pull(2, "1" * 40, "2" * 40)
        made = send(GitHub(fake.url, "token", "octo/hello", Network(sleep=lambda _: None)), "red")
    assert (made.action, made.needs_attention) == ("created", True)
    why = "its author is 'my-app[bot]', not 'github-actions[bot]', so the next run will add another comment"
    assert made.reason == why


def test_two_instances_keep_a_comment_each(fake, github):
    for comment_id in ("one", "two", "one", "two"):
        send(github, comment_id, comment_id=comment_id)
    assert bodies(fake) == [body("one", comment_id="one"), body("two", comment_id="two")]


def test_an_older_run_does_not_overwrite_a_newer_one(fake, github):
    send(github, "new", run=7)
    late = send(github, "old", run=6)
    assert late.action == "skipped"
    assert str(late) == "comment skipped: run 7 is newer and has already commented"
    assert bodies(fake) == [body("new", 7)]


def test_a_newer_number_of_another_commit_stays_only_while_that_commit_is_the_last(fake, github):
    other = "f" * 40
    fake.add_pull(2, other, "b" * 40)
    fake.add_comment(2, body("forged", run=10**18 - 1).replace(HEAD, other))
    assert send(github, "old", run=6).action == "skipped", "ours is of an older commit"
    fake.pulls[2]["head"]["sha"] = HEAD
    assert send(github, "new", run=7).action == "updated"
    assert bodies(fake) == [body("new", 7)]


OLD, NEW = (f"octo/hello/.github/workflows/{name}.yml@refs/pull/2/merge" for name in ("old", "new"))


def test_a_workflow_that_was_renamed_begins_to_count_anew(fake, github):
    send(github, "green", run=57, workflow=OLD)
    red = send(github, "red", run=1, workflow=NEW)
    assert (red.action, red.needs_attention, bodies(fake)) == ("updated", True, [body("red", 1, workflow=NEW)])
    assert red.reason == "another workflow wrote it. If both should comment, give each its own comment-id"
    assert not send(github, "green", run=2, workflow=NEW).needs_attention


def test_within_a_workflow_the_newer_run_counts_on_whichever_ref(fake, github):
    send(github, "new", run=7, workflow=OLD)
    late = send(github, "old", run=6, workflow=OLD.replace("pull/2/merge", "heads/main"))
    assert (late.action, late.needs_attention, bodies(fake)) == ("skipped", True, [body("new", 7, workflow=OLD)])


@pytest.mark.parametrize("workflows", [("", NEW), (OLD, "")])
def test_where_a_comment_names_no_workflow_the_numbers_decide(github, workflows):
    send(github, "new", run=7, workflow=workflows[0])
    assert send(github, "old", run=6, workflow=workflows[1]).action == "skipped"
    assert send(github, "newer", run=8, workflow=workflows[1]).action == "updated"


def test_a_run_may_be_repeated(fake, github):
    send(github, "first attempt", run=7)
    assert send(github, "second attempt", run=7).action == "updated"
    assert str(send(github, "second attempt", run=7)) == "comment unchanged: it already has the same text"
    assert len(fake.writes) == 2


def of(by, text, run=5, failed=False):
    return f"{marker(ID, HEAD, run, by=by, failed=failed)}\n{text}"


def send_by(github, by, text, run=5, failed=False, mode="always"):
    return post(github, 2, of(by, text, run, failed), mode)


@pytest.mark.parametrize("mode", ["always", "on-change", "on-failure"])
def test_of_several_uses_in_one_run_the_comment_keeps_one_that_failed(fake, github, mode):
    """Else who looks at the comment alone would take the last one, which passed, for all of them."""
    send_by(github, "9.1", "red", failed=True)
    green = send_by(github, "9.1", "green", mode=mode)
    assert (green.action, green.needs_attention, green.written) == ("unchanged", True, False)
    assert bodies(fake) == [of("9.1", "red", failed=True)]
    what = "another use in this run, which failed, wrote it"
    assert green.reason == f"{what}. If both should comment, give each its own comment-id"


@pytest.mark.parametrize("failed", [False, True])
def test_another_use_in_the_same_run_is_told_of(fake, github, failed):
    send_by(github, "9.1", "first")
    second = send_by(github, "9.1", "second", failed=failed)
    assert (second.action, second.needs_attention, bodies(fake)) == (
        "updated",
        True,
        [of("9.1", "second", failed=failed)],
    )
    assert second.reason == "another use in this run wrote it. If both should comment, give each its own comment-id"
    assert send_by(github, "9.1", "second", failed=failed).needs_attention


@pytest.mark.parametrize(("by", "run"), [("9.2", 5), ("10.1", 6), ("9.1", 6), ("", 5)])
def test_a_run_that_is_repeated_or_the_next_one_turns_the_comment_green(fake, github, by, run):
    send_by(github, "9.1", "red", failed=True)
    green = send_by(github, by, "green", run)
    assert (green.action, green.needs_attention, bodies(fake)) == ("updated", False, [of(by, "green", run)])


@pytest.mark.parametrize(
    ("run_id", "number", "known"),
    [
        ("42", "1", "42.1"),
        ("9" * 18, "9" * 9, f"{'9' * 18}.{'9' * 9}"),
        ("9" * 19, "1", ""),
        ("1", "9" * 10, ""),
        ("", "1", ""),
        ("42", "", ""),
        ("42", "1 -->", ""),
    ],
)
def test_an_attempt_is_named_by_numbers_alone(run_id, number, known):
    assert attempt(run_id, number) == known
    output = parse_marker(of(known, "text", failed=True))
    assert (output.by, output.failed) == (known, True)


def test_on_change_leaves_the_same_text_alone(fake, github):
    assert send(github, "green", run=1, mode="on-change").action == "created"
    assert send(github, "green", run=2, mode="on-change").action == "unchanged"
    assert bodies(fake) == [body("green", 1)]
    assert send(github, "red", run=3, mode="on-change", failed=True).action == "updated"
    assert bodies(fake) == [body("red", 3, failed=True)]


ADDRESS = run_address("https://github.com", "octo/hello", "4242")


def test_the_line_on_the_run_is_no_change(fake, github):
    green = [f"green\n{last_line(head * 40, run, ADDRESS)}" for run, head in enumerate("abc")]
    assert send(github, green[1], run=1, mode="on-change").action == "created"
    assert send(github, green[2], run=2, mode="on-change").action == "unchanged"
    fake.comments[2][0]["body"] = bodies(fake)[0].strip().replace("\n", "\r\n")
    assert send(github, green[2], run=2, mode="on-change").action == "unchanged"
    assert send(github, green[2].replace("green", "red"), run=3, mode="on-change").action == "updated"


@pytest.mark.parametrize(
    ("head", "run", "address", "line"),
    [
        (HEAD, 7, ADDRESS, f"\nCommit `0123456` · [run 7]({ADDRESS})\n"),
        (HEAD, 7, "", "\nCommit `0123456` · run 7\n"),
        (HEAD, 7, "javascript:alert(1)", "\nCommit `0123456` · run 7\n"),
        (HEAD, 7, "https://a.b/c) <b>", "\nCommit `0123456` · run 7\n"),
        (HEAD, 0, ADDRESS, "\nCommit `0123456`\n"),
        ("`|`", 7, ADDRESS, ""),
    ],
)
def test_the_last_line_names_commit_and_run(head, run, address, line):
    assert last_line(head, run, address) == line


@pytest.mark.parametrize("server", ["https://ghe.test", "https://ghe.test/", "https://ghe.test//"])
@pytest.mark.parametrize("run_id", [1, "4242", "9" * 18])
def test_a_run_has_an_address_of_the_server(server, run_id):
    assert run_address(server, "octo/hello", run_id) == f"https://ghe.test/octo/hello/actions/runs/{run_id}"


@pytest.mark.parametrize("run_id", ["", "0", "../x", 0.5, "4242\n", None, "9" * 19, "042"])
def test_a_run_without_a_number_has_no_address(run_id):
    assert run_address("https://github.com", "octo/hello", run_id) == run_address("", "octo/hello", 7) == ""


def test_other_line_ends_are_the_same_text(fake, github):
    send(github, "a\nb", run=1)
    fake.comments[2][0]["body"] = body("a\r\nb\r\n", 1).replace("-->\n", "-->\r\n")
    assert send(github, "a\nb", run=2, mode="on-change").action == "unchanged"


def test_always_writes_the_same_text_for_the_sake_of_the_order_of_runs(fake, github):
    send(github, "green", run=1)
    assert send(github, "green", run=2).action == "updated"
    assert bodies(fake) == [body("green", 2)]


def test_on_failure_is_silent_until_a_gate_fails_and_then_keeps_up(fake, github):
    skipped = send(github, "green", run=1, mode="on-failure")
    assert str(skipped) == "comment skipped: no gate failed, and there is no comment to update"
    assert bodies(fake) == []
    assert send(github, "red", run=2, mode="on-failure", failed=True).action == "created"
    assert send(github, "green again", run=3, mode="on-failure").action == "updated"
    assert bodies(fake) == [body("green again", 3)]


def test_on_failure_also_writes_about_a_change_of_what_it_is_judged_by(github):
    assert post(github, 2, body("green"), "on-failure", needs_review=True).action == "created"


def test_off_asks_nothing(fake, github):
    assert send(github, "red", mode="off", failed=True) == ("", "skipped", "comments are off", False)
    assert fake.seen == []


def test_a_lost_answer_does_not_make_a_second_comment(fake, github):
    fake.faults = [Fault("POST .*comments", 502, done=True)]
    assert send(github, "red").action == "created"
    assert bodies(fake) == [body("red")]


def test_what_another_run_wrote_between_two_tries_is_replaced(fake, github, monkeypatch):
    refuse = fake.answer

    def write_then_refuse(seen):
        if seen.method == "POST" and seen.target.endswith("/comments"):
            fake.add_comment(2, body("older", run=4))
            monkeypatch.setattr(fake, "answer", refuse)
            fake.faults = [Fault("POST .*comments", 500)]
        return refuse(seen)

    monkeypatch.setattr(fake, "answer", write_then_refuse)
    assert send(github, "newer", run=5).action == "updated"
    assert bodies(fake) == [body("newer", 5)]


def test_a_refusal_goes_to_the_caller(fake, github):
    fake.faults = [Fault("POST .*comments", 403, message="Resource not accessible by integration")]
    with pytest.raises(GitHubError, match="pull-requests: write"):
        send(github, "red")


@pytest.mark.parametrize("letter", ["a", "\U0001f600"])
def test_the_longest_body_fits(fake, github, letter):
    assert send(github, letter * (MOST_CHARACTERS - len(body("")))).action == "created"
    assert [len(text) for text in bodies(fake)] == [MOST_CHARACTERS]


@pytest.mark.parametrize("wrong", ["no marker", f"\n{body()}"])
def test_a_body_that_could_not_be_found_again_is_refused(fake, github, wrong):
    with pytest.raises(ValueError, match=r"^the body must start with a marker$"):
        post(github, 2, wrong, "always")
    assert fake.seen == []


@pytest.mark.parametrize("status", [404, 410])
def test_a_comment_that_is_deleted_after_it_was_listed_is_made_anew(fake, github, status):
    send(github, "red", run=1)
    fake.faults = [Fault("^PATCH", status)]
    posted = send(github, "green", run=2)
    assert (posted.action, len(fake.comments[2])) == ("created", 2)
    assert "green" in bodies(fake)[-1]


def test_a_deleted_comment_that_need_not_be_there_is_not_made_anew(fake, github):
    send(github, "red", run=1, failed=True)
    fake.faults = [Fault("^PATCH", 404)]
    assert send(github, "green", run=2, mode="on-failure").action == "skipped"


def test_a_comment_that_may_not_be_changed_is_not_repeated(fake, github):
    send(github, "red", run=1)
    fake.faults = [Fault("^PATCH", 403, message="Resource not accessible by integration")]
    with pytest.raises(GitHubError):
        send(github, "green", run=2)
    assert len(fake.comments[2]) == 1

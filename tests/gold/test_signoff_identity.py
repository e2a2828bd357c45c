"""Who stands behind a change: one example for each finding, forged ones included, then the laws."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval.contract import item_hash
from rag_eval.gold.signoff import (
    Advice,
    Side,
    SignoffItem,
    changes,
    check,
    new_records,
    uncovered_changes,
)
from rag_eval.gold.signoff_identity import (
    NO_PROOF,
    Author,
    Authorship,
    Proof,
    Review,
    SignoffPolicy,
    approvals,
    authors,
    unchecked,
)
from rag_eval.gold.signoff_repository import signature_proof as proof_of
from seams import NAMESPACE, HashChange, InputError, Record, sign
from sshkeys import needs_ssh_keygen
from table import each_row

HEAD, OLD = "a" * 40, "b" * 40
SIGNERS = {f"{name}@example.org": name.title() for name in ("ann", "bob", "cy")}
ADVICE = Advice("sign it", "main")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


def item(text, question="How long?"):
    return SignoffItem(item_hash(text.encode()), question, True, 3, {"text": text})


def record(signer="bob", edits=(("A1", "one", "two"),), **fields):
    pairs = tuple(HashChange(qid, *(end and item_hash(end.encode()) for end in ends)) for qid, *ends in edits)
    given = {"date": "2026-11-21T10:00:00Z", "reason": "manual v3", **fields}
    return Record("d", "gold", f"{signer}@example.org", changes=pairs, **given)


def files(*records):
    return {f"records/{record.name}": record for record in records}


BASE = Side({"A1": item("one")})
EDITED = {"A1": item("two")}


def policy(**rules):
    return SignoffPolicy(dataset="d", gold="gold", records="records", **rules)


def found(records, rules, proof=NO_PROOF, base=BASE, items=EDITED):
    return [item.code for item in check(base, Side(items, files(*records)), rules, ADVICE, proof=proof)]


def wrote(*logins):
    """A proof that these accounts wrote the change; None stands for one that cannot be told."""
    return Proof(authors=[Author(login, login or "Somebody") for login in logins])


# --- who may sign ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["record", "review"])
def test_only_signers_of_the_base_sign_at_any_level(level):
    rules = policy(require=level, signers=SIGNERS)
    assert found([record("bob")], rules) == []
    assert found([record("eve")], rules) == ["unknown-signer", "unsigned-change"]
    assert found([record("BOB")], rules) == ["unknown-signer", "unsigned-change"]
    # Each new record has to be of a signer, also where another covers the change.
    assert found([record("bob"), record("eve")], rules) == ["unknown-signer"]


def test_what_is_on_the_base_was_judged_when_it_came():
    old = files(record("eve"))
    assert check(Side(EDITED, old), Side(EDITED, old), policy(signers=SIGNERS), ADVICE) == []


def test_a_record_of_nobody_known_is_to_be_taken_away_and_the_change_signed_again():
    eve = record("eve")
    (refused, _) = check(BASE, Side(EDITED, files(eve)), policy(signers=SIGNERS), ADVICE)
    assert (refused.file, refused.fix) == (
        f"records/{eve.name}",
        f"git rm -f -- :/records/{eve.name} && sign it  # run by a signer of the base branch",
    )
    assert "'eve@example.org'" in refused.message


def test_a_record_from_the_future_does_not_count():
    proof = proof_of({}, policy(), None, NOW)
    assert proof.latest == "2026-11-22T12:00:00Z"
    assert found([record(date="2026-11-22T12:00:00Z")], policy(), proof) == []
    assert found([record(date="2026-11-22T12:00:01Z")], policy(), proof) == ["future-record", "unsigned-change"]
    assert found([record(date="2026-11-22T12:00:01Z")], policy()) == []


# --- signatures ------------------------------------------------------------------------------------------------------

SIGNATURE = policy(require="signature", allowed_signers=".github/signers")


def judged(record, allowed, rules=SIGNATURE):
    head = Side(EDITED, files(record))
    proof = proof_of(new_records(BASE, head, rules), rules, allowed, NOW)
    return check(BASE, head, rules, ADVICE, proof=proof)


def codes(*asked, **more):
    return [item.code for item in judged(*asked, **more)]


@needs_ssh_keygen
def test_a_signature_holds_or_the_record_does_not_count(keys):
    ours = sign(record(), str(keys.file("bob")))
    assert codes(ours, keys.allowed("ann", "bob")) == []
    assert codes(record(), keys.allowed("bob")) == ["missing-signature", "unsigned-change"]
    assert codes(ours, keys.allowed("ann")) == ["unknown-signer", "unsigned-change"]
    by_eve = sign(record(), str(keys.file("eve")))
    assert codes(by_eve, keys.allowed("bob", "eve")) == ["bad-signature", "unsigned-change"]
    altered = ours._replace(reason="another reason")
    assert codes(altered, keys.allowed("bob")) == ["bad-signature", "unsigned-change"]


@needs_ssh_keygen
def test_a_date_in_the_past_does_not_bring_an_expired_key_back(keys):
    old = sign(record(date="2026-01-01T00:00:00Z"), str(keys.file("bob")))
    expired = keys.line("bob", options=f'namespaces="{NAMESPACE}",valid-before="20260601"').encode()
    (finding, _) = judged(old, expired)
    assert (finding.code, "expired" in finding.message) == ("bad-signature", True)


@needs_ssh_keygen
def test_listed_signers_count_beside_the_keys(keys):
    rules = SIGNATURE._replace(signers={"ann@example.org": "ann"})
    ours = sign(record(), str(keys.file("bob")))
    assert codes(ours, keys.allowed("bob"), rules=rules) == ["unknown-signer", "unsigned-change"]


def test_an_allowed_signers_file_that_is_missing_or_loose_is_never_a_pass(keys):
    for allowed, line, says in (
        (None, 0, "not on the base branch"),
        (b"", 0, "lists no signers"),
        (b"* ssh-ed25519 AAAA\n", 1, "not one e-mail"),
    ):
        with pytest.raises(InputError) as refused:
            proof_of(files(record()), SIGNATURE, allowed, NOW)
        problem = refused.value.problems[0]
        if allowed is None:
            assert problem.message == "is not on the base branch"
            hint = "Merge it first, or correct 'allowed_signers'. The file of the base branch applies."
            assert problem.hint == hint
        assert (problem.file, problem.line, says in problem.message) == (".github/signers", line, True)


def test_what_nobody_checked_does_not_hold():
    signed = record(sig="x")
    assert found([signed], SIGNATURE) == ["unknown-signer", "unsigned-change"]
    known = Proof(principals={"bob@example.org"})
    assert found([signed], SIGNATURE, known) == ["bad-signature", "unsigned-change"]
    path = f"records/{signed.name}"
    assert found([signed], SIGNATURE, known._replace(signatures={path: None})) == []


# --- reviews ---------------------------------------------------------------------------------------------------------

REVIEW = policy(require="review", signers=SIGNERS)


@pytest.mark.parametrize(
    ("reviews", "who"),
    [
        ([], []),
        ([("bob", "APPROVED", HEAD)], ["bob"]),
        ([("bob", "APPROVED", OLD)], []),
        ([("bob", "APPROVED", OLD), ("bob", "APPROVED", HEAD)], ["bob"]),
        ([("bob", "APPROVED", HEAD), ("bob", "APPROVED", OLD)], ["bob"]),
        ([("bob", "APPROVED", HEAD), ("bob", "COMMENTED", HEAD)], ["bob"]),
        ([("bob", "APPROVED", HEAD), ("bob", "PENDING", HEAD)], ["bob"]),
        ([("bob", "APPROVED", HEAD), ("bob", "CHANGES_REQUESTED", HEAD)], []),
        ([("bob", "APPROVED", HEAD), ("BOB", "CHANGES_REQUESTED", OLD)], []),
        ([("bob", "APPROVED", HEAD), ("bob", "DISMISSED", HEAD)], []),
        ([("bob", "CHANGES_REQUESTED", HEAD), ("bob", "APPROVED", HEAD)], ["bob"]),
        ([("bob", "APPROVED", HEAD), ("ann", "CHANGES_REQUESTED", HEAD)], ["bob"]),
        ([("", "APPROVED", HEAD)], []),
        ([("bob", "approved", HEAD), ("ann", "COMMENTED", HEAD)], []),
    ],
)
def test_the_last_word_on_the_head_counts(reviews, who):
    assert approvals([Review(n, *review) for n, review in enumerate(reviews)], HEAD) == who


states = st.sampled_from(["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"])
tables = st.lists(
    st.builds(Review, st.integers(), st.sampled_from(["ann", "bob", "Bob", ""]), states, st.sampled_from([HEAD, OLD]))
)


@given(tables)
def test_approvals_are_those_that_nothing_of_the_same_account_takes_back(reviews):
    def stands(n, review):
        newer = [item for item in reviews[n + 1 :] if item.user.lower() == review.user.lower()]
        return not any(item.state in ("CHANGES_REQUESTED", "DISMISSED") for item in newer)

    expected = {
        review.user.lower()
        for n, review in enumerate(reviews)
        if review.user and review.state == "APPROVED" and review.commit == HEAD and stands(n, review)
    }
    answer = [login.lower() for login in approvals(reviews, HEAD)]
    assert (set(answer), len(answer)) == (expected, len(expected))


@given(tables, st.data())
def test_the_reviews_of_one_account_say_nothing_of_another(reviews, data):
    mixed = data.draw(st.permutations(reviews))
    alone = [item for item in mixed if item.user == "ann"]
    assert ("ann" in approvals(mixed, HEAD)) == (approvals(alone, HEAD) == ["ann"])


def test_a_listed_signer_has_to_approve():
    ask = [record()]
    assert found(ask, REVIEW, Proof(approvals=["bob"])) == []
    assert found(ask, REVIEW, Proof(approvals=["BOB", "eve"])) == []
    assert found(ask, REVIEW, Proof(approvals=["eve"])) == ["no-approval"]
    assert found(ask, REVIEW, Proof(approvals=[])) == ["no-approval"]
    assert found([], REVIEW, Proof(approvals=["bob"])) == ["unsigned-change"]
    # Where nothing changed there is nothing to approve.
    assert found([], REVIEW, Proof(approvals=[]), items=BASE.items) == []


def test_whom_to_ask_is_said():
    rules = REVIEW._replace(four_eyes=True)
    (finding,) = check(BASE, Side(EDITED, files(record())), rules, proof=wrote("ann")._replace(approvals=[]))
    assert finding.fix == "Ask one of these to approve, then run this check again: Bob, Cy"


def test_with_four_eyes_no_author_approves_but_authors_may_record():
    rules = REVIEW._replace(four_eyes=True)
    assert found([record("ann")], rules, wrote("ann")._replace(approvals=["bob"])) == []
    assert found([record("bob")], rules, wrote("ann", "bob")._replace(approvals=["bob"])) == ["no-approval"]
    unknown = wrote("ann", None)._replace(approvals=["bob"])
    (finding,) = check(BASE, Side(EDITED, files(record("bob"))), rules, ADVICE, proof=unknown)
    assert str(finding) == (
        "gold: [unresolved-author] 'Somebody' wrote commits of this change, but the GitHub account is unknown"
    )


# --- four eyes -------------------------------------------------------------------------------------------------------

FOUR = policy(four_eyes=True, signers=SIGNERS)


def test_somebody_else_than_the_authors_signs():
    assert found([record("bob")], FOUR, wrote("ann")) == []
    assert found([record("bob")], FOUR, wrote("BOB")) == ["four-eyes"]
    assert found([record("bob")], FOUR, wrote("ann", "bob")) == ["four-eyes"]
    assert found([record("ann"), record("bob")], FOUR, wrote("ann")) == []
    (finding,) = check(BASE, Side(EDITED, files(record("ann"))), FOUR, ADVICE, proof=wrote("ann"))
    assert (finding.code, finding.fix) == (
        "four-eyes",
        "sign it  # run by a signer who is not an author of the change",
    )
    assert found([], FOUR, wrote("ann")) == ["unsigned-change"]
    assert found([], FOUR, wrote("ann"), items=BASE.items) == []


def test_four_eyes_shows_the_line_of_the_item_unless_it_was_removed():
    (edited,) = check(BASE, Side(EDITED, files(record("ann"))), FOUR, proof=wrote("ann"))
    removal = record("ann", [("A1", "one", None)])
    (removed,) = check(BASE, Side({}, files(removal)), FOUR, proof=wrote("ann"))
    assert str(edited) == "gold:3: [four-eyes] item 'A1' was changed, and only authors of the change signed it"
    assert str(removed) == "gold: [four-eyes] item 'A1' was removed, and only authors of the change signed it"


def test_the_other_s_records_alone_lead_all_the_way():
    variant = [record("ann", [("A1", "one", "half")]), record("bob", [("A1", "half", "two")])]
    assert found(variant, FOUR, wrote("ann")) == ["four-eyes"]
    assert found([*variant, record("cy", [("A1", "one", "half")])], FOUR, wrote("ann")) == []


def test_a_mutation_that_only_the_author_means_is_not_signed_by_four_eyes():
    items = {"A1": item("two", "How wide?")}
    both = [record("ann", mutates=True), record("bob")]
    assert found(both, FOUR, wrote("ann"), items=items) == ["four-eyes"]
    assert found([record("bob", mutates=True)], FOUR, wrote("ann"), items=items) == []


def test_two_addresses_of_one_account_are_one_person():
    rules = FOUR._replace(signers={**SIGNERS, "ann2@example.org": "ANN"})
    assert found([record("ann2")], rules, wrote("ann")) == ["four-eyes"]


def test_an_author_without_an_account_is_not_passed_over():
    (finding,) = check(BASE, Side(EDITED, files(record())), FOUR, ADVICE, proof=wrote("ann", None))
    assert (finding.code, "'Somebody'" in finding.message) == ("unresolved-author", True)


def test_what_a_hook_cannot_know_is_not_checked_and_named():
    assert found([record("ann")], FOUR) == []
    assert unchecked(FOUR, Proof()) == ["four eyes"]
    assert unchecked(FOUR, wrote("ann")) == []
    assert found([record("ann")], REVIEW._replace(four_eyes=True)) == []
    assert unchecked(REVIEW._replace(four_eyes=True), Proof()) == ["the approving review", "four eyes"]
    assert unchecked(policy(), Proof()) == []


# --- authors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "who"),
    [
        (Authorship("s", "bob", "Bob", "b@x"), ["bob"]),
        (Authorship("s", None, "Bob", "b@x"), [None]),
        (Authorship("s", None, "Bob", "bob@example.org"), ["Bob"]),
        (Authorship("s", "eve", "Eve", "bob@example.org"), ["eve", "Bob"]),
        (Authorship("s", None, "Bob", "7+bob@users.noreply.github.com"), [None]),
        (Authorship("s", None, "Bob", "7+bob@users.noreply.github.com", True), ["bob"]),
        (Authorship("s", None, "Bob", "Bob-1@Users.NoReply.GitHub.com", True), ["Bob-1"]),
        (Authorship("s", None, "Bot", "7+x[bot]@users.noreply.github.com", True), ["x[bot]"]),
        (Authorship("s", None, "Bob", "bob@users.noreply.github.com.evil.test", True), [None]),
        (Authorship("s", None, "Bob", "bob@example.org", True), ["Bob"]),
        (Authorship("s", None, "", "", True), [None]),
    ],
)
def test_whose_account_it_was(named, who):
    assert [author.login for author in authors("ann", [named], SIGNERS)] == ["ann", *who]


def test_who_opened_the_pull_request_is_an_author_also_without_an_account():
    assert authors("", [], SIGNERS) == [Author(None, "who opened the pull request")]
    assert authors("ann", [Authorship("s", "ann", "ann", "")] * 2, SIGNERS) == [Author("ann", "ann")]


# --- messages --------------------------------------------------------------------------------------------------------

OURS = record()
ASKS = {"A1": item("two", "How wide?")}
BOTH = {"A1": item("two", "How wide?")._replace(answerable=False)}
OTHER = "records/2026-11-21-00000000.json"
SIGNED = BASE._replace(records=files(OURS))
KNOWN = Proof(principals={"bob@example.org"})
ALL_WROTE = wrote(*SIGNERS.values())._replace(approvals=[])
SAYINGS = [
    (
        Side({**EDITED, "A2": item("x")}),
        {},
        """gold:3: [unsigned-change] item 'A1' was changed, and no new record signs it => sign it
        gold:3: [unsigned-change] item 'A2' was added, and no new record signs it => sign it""",
    ),
    (Side(), {}, "gold: [unsigned-change] item 'A1' was removed, and no new record signs it => sign it"),
    (
        Side({"A1": item("three")}, files(OURS)),
        {},
        """gold:3: [broken-chain] item 'A1' was changed, but its new records do not lead from the item of the base
        branch to this one => sign it""",
    ),
    (
        Side(ASKS, files(OURS)),
        {},
        """gold:3: [mutation] item 'A1' was changed and asks another question (question changed). Give the new question
        a new qid, or sign it with --mutates => sign it --mutates""",
    ),
    (
        Side(BOTH, files(OURS)),
        {},
        """gold:3: [mutation] item 'A1' was changed and asks another question (question, answerable changed). Give the
        new question a new qid, or sign it with --mutates => sign it --mutates""",
    ),
    (
        Side(BASE.items, {OTHER: "not valid JSON"}),
        {},
        """OTHER: [malformed-record] this is not a sign-off record: not valid JSON
        => git rm -f -- :/OTHER && sign it""",
    ),
    (
        Side(BASE.items, {OTHER: OURS}),
        {},
        """OTHER: [malformed-record] its name does not match its content. The right name is NAME
        => git rm -f -- :/OTHER && sign it""",
    ),
    (
        Side(EDITED, {**files(OURS), OTHER: OURS}),
        {"base": SIGNED},
        """OTHER: [replayed-record] this repeats a record of the base branch, and a record counts only once
        => git rm -f -- :/OTHER && sign it
        gold:3: [replayed-record] item 'A1' was changed, and the only record that signs it was used before: a record
        counts only once => sign it""",
    ),
    (
        Side(BASE.items, {f"records/{OURS.name}": record("eve")}),
        {"base": SIGNED},
        """records/NAME: [record-edited] a record of the base branch was edited, but records may only be added
        => git checkout main -- :/records/NAME""",
    ),
    (
        BASE,
        {"base": SIGNED},
        """records/NAME: [record-removed] a record of the base branch was removed, but records may only be added
        => git checkout main -- :/records/NAME""",
    ),
    (
        Side(BASE.items, files(OURS)),
        {"policy": policy()._replace(dataset="e")},
        """records/NAME: [wrong-dataset] it signs data set 'd', but this is 'e'
        => git rm -f -- :/records/NAME && sign it""",
    ),
    (
        Side(EDITED),
        {"base": None},
        "gold:3: [unsigned-item] no record of data set 'd' signs this state of item 'A1' => sign it",
    ),
    (
        Side(BASE.items, files(record(edits=[("A1", None, "one")]), OURS)),
        {"base": None},
        "gold:3: [unsigned-item] item 'A1' was reverted to an earlier state without a record => sign it",
    ),
    (
        Side(BASE.items, files(OURS)),
        {"proof": Proof(latest="2026-11-21T09:00:00Z")},
        """records/NAME: [future-record] its date 2026-11-21T10:00:00Z is more than a day in the future
        => git rm -f -- :/records/NAME && sign it""",
    ),
    (
        Side(BASE.items, files(OURS)),
        {"policy": policy(signers={"ann@example.org": "ann"})},
        """records/NAME: [unknown-signer] 'bob@example.org' signed it, but is not a signer on the base branch
        => git rm -f -- :/records/NAME && sign it  # run by a signer of the base branch""",
    ),
    (
        Side(BASE.items, files(OURS)),
        {"policy": SIGNATURE, "proof": KNOWN},
        """records/NAME: [missing-signature] it has no signature, but the base branch requires one
        => git rm -f -- :/records/NAME && sign it""",
    ),
    (
        Side(BASE.items, files(OURS._replace(sig="x"))),
        {"policy": SIGNATURE, "proof": KNOWN},
        """records/NAME: [bad-signature] its signature is invalid: its signature was not checked
        => git rm -f -- :/records/NAME && sign it""",
    ),
    (
        Side(EDITED, files(OURS)),
        {"policy": REVIEW, "proof": Proof(approvals=[])},
        """gold: [no-approval] no signer has approved the last commit
        => Ask one of these to approve, then run this check again: Ann, Bob, Cy""",
    ),
    (
        Side(EDITED, files(OURS)),
        {"policy": REVIEW._replace(four_eyes=True), "proof": ALL_WROTE},
        """gold: [no-approval] no signer other than the authors of the change has approved the last commit
        => Ask one of these to approve, then run this check again: a signer who is not an author of the change""",
    ),
    (
        Side(EDITED, files(OURS)),
        {"policy": FOUR, "proof": wrote(None)},
        """gold: [unresolved-author] 'Somebody' wrote commits of this change, but the GitHub account is unknown
        => Add the e-mail address of these commits to the GitHub account, or to signoff.signers.""",
    ),
    (
        Side(EDITED, files(OURS)),
        {"policy": FOUR, "proof": wrote("bob")},
        """gold:3: [four-eyes] item 'A1' was changed, and only authors of the change signed it
        => sign it # run by a signer who is not an author of the change""",
    ),
]


@each_row(("head", "given", "expected"), SAYINGS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_finding_says_what_is_wrong_and_how_to_fix_it(head, given, expected):
    findings = check(**{"base": BASE, "head": head, "policy": policy(), "advice": ADVICE, **given})
    assert {finding.level for finding in findings} == {"error"}
    output = " ".join(f"{finding} => {finding.fix}" for finding in findings)
    assert " ".join(output.split()).replace(OURS.name, "NAME").replace(OTHER, "OTHER") == " ".join(expected.split())


@pytest.mark.parametrize("many", [10, 11])
def test_ten_signers_are_named_to_ask(many):
    rules = policy(require="review", signers={f"{n:02}@example.org": f"s{n:02}" for n in range(many)})
    (finding,) = check(BASE, Side(EDITED, files(record("00"))), rules, ADVICE, Proof(approvals=[]))
    assert finding.fix.partition(": ")[2] == ", ".join(f"s{n:02}" for n in range(10))


# --- the laws --------------------------------------------------------------------------------------------------------

QIDS = ["A1", "A2", "A3"]
NAMES = ["ann", "bob", "cy", "eve"]
people = st.sets(st.sampled_from(NAMES))
covers = st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(QIDS), min_size=1))


@given(covers, people)
def test_four_eyes_is_a_signer_of_every_item_who_is_no_author(signed, wrote_it):
    base, head = Side({qid: item(f"{qid} one") for qid in QIDS}), {qid: item(f"{qid} two") for qid in QIDS}
    made = [record(name, [(qid, f"{qid} one", f"{qid} two") for qid in sorted(qids)]) for name, qids in signed.items()]
    answer = found(made, FOUR, wrote(*wrote_it), base, head)
    entries = {name: qids for name, qids in signed.items() if name != "eve"}
    covered = set().union(*entries.values()) if entries else set()
    apart = [qids for name, qids in entries.items() if name not in wrote_it]
    seen_twice = set().union(*apart) if apart else set()
    assert answer.count("unknown-signer") == ("eve" in signed)
    assert answer.count("unsigned-change") == len(set(QIDS) - covered)
    assert answer.count("four-eyes") == len(covered - seen_twice)


@given(covers, people, st.booleans())
def test_knowing_more_never_lets_more_through(signed, wrote_it, four_eyes):
    rules = FOUR._replace(four_eyes=four_eyes)
    base, head = Side({qid: item(f"{qid} one") for qid in QIDS}), {qid: item(f"{qid} two") for qid in QIDS}
    made = [record(name, [(qid, f"{qid} one", f"{qid} two") for qid in sorted(qids)]) for name, qids in signed.items()]
    plain = found(made, policy(), Proof(), base, head)
    assert len(plain) == len(uncovered_changes(base, Side(head, files(*made)), rules))
    assert len(changes(base.items, head)) == len(QIDS)
    known = found(made, rules, wrote(*wrote_it), base, head)
    assert {code: plain.count(code) for code in plain} == {
        code: min(plain.count(code), known.count(code)) for code in plain
    }

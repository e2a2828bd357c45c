"""Context quality: against scikit-learn, against a plain second way to count, and under what must change nothing."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import make_case
from depth import examples
from rag_eval.textual.tokens import tokens
from seams import METRICS, measure

CONTEXT = [name for name, metric in METRICS.items() if metric.perspective == "context"]
WORDS = ["Leave", "days", "of", "the", "records", "15", "2.1", "naïve", "o'clock", "kept", "KEPT", "—", "東京都", "ﬁve"]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=2, max_size=6)
facts = st.lists(
    st.fixed_dictionaries(
        {"fact": st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)},
        optional={"aliases": st.lists(st.sampled_from(WORDS), max_size=2)},
    ),
    min_size=1,
    max_size=3,
)


def case_of(contents, **gold):
    chunks = [{"id": f"c{index}", "text": text} for index, text in enumerate(contents)]
    return make_case(gold, {"answer_json": {"claim": "Yes.", "citations": []}, "chunks": chunks})


def score(name, contents, **gold):
    return measure(name).score(case_of(contents, **gold))


def test_all_of_the_perspective_is_tested_here():
    assert set(CONTEXT) == {
        "redundancy_ngram",
        "redundancy_tfidf",
        "unique_token_ratio",
        "fact_coverage",
        "fact_dispersion",
    }


# --- against other ways to count --------------------------------------------------------------------------------------


def cosines(contents, **how):
    """Of each pair, by scikit-learn: raw counts, smoothed idf and vectors of length 1 are its defaults."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics.pairwise import cosine_similarity

    result = cosine_similarity(TfidfVectorizer(**how).fit_transform(contents))
    return [result[a, b] for a, b in combinations(range(len(contents)), 2)]


@examples(300)
@given(texts.filter(lambda contents: any(tokens(text) for text in contents)))
def test_redundancy_by_words_is_what_scikit_learn_says(contents):
    expected = cosines(contents, analyzer=tokens)
    assert score("redundancy_tfidf", contents) == pytest.approx(sum(expected) / len(expected), abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_so_it_is_with_the_words_of_scikit_learn_and_chunks_of_200_words(seed):
    from random import Random

    chance = Random(seed)
    vocabulary = [f"word{index}" for index in range(800)]
    frequencies = [1 / (index + 1) for index in range(800)]
    contents = [" ".join(chance.choices(vocabulary, frequencies, k=200)) for _ in range(10)]
    expected = cosines(contents, token_pattern=r"(?u)\w+")
    assert score("redundancy_tfidf", contents) == pytest.approx(sum(expected) / len(expected), abs=1e-9)


def shared_runs(item, other):
    """Of the runs of three words, those that both have, over those of the one that has fewer."""
    runs = [{" ".join(words[i : i + 3]) for i in range(len(words) - 2)} for words in (item, other)]
    least = min(map(len, runs))
    return Fraction(sum(run in runs[1] for run in runs[0]), least) if least else Fraction(0)


@examples(300)
@given(texts)
def test_redundancy_by_runs_is_that_of_a_plain_count(contents):
    pairs = [
        shared_runs(combination, other) for combination, other in combinations([tokens(text) for text in contents], 2)
    ]
    assert score("redundancy_ngram", contents) == pytest.approx(float(sum(pairs) / len(pairs)), abs=1e-12)


def holds(words, wanted):
    return any(words[i : i + len(wanted)] == wanted for i in range(len(words))) and bool(wanted)


@examples(300)
@given(texts, facts)
def test_facts_are_found_where_their_words_stand_in_a_row(contents, facts):
    wordings = [[fact["fact"], *fact.get("aliases", ())] for fact in facts]
    stored = [
        sum(any(holds(tokens(text), tokens(item)) for item in wording) for text in contents) for wording in wordings
    ]
    assert score("fact_coverage", contents, gold_facts=facts) == (sum(map(bool, stored)), len(facts))
    result = [count for count in stored if count]
    assert score("fact_dispersion", contents, gold_facts=facts) == (sum(result) / len(result) if result else None)


# --- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONTEXT)
@examples(150)
@given(contents=texts, gold_facts=facts, data=st.data())
def test_the_order_of_chunks_changes_no_score_by_a_single_bit(name, contents, gold_facts, data):
    again = data.draw(st.permutations(contents))
    assert score(name, contents, gold_facts=gold_facts) == score(name, again, gold_facts=gold_facts)


@examples(100)
@given(st.lists(st.sampled_from(WORDS), min_size=3, max_size=12).map(" ".join), st.integers(2, 6))
def test_chunks_that_are_all_the_same_are_wholly_redundant(text, copies):
    whole = len(tokens(text)) >= 3
    assert score("redundancy_ngram", [text] * copies) == (1.0 if whole else 0.0)
    if tokens(text):
        assert score("redundancy_tfidf", [text] * copies) == 1.0


@examples(100)
@given(texts)
def test_chunks_without_a_word_in_common_are_not_redundant(contents):
    apart = [" ".join(f"{word.encode().hex()}x{index}" for word in tokens(text)) for index, text in enumerate(contents)]
    assert (score("redundancy_ngram", apart), score("redundancy_tfidf", apart)) == (0.0, 0.0)


@examples(100)
@given(texts, facts, st.sampled_from(WORDS))
def test_another_chunk_never_takes_a_fact_away(contents, gold_facts, more):
    before, after = (score("fact_coverage", item, gold_facts=gold_facts) for item in (contents, [*contents, more]))
    assert after[0] >= before[0]


def test_compatible_forms_and_letter_cases_are_the_same_words():
    assert score("fact_coverage", ["The ﬁle of STRASSE １５"], gold_facts=[{"fact": "file of straße 15"}]) == (1, 1)


def test_runs_of_chinese_script_are_found_inside_longer_ones():
    assert score("fact_coverage", ["我住在東京都內"], gold_facts=[{"fact": "東京都"}, {"fact": "京東"}]) == (1, 2)


@examples(150)
@given(texts)
def test_distinct_words_are_counted_over_all_chunks(contents):
    words = [word for text in contents for word in tokens(text)]
    assert score("unique_token_ratio", contents) == (len(set(words)) / len(words) if words else None)

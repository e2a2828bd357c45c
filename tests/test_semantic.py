"""Groundedness with a local encoder: its files, its vectors, and what they may and may not decide."""

import hashlib
import json
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval.errors import MissingExtra, UsageError
from rag_eval.grounding import ground, groundedness, supported
from rag_eval.grounding.semantic import MOST, blended, compared
from rag_eval.judging.gates import Policy
from rag_eval.metrics import measures
from rag_eval.report import contract
from rag_eval.semantic import DECIMALS, FILES, Encoder, digest
from rag_eval.semantic.wordpiece import WordPiece
from reading import gold, trace
from semantic_model import LONGEST, WORDS, plain_vector, safetensors, tensors, write_model

bert = pytest.importorskip("rag_eval.semantic.bert", reason="the extra [semantic] is not installed")

VOCABULARY = {word: number for number, word in enumerate(WORDS)}
MARKS = dict.fromkeys(["[CLS]", "[SEP]", "[UNK]", "par", "##cel", "é", "e", "東", "$", "–", "A", "a"])
MARKED = {word: number for number, word in enumerate(MARKS)}


def sha256_of(folder):
    return digest({name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()})


def encoder(folder):
    return Encoder(str(folder), sha256_of(folder))


@pytest.fixture
def model(tmp_path):
    return write_model(tmp_path / "model")


def pieces(text, *, lower=True, most=99):
    names = list(MARKED)
    return [names[number] for number in WordPiece(MARKED, lower=lower).numbers(text, most)][1:-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Parcel", ["par", "##cel"]),
        ("parcels", ["[UNK]"]),
        ("É e\u0301", ["e", "e"]),
        ("a東a", ["a", "東", "a"]),
        ("$a–a", ["$", "a", "–", "a"]),
        ("par\u200bcel\x00 \t\na", ["par", "##cel", "a"]),
        ("a" * 101, ["[UNK]"]),
        ("", []),
    ],
)
def test_words_are_cut_into_the_longest_pieces(text, expected):
    assert pieces(text) == expected


def test_case_and_accents_stay_where_the_model_tells_them_apart():
    assert pieces("A a é", lower=False) == ["A", "a", "é"]


@given(st.text())
def test_a_text_has_at_most_as_many_pieces_as_the_model_takes(text):
    found = WordPiece(MARKED, lower=True).numbers(text, 8)
    assert (len(found) <= 8, found[0], found[-1]) == (True, MARKED["[CLS]"], MARKED["[SEP]"])


@pytest.mark.parametrize("by_first", [False, True])
@pytest.mark.parametrize("numbers", [[2, 3], [2, 4, 5, 6, 7, 3], [2, 9, 9, 9, 3], [2, *range(14), 3]])
def test_a_vector_is_what_the_paper_says(numbers, by_first):
    import numpy as np

    held = tensors()
    made = {name: np.array(rows, np.float32) for name, rows in held.items()}
    found = bert.Bert(bert.Shape(2, 2, 1e-12, 16), made, by_first=by_first).vector(numbers)
    assert found.tolist() == pytest.approx(plain_vector(held, numbers, by_first=by_first), abs=2e-5)


def test_similarity_is_the_greatest_cosine(model):
    own, other = "The parcels weigh 20 kg.", "rain, rain"
    vectors = [
        plain_vector(tensors(), WordPiece(VOCABULARY, lower=True).numbers(text, LONGEST)) for text in (own, other)
    ]
    cosine = sum(a * b for a, b in zip(*vectors, strict=True))
    found = encoder(model)
    assert found.similar([own], [other]) == [pytest.approx(cosine, abs=10**-DECIMALS)]
    assert found.similar([own, other], [other, own, own]) == [1, 1]
    assert found.similar([own], []) == [0]


@given(st.lists(st.sampled_from(["The parcel", "weighs 20 kg.", "rain", "", "25, 25", "東京"]), min_size=1, max_size=5))
def test_what_is_read_beside_a_text_does_not_move_it(tmp_path_factory, texts):
    folder = tmp_path_factory.getbasetemp() / "shared-model"
    one = encoder(folder if folder.exists() else write_model(folder))
    alone = [max(one.similar([text], [other])[0] for other in texts) for text in texts]
    assert one.similar(texts, texts) == alone


def test_the_digest_is_that_of_what_sha256sum_prints(model):
    (model / "1_Pooling").mkdir()
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}', "utf-8")
    lines = [f"{hashlib.sha256((model / name).read_bytes()).hexdigest()}  {name}\n" for name in FILES]
    assert sha256_of(model) == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert list(FILES) == sorted(FILES)
    assert encoder(model).similar(["rain"], ["rain"]) == [1]


def test_other_files_than_the_gates_name_are_refused_with_their_digest(model):
    asked = sha256_of(model)
    (model / "model.safetensors").write_bytes(safetensors(tensors(8)))
    with pytest.raises(UsageError, match=sha256_of(model)):
        Encoder(str(model), asked).similar(["rain"], ["rain"])


def _cut(model):
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-40])


def _no_layer(model):
    held = {name: rows for name, rows in tensors().items() if "layer.1.output" not in name}
    (model / "model.safetensors").write_bytes(safetensors(held))


BROKEN = {
    "no header": lambda model: (model / "model.safetensors").write_bytes(b"no tensors at all"),
    "cut short": _cut,
    "a layer lacks": _no_layer,
    "another kind": lambda model: (model / "config.json").write_text('{"model_type": "t5"}', "utf-8"),
    "no object": lambda model: (model / "config.json").write_text("[]", "utf-8"),
    "no JSON": lambda model: (model / "tokenizer_config.json").write_text("{", "utf-8"),
    "no marks": lambda model: (model / "vocab.txt").write_text("a\nb\n", "utf-8"),
    "more words than vectors": lambda model: (model / "vocab.txt").write_text("\n".join([*WORDS, "x"]), "utf-8"),
    "no UTF-8": lambda model: (model / "vocab.txt").write_bytes(b"\xff"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_folder_without_a_model_that_fits_together_is_refused(model, how):
    BROKEN[how](model)
    with pytest.raises(UsageError, match="no model that can be read"):
        encoder(model).similar(["rain"], ["rain"])


def test_unknown_pooling_is_refused(model):
    (model / "1_Pooling").mkdir()
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}', "utf-8")
    with pytest.raises(UsageError, match="pooling_mode_max_tokens"):
        encoder(model).similar(["rain"], ["rain"])


def test_files_that_are_missing_or_no_files_are_refused(model):
    known = sha256_of(model)
    (model / "vocab.txt").unlink()
    with pytest.raises(UsageError, match=r"vocab\.txt: cannot be read \(No such file"):
        Encoder(str(model), known).similar(["rain"], ["rain"])
    os.mkfifo(model / "vocab.txt")
    with pytest.raises(UsageError, match=r"vocab\.txt: no plain file"):
        Encoder(str(model), known).similar(["rain"], ["rain"])


def test_without_the_extra_it_says_what_to_install(model, monkeypatch):
    asked = encoder(model)
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with pytest.raises(MissingExtra, match=r"rag-eval-action\[semantic\]") as raised:
        asked.similar(["rain"], ["rain"])
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)  # as it comes from a worker


class Words:
    """Similarity by the share of common words: any measure will do to show what is made of it."""

    identity = "words"

    def similar(self, sentences, texts):
        read = [set(text.lower().split()) for text in texts]
        return [
            max([len(set(one.lower().split()) & text) / len(one.split()) for text in read], default=0.0)
            for one in sentences
        ]


class Always:
    """The same similarity for everything."""

    identity = "always"

    def __init__(self, number):
        self.number = number

    def similar(self, sentences, _texts):
        return [self.number] * len(sentences)


SOURCE = "A parcel may weigh at most 20 kg. Registered parcels do not need a stamp. The office closes at noon."


def under(model, claim, source=SOURCE):
    return blended(ground(claim, [source]), claim, [source], model)


def test_nearness_in_meaning_supports_what_is_said_in_other_words():
    claim = "Offices shut their doors around midday."
    far, near = (under(Always(number), claim) for number in (0.0, 1.0))
    assert [supported(one[0]) for one in (far, near)] == [False, True]
    assert groundedness(far) == groundedness(ground(claim, [SOURCE])) < groundedness(near)


@pytest.mark.parametrize("claim", ["A parcel may weigh at most 25 kg.", "Registered parcels need a stamp."])
def test_made_up_numbers_and_denials_decide_as_without_it(claim):
    assert supported(under(Always(1.0), claim)[0]) is False


def test_a_copied_sentence_keeps_its_whole_support():
    assert groundedness(under(Words(), SOURCE)) == 1


@given(st.floats(-1, 1), st.floats(-1, 1), st.sampled_from([SOURCE, "Parcels fly.", "Generally it rains.", "", "?"]))
def test_support_stays_between_0_and_1_and_grows_with_nearness(one, other, claim):
    low, high = ([found.support.number for found in under(Always(number), claim)] for number in sorted((one, other)))
    assert all(0 <= a <= b <= 1 for a, b in zip(low, high, strict=True))


def test_the_sentences_compared_are_without_repeats_and_bounded():
    assert compared(["One. Two. One.", "Two. Three."]) == ["One.", "Two.", "Three."]
    assert len(compared([" ".join(f"Line {number}." for number in range(9999))])) == MOST


BY_MEANING = {"claim_support", "unsupported_claims", "unsupported_claims.total", "groundedness"}


@pytest.mark.parametrize("measure", measures((5,)), ids=lambda measure: measure.name)
def test_the_contract_names_the_model_where_it_tells(measure):
    none, one, other = (contract(measure, Policy(semantic=model)) for model in (None, Words(), Always(1)))
    assert none == contract(measure, Policy())
    assert len({none, one, other}) == (3 if measure.name in BY_MEANING else 1)


CHUNK = {"id": "p1#1", "text": "The parcel weighs 20 kg. Rain, rain."}
ANSWERED = {"claim": "Parcels weigh twenty kilos.", "citations": []}


def run(*arguments):
    command = [sys.executable, "-m", "rag_eval", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


@pytest.fixture
def project(tmp_path, model):
    rows = gold(gold_claim_substr=["parcels"], gold_citations=["p1#1"]), trace(chunks=[CHUNK], answer_json=ANSWERED)
    for name, row in zip(("gold", "trace"), rows, strict=True):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    gates(tmp_path, sha256_of(model))
    return tmp_path


GATES = "version: 1\ngold: gold.jsonl\ntrace: trace.jsonl\ngates: {groundedness: {min: 0}}\n"


def gates(folder, sha256):
    model = f"groundedness: {{model: {{path: model, sha256: '{sha256}'}}}}\n" if sha256 else ""
    (folder / "eval-gates.yml").write_text(f"{GATES}{model}", "utf-8")


def test_a_run_goes_by_the_model_of_its_gates_file_and_gives_the_same_bytes_again(project):
    done = [run("score", "--gates", str(project / "eval-gates.yml"), "--format", "json") for _ in range(2)]
    assert [each.returncode for each in done] == [0, 0], done[0].stderr
    assert done[0].stdout == done[1].stdout
    gates(project, "")
    without = json.loads(run("score", "--gates", str(project / "eval-gates.yml"), "--format", "json").stdout)
    with_model = json.loads(done[0].stdout)
    assert with_model["metrics"]["groundedness"]["value"] != without["metrics"]["groundedness"]["value"]
    assert with_model["contracts"]["groundedness"] != without["contracts"]["groundedness"]


def test_the_model_goes_to_workers_by_its_path_and_digest(model):
    settings = Policy(semantic=encoder(model)).settings
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_run_with_another_model_cannot_be_judged(project):
    gates(project, "0" * 64)
    done = run("score", "--gates", str(project / "eval-gates.yml"))
    assert (done.returncode, sha256_of(project / "model") in done.stderr) == (2, True)


def test_a_run_without_a_model_loads_no_numpy():
    code = "import sys, rag_eval.app, rag_eval.files.gates_file, rag_eval.semantic; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"

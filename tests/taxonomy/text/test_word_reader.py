"""The learned reader of words: what it was fitted to, what it says, and why."""

import importlib.util
import json

import pytest
from places import ROOT

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text import word_reader
from dtdebug_taxonomy.text.word_reader import WEIGHTS, load_model, read_words, terms_of

MOST_BYTES = 2_000_000


@pytest.fixture(scope="module")
def fit_words():
    """The script that fits."""
    spec = importlib.util.spec_from_file_location("fit_words", ROOT / "benchmarks" / "fit_words.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def first_symptom(words):
    """The symptom that the words alone make likeliest, without any pattern."""
    ratios = read_words(words, load().prior).ratios
    return max(ratios, key=lambda code: ratios[code])


def test_the_committed_weights_are_those_of_the_committed_texts(fit_words):
    """`make words` was run after the last change of a fitted text; no held-out case is among these."""
    rows = fit_words.texts()
    assert load_model().inputs == fit_words.digest(rows), "run `make words`"
    assert WEIGHTS.stat().st_size < MOST_BYTES
    fitted = {row.text for row in rows}
    for name in ("fresh.jsonl", "paraphrases.jsonl"):
        cases = [json.loads(line) for line in (ROOT / "tests" / "cases" / name).read_text().splitlines()]
        assert not fitted & {text for c in cases for text in (c.get("situation"), *c.get("rewordings", ()))}


def test_written_texts_are_of_known_causes_and_stand_once():
    """A cause that is renamed is renamed there too; a text that stands twice would count twice."""
    lines = (ROOT / "tests" / "written.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    causes = {symptom.id: {"", *(cause.id for cause in symptom.cause)} for symptom in load().symptoms.values()}
    assert all(row["cause"] in causes[row["symptom"]] for row in rows)
    assert len({row["text"] for row in rows}) == len(rows)
    assert rows == sorted(rows, key=lambda row: (row["symptom"], row["cause"], row["text"]))


def test_fitting_twice_gives_the_same_bytes(fit_words):
    """The file depends on nothing but the texts."""
    pytest.importorskip("numpy")
    codes = ["B.2", "D.1.2", "D.2.1"]
    rows = [row for row in fit_words.texts() if row.target.keys() & {*codes}][:60]
    one, two = (fit_words.packed(fit_words.fit(rows, codes), codes, 1.0, [0.0] * 3, "") for _ in range(2))
    assert one == two


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("The run stands still in the middle of epoch two, all cards show full load, no line comes any more.", "D.2.1"),
        ("Four cards need more time for one epoch than a single one does.", "D.2.3"),
        ("Building the wheel breaks in the compiler, no header of the library is found by pip.", "A.1"),
        ("The saved file is a few kilobytes, and it cannot be loaded again after training.", "D.1.6"),
    ],
)
def test_it_reads_words_that_no_pattern_was_written_for(words, code):
    """The symptom follows from what people wrote in such cases."""
    assert first_symptom(words) == code


def test_it_shows_the_words_of_the_user_that_weigh_most():
    """They stand in the text, in its order."""
    words = "Four cards need more time for one epoch than a single one does, so it is slower."
    told = read_words(words, load().prior).words.split(", ")
    places = [words.lower().index(word) for word in told]
    assert "slower" in told
    assert places == sorted(places)


def test_few_or_unknown_words_say_nothing():
    """One word, no word, another script: no symptom."""
    for words in ("", "help", "help pls", "\u8bad\u7ec3\u5361\u4f4f\u4e86", "zq xv " * 50, "\0" * 100):
        assert read_words(words, load().prior).ratios == {}


def test_what_it_adds_is_bounded():
    """No text makes a symptom more than e^4 times as likely as another by its words alone."""
    text = "hangs stuck deadlock barrier waits forever " * 2_000
    ratios = read_words(text, load().prior).ratios
    assert max(ratios.values()) - min(ratios.values()) <= word_reader._REACH + 1e-9


def test_long_texts_are_read_at_both_ends():
    """A text of 100 kB costs as much as one of 4 kB."""
    words, runs = terms_of("first " + "x " * 50_000 + "last")
    assert words["first"] == words["last"] == 1
    assert words.total() < 10_000
    assert runs


def test_the_answer_says_what_the_words_speak_for():
    """A symptom that only the words as a whole support names them."""
    d = diagnose(load(), Snapshot(situation="Four cards need more time for one epoch than a single one does."))
    assert d.symptoms[0].code == "D.2.3"
    assert any(r.source in {"similar", "said"} and r.words for r in d.symptoms[0].why)


def test_it_is_not_read_without_words(monkeypatch):
    """An output alone needs no weights."""
    monkeypatch.setattr(word_reader, "load_model", lambda: pytest.fail("the weights were read"))
    diagnose(load(), Snapshot(output="[rank0]: RuntimeError: NCCL error: unhandled system error"))

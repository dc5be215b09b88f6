"""The whole knowledge held together: every id has a page, a sample and a user, and nothing is left over."""

import re
import shutil

from dtdebug_taxonomy.dev.lint import problems
from dtdebug_taxonomy.dev.lint_study import study_problems
from dtdebug_taxonomy.dev.lint_words import OLDER, word_problems
from dtdebug_taxonomy.knowledge import second_study
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.knowledge.word_classes import FILE, expand_classes
from dtdebug_taxonomy.presentation.explain import explain


def test_knowledge_is_tidy(samples):
    """Every rule of `tidy` holds for the shipped knowledge."""
    assert problems(load(), samples) == []


def test_a_word_class_is_written_out_also_within_another():
    """What is no class stays: it is a group of a cure."""
    found = expand_classes({"says": ["{not} on (this|that) {machine}"], "title": "The Python here has no {module}"})

    assert "none of (?:them|the" in found["says"][0]
    assert "never|no longer" in found["says"][0]
    assert "(node|machine|" in found["says"][0]
    assert "{" not in found["says"][0].replace("{3,10}", "")
    assert "The Python here has no {module}" == found["title"]


def test_an_unknown_word_class_and_a_new_long_pattern_are_refused(tmp_path):
    for folder in ("symptoms", "messages", "observations"):
        shutil.copytree(FILE.parent / folder, tmp_path / folder)
    more = f'[[evidence]]\nid = "x"\nmeans = "X."\ntext = ["{{machin}} died", "{"long " * 50}"]\n'
    (tmp_path / "messages" / "new.toml").write_text(more)

    unknown, longer = word_problems(tmp_path)
    assert "messages/new.toml: pattern '{machin} died': no word class 'machin'" in unknown
    assert f"{OLDER + 1} patterns are longer" in longer


def test_what_the_second_study_leaves_open_is_told(tmp_path):
    """A cause and a label of nowhere, a label that nothing leads to, a list shorter than the study's, two answers."""
    shutil.copytree(second_study.HOME, tmp_path, dirs_exist_ok=True)
    ours, labels = tmp_path / "ours.toml", tmp_path / "labels.toml"
    ours.write_text(ours.read_text().replace('"uneven-batches"', '"odd-batches"').replace('["S24"]', '["S99"]'))
    ours.write_text(ours.read_text().replace("[without]\nsymptoms = [", '[without]\nsymptoms = ["D.1.1", '))
    labels.write_text(labels.read_text().replace('[[fix]]\nid = "F6"', '[[fix]]\nid = "F7"'))

    told = "\n".join(study_problems(load(), tmp_path))
    for words in (
        "symptom D.1.1: it has a label",
        "no cause 'odd-batches'",
        "['F6', 'S99']",
        "S24: either",
        "F7: either",
    ):
        assert words in told
    assert "uneven-batches" not in told  # a cause without a label is none of a contributor's business


def test_names_of_the_second_study_are_shown_with_their_provenance_and_no_figure_that_was_not_read():
    """On the page of each label and of what leads to it."""
    known, study = load(), second_study.load()
    pages = {name: explain(known, name) for name in (*study.labels, *known.symptoms, "uneven-batches", "second-study")}
    shown = [line for page in pages.values() for line in re.findall(r"(?m)^[#-] ([SRF]\d+ .*)$", page)]

    assert {str(label) for label in study.labels.values()} <= {*shown}
    assert all(line == str(study.labels[line.split()[0]]) for line in shown if " % " not in line)
    assert [label.id for label in study.labels.values() if label.provenance == "read"] == [
        "S32", "R11", "R24", "R25", "R26", "R27", "R28", "F1", "F2",
    ]  # fmt: skip
    assert {"read"} == {label.provenance for name, label in study.labels.items() if re.search(r"\d %", pages[name])}
    assert "S24 hang or collective timeout in mid-run (reconstructed)" in pages["D.2.1"]
    assert "- R18 " in pages["uneven-batches"]

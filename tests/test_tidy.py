"""The whole knowledge held together: every id has a page, a sample and a user, and nothing is left over."""

import shutil

from dtdebug_taxonomy.knowledge import load
from dtdebug_taxonomy.tidy import problems
from dtdebug_taxonomy.tidy_words import OLDER, word_problems
from dtdebug_taxonomy.word_classes import FILE, expanded


def test_knowledge_is_tidy(samples):
    """Every rule of `tidy` holds for the shipped knowledge."""
    assert problems(load(), samples) == []


def test_a_word_class_is_written_out_also_within_another():
    """What is no class stays: it is a group of a cure."""
    found = expanded({"says": ["{not} on (this|that) {machine}"], "title": "The Python here has no {module}"})

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

"""The catalogue holds each text of the front end in each of its languages, with the same placeholders."""

import ast
import json
import re

import pytest
from places import ROOT

CATALOGUES = sorted((ROOT / "kernel" / "dtdebug" / "locale").glob("*/LC_MESSAGES/dtdebug.json"))
_LITERAL = r'"(?:[^"\\]|\\.)*"'
_TEXT = rf"{_LITERAL}(?:\s*\+\s*{_LITERAL})*"
_CALL = re.compile(rf"trans\.__\(\s*({_TEXT})|trans\._n\(\s*({_TEXT}),\s*({_TEXT})")


def texts():
    """Each text as (singular, plural), the plural empty if it has none."""
    found = set()
    for folder in ("shared", "jupyterlab"):
        for file in (ROOT / "extension" / folder / "src").rglob("*.ts"):
            if file.name != "trans.ts":
                for one, single, many in _CALL.findall(file.read_text(encoding="utf-8")):
                    found.add((joined(one or single), joined(many)))
    return found


def joined(literals):
    return "".join(ast.literal_eval(each) for each in re.findall(_LITERAL, literals))


def holes(*parts):
    return set(re.findall(r"%\d", " ".join(parts)))


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parents[1].name)
def test_a_catalogue_is_complete(path):
    """JupyterLab reads it where `jupyterlab.locale` names our package."""
    catalogue = json.loads(path.read_text(encoding="utf-8"))
    head = catalogue.pop("")
    assert "dtdebug" == head["domain"]
    assert path.parents[1].name.replace("_", "-") == head["language"]  # JupyterLab looks it up with a hyphen
    assert {one for one, _ in texts()} == catalogue.keys()
    for one, many in texts():
        said = catalogue[one]
        assert all(said), one
        assert len(said) == (2 if many else 1), one
        assert holes(*said) == holes(one, many), one


def test_there_is_a_catalogue():
    """A test without a parameter proves nothing."""
    assert ["de_DE"] == [path.parents[1].name for path in CATALOGUES]

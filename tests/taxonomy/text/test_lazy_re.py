"""Patterns that are compiled when they are first used: the same as those of `re`, and all of ours are correct."""

import gc
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dtdebug
from dtdebug_taxonomy.knowledge.loader import HOME
from dtdebug_taxonomy.text.lazy_re import _Lazy, lazy_re

TEXT = "[Rank 3]: xx\nrank7: alphabeta"


@pytest.mark.parametrize("flags", [0, re.MULTILINE])
def test_a_lazy_pattern_behaves_as_a_compiled_one(flags):
    text = r"(?i)^\[?(?P<kind>rank) ?(?P<number>\d)"
    lazy, compiled = lazy_re(text, flags), re.compile(text, flags)

    assert [m.span() for m in compiled.finditer(TEXT)] == [m.span() for m in lazy.finditer(TEXT)]
    assert compiled.sub("x", TEXT) == lazy.sub("x", TEXT)
    assert compiled.match(TEXT).groupdict() == lazy.match(TEXT).groupdict()
    for name in ("pattern", "flags", "groups", "groupindex"):
        assert getattr(compiled, name) == getattr(lazy, name)
    with pytest.raises(AttributeError):
        lazy.look  # a wrong name


def test_it_is_compiled_once_and_late(monkeypatch):
    calls = []
    original = re.compile
    monkeypatch.setattr(re, "compile", lambda *rest: calls.append(rest) or original(*rest))
    lazy = lazy_re("a+")
    assert not calls
    assert lazy.search("caat").group() == "aa"
    assert lazy.pattern == "a+"
    assert lazy.search("b") is None
    assert len(calls) == 1


def test_python_compiles_by_its_own_compiler():
    """Also within our command: nothing of `re` is replaced."""
    asked = "dtdebug.cli.main.main(['diagnose', '--situation', 'x'])"
    script = f"import re, dtdebug.cli.main; {asked}; print(re._compiler.compile)"
    said = subprocess.check_output([sys.executable, "-c", script], text=True, timeout=60, stderr=subprocess.DEVNULL)

    assert "<function compile at" in said


def test_each_lazy_pattern_of_ours_compiles():
    """An error in one would otherwise be noticed when it is first used."""
    for home in (HOME, Path(dtdebug.__file__).parent):
        for path in home.rglob("*.py"):
            if "import lazy_re" in path.read_text("utf-8") and path.name[0].isalpha():
                importlib.import_module(".".join(path.relative_to(home.parent).with_suffix("").parts))
    patterns = [each for each in gc.get_objects() if type(each) is _Lazy]  # isinstance asks proxies, which may warn

    assert len(patterns) > 200
    assert all(each.pattern for each in patterns)

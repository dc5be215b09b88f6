"""Patterns that an earlier process compiled: the same patterns, none of the user's, and no way to break a command."""

import importlib
import importlib.util
import re
import sys
from re import _compiler, _parser  # type: ignore[attr-defined]

import msgspec
import pytest

from dtdebug_taxonomy.knowledge.regex_cache import compiled_before
from dtdebug_taxonomy.text import pattern_matcher

MODULE = r"""
import re
RANK = re.compile(r"(?i)\[?(?P<kind>rank|default)[ _]?(?P<rank>\d{1,7})\]?:|(x)\3")
RANG = re.compile("rang (\\d+)|ранг|秩", re.MULTILINE)
HALF = re.compile("[\ud800-\udfff]")
BYTES = re.compile(rb"\x1b\[[0-9;]*m")
BY_FUNCTION = [re.compile(word) for word in ("alpha(?=beta)", "[^a-z]{2,}$")]
def found(secret):
    return re.compile(f"token {secret}")
"""
TEXT = "[Rank 3]: xx\n秩 rang 12\nrank7: ранг alphabeta ++"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Imports the module anew, below the kept patterns, and says how many patterns Python had to read for it."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a module changed within a second is the older one else
    (tmp_path / "some_module.py").write_text(MODULE)
    parsed = []
    parse = _parser.parse
    monkeypatch.setattr(_parser, "parse", lambda *rest: parsed.append(rest) or parse(*rest))

    def load():
        re.purge()
        parsed.clear()
        with compiled_before():
            spec = importlib.util.spec_from_file_location("some_module", tmp_path / "some_module.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            count = len(parsed)
            module.found("hf_abcdefgh")
        return module, count

    return load


def seen(pattern):
    """All by which two patterns can be told apart."""
    matches = [(m.span(), m.groups(), m.groupdict(), m.lastgroup) for m in pattern.finditer(TEXT)]
    return pattern.pattern, pattern.flags, pattern.groups, dict(pattern.groupindex), matches


def test_a_kept_pattern_is_the_one_that_python_makes(load):
    first, compiled = load()
    assert 6 == compiled
    again, compiled = load()
    assert 2 == compiled  # the one of bytes, and the one that no file takes
    re.purge()
    for name in ("RANK", "RANG"):
        made = getattr(first, name)
        expected = seen(re.compile(made.pattern, made.flags & re.MULTILINE))
        assert expected[-1]
        assert expected == seen(made) == seen(getattr(again, name))
    assert [seen(p) for p in first.BY_FUNCTION] == [seen(p) for p in again.BY_FUNCTION]
    assert _compiler.compile.__module__ == "re._compiler"


def test_what_is_made_of_the_users_words_is_not_kept(load, tmp_path):
    load()
    (file,) = (tmp_path / "state").iterdir()
    assert 0o600 == file.stat().st_mode & 0o777
    kept = msgspec.msgpack.decode(file.read_bytes().partition(b"\n")[2])
    assert any("default" in key for key in kept)
    assert not any("hf_abcdefgh" in key or "token" in key for key in kept)


def test_a_broken_file_costs_time_only(load, tmp_path):
    expected = seen(load()[0].RANK)
    (file,) = (tmp_path / "state").iterdir()
    stamp, _, data = file.read_bytes().partition(b"\n")
    rows = msgspec.msgpack.decode(data)
    hostile = {key: [row[0], [2**32 - 1] * 9, *row[2:]] for key, row in rows.items()}
    stamp += b"\n"
    for content in (b"", b"older\n" + data, data[:40], stamp + b"\xc1", stamp + msgspec.msgpack.encode(hostile)):
        file.write_bytes(content)
        assert expected == seen(load()[0].RANK)


def test_a_state_folder_that_is_a_file_costs_time_only(load, tmp_path):
    (tmp_path / "state").write_text("")
    assert seen(load()[0].RANG) == seen(load()[0].RANG)


def test_patterns_that_are_no_longer_used_go_when_there_are_too_many(load, tmp_path, monkeypatch):
    monkeypatch.setattr("dtdebug_taxonomy.knowledge.regex_cache._LIMIT", 3_000)
    load()
    path = tmp_path / "some_module.py"
    for number in range(6):
        path.write_text(MODULE.replace("alpha", f"alpha{number}" + "beta" * 100))
        load()
    (file,) = (tmp_path / "state").iterdir()
    kept = msgspec.msgpack.decode(file.read_bytes().partition(b"\n")[2])
    assert any("alpha5" in key for key in kept)
    assert not any("alpha1" in key for key in kept)


def test_a_pattern_of_the_knowledge_is_kept_and_none_of_the_users_words(tmp_path, monkeypatch):
    """A message that was looked for is compiled by the next process from what is kept."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    pattern_matcher._compile_pattern.cache_clear()
    re.purge()
    with compiled_before():
        matcher = pattern_matcher.Matcher(pattern_matcher.index_of([("a", "connection .{1,9} refused")]))
        assert list(matcher.hits("the connection was refused"))
        re.search("hf_abcdefgh", "")
    kept = (tmp_path / "state" / "compiled.cache").read_bytes()

    assert b"connection .{1,9} refused" in kept
    assert b"hf_abcdefgh" not in kept

"""The index of the knowledge: used, found stale, replaced, and nothing of it in the user's folders."""

import os
import subprocess
import sys

import pytest
from places import TESTS

from dtdebug_taxonomy import __version__
from dtdebug_taxonomy.knowledge import cache, loader

SAMPLE = TESTS / "samples" / "hang" / "gloo-save-on-one-rank.txt"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An index of the test's own, in a checkout."""
    monkeypatch.setattr(cache, "_folder", tmp_path / "index")
    monkeypatch.setattr(cache, "_in_checkout", True)
    monkeypatch.setattr(cache, "_writes", True)
    cache._rows.cache_clear()
    yield tmp_path / "index"
    cache._rows.cache_clear()


@pytest.fixture
def sources(tmp_path):
    """A small folder that something is computed from: data and a package."""
    home = tmp_path / "home"
    for name in ("patterns.toml", "symptoms/hang.toml", "parts/__init__.py", "labs/one.toml", "parts/notes.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("a = 1\n")
    return home


def counted(*folders):
    """A costly value and how often it was computed."""
    calls = []

    def make():
        calls.append(1)
        return {"a": (1.5,)}

    def get():
        cache._rows.cache_clear()  # as in another process
        return cache.load_cached("thing", dict[str, tuple[float, ...]], make, folders)

    return calls, get


def test_a_second_process_reads_what_the_first_has_computed(folder):
    calls, get = counted()

    assert get() == get() == {"a": (1.5,)}
    assert len(calls) == 1
    assert [p.name for p in folder.iterdir()] == ["thing.msgpack"]


@pytest.mark.parametrize("changed", ["patterns.toml", "symptoms/hang.toml", "parts/__init__.py", "symptoms/new.toml"])
@pytest.mark.parametrize("text", ["a = 12\n", "a = 2\n", None])
def test_a_stale_index_is_not_used(sources, changed, text):
    """Files that were changed (also to one of the same size), added or removed, at any depth."""
    calls, get = counted(sources)
    path = sources / changed
    if text is None:
        path.write_text("a = 1\n")
    get()
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
        os.utime(path, ns=(1, 1))
    get()
    get()

    assert len(calls) == 2


@pytest.mark.parametrize("changed", ["labs/one.toml", "parts/notes.txt"])
def test_a_file_that_nothing_is_computed_from_makes_nothing_stale(sources, changed):
    calls, get = counted(sources)
    get()
    (sources / changed).write_text("other")
    get()

    assert len(calls) == 1


@pytest.mark.parametrize("damage", [b"", b"\xc1 no such thing", None])
def test_a_damaged_file_is_replaced(folder, damage):
    """Cut, foreign or with the right stamp but without content."""
    calls, get = counted()
    get()
    path = folder / "thing.msgpack"
    path.write_bytes(cache._stamp(()) + b"\xc1" if damage is None else damage)

    assert get() == {"a": (1.5,)}
    assert len(calls) == 2
    assert get() == {"a": (1.5,)}
    assert len(calls) == 2


def test_a_folder_that_can_not_be_written_costs_time_only(folder):
    """A file stands where the folder should be."""
    folder.write_text("not a folder")
    calls, get = counted()

    assert get() == get() == {"a": (1.5,)}
    assert len(calls) == 2


def test_an_installed_wheel_uses_the_index_of_its_release_and_writes_none(folder, monkeypatch):
    """What was built for another release is computed instead, and left as it is."""
    calls, get = counted()
    cache.build_into(folder)
    get()
    monkeypatch.setattr(cache, "_writes", False)
    get()
    assert len(calls) == 1

    path = folder / "thing.msgpack"
    other = path.read_bytes().replace(__version__.encode(), b"0.0.9", 1)
    path.write_bytes(other)
    assert get() == get() == {"a": (1.5,)}
    assert len(calls) == 3
    assert path.read_bytes() == other
    path.unlink()
    get()
    assert list(folder.iterdir()) == []


def test_indexed_knowledge_is_the_same_as_that_of_the_files(folder):
    """Symptoms, messages, observations, patterns and measures come back as they were read."""
    fresh = loader._files(loader.HOME)
    for _ in range(2):
        loaded = loader._load.__wrapped__(loader.HOME)
        assert [repr(s) for s in loaded.symptoms.values()] == [
            repr(s) for s in sorted(fresh.symptoms, key=lambda s: loader.sort_key(s.code))
        ]
        assert repr(loaded.messages) == repr(fresh.messages)
        assert repr(tuple(loaded.observations.values())) == repr(fresh.observations)
        assert repr(loaded.measures) == repr(fresh.measures)
    assert (folder / "knowledge.msgpack").stat().st_size > 100_000


def test_a_diagnosis_leaves_only_the_last_failure_in_the_users_folders(tmp_path):
    """No derived data: neither in HOME, nor where XDG points, nor where temporary files are."""
    home = tmp_path / "user"
    places = {"HOME": "", "TMPDIR": "tmp", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}
    places |= {"XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data", "XDG_RUNTIME_DIR": "run"}
    for name in places.values():
        (home / name).mkdir(parents=True, exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if k != "DTDEBUG_STATE"}
    environment |= {name: str(home / value) for name, value in places.items()}
    done = subprocess.run(
        [sys.executable, "-m", "dtdebug", "diagnose", str(SAMPLE)],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (1, "") == (done.returncode, done.stderr)
    assert [home / "state" / "dtdebug" / "last.json"] == [p for p in home.rglob("*") if p.is_file()]

"""What is worked out of the knowledge once: kept, found stale, replaced."""

import pytest

from dtdebug_taxonomy.knowledge import cache, loader


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A state directory of the test's own."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    cache._stamp.cache_clear()
    yield tmp_path / "state"
    cache._stamp.cache_clear()


def counted(sources=cache._SOURCES):
    """A costly value and how often it was made."""
    calls = []

    def make():
        calls.append(1)
        return {"a": (1.5,)}

    return calls, lambda: cache.load_cached("thing", dict[str, tuple[float, ...]], make, sources)


def test_a_second_process_reads_what_the_first_has_kept(folder):
    """The file is the user's alone, and is read instead of working it out again."""
    calls, get = counted()

    assert get() == get() == {"a": (1.5,)}
    assert len(calls) == 1
    assert (folder / "thing.cache").stat().st_mode & 0o777 == 0o600
    assert [p.name for p in folder.iterdir()] == ["thing.cache"]


def test_a_changed_file_of_the_knowledge_makes_it_stale(tmp_path):
    """Names, sizes and times of the sources are part of the stamp."""
    (tmp_path / "patterns.toml").write_text("a = 1\n")
    calls, get = counted((tmp_path,))
    get()
    (tmp_path / "patterns.toml").write_text("a = 12\n")
    cache._stamp.cache_clear()
    get()

    assert len(calls) == 2


@pytest.mark.parametrize("damage", [b"", b"\xc1 no such thing", None])
def test_a_damaged_file_is_replaced(folder, damage):
    """Cut, foreign or with the right stamp but without content: it is made anew."""
    calls, get = counted()
    get()
    path = folder / "thing.cache"
    path.write_bytes(cache._stamp(cache._SOURCES) + b"\xc1" if damage is None else damage)

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


def test_kept_knowledge_is_the_same_as_that_of_the_files(folder):
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
    assert (folder / "knowledge.cache").stat().st_size > 100_000

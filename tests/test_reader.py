"""Logs of any size and kind are reduced to what is worth reading."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtdebug.logs import reader


def read(data: bytes) -> reader.Excerpt:
    return reader.read(io.BytesIO(data), "log")


def test_a_small_log_is_kept_whole():
    """Nothing is cut and line numbers are as they are."""
    assert reader.Excerpt("one\ntwo\n", (), 8) == read(b"one\ntwo\n")


def test_an_empty_log_gives_an_empty_excerpt():
    """The caller says what to do about it."""
    assert read(b"").text == ""


def test_a_failure_in_the_middle_of_a_large_log_is_found_with_its_line():
    """The tail and lines unlike the others are kept, with their numbers in the log."""
    lines = [f"step {n} fine" for n in range(400_000)]
    lines[150_000] = "[rank3]: RuntimeError: boom"
    excerpt = read(("\n".join(lines) + "\n").encode())
    kept = excerpt.text.split("\n")
    at = kept.index("[rank3]: RuntimeError: boom") + 1
    first, whole = [row for row in excerpt.first_lines if row[0] <= at][-1]

    assert whole + at - first == 150_001
    assert len(excerpt.text) < reader.TAIL + reader.REGIONS + reader.CHUNK
    assert "step 399999 fine" in kept


def test_the_tail_keeps_true_line_numbers():
    """The last line of the excerpt is the last line of the log."""
    data = b"".join(b"line %d\n" % n for n in range(1, 300_001))
    excerpt = read(data)
    first, whole = excerpt.first_lines[-1]
    last = excerpt.text.rstrip("\n").count("\n") + 1

    assert whole + last - first == 300_000


def test_a_line_of_ten_megabytes_is_cut():
    """An endless line without a newline costs no memory."""
    excerpt = read(b"x" * 10_000_000 + b"\nRuntimeError: boom\n")

    assert len(excerpt.text) < 100_000
    assert "RuntimeError: boom" in excerpt.text


def test_a_progress_bar_keeps_its_end():
    """What a terminal would show last is kept."""
    bar = b"\r".join(b"%d%%|###| %d/100 [00:01<00:02, 3.1it/s]" % (n % 101, n) for n in range(60_000))
    excerpt = read(bar + b" CUDA out of memory\nnext\n")

    assert "CUDA out of memory" in excerpt.text


@pytest.mark.parametrize(
    ("data", "words"), [(b"\x00\x01\x02" * 3000, "is not text"), ("log".encode("utf-16") * 900, "UTF-16")]
)
def test_what_is_not_text_is_refused_in_one_line(data, words):
    """The message says what it is and what to do."""
    with pytest.raises(reader.LogError, match=words) as error:
        read(data)

    assert "\n" not in str(error.value)


def test_invalid_utf8_is_read_all_the_same():
    """A broken character costs that character only."""
    assert read(b"caf\xe9 error").text == "caf\ufffd error"


def test_a_folder_and_a_missing_file_are_named(tmp_path):
    """One line says which and why."""
    with pytest.raises(reader.LogError, match="is a folder"):
        reader.read_path(tmp_path)
    with pytest.raises(reader.LogError, match="no such file"):
        reader.read_path(tmp_path / "none.log")


@given(st.binary(max_size=4_000))
def test_any_bytes_are_read_or_refused(data):
    """Nothing else happens, whatever the bytes."""
    try:
        excerpt = read(data)
    except reader.LogError:
        return
    assert len(data) == excerpt.size

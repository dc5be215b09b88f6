"""Logs of any size and kind are reduced to what is worth reading."""

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtdebug.notebook.output_tail import EARLIER, LIMIT, Tail
from dtdebug.recorded.log_files import excerpt as log_excerpt
from dtdebug.recorded.log_files.line_shapes import KeptLine, Shapes


def read(data: bytes) -> log_excerpt.Excerpt:
    return log_excerpt.read_excerpt(io.BytesIO(data), "log")


def test_a_small_log_is_kept_whole():
    """Nothing is cut and line numbers are as they are."""
    assert log_excerpt.Excerpt("one\ntwo\n", (), 8) == read(b"one\ntwo\n")


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
    assert len(excerpt.text) < log_excerpt.TAIL + log_excerpt.REGIONS + log_excerpt.CHUNK
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
    with pytest.raises(log_excerpt.LogError, match=words) as error:
        read(data)

    assert "\n" not in str(error.value)


def test_invalid_utf8_is_read_all_the_same():
    """A broken character costs that character only."""
    assert read(b"caf\xe9 error").text == "caf\ufffd error"


def test_a_folder_and_a_missing_file_are_named(tmp_path):
    """One line says which and why."""
    with pytest.raises(log_excerpt.LogError, match="is a folder"):
        log_excerpt.read_path(tmp_path)
    with pytest.raises(log_excerpt.LogError, match="no such file"):
        log_excerpt.read_path(tmp_path / "none.log")


def test_nothing_has_to_be_known_of_a_failure():
    """A line in words that no list holds, and a tenth traceback whose lines but one are as those of the others."""
    lines = [f"step {n} fine" for n in range(200_000)]
    for rank in range(10):
        at = 50_000 + 100 * rank
        last = "Quux: the flim is flam" if rank == 9 else "RuntimeError: lost a peer"
        lines[at : at + 4] = [
            f"[rank{rank}]: Traceback (most recent call last):",
            f'[rank{rank}]:   File "/w/train.py", line 7, in main',
            f"[rank{rank}]:     step()",
            f"[rank{rank}]: {last}",
        ]
    kept = read(("\n".join(lines) + "\n").encode()).text

    assert "[rank9]: Quux: the flim is flam" in kept
    assert '[rank9]:   File "/w/train.py", line 7, in main\n[rank9]:     step()\n[rank9]: Quux' in kept
    assert kept.count("lost a peer") == 8


def test_of_free_text_the_lines_that_the_knowledge_names_are_kept():
    """No two lines are alike: what is known of goes first."""
    words = random.Random(5)
    lines = ["".join(words.choices("ghijklmnopqrstuvwxyz ", k=80)) for _ in range(14_000)]
    lines[7_000] = "RuntimeError: CUDA error: an illegal memory access was encountered"
    excerpt = read(("\n".join(lines) + "\n").encode())

    assert "an illegal memory access" in excerpt.text
    assert len(excerpt.text) <= log_excerpt.TAIL + log_excerpt.REGIONS


def test_states_of_a_progress_bar_are_lines_of_one_number():
    """An error between two states is kept, and its line is the bar's."""
    shapes = Shapes()
    shapes.take(b"one\n" + b"\r".join(b"%d%%|##| %d/9" % (n, n) for n in range(999)) + b"\roops: xyzzy\nlast words\n")

    assert KeptLine(2, b"oops: xyzzy") in shapes.kept
    assert KeptLine(3, b"last words") in shapes.kept
    assert shapes.lines == 3


@given(st.lists(st.binary(max_size=60).filter(lambda line: b"\n" not in line and b"\r" not in line), max_size=60))
def test_each_kept_line_has_its_number(lines):
    """However the log is cut into runs."""
    shapes = Shapes()
    for line in lines:
        shapes.take(line + b"\n")

    assert all(lines[row.number - 1] == row.raw for row in shapes.kept)
    assert shapes.lines == len(lines)


def test_the_tail_of_a_cell_keeps_earlier_lines_that_are_unlike_the_others():
    """What a cell printed hours ago, though its end is full of steps."""
    tail = Tail()
    for n in range(9_000):
        tail._add(f"step {n} loss 0.{n}\n")
        if n == 1_000:
            tail._add("worker 3: the flim ")
            tail._add("is flam\n")

    assert "worker 3: the flim is flam\n" in tail.text()
    assert tail.text().endswith("step 8999 loss 0.8999\n")
    assert len(tail.text()) < LIMIT + 2 * EARLIER


@given(st.binary(max_size=4_000))
def test_any_bytes_are_read_or_refused(data):
    """Nothing else happens, whatever the bytes."""
    try:
        excerpt = read(data)
    except log_excerpt.LogError:
        return
    assert len(data) == excerpt.size

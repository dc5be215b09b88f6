"""Lines with a word are found as by a search of each line, whatever the lines are."""

import math
import random

import pytest

from dtdebug.recorded.curves.printed import PrintedLines
from dtdebug.recorded.curves.series import Series
from dtdebug.recorded.log_files.line_shapes import Shapes
from dtdebug.recorded.log_files.lines_with_words import LinesWithWords

WORDS, FIRST = [b"oss", b"step"], [b"nan"]
TEXTS = ["step {n} Loss {x}", "LOSS {n}", "hash {x:x} of {n}", "loss nan at {n}", "step {n}: banana", "", "quiet {n}"]


def level(line: bytes) -> int:
    return 2 if b"nan" in line else int(any(word in line.lower() for word in WORDS))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("alike", [True, False])
def test_the_levels_of_lines_are_those_of_a_search_of_each(seed, alike):
    rnd = random.Random(seed)
    finder = LinesWithWords(WORDS, FIRST)
    for _ in range(40):
        rows = [rnd.choice(TEXTS).format(n=rnd.randrange(10**9), x=rnd.getrandbits(64)) for _ in range(200)]
        if not alike:
            rows = [row + " " + "".join(rnd.choices("ghijklm", k=12)) for row in rows]
        lines = "\n".join(rows).encode().split(b"\n")
        assert finder.levels(b"\n".join(lines), lines) == [level(line) for line in lines]


def test_a_value_that_is_not_finite_is_read_where_a_huge_log_is_read_in_part(monkeypatch):
    """Lines above it that name its step are read, too."""
    monkeypatch.setattr("dtdebug.recorded.curves.printed._WHOLE", 10)
    series = Series()
    reader, number = PrintedLines(series, "a.log"), 1
    for block in range(8):
        rows = [f"global_step: {block * 100 + i}\nloss: {'nan' if (block, i) == (5, 7) else 2.5}\n" for i in range(100)]
        number = reader.read("".join(rows).encode(), number)
    (loss,) = (curve for curve in series.curves() if curve.kind == "loss")
    rows = zip(loss.steps, loss.values, loss.lines, strict=True)
    bad = [(step, line) for step, value, line in rows if math.isnan(value)]
    assert bad == [(507, 1016)]
    assert len(loss.steps) < 300


def test_a_number_that_is_longer_than_any_is_no_value():
    series = Series()
    PrintedLines(series, "a.log").read(f"step 1 loss 9.{'1' * 300}e7\nstep 2 loss 8.5\n".encode())
    assert [list(curve.values) for curve in series.curves()] == [[8.5]]


def test_where_no_two_lines_are_alike_unusual_ones_are_still_kept(monkeypatch):
    monkeypatch.setattr("dtdebug.recorded.log_files.line_shapes._CHOICES", 2)
    rnd = random.Random(1)
    shapes = Shapes(most=1 << 14, choose=lambda rows: rows[-20:])
    said = b"RuntimeError: NCCL error (rank 3)"
    for block in range(40):
        rows = [" ".join("".join(rnd.choices("ghijklmnop", k=6)) for _ in range(9)).encode() for _ in range(300)]
        if block == 20:
            rows[150] = said
        shapes.take(b"\n".join(rows) + b"\n")
    assert [row.raw for row in shapes.kept if row.raw == said] == [said]

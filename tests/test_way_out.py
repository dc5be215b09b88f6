"""The statement that leaves the loop of a rank's last call, where the source has only one."""

import pytest

from dtdebug.flight.way_out import ways_of
from dtdebug_taxonomy.ranks import Frame

SOURCE = """\
def fit():
    for step in range(80):
        reduce()
        if late(step):
            return

def epochs(loader):
    for batch in loader:
        reduce()
        if batch is None:
            break

def two():
    while True:
        reduce()
        for row in rows():
            if row:
                break
        if done():
            sys.exit(0)

def several():
    while True:
        reduce()
        if a():
            return
        if b():
            break

def skips():
    for step in range(9):
        if odd(step):
            continue
        reduce()
        if late(step):
            return

def guarded():
    try:
        while True:
            reduce()
            if late():
                break
    except ValueError:
        pass

def nested():
    while True:
        def later():
            return 1
        reduce()
"""


@pytest.mark.parametrize(
    ("function", "statements", "certain"),
    [
        ("fit", ["return"], True),
        ("epochs", ["break"], False),  # its data may have ended
        ("two", ["sys.exit(0)"], True),
        ("several", ["return", "break"], True),
        ("skips", ["return"], False),  # a pass may go by without the call
        ("guarded", ["break"], False),  # so may an exception end it
        ("nested", [], True),
    ],
)
def test_what_leaves_the_loops_of_a_call_is_read_from_the_source(tmp_path, function, statements, certain):
    """And whether anything else can."""
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    rows = SOURCE.splitlines()
    begin = rows.index(next(row for row in rows if row.startswith(f"def {function}(")))
    line = next(n for n in range(begin, len(rows)) if rows[n].strip() == "reduce()") + 1

    found = ways_of(Frame(str(path), line, function))

    assert (statements, certain) == ([frame.code for frame in found.statements], found.certain)


def test_without_the_source_nothing_is_said(tmp_path):
    """It is on another machine."""
    assert ways_of(Frame(str(tmp_path / "gone.py"), 3, "fit")) is None

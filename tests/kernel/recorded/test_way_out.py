"""The statement that leaves the loop of a rank's last call, where the source has only one."""

import pytest

from dtdebug.recorded.flight_recorder.loop_exits import runs_out, ways_of
from dtdebug.recorded.flight_recorder.source_branches import comes_back
from dtdebug_taxonomy.model.ranks import Frame

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

def plain(loader):
    for epoch in range(3):
        for batch in loader:
            reduce()


def written():
    for step in range(60):
        reduce()


def unsynchronised(loader):
    for batch in loader:
        with nullcontext() if full(batch) else model.no_sync():
            reduce()


def sometimes(loader):
    for batch in loader:
        if full(batch):
            reduce()
"""


@pytest.mark.parametrize(
    ("function", "statements", "certain", "data"),
    [
        ("fit", ["return"], True, False),
        ("epochs", ["break"], False, False),  # its data may have ended
        ("two", ["sys.exit(0)"], True, False),
        ("several", ["return", "break"], True, False),
        ("skips", ["return"], False, False),  # a pass may go by without the call
        ("guarded", ["break"], False, False),  # so may an exception end it
        ("nested", [], True, False),
        ("plain", [], False, True),  # by nothing but the end of its data
        ("written", [], True, False),  # each rank makes as many rounds
        ("unsynchronised", [], False, False),  # nor is each round a call
        ("sometimes", [], False, False),
    ],
)
def test_what_leaves_the_loops_of_a_call_is_read_from_the_source(
    tmp_path, monkeypatch, function, statements, certain, data
):
    """And whether anything else can."""
    monkeypatch.chdir(tmp_path)  # of a file elsewhere no words are shown
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    rows = SOURCE.splitlines()
    begin = rows.index(next(row for row in rows if row.startswith(f"def {function}(")))
    line = next(n for n in range(begin, len(rows)) if rows[n].strip() == "reduce()") + 1

    frame = Frame(str(path), line, function)
    found = ways_of(frame)

    assert (statements, certain) == ([frame.code for frame in found.statements], found.certain)
    assert data == runs_out(frame)


@pytest.mark.parametrize(
    ("body", "back"),
    [
        ("train()\nCALL\nAFTER", True),
        ("for epoch in range(2):\n    CALL\n    AFTER", True),
        ("for epoch in range(2):\n    if bad():\n        continue\n    CALL\n    AFTER", False),
        ("CALL\nif rank == 0:\n    AFTER", False),
        ("for epoch in range(2):\n    CALL\nAFTER", False),
        ("AFTER\nCALL", False),
        ("if rank == 0:\n    CALL\nelse:\n    AFTER", False),
    ],
)
def test_a_rank_behind_a_call_in_every_pass_is_back_from_it(tmp_path, body, back):
    """Not where a condition, or another pass, may lead past the call."""
    path = tmp_path / "train.py"
    path.write_text(body)
    call, after = (next(n for n, row in enumerate(body.splitlines(), 1) if word in row) for word in ("CALL", "AFTER"))

    assert comes_back(str(path), call, after) is back


def test_without_the_source_nothing_is_said(tmp_path):
    """It is on another machine."""
    gone = Frame(str(tmp_path / "gone.py"), 3, "fit")
    assert (None, False) == (ways_of(gone), runs_out(gone))

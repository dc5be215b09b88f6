"""A rank that waits in a loop for a file: which line of the program writes one of that name."""

import sys
import threading

import pytest

from dtdebug.account.branches import branches_of

WAITING = """import os


def write(root):
    %s


def stay(root):
    marker = os.path.join(root, "_DONE")
    while not os.path.exists(marker):
        pause()
"""


def polled(folder, line):
    """Return the links of the loop in which a thread waits."""
    path = folder / "train.py"
    path.write_text(WAITING % line)
    ends, begun = threading.Event(), threading.Event()

    def pause():
        begun.set()
        ends.wait(20)
        (folder / "_DONE").touch()

    space = {"__name__": "__main__", "__file__": str(path), "pause": pause}
    exec(compile(path.read_text(), str(path), "exec"), space)
    waits = threading.Thread(target=space["stay"], args=(str(folder),), daemon=True)
    waits.start()
    begun.wait(20)
    frame = sys._current_frames()[waits.ident]
    while frame.f_code.co_name != "stay":
        frame = frame.f_back
    try:
        loops = [b for b in branches_of([frame], 5) if b.kind == "while"]
    finally:
        ends.set()
        waits.join(20)
    return [(link.value.name, link.place.line) for loop in loops for link in loop.links if link.how == "file"]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('open(os.path.join(root, "data", "_DONE"), "w").close()', "os.path.join(root, 'data', '_DONE')"),
        ('(root / "data" / "_DONE").touch()', "root / 'data' / '_DONE'"),
        ('torch.save({}, root + "/data/_DONE")', "root + '/data/_DONE'"),
        ('open(os.path.join(root, "_DONE")).close()', None),
        ('open(os.path.join(root, "_OTHER"), "w").close()', None),
    ],
)
def test_the_line_that_writes_a_file_of_that_name_is_found(tmp_path, line, path):
    """Wherever it puts it; a line that reads it, or writes another name, is none."""
    assert polled(tmp_path, line) == ([(path, 5)] if path else [])

"""Records a real terminal session as docs/images/recording.svg: a job that hangs, the answer, and the job repaired.

python docs/recording.py

Nothing in it is written by hand but the commands; waiting is shortened to a second, and the folder of this environment
reads as `/opt/venv`, since where it really is says something of a machine.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pexpect
import pyte
from pyte.screens import Char

IMAGE = Path(__file__).parent / "images" / "recording.svg"
ROWS, COLUMNS = 40, 112
WIDTH, HEIGHT, EDGE = 8.0, 17, 14
LONGEST_WAIT, FIRST_LOOK, LAST_LOOK, KEY = 1.0, 5.0, 12.0, 0.06
JOB_SECONDS = 120
INK = {"default": "#d6deeb", "green": "#22da6e", "red": "#ff8080", "brown": "#e3d18a"}
FONT = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"
JOB = "torchrun --standalone --nproc-per-node 4 train.py"
COMMANDS = (
    "cat train.py",
    f"dtdebug run --hang-after 5 --stop-on-hang -- {JOB}",
    "dtdebug fix --write --all train.py",
    f"dtdebug run -- {JOB} && echo done",
)
PROGRAM = """\
import torch, torch.distributed as dist

def save(loss):
    if dist.get_rank() == 0:
        torch.save(loss, "checkpoint.pt")
        dist.barrier()

dist.init_process_group("gloo")
loss = torch.ones(1)
for step in range(100):
    dist.all_reduce(loss)
    if step % 10 == 0 and dist.get_rank() == 0:
        print("step", step, flush=True)
    if step % 50 == 49:
        save(loss)
"""
PROMPT, ENVIRONMENT = "$", "/opt/venv"


class Frame(NamedTuple):
    """What the screen showed from a moment on."""

    at: float
    rows: tuple[tuple[Char, ...], ...]


class Session:
    """A shell in a pseudo-terminal, and all that its screen has shown."""

    def __init__(self, folder: Path) -> None:
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.Stream(self.screen)
        self.frames: list[Frame] = []
        self.clock = 0.0
        (folder / ".inputrc").write_text("set enable-bracketed-paste off\n", encoding="utf-8")
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PS1": r"\[\e[32m\]$\[\e[0m\] ",
            "TERM": "linux",
            "INPUTRC": str(folder / ".inputrc"),
            "DTDEBUG_STATE": str(folder / ".state"),
            "OMP_NUM_THREADS": "1",
        }
        self.shell = pexpect.spawn(
            "bash", ["--norc", "--noprofile"], cwd=str(folder), env=environment, encoding="utf-8",
            dimensions=(ROWS, COLUMNS),
        )  # fmt: skip

    def read(self, seconds: float) -> bool:
        """Takes in what comes within some seconds; whether anything came."""
        begin = time.monotonic()
        try:
            self.stream.feed(self.shell.read_nonblocking(65_536, timeout=seconds).replace(sys.prefix, ENVIRONMENT))
        except pexpect.TIMEOUT:
            return False
        self.clock += min(time.monotonic() - begin, LONGEST_WAIT)
        self.keep()
        return True

    def keep(self) -> None:
        """Remembers the screen as it is now."""
        self.frames.append(Frame(self.clock, tuple(tuple(line[x] for x in range(COLUMNS)) for line in self._lines())))

    def _lines(self) -> list[dict[int, Char]]:
        return [self.screen.buffer[y] for y in range(ROWS)]

    def idle(self) -> bool:
        """Whether the shell waits for a command."""
        return self.screen.display[self.screen.cursor.y].strip() == PROMPT

    def wait(self) -> None:
        """Until the shell waits for the next command."""
        end = time.monotonic() + JOB_SECONDS
        while self.read(0.5) or not self.idle():
            if time.monotonic() > end:
                raise TimeoutError("the command has not ended")

    def type(self, command: str) -> None:
        """Types a command and waits for its end."""
        for begin in range(0, len(command), 4):
            self.shell.send(command[begin : begin + 4])
            while not self.read(0.2):
                pass
            self.clock += KEY * 4
        self.shell.sendline()
        self.read(0.5)
        self.wait()
        self.clock += 2 * LONGEST_WAIT


def _spans(row: tuple[Char, ...]) -> Iterator[str]:
    for (colour, bold), chars in groupby(row, key=lambda c: (c.fg, c.bold)):
        style = "" if colour == "default" else f' fill="{INK.get(colour, INK["default"])}"'
        weight = ' font-weight="bold"' if bold else ""
        yield f"<tspan{style}{weight}>{escape(''.join(c.data for c in chars))}</tspan>"


def _rows(frames: list[Frame]) -> tuple[dict[tuple[Char, ...], str], str]:
    """A name for each different line, and their definitions: most lines stand in many frames."""
    names: dict[tuple[Char, ...], str] = {}
    for frame in frames:
        for row in frame.rows:
            if any(c.data != " " for c in row):
                names.setdefault(row, f"r{len(names)}")
    made = (f'<text id="{name}">{"".join(_spans(row)).rstrip()}</text>' for row, name in names.items())
    return names, "".join(made)


def drawn(frames: list[Frame]) -> str:
    """The film as an SVG: all frames below each other, of which one is seen: first the last, for pictures of it."""
    names, defined = _rows(frames)
    tall, wide = ROWS * HEIGHT + 2 * EDGE, round(COLUMNS * WIDTH) + 2 * EDGE
    whole = frames[-1].at + LAST_LOOK
    begin = FIRST_LOOK - whole  # in the past: the last frame is on when the film opens
    steps = "".join(f"{f.at / whole:.3%}{{transform:translateY({-i * tall}px)}}" for i, f in enumerate(frames))
    film = "".join(
        f'<g transform="translate({EDGE},{i * tall + EDGE + 12})">'
        + "".join(f'<use href="#{names[r]}" y="{y * HEIGHT}"/>' for y, r in enumerate(frame.rows) if r in names)
        + "</g>"
        for i, frame in enumerate(frames)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}" role="img">'
        "<title>A job of four ranks hangs; dtdebug names the rank, the line and the cause</title><style>"
        f"text{{font:13.3px {FONT};fill:{INK['default']};white-space:pre}}"
        f".film{{transform:translateY({tall - len(frames) * tall}px);"
        f"animation:film {whole:.1f}s {begin:.1f}s step-end infinite}}"
        f"@keyframes film{{{steps}}}@media (prefers-reduced-motion:reduce){{.film{{animation:none}}}}</style>"
        f'<rect width="{wide}" height="{tall}" rx="8" fill="#101820"/><defs>{defined}</defs>'
        f'<g class="film">{film}</g></svg>\n'
    )


def distinct(frames: list[Frame]) -> list[Frame]:
    """Frames that differ from the one before."""
    return [f for i, f in enumerate(frames) if i == 0 or f.rows != frames[i - 1].rows]


def main() -> None:
    """Runs the session and writes the image."""
    folder = Path(tempfile.gettempdir()) / "job"  # it is seen in the answer: a name that says nothing of a machine
    folder.mkdir()
    try:
        (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
        session = Session(folder)
        session.wait()
        for command in COMMANDS:
            session.type(command)
        session.shell.close(force=True)
    finally:
        shutil.rmtree(folder)
    IMAGE.parent.mkdir(exist_ok=True)
    IMAGE.write_text(drawn(distinct(session.frames)), encoding="utf-8")
    print("\n".join(line.rstrip() for line in session.screen.display))
    print(f"{IMAGE.name}: {IMAGE.stat().st_size / 1000:.0f} kB, {session.clock:.0f} s")


if __name__ == "__main__":
    main()

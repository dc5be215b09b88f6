"""Runs `%dtdebug watch`: the job with the watch, its output below the cell, and violations as a card."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from dtdebug.notebook.isolate_cell import go_on, last_command, split
from dtdebug.privacy.sanitize import clean
from dtdebug.storage import state_dir
from dtdebug_taxonomy.model.rank_ranges import spell

if TYPE_CHECKING:
    from dtdebug.notebook.extension_state import ShellState

_STYLE = "border-left:4px solid #c77700;padding:4px 12px;margin:4px 0;line-height:1.5;overflow-wrap:anywhere"
_CELL = "text-align:left;padding:1px 10px 1px 0;vertical-align:top"
_SHORT = f"{_CELL};white-space:nowrap"
_HEADS = ("what", "who", "when", "where", "means")
_ENDING = 60.0
"""Seconds within which an interrupted job ends."""
_LIMIT = 64 << 20


def show_watch(extension: ShellState, words: Sequence[str]) -> None:
    """Run the job and show which invariants it violated; without a command, rerun the last cell's job if `--yes`.

    Raises:
        ValueError: there is no command, or an option is unknown.

    """
    options, command = split(words)
    if unknown := [word for word in options if word != "--yes"]:
        raise ValueError(f"watch: no option {unknown[0]}; `%dtdebug watch -- torchrun --nproc-per-node 2 train.py`")
    if not command:
        command = last_command(extension.shell.history_manager.input_hist_raw)
        if not command:
            raise ValueError("watch: name the job, as in `%dtdebug watch -- torchrun --nproc-per-node 2 train.py`")
        print(f"dtdebug: watch takes the last job that a cell started: {clean(shlex.join(command))}")
        if "--yes" not in options:
            print("dtdebug: nothing was started; `%dtdebug watch --yes` runs it again")
            return
    begun = time.time()
    with tempfile.TemporaryDirectory(prefix="dtdebug-") as folder:
        report = Path(folder) / "report.json"
        _run([*(sys.executable, "-P", "-m", "dtdebug", "run", "--watch", "--format", "json"),
              *("--output", str(report), "--", *command)])  # fmt: skip
        with suppress(OSError, ValueError):
            said = json.loads(state_dir.read_start(report, _LIMIT))
            extension.publish({"text/plain": plain(said), "text/html": html(said)})
            if said["watch"] or said["late"]:
                go_on(extension, said, begun)


def plain(said: dict[str, Any]) -> str:
    """Format the answer as text."""
    return clean("\n".join([_head(said), *("  " + "  ".join(filter(None, row)) for row in _rows(said)), _cost(said)]))


def html(said: dict[str, Any]) -> str:
    """Format the answer as static HTML: no script, every text escaped."""
    rows = _rows(said)
    table = f"<table>{_row('th', _HEADS)}{''.join(_row('td', row) for row in rows)}</table>" if rows else ""
    return (
        f'<div class="dtdebug" style="{_STYLE}"><b>dtdebug watch</b>: {_safe(_head(said))}{table}'
        f"<div>{_safe(_cost(said))}</div></div>"
    )


def _row(cell: str, texts: Sequence[str]) -> str:
    """Format a table row, in which only the last cell wraps."""
    styles = [_SHORT] * (len(texts) - 1) + [_CELL]
    cells = (f'<{cell} style="{style}">{_safe(t)}</{cell}>' for style, t in zip(styles, texts, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _run(command: list[str]) -> None:
    """Run a command and print its output as it comes; an interrupt reaches the job, as in a terminal."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    try:
        for line in process.stdout:
            print(clean(line), end="")
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=_ENDING)
    except subprocess.TimeoutExpired:
        process.terminate()


def _head(said: dict[str, Any]) -> str:
    found = len(said["watch"]) + len(said["late"])
    if not found:
        return f"{said['verdict']['summary']} Nothing that must hold was violated."
    return f"It broke {found} training invariant{'s' * (found > 1)}"


def _rows(said: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [
        (v["invariant"], spell(tuple(v["ranks"]), 8), f"step {v['step']}", _place(v), v["means"]) for v in said["watch"]
    ]
    return rows + [("slow", spell(tuple(v["ranks"]), 8), "", _place(v), v["means"]) for v in said["late"]]


def _place(row: dict[str, Any]) -> str:
    return f"{PurePath(row['file']).name}:{row['line']}" if row.get("file") else ""


def _cost(said: dict[str, Any]) -> str:
    return next((note for note in said["notes"] if note.startswith("watch")), "")


def _safe(value: str) -> str:
    return escape(clean(value))

"""Runs an instrument of a cell: the job below the cell, and its result as a card.

`%dtdebug watch`, `%dtdebug run` with `--parity`, `--nan` or `--resume-check`, and `%dtdebug rehearse --memory`.
"""

from __future__ import annotations

import json
import os
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

from dtdebug.experiments.nonfinite.judge import ORIGIN
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
_NOTES = ("watch", "parity", "nan")
"""Beginnings of the notes that say what was looked at."""
_INSTRUMENTS = {"run": ("--watch", "--parity", "--nan", "--resume-check"), "rehearse": ("--memory",)}
_OTHERS = ("--format", "--output", "--folder", "--full", "--quiet", "--save", "--against", "--record", "--doctor")
"""Options of a terminal that decide where an answer goes, or ask for another one."""
_MEASURED = ("parity-", ORIGIN)
"""Beginnings of the findings of `--parity` and `--nan`, which are not invariants."""
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
    _show(extension, "watch", ["run", "--watch"], (options, command))


def show_instrument(extension: ShellState, verb: str, words: Sequence[str]) -> None:
    """Run `dtdebug run` or `dtdebug rehearse` with an instrument, and show its answer.

    Raises:
        ValueError: there is no command, no instrument, or an option that has no place in a notebook.

    """
    options, command = split(words)
    instruments = _INSTRUMENTS[verb]
    if not any(word in instruments for word in options):
        raise ValueError(f"{verb}: name what to measure: {', '.join(instruments)}")
    if refused := [word for word in options if word.partition("=")[0] in _OTHERS]:
        raise ValueError(f"{verb}: {refused[0]} is for a terminal; the answer is shown here")
    name = " ".join([verb, *(word for word in options if word != "--yes")])
    _show(extension, name, [verb, *(word for word in options if word != "--yes")], (options, command))


def _show(extension: ShellState, name: str, call: Sequence[str], told: tuple[Sequence[str], Sequence[str]]) -> None:
    options, command = told
    if not command:
        command = last_command(extension.shell.history_manager.input_hist_raw, getattr(extension.shell, "user_ns", {}))
        if not command:
            raise ValueError(f"{name}: name the job, as in `%dtdebug {name} -- torchrun --nproc-per-node 2 train.py`")
        print(f"dtdebug: {name} takes the last job that a cell started: {clean(shlex.join(command))}")
        if "--yes" not in options:
            print(f"dtdebug: nothing was started; `%dtdebug {name} --yes` runs it again")
            return
    begun = time.time()
    with tempfile.TemporaryDirectory(prefix="dtdebug-") as folder:
        report = Path(folder) / "report.json"
        ours = [sys.executable, "-P", "-m", "dtdebug", *call, "--format", "json"]
        if call[0] == "rehearse":  # it prints its answer, and nothing else
            _run([*ours, "--", *command], report)
        else:
            _run([*ours, "--output", str(report), "--", *command])
        with suppress(OSError, ValueError):
            said = json.loads(state_dir.read_start(report, _LIMIT))
            if "verdict" not in said:
                _publish_answer(extension, said, begun)
                return
            extension.publish({"text/plain": plain(said), "text/html": html(said)})
            if said["watch"] or said["late"]:
                go_on(extension, said, begun)


def _publish_answer(extension: ShellState, said: dict[str, Any], begun: float) -> None:
    """Show the diagnosis that an instrument has kept, else its short answer."""
    import msgspec

    from dtdebug.presentation.cell_answer import to_cell_text
    from dtdebug.presentation.diagnosis_card import answer_html
    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.model.answer import Answer

    answer = msgspec.convert(said["answer"], Answer)
    last = LastFailure.load()
    kept = last is not None and last.time >= begun
    extension.publish({"text/plain": to_cell_text(answer, more=kept), "text/html": answer_html(answer)})
    if kept:
        go_on(extension, {"diagnosis": True}, begun)


def plain(said: dict[str, Any]) -> str:
    """Format the answer as text."""
    return clean("\n".join([_head(said), *("  " + "  ".join(filter(None, row)) for row in _rows(said)), _cost(said)]))


def html(said: dict[str, Any]) -> str:
    """Format the answer as static HTML: no script, every text escaped."""
    rows = _rows(said)
    table = f"<table>{_row('th', _HEADS)}{''.join(_row('td', row) for row in rows)}</table>" if rows else ""
    return (
        f'<div class="dtdebug" style="{_STYLE}"><b>dtdebug run</b>: {_safe(_head(said))}{table}'
        f"<div>{_safe(_cost(said))}</div></div>"
    )


def _row(cell: str, texts: Sequence[str]) -> str:
    """Format a table row, in which only the last cell wraps."""
    styles = [_SHORT] * (len(texts) - 1) + [_CELL]
    cells = (f'<{cell} style="{style}">{_safe(t)}</{cell}>' for style, t in zip(styles, texts, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _run(command: list[str], answer: Path | None = None) -> None:
    """Run a command and print its output as it comes; an interrupt reaches the job, as in a terminal.

    `answer`: the file for its standard output, of which then nothing is printed.
    """
    with (answer or Path(os.devnull)).open("wb") as kept:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=kept if answer else subprocess.PIPE,
            stderr=subprocess.PIPE if answer else subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    lines = process.stderr if answer else process.stdout
    assert lines is not None  # noqa: S101 - a pipe was asked for
    try:
        for line in lines:
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
        held = any(note.startswith("watch: ") for note in said["notes"])
        return f"{said['verdict']['summary']}{' Nothing that must hold was violated.' * held}"
    measured = all(v["invariant"].startswith(_MEASURED) for v in said["watch"]) and not said["late"]
    what = "Measured {} difference{}" if measured else "It broke {} training invariant{}"
    return what.format(found, "s" * (found > 1))


def _rows(said: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [
        (v["invariant"], spell(tuple(v["ranks"]), 8), f"step {v['step']}", _place(v), v["means"]) for v in said["watch"]
    ]
    return rows + [("slow", spell(tuple(v["ranks"]), 8), "", _place(v), v["means"]) for v in said["late"]]


def _place(row: dict[str, Any]) -> str:
    return f"{PurePath(row['file']).name}:{row['line']}" if row.get("file") else ""


def _cost(said: dict[str, Any]) -> str:
    return "\n".join(note for note in said["notes"] if note.startswith(_NOTES))


def _safe(value: str) -> str:
    return escape(clean(value))

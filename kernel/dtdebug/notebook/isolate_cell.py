"""Runs `%dtdebug isolate`: the search in a separate process, its table as a card."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dtdebug.live.hosts import job_plan
from dtdebug.privacy.sanitize import clean

if TYPE_CHECKING:
    from dtdebug.notebook.extension_state import ShellState

_STYLE = "border-left:4px solid #c77700;padding:4px 12px;margin:4px 0;line-height:1.5;overflow-wrap:anywhere"
_CELL = "text-align:left;padding:1px 10px 1px 0;vertical-align:top"
_PROGRAMS = ("torchrun", "accelerate", "python")
_SHELL = re.compile(r"\d?[<>|;&]")
"""Marks the end of the job's command in a line: pipes, redirections, further commands."""
_NAMED = re.compile(r"\{([A-Za-z_][\w.]{0,100})\}|\$([A-Za-z_]\w{0,100})")
_HOW = {"slow": "is slow", "differs": "differs"}
_ENDING = 60.0
"""Seconds within which an interrupted search stops its run and answers."""


def show_isolate(extension: ShellState, words: Sequence[str]) -> None:
    """List the runs; with `--yes` start them and show which change is responsible.

    Without a command, the last cell that started a launcher provides it.

    Raises:
        ValueError: there is no command.

    """
    options, command = split(words)
    if not command:
        command = last_command(extension.shell.history_manager.input_hist_raw, extension.shell.user_ns)
        if not command:
            raise ValueError("isolate: name the job, as in `%dtdebug isolate -- torchrun --nproc-per-node 2 train.py`")
        print(f"dtdebug: isolate takes the last job that a cell started: {clean(shlex.join(command))}")
    isolate = [sys.executable, "-P", "-m", "dtdebug", "isolate", *options]
    if "--yes" not in options:
        done = subprocess.run(
            [*isolate, "--dry-run", "--", *command], capture_output=True, text=True, check=False, timeout=120
        )
        print(done.stdout or done.stderr, end="")
        if done.returncode == 0:
            print("dtdebug: nothing was started; `%dtdebug isolate --yes` starts these runs")
        return
    begun = time.time()
    text = _run_search([*isolate, "--format", "json", "--", *command])
    if not text:
        return
    said = json.loads(text)
    extension.publish({"text/plain": plain(said), "text/html": html(said)})
    go_on(extension, said, begun)


def last_command(cells: Sequence[str], names: Mapping[str, Any] | None = None) -> list[str]:
    """Return the command of the last line `!torchrun ...` among the cells; empty if there is none.

    `{sys.executable}` and `$script` in it are looked up in these names; nothing is called.
    """
    for cell in reversed(cells):
        for line in reversed(cell.splitlines()):
            if not line.lstrip().startswith("!"):
                continue
            with suppress(ValueError):
                line = _NAMED.sub(lambda m: _value(m[1] or m[2], names or {}), line)  # noqa: PLW2901
                words = shlex.split(line.lstrip()[1:], comments=True)
                words = words[: next((i for i, word in enumerate(words) if _SHELL.match(word)), len(words))]
                if words and PurePath(words[0]).name.startswith(_PROGRAMS) and job_plan.is_launcher(words):
                    return words
    return []


def _value(name: str, names: Mapping[str, Any]) -> str:
    """Return the string or number with this name in the notebook or in one of its modules; else the name in braces."""
    first, *rest = name.split(".")
    value = names.get(first)
    for attribute in rest:
        value = vars(value).get(attribute) if isinstance(value, ModuleType) else None
    return shlex.quote(str(value)) if isinstance(value, (str, int, PurePath)) else f"{{{name}}}"


def plain(said: dict[str, Any]) -> str:
    """Format the answer as text."""
    rows = [f"  {'  '.join(filter(None, row))}" for row in _rows(said)]
    return clean("\n".join([_head(said), *rows, *_early(said), said["answer"]]))


def html(said: dict[str, Any]) -> str:
    """Format the answer as static HTML: no script, every text escaped."""
    rows = ("".join(f'<td style="{_CELL}">{_safe(value)}</td>' for value in row) for row in _rows(said))
    table = "".join(f"<tr>{row}</tr>" for row in rows)
    parts = [
        f'<div class="dtdebug" style="{_STYLE}"><b>dtdebug isolate</b>: {_safe(_head(said))}',
        f"<table>{table}</table>" if table else "",
        *(f"<div>{_safe(line)}</div>" for line in _early(said)),
        f"<div><b>{_safe(said['answer'].replace('      ', ' · '))}</b></div>",
    ]
    return "".join(parts) + "</div>"


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words into (our options, the command)."""
    at = list(words).index("--") if "--" in words else len(words)
    return list(words[:at]), list(words[at + 1 :])


def _run_search(command: list[str]) -> str:
    """Return the search's answer as JSON and print its progress; an interrupt ends the search, which then answers."""
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None  # noqa: S101 - a pipe was asked for
        for line in process.stderr:
            print(clean(line), end="")
    except KeyboardInterrupt:
        process.terminate()
    try:
        return process.communicate(timeout=_ENDING)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return ""


def go_on(extension: ShellState, said: dict[str, Any], begun: float) -> None:
    """Show the diagnosis, from which `%dtdebug` continues."""
    from dtdebug.presentation.diagnosis_card import bundle
    from dtdebug.storage.last_failure import LastFailure

    last = LastFailure.load()
    if said["diagnosis"] is None or last is None or last.time < begun:
        return
    extension.snapshot = last.snapshot
    extension.session = extension.wizard = None
    extension.publish(bundle(last.diagnosis, last.snapshot))


def _head(said: dict[str, Any]) -> str:
    failure = said["failure"]
    if not failure:
        return said["unfinished"] or "does not fail"
    return f"{_HOW.get(failure.get('how', ''), 'fails')}: {failure['text']}"


def _early(said: dict[str, Any]) -> list[str]:
    early = [f"the search ended early: {said['unfinished']}"] if said["failure"] and said["unfinished"] else []
    return [*(f"not varied: {line}" for line in said.get("not_varied", ())), *early]


def _rows(said: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (row["title"], ", ".join(f"{to}: {went}" for to, went in row["tried"]), row["says"]) for row in said["table"]
    ]


def _safe(value: str) -> str:
    return escape(clean(value))

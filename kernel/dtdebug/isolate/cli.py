"""The sub-command `dtdebug isolate`."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from dtdebug import state
from dtdebug.clean import arguments, clean
from dtdebug.errors import FOUND, NOTHING, USAGE, UsageError
from dtdebug.isolate.command import Job, one_host, parse
from dtdebug.isolate.found import Found
from dtdebug.isolate.identity import Failure
from dtdebug.isolate.runner import Choices, Run, Runner
from dtdebug.isolate.search import Search
from dtdebug.isolate.told import Told
from dtdebug.isolate.told import read as told_of
from dtdebug.isolate.tries import Tries

_KEPT = 10
"""Searches that are kept for --resume."""
_LIMIT = 16 << 20
_VARIABLES = re.compile(
    r"(?:NCCL|TORCH|TORCHDYNAMO|TORCHINDUCTOR|PYTORCH|GLOO|CUDA|CUBLAS|UCX|FI|TOKENIZERS|KMP|MKL)_\w{1,60}\Z"
)
_PLACES = re.compile(r"\w{0,60}(?:_HOME|_DIR|_PATH|_FILE|_ROOT|VISIBLE_DEVICES)\Z")
"""Variables that may be what matters, and those that only say where things are."""
_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)([smh]?)\Z")
_INTERRUPTED = 130
_LOOKING = 20.0
"""Seconds for which the ranks of a hang are looked at and ended."""


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """A search that can be resumed."""

    command: tuple[str, ...]
    home: str
    runs: tuple[Run, ...] = ()


def add(commands: Any) -> None:
    """Adds the sub-command to the parser of the command line."""
    isolate = commands.add_parser(
        "isolate",
        help="run a failing job again with things changed; say which component is responsible",
        usage="dtdebug isolate [options] -- COMMAND ...",
        description="Runs the job as it is until it fails, then with one thing after another changed from outside: "
        "number of ranks, backend, data-loader workers, torch.compile, mixed precision, options of DDP, the last "
        "batch, seeds, variables of the environment. Each run works in a copy of the working directory, and nothing is "
        "uploaded. Says which change makes the failure go away, and what is ruled out. It does not follow a job that "
        "is only slow (dtdebug slow) or gives other numbers (dtdebug run --record, then dtdebug diff), and changes no "
        "package version, no device and nothing between hosts.",
        epilog="Exit status: 0 it does not fail, 1 it fails, 2 it can't be run, 130 interrupted.",
    )
    isolate.add_argument("--budget", default="10m", metavar="TIME", help="for all runs: 90s, 10m, 2h (default 10m)")
    isolate.add_argument(
        "--hang", action="store_true", help="the failure is a hang: see it sooner, follow nothing else"
    )
    isolate.add_argument(
        "--hang-after", type=float, metavar="SECONDS", help="without movement (default 30, with --hang 20)"
    )
    isolate.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="what you know already, and isolate need not run (repeatable): works_with_one_process=yes, compile=fails",
    )
    isolate.add_argument("--situation", default="", metavar="TEXT", help="the same in plain words")
    isolate.add_argument("--dry-run", action="store_true", help="list the runs, start none")
    isolate.add_argument("--resume", action="store_true", help="go on with the last search of this command")
    isolate.add_argument("--in-place", action="store_true", help="let the runs work here, not in copies")
    isolate.add_argument(
        "--may-write", action="append", default=[], metavar="PATH", help="what the runs may change elsewhere"
    )
    isolate.add_argument("--yes", action="store_true", help="do not ask before the first run")
    isolate.add_argument("--format", choices=("text", "json"), default="text")
    isolate.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    isolate.set_defaults(run=_isolate)


def _isolate(options: argparse.Namespace) -> int:
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not words:
        raise UsageError("isolate: name the job, as in `dtdebug isolate -- torchrun --nproc-per-node 4 train.py`")
    if not sys.platform.startswith("linux"):
        raise UsageError("isolate: works on Linux only")
    if shutil.which(words[0]) is None:
        raise UsageError(f"isolate: {words[0]}: command not found")
    hang_after = options.hang_after if options.hang_after is not None else 20.0 if options.hang else 30.0
    if not 0 < hang_after < float("inf"):
        raise UsageError(f"isolate --hang-after {hang_after:g}: more than 0 seconds")
    told = told_of(options.answer, options.situation)
    budget, job = _seconds(options.budget), _on_one_host(parse(words), told)
    home = Path.cwd()
    saved = _last(job, home) if options.resume else None
    if options.resume and saved is None:
        raise UsageError("isolate --resume: there is no search of this command in this folder")
    known = saved[1].runs if saved else ()
    variables = sorted(name for name in os.environ if _VARIABLES.match(name) and not _PLACES.match(name))
    if options.dry_run or (not options.yes and sys.stdin.isatty() and sys.stderr.isatty()):
        from dtdebug.isolate import table
        from dtdebug_taxonomy import factors

        first = next((run for run in known if not run.factors and run.failure), None)
        text = table.plan(job, factors.load(), variables, first)
        if options.dry_run:
            print(text, end="")
            return NOTHING
        sys.stderr.write(f"{text}Start? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return NOTHING
    folder = saved[0] if saved else _folder()
    may_write = tuple(str(Path(path).absolute()) for path in options.may_write)
    choices = Choices(hang_after=hang_after, in_place=options.in_place, may_write=may_write)
    session = _Session(job, home, folder, choices, hang=options.hang)
    found = session.search(known, budget, variables, told)
    return _answer(found, session, told, as_json=options.format == "json")


def _on_one_host(job: Job, told: Told) -> Job:
    """The same job on this host alone."""
    if job.hosts < 2:
        return job
    if told.one_host == "yes":
        raise UsageError(
            "isolate: it works on one host, as you say, so what is between the hosts is responsible; "
            "`dtdebug doctor COMMAND` on each host looks at that"
        )
    if job.launcher != "torchrun":
        raise UsageError("isolate: the command is for several hosts; name one that fails on one host")
    print(f"dtdebug isolate: {job.hosts} hosts are asked for; all runs are on this one alone", file=sys.stderr)
    return one_host(job)


def _answer(found: Found, session: _Session, told: Told, *, as_json: bool) -> int:
    from dtdebug.isolate import table
    from dtdebug.isolate.findings import explained
    from dtdebug.last import Last

    known = explained(found, told) if found.failure is not None else None
    diagnosis = known[1] if known else None
    if known:
        Last(snapshot=known[0], diagnosis=known[1]).save()
    written = tuple(dict.fromkeys(path for run in found.runs for path in run.wrote if not _is_temporary(path)))
    if as_json:
        print(json.dumps(table.to_json(found, diagnosis, written=written)))
    else:
        print(table.to_text(found, diagnosis), end="")
        for path in written[:5]:
            print(f"  the runs left {path}")
    if session.interrupted:
        return _INTERRUPTED
    if found.failure is None:
        return USAGE if found.unfinished else NOTHING
    return FOUND


class _Session:
    """A search as it is kept on disk after each run."""

    def __init__(self, job: Job, home: Path, folder: Path, choices: Choices, *, hang: bool) -> None:
        self.interrupted = False
        self._job, self._home, self._folder, self._hang = job, home, folder, hang
        self._patience = choices.hang_after + _LOOKING
        self._runner = Runner(job, home, folder, choices)
        self._runs: list[Run] = []
        self._left: Callable[[], float] = lambda: 0.0

    def search(self, known: tuple[Run, ...], budget: float, variables: list[str], told: Told) -> Found:
        from dtdebug_taxonomy import factors

        tries = Tries(
            self._run, known, budget=budget, patience=self._patience, told=dict(told.results), tell=self._tell
        )
        ranks = self._job.ranks if self._job.at >= 0 else _alone(self._job)
        self._left = tries.left
        search = Search(tries, factors.load(), variables, ranks, sometimes=told.sometimes)
        self._runs = list(known)
        before = {name: signal.signal(name, _interrupt) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            return search.run()
        except KeyboardInterrupt:
            self.interrupted = True
            return search.interrupted()
        finally:
            for name, handler in before.items():
                signal.signal(name, handler)

    def _run(self, setting: Mapping[str, str], reference: Failure | None, limit: float) -> Run:
        run = self._runner.run(setting, reference, limit)
        if run.denied and reference is None:
            raise UsageError(
                f"isolate: the program writes to {run.denied[0]}, which is outside of its folder and was there before; "
                "let it write elsewhere, or allow it with --may-write"
            )
        if reference is None and run.failure is not None and run.failure.message.startswith("EOF when reading a line"):
            raise UsageError("isolate: the program asks for input, which no run gets; let it take that from an option")
        if self._hang and reference is None and run.failure is not None and not run.failure.hung:
            raise UsageError(f"isolate --hang: the job does not hang: {run.failure.text}")
        return run

    def _tell(self, run: Run) -> None:
        from dtdebug.isolate.table import lasted, progress

        self._runs.append(run)
        with suppress(OSError):
            saved = Saved(command=_cleaned(self._job), home=str(self._home), runs=tuple(self._runs))
            state.write(self._folder / "search.json", msgspec.json.encode(saved))
        with suppress(OSError):
            line = f"{progress(run, len(self._runs))}; {lasted(self._left())} of the budget are left"
            print(f"dtdebug isolate: {line}", file=sys.stderr, flush=True)


def _cleaned(job: Job) -> tuple[str, ...]:
    """The command as it is kept: without secrets."""
    return tuple(clean(word) for word in arguments(job.words))


def _alone(job: Job) -> int | None:
    """One rank, which torchrun starts where no number is given."""
    return 1 if job.launcher == "torchrun" else None


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _is_temporary(path: str) -> bool:
    return path.startswith(tempfile.gettempdir())


def _seconds(text: str) -> float:
    found = _SPAN.match(text.strip())
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if seconds <= 0:
        raise UsageError(f"isolate --budget {text}: a time such as 90s, 10m or 2h")
    return seconds


def _folder() -> Path:
    parent = state.folder() / "isolate"
    try:
        state.home()
        parent.mkdir(mode=0o700, exist_ok=True)
        for old in _searches()[_KEPT - 1 :]:
            shutil.rmtree(old, ignore_errors=True)
        return Path(tempfile.mkdtemp(dir=parent, prefix=time.strftime("%Y%m%d-%H%M%S-")))
    except OSError as error:
        raise UsageError(f"isolate: {error.filename or parent}: {error.strerror}") from None


def _searches() -> list[Path]:
    """The folders of searches, newest first."""
    with suppress(OSError):
        return sorted((p for p in (state.folder() / "isolate").iterdir() if p.is_dir()), reverse=True)
    return []


def _last(job: Job, home: Path) -> tuple[Path, Saved] | None:
    for folder in _searches():
        with suppress(OSError, ValueError):
            saved = msgspec.json.decode(state.read(folder / "search.json", _LIMIT), type=Saved)
            if saved.command == _cleaned(job) and saved.home == str(home):
                return folder, saved
    return None

"""Entry point and arguments of the `dtdebug` command.

Exit status: 0 nothing found, 1 something found, 2 usage or unreadable input.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NoReturn

from dtdebug.cli import limits
from dtdebug.cli.verbs import ALIASES, DOCTOR, VERBS, parser
from dtdebug.errors import NOTHING, USAGE, UsageError
from dtdebug.storage import budget, command_timer
from dtdebug_taxonomy import __version__, named_files

__all__ = ["ALIASES", "VERBS", "add", "main", "parser", "run"]
_WAITING = frozenset({
    "run", "attach", "lab", "learn", "isolate", "bisect", "rehearse", "replay", "wizard", "lsp", "mcp", "doctor", "--",
})  # fmt: skip
"""Commands that last as long as a job or a user."""
_FOLLOWING = frozenset({"-", "--follow", "--tee"})
"""Arguments with which any command does."""


def run() -> NoReturn:
    """Run the command and end the process with its status."""
    gc.set_threshold(_NEW_OBJECTS)
    if sys.stdout is None and not _starts(sys.argv[1:]):
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - the status still says what was found
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows fewer characters
            stream.reconfigure(errors="replace")
    try:
        if not _starts(sys.argv[1:]):
            limits.bound_memory()
        status = main()
    except KeyboardInterrupt:
        status = INTERRUPTED
    gc.freeze()  # garbage that ends with the process need not be collected
    sys.exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; an internal error becomes one line unless `--debug` is given."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = words[:1] == ["--debug"]
    named_files.give_roots(words)
    try:
        waits = _waits(words)  # a timer would wake what waits for signals
        with budget.one_command(waits=waits), nullcontext() if waits else command_timer.time_limit():
            status = _answer(words[debug:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOTHING
    except command_timer.OverBudgetError:
        _complain(limits.TIME)
        return USAGE
    except Exception as error:
        if _is_users(error):
            _complain(str(error))
            return USAGE
        if debug:
            raise
        if isinstance(error, MemoryError | RecursionError):
            _complain(limits.MEMORY if isinstance(error, MemoryError) else limits.DEPTH)
            return USAGE
        if isinstance(error, OSError) and error.filename is not None:  # no room, no permission, another kind of file
            why = "can't be opened by this user: " if isinstance(error, PermissionError) else ""
            _complain(f"{os.fsdecode(error.filename)}: {why}{error.strerror}")
            return USAGE
        if isinstance(error, OSError) and error.strerror:  # of output, or of the folder
            gone = isinstance(error, FileNotFoundError) and not _has_folder()
            _complain(f"can't go on: {'this folder is gone' if gone else error.strerror}")
            with suppress(OSError, ValueError, AttributeError):  # nothing more is written at the end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return USAGE
        _complain(f"internal error ({type(error).__name__}: {error}); --debug shows more")
        return USAGE
    return status


def _has_folder() -> bool:
    try:
        return bool(Path.cwd())
    except OSError:
        return False


def _waits(words: Sequence[str]) -> bool:
    """True if the command lasts as long as something else."""
    return _starts(words) or not _FOLLOWING.isdisjoint(words)


def _starts(words: Sequence[str]) -> bool:
    """True if the command starts or watches processes, or serves."""
    return not _WAITING.isdisjoint(words[words[:1] == ["--debug"] :][:1]) or "--try" in words


def _answer(words: list[str]) -> int:
    """Run the command that the words name, or answer for the things that they name."""
    if not words:
        from dtdebug.cli import overview

        return overview.show()
    verb = words[0]
    if verb in ("-h", "--help"):
        from dtdebug.cli import help as help_text

        print(help_text.SHORT)
        return NOTHING
    if verb in ("-V", "--version"):
        print(f"dtdebug {__version__}")
        return NOTHING
    if verb == "--":
        words, verb = ["run", *words], "run"
    known = verb in VERBS
    if not known:
        words, verb = ["diagnose", *words], "diagnose"
    options = parser(only=verb).parse_args(words)
    if not known:
        options.aside = True
    status: int = options.run(options)
    return status


def _is_users(error: Exception) -> bool:
    """True for an error that the user has to correct, reported in one line."""
    from dtdebug.recorded.log_files.excerpt import LogError
    from dtdebug_taxonomy.knowledge.loader import KnowledgeError

    return isinstance(error, UsageError | LogError | KnowledgeError)


def _complain(text: str) -> None:
    from dtdebug.privacy.sanitize import complain

    complain(text)


INTERRUPTED = 128 + signal.SIGINT
"""Exit status after Ctrl-C, as in a shell."""
_NEW_OBJECTS = 100_000
"""Number of new objects that triggers garbage collection; an answer makes some 50,000, hardly any of them garbage."""


def add(commands: Any) -> None:
    """Add the sub-commands that are short enough to stand here."""
    for add_one in (_add_wizard, _add_explain, _add_report, _add_why, _add_lsp, _add_mcp):
        add_one(commands)


def _add_lsp(commands: Any) -> None:
    lsp = commands.add_parser(
        "lsp",
        help="the language server for editors",
        description="Serves editors: findings of `dtdebug check` while you type, fixes, what a name is, and the last "
        "failed run at the lines where it stopped. Your editor starts it; nothing of what it reads is run or imported.",
        epilog="Example, for Neovim: `vim.lsp.config('dtdebug', { cmd = { 'dtdebug', 'lsp' } })`.",
    )
    lsp.add_argument("--stdio", action="store_true", help="use standard input and output (the default)")
    lsp.add_argument("--tcp", action="store_true", help="listen on a loopback socket")
    lsp.add_argument("--port", type=int, default=0, metavar="N", help="with --tcp: the port (default: a free one)")
    lsp.set_defaults(run=_lsp)


def _add_mcp(commands: Any) -> None:
    mcp = commands.add_parser(
        "mcp",
        help="tools for coding agents, by the Model Context Protocol",
        description="Serves a coding agent on standard input and output: diagnose, why, triage, attach, flight, check, "
        "doctor and explain as tools that only look and run nothing. The agent's client starts it.",
        epilog="Example, for Claude Code: `claude mcp add dtdebug -- dtdebug mcp`.",
    )
    mcp.set_defaults(run=_mcp)


def _add_why(commands: Any) -> None:
    why = commands.add_parser(
        "why",
        help="all that is known of the last failure",
        description="Prints all that is known of the last failure that was diagnosed: each reason with its record, the "
        "other causes and how likely they are, the places of the ranks, versions and settings.",
        epilog="Example: `dtdebug why`, after `dtdebug train.log`.",
    )
    why.set_defaults(run=_why)


def _add_wizard(commands: Any) -> None:
    wizard = commands.add_parser(
        "wizard",
        help="find the cause question by question",
        description="Asks what tells the likely causes apart, the question that tells most first, until one cause "
        "is left or nothing more would help. What a log or `dtdebug doctor` shows is not asked.",
        epilog="Example: `dtdebug wizard train.log`; without a log it begins with what you see.",
    )
    wizard.add_argument("log", nargs="?", metavar="FILE", help="the program's output; for a folder, all logs in it")
    wizard.add_argument("--situation", default="", metavar="TEXT", help="what you see, in plain words")
    wizard.add_argument("--doctor", action="store_true", help=DOCTOR)
    wizard.add_argument("--resume", action="store_true", help="continue the last unfinished wizard")
    wizard.add_argument("--report", metavar="FILE", help="write a Markdown report at the end")
    wizard.set_defaults(run=_wizard)


def _add_explain(commands: Any) -> None:
    explain = commands.add_parser(
        "explain",
        help="explain a symptom, check, cause, fix pattern, message or question",
        description="Prints the page on a name that an answer shows: a symptom, check, finding of doctor, cause, fix "
        "pattern, message or question. Without a name it lists all.",
        epilog="Examples: `dtdebug explain D.2.1`, `dtdebug explain DT101`.",
    )
    explain.add_argument(
        "name", nargs="*", metavar="NAME", help="such as D.2.1, hang, fix-network-setting, S24; none lists all"
    )
    explain.add_argument("--tree", action="store_true", help="the decision tree, derived from the question policy")
    explain.add_argument("--depth", type=int, default=3, help="with --tree: questions in a row (default 3)")
    explain.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    explain.set_defaults(run=_explain)


def _add_report(commands: Any) -> None:
    report = commands.add_parser(
        "report",
        help="a Markdown report of the last diagnosed failure, or of a log",
        description="Prints what was found and what it rests on, with secrets masked, to paste into an issue or to "
        "send to a colleague: of the last failure that was diagnosed here, or of a log. Of a run's folder it writes "
        "one archive.",
        epilog="Example: `dtdebug report train.log > report.md`.",
    )
    report.add_argument(
        "log", nargs="?", metavar="FILE|-|RUN", help="the program's output; a run's folder becomes one archive"
    )
    report.add_argument("--dumps", action="store_true", help="with RUN: include the flight-recorder dumps as they are")
    report.add_argument(
        "--list", action="store_true", help="with RUN: list what would be packed and masked; write nothing"
    )
    report.add_argument("--situation", default="", metavar="TEXT", help="what you see, in plain words")
    report.add_argument("--format", choices=("markdown", "json"), default="markdown")
    report.set_defaults(run=_report)


def _why(_options: argparse.Namespace) -> int:
    from dtdebug.cli import door
    from dtdebug.cli.readings import Asked
    from dtdebug.live.job.saved_case import Saved, case_of
    from dtdebug.presentation.terminal import say_aside
    from dtdebug.storage.last_failure import LastFailure

    last = LastFailure.load()
    if last is None:
        raise UsageError("why: no failure has been diagnosed yet; `dtdebug train.log` reads a log")
    if last.passed:
        at, since = (time.strftime("%H:%M", time.localtime(t)) for t in (last.time, last.passed))
        say_aside(f"the failure that was told at {at}; what was read at {since} shows none")
    found = Saved(case_of(last.snapshot, last.diagnosis), last.snapshot, of_text=not last.snapshot.ranks)
    door.show_case(found, Asked(full=True), known=False)
    return NOTHING


def _wizard(options: argparse.Namespace) -> int:
    import msgspec

    from dtdebug.cli.door import failure_of
    from dtdebug.cli.readings import with_doctor
    from dtdebug.wizard import resume, terminal
    from dtdebug.wizard.session import Session

    session = resume() if options.resume else None
    if options.resume and session is None:
        raise UsageError("wizard --resume: there is no unfinished wizard")
    if session is None:
        session = Session(snapshot=failure_of(options.log, options.situation)[0])
    if options.doctor:
        session = msgspec.structs.replace(session, snapshot=with_doctor(session.snapshot))
    return terminal.start(session, report=Path(options.report) if options.report else None)


def _explain(options: argparse.Namespace) -> int:
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.presentation.explain import UnknownNameError, explain, index

    name = " ".join(options.name)
    if options.tree:
        from dtdebug_taxonomy.inference.decision_tree import tree

        text = tree(load(), max(0, options.depth))
    elif not name:
        text = index(load())
    else:
        try:
            text = explain(load(), name)
        except UnknownNameError as error:
            raise UsageError(f"explain: {error}") from None
    if options.format == "json":
        import msgspec

        print(msgspec.json.encode({"name": name, "markdown": text}).decode())
    elif options.format == "text" and sys.stdout.isatty() and name:
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        print(text)
    return NOTHING


def _lsp(options: argparse.Namespace) -> int:
    """Become the language server, which is a separate package and needs pygls."""
    import runpy
    from importlib.util import find_spec

    if find_spec("pygls") is None:
        raise UsageError('lsp: needs pygls: pip install "dtdebug[lsp]"')
    sys.argv = ["dtdebug lsp", *(["--tcp", "--host", "127.0.0.1", "--port", str(options.port)] if options.tcp else [])]
    runpy.run_module("dtdebug_lsp", run_name="__main__")
    return NOTHING


def _mcp(_options: argparse.Namespace) -> int:
    """Serve until the client closes the streams; needs the protocol's SDK."""
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("mcp.server.mcpserver") is None:
        raise UsageError('mcp: needs the SDK, version 2: pip install "dtdebug[mcp]"')
    from dtdebug.mcp.server import build

    # The server would wait for its thread that reads standard input; and a handler alone runs with the next event of
    # its loop, which may never come, while a byte is written to this pipe at once.
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    signal.set_wakeup_fd(wake)
    threading.Thread(target=lambda: os.read(woken, 1) and os._exit(INTERRUPTED), daemon=True).start()
    build().run("stdio")
    return NOTHING


def _report(options: argparse.Namespace) -> int:
    import msgspec

    from dtdebug.cli.door import failure_of
    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.presentation.text import to_markdown

    if options.log and Path(options.log, "ranks").is_dir():
        from dtdebug.cli import ranks

        return ranks.send(Path(options.log), dumps=options.dumps, only_list=options.list)
    if options.log is None and not options.situation:
        last = LastFailure.load()
        if last is None:
            raise UsageError("report: no failure has been diagnosed yet; name a log file")
    else:
        snapshot, diagnosis = failure_of(options.log, options.situation)
        last = LastFailure(snapshot=snapshot, diagnosis=diagnosis)
    if options.format == "json":
        print(msgspec.json.encode(last).decode())
    else:
        print(to_markdown(last.diagnosis, last.snapshot), end="")
    return NOTHING

"""The `dtdebug` command.

Exit status: 0 nothing found, 1 something found, 2 usage or unreadable input.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from dtdebug.errors import FOUND, NOTHING, USAGE, UsageError
from dtdebug_taxonomy import __version__

if TYPE_CHECKING:
    from dtdebug_taxonomy.snapshot import Snapshot


def run() -> NoReturn:
    """Entry point of the command: ends the process with its status."""
    try:
        status = main()
    except KeyboardInterrupt:
        status = INTERRUPTED
    sys.exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; a failure of ours becomes one line unless `--debug` is given."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        options = parser(only=words[0] if words else "").parse_args(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    from dtdebug.logs.reader import LogError
    from dtdebug_taxonomy.knowledge import KnowledgeError

    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except (UsageError, LogError, KnowledgeError) as error:
        print(f"dtdebug: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOTHING
    except Exception as error:
        if options.debug:
            raise
        from dtdebug.clean import clean

        print(clean(f"dtdebug: internal error ({type(error).__name__}: {error}); --debug shows more"), file=sys.stderr)
        return USAGE
    return status


INTERRUPTED = 128 + signal.SIGINT
"""Exit status after Ctrl-C, as a shell has it."""
_DOCTOR = "what `dtdebug doctor` measured within the last hour answers questions"
_LIGHT = ("diagnose", "explain", "wizard")
"""Commands that need none of the modules that the others are made of."""


def parser(only: str = "") -> argparse.ArgumentParser:
    """The command line, all of it; where `only` is a light command, what is imported for others is left out."""
    top = argparse.ArgumentParser(prog="dtdebug", description="Why did my distributed training fail?")
    top.add_argument("--version", action="version", version=f"dtdebug {__version__}")
    top.add_argument("--debug", action="store_true", help="show tracebacks of dtdebug's own failures")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    diagnose = commands.add_parser("diagnose", help="diagnose a log, a pasted error or a description")
    diagnose.add_argument(
        "log",
        nargs="?",
        metavar="FILE|FOLDER|-",
        help="what the program printed; - reads standard input; of a folder all logs",
    )
    diagnose.add_argument("--situation", default="", metavar="TEXT", help="what you see, in plain words")
    diagnose.add_argument(
        "--answer", action="append", default=[], metavar="KEY=VALUE", help="answer a question (repeatable)"
    )
    diagnose.add_argument("--doctor", action="store_true", help=_DOCTOR)
    diagnose.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    diagnose.add_argument("--tee", action="store_true", help="with -: pass the input on to standard output as it comes")
    diagnose.add_argument("--batch", metavar="CASES.jsonl", help="diagnose many cases; one JSON line each")
    diagnose.add_argument(
        "--questions", type=int, default=0, metavar="N", help="with --batch: ask at most N questions a case"
    )
    diagnose.set_defaults(run=_diagnose)

    _add_wizard(commands)

    explain = commands.add_parser("explain", help="explain a symptom code, fix pattern, indicator or observation")
    explain.add_argument(
        "name", nargs="*", metavar="NAME", help="such as D.2.1, hang, fix-network-setting, activity; none lists all"
    )
    explain.add_argument("--tree", action="store_true", help="the decision tree, derived from the question policy")
    explain.add_argument("--depth", type=int, default=3, help="with --tree: questions in a row (default 3)")
    explain.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    explain.set_defaults(run=_explain)

    report = commands.add_parser("report", help="a Markdown report of the last failure that was diagnosed, or of a log")
    report.add_argument(
        "log", nargs="?", metavar="FILE|-|RUN", help="what the program printed; a run's folder becomes one archive"
    )
    report.add_argument("--dumps", action="store_true", help="with RUN: take in the flight-recorder dumps as they are")
    report.add_argument(
        "--list", action="store_true", help="with RUN: say what would be sent and masked; write nothing"
    )
    report.add_argument("--situation", default="", metavar="TEXT", help="what you see, in plain words")
    report.add_argument("--format", choices=("markdown", "json"), default="markdown")
    report.set_defaults(run=_report)
    if only in _LIGHT:
        return top

    from dtdebug import cli_ranks
    from dtdebug.check import command as check
    from dtdebug.check import fixing
    from dtdebug.doctor import command as doctor
    from dtdebug.isolate import cli as isolate
    from dtdebug.lab import command as lab
    from dtdebug.learn import command as learn
    from dtdebug.triage import command as triage

    for verb in (check, fixing, lab, learn, cli_ranks, triage, isolate, doctor):
        verb.add(commands)
    lsp = commands.add_parser("lsp", help="the language server for editors")
    lsp.add_argument("--stdio", action="store_true", help="on standard input and output (as without any option)")
    lsp.add_argument("--tcp", action="store_true", help="on a socket of this machine")
    lsp.add_argument("--port", type=int, default=0, metavar="N", help="with --tcp")
    lsp.set_defaults(run=_lsp)
    mcp = commands.add_parser("mcp", help="tools for coding agents, by the Model Context Protocol")
    mcp.set_defaults(run=_mcp)
    return top


class _Tee:
    """A stream that shows what is read from it."""

    def __init__(self, stream: BinaryIO, out: BinaryIO) -> None:
        self._stream, self._out = stream, out

    def read(self, size: int) -> bytes:
        chunk = self._stream.read1(size) if hasattr(self._stream, "read1") else self._stream.read(size)
        self._out.write(chunk)
        self._out.flush()
        return chunk


def _add_wizard(commands: Any) -> None:
    wizard = commands.add_parser("wizard", help="find the cause question by question")
    wizard.add_argument("log", nargs="?", metavar="FILE", help="what the program printed; of a folder all logs")
    wizard.add_argument("--situation", default="", metavar="TEXT", help="what you see, in plain words")
    wizard.add_argument("--doctor", action="store_true", help=_DOCTOR)
    wizard.add_argument("--resume", action="store_true", help="go on where the last wizard was left")
    wizard.add_argument("--report", metavar="FILE", help="write a Markdown report at the end")
    wizard.set_defaults(run=_wizard)


def _snapshot(log: str | None, situation: str, *, tee: bool = False) -> tuple[Any, int]:
    """A snapshot of a log and a description, and the bytes of the whole log."""
    import msgspec

    from dtdebug.clean import plain
    from dtdebug.flight.source import exclusive
    from dtdebug.logs import reader
    from dtdebug_taxonomy.failure import attribution
    from dtdebug_taxonomy.pasted import parted
    from dtdebug_taxonomy.snapshot import Snapshot

    if log is None:
        excerpt = reader.Excerpt("", (), 0)
    elif log == "-":
        stream: Any = _Tee(sys.stdin.buffer, sys.stdout.buffer) if tee else sys.stdin.buffer
        excerpt = reader.read(stream, "standard input")
    else:
        excerpt = reader.read_path(Path(log))
    if log is not None and not excerpt.text.strip() and not situation:
        name = "standard input" if log == "-" else log
        raise UsageError(f"{name}: is empty; describe what you see with --situation, or run `dtdebug wizard`")
    output = plain(excerpt.text)
    if not situation:  # somebody's thread with a log in it is read for both
        situation, output = parted(output)
    snapshot = Snapshot(situation=plain(situation), output=output, source=log or "", first_lines=excerpt.first_lines)
    from dtdebug.check.culprits import sourced_snapshot

    verdict = attribution.verdict(snapshot, exclusive)
    return sourced_snapshot(msgspec.structs.replace(snapshot, verdict=verdict)), excerpt.size


def is_job(log: str) -> bool:
    """A folder or an archive: the logs of a job, not one log."""
    return log != "-" and (Path(log).is_dir() or log.endswith((".gz", ".zst", ".xz", ".bz2", ".tar", ".tgz")))


def _answers(pairs: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What was answered, and the questions to which the answer is not known."""
    from dtdebug_taxonomy.knowledge import load

    observations = load().observations
    result, unknown = dict[str, str](), list[str]()
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in observations:
            raise UsageError(f"--answer {pair}: no observation {key!r}; `dtdebug explain` lists what there is")
        values = [v.value for v in observations[key].value]
        if value == "unknown":
            unknown.append(key)
        elif value not in values:
            raise UsageError(f"--answer {pair}: {key} is one of {', '.join(values)}, unknown")
        else:
            result[key] = value
    return result, tuple(unknown)


def _diagnose(options: argparse.Namespace) -> int:
    if options.batch:
        return _batch(options.batch, options.questions)
    if options.log is None and not options.situation:
        raise UsageError("diagnose: name a log file, or - for standard input, or describe it with --situation")
    import time

    if options.log is not None and is_job(options.log):
        from dtdebug.triage import command as triage

        began, form = time.perf_counter(), "json" if options.format == "json" else "text"
        job = triage.job_of(triage.read([options.log]), options.situation)
        return triage.say(job, began, form, *_answers(options.answer))
    import msgspec

    from dtdebug.border import diagnose, masked
    from dtdebug.last import Last
    from dtdebug_taxonomy.knowledge import load
    from dtdebug_taxonomy.pasted import only_words
    from dtdebug_taxonomy.render import to_markdown, to_text

    answers, unknown = _answers(options.answer)
    knowledge = load()
    begin = time.perf_counter()
    snapshot, size = _snapshot(options.log, options.situation, tee=options.tee)
    snapshot = _with_doctor(snapshot) if options.doctor else snapshot
    d = diagnose(knowledge, snapshot, answers, unknown)
    if not (d.recognised or d.ordinary or snapshot.situation) and (words := only_words(snapshot.output)):
        described = msgspec.structs.replace(snapshot, situation=words)
        again = diagnose(knowledge, described, answers, unknown)
        snapshot, d = (described, again) if again.recognised else (snapshot, d)
    spent = (time.perf_counter() - begin) * 1000
    found = d.recognised or d.verdict != "unknown"
    if found:  # for `dtdebug report`, and for the notebook whose cell has run this
        Last(snapshot=snapshot, diagnosis=d).save()
    if options.format == "json":
        from dtdebug_taxonomy.case import contract, of_text

        asked = [{"key": k, "answer": v} for k, v in (*answers.items(), *((k, None) for k in unknown))]
        case = contract(of_text(masked(snapshot), d, name=options.log or "", size=size))
        record = {"id": options.log or "", **case, "questions": asked, "milliseconds": round(spent, 3)}
        print(msgspec.json.encode(record).decode())
    elif options.format == "markdown":
        print(to_markdown(d, masked(snapshot)), end="")
    elif d.ordinary:
        print(f"dtdebug: {d.ordinary}")
    elif not found:
        print("dtdebug: nothing here is recognised as a fault of distributed training.")
        print("  Describe what you see (--situation TEXT), or let `dtdebug wizard` ask.")
    else:
        print(to_text(d))
    return FOUND if found else NOTHING


def _batch(path: str, questions: int) -> int:
    import io

    import msgspec

    from dtdebug.logs import careful
    from dtdebug_taxonomy.batch import run_case
    from dtdebug_taxonomy.knowledge import load

    if questions < 0:
        raise UsageError(f"--questions {questions}: 0 or more")
    try:
        lines = sys.stdin.buffer if path == "-" else io.BufferedReader(careful.log(path, pipes=True))
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    knowledge, bad = load(), 0
    with lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                result = run_case(knowledge, msgspec.json.decode(line, type=dict[str, Any]), questions)
            except ValueError as error:
                bad += 1
                print(f"dtdebug: {path}:{number}: {error}; case left out", file=sys.stderr)
                continue
            sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    return USAGE if bad else NOTHING


def _with_doctor(snapshot: Snapshot) -> Snapshot:
    import msgspec

    from dtdebug import examined

    return msgspec.structs.replace(snapshot, examined=examined.last())


def _wizard(options: argparse.Namespace) -> int:
    import msgspec

    from dtdebug.wizard import resume, terminal
    from dtdebug.wizard.session import Session

    session = resume() if options.resume else None
    if options.resume and session is None:
        raise UsageError("wizard --resume: no wizard was left open")
    if session is None and options.log is not None and is_job(options.log):
        from dtdebug.check.culprits import sourced_snapshot
        from dtdebug.triage import command as triage

        job = triage.job_of(triage.read([options.log]), options.situation)
        session = Session(snapshot=sourced_snapshot(job.snapshot))
    if session is None:
        session = Session(snapshot=_snapshot(options.log, options.situation)[0])
    if options.doctor:
        session = msgspec.structs.replace(session, snapshot=_with_doctor(session.snapshot))
    return terminal.start(session, report=Path(options.report) if options.report else None)


def _explain(options: argparse.Namespace) -> int:
    from dtdebug_taxonomy.explain import UnknownNameError, explain, index
    from dtdebug_taxonomy.knowledge import load

    name = " ".join(options.name)
    if options.tree:
        from dtdebug_taxonomy.tree import tree

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
    """Becomes the language server, which is a package of its own and needs pygls."""
    import runpy
    from importlib.util import find_spec

    if find_spec("pygls") is None:
        raise UsageError('lsp: needs pygls: pip install "dtdebug[lsp]"')
    sys.argv = ["dtdebug lsp", *(["--tcp", "--host", "127.0.0.1", "--port", str(options.port)] if options.tcp else [])]
    runpy.run_module("dtdebug_lsp", run_name="__main__")
    return NOTHING


def _mcp(_options: argparse.Namespace) -> int:
    """Serves until its client closes the streams; needs the SDK of the protocol."""
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("mcp.server.mcpserver") is None:
        raise UsageError('mcp: needs the SDK, version 2: pip install "dtdebug[mcp]"')
    from dtdebug.mcp.server import build

    # The server would wait for its thread that reads standard input.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    build().run("stdio")
    return NOTHING


def _report(options: argparse.Namespace) -> int:
    import msgspec

    from dtdebug.border import diagnose
    from dtdebug.last import Last
    from dtdebug_taxonomy.knowledge import load
    from dtdebug_taxonomy.render import to_markdown

    if options.log and Path(options.log).is_dir():
        from dtdebug import cli_ranks

        return cli_ranks.send(Path(options.log), dumps=options.dumps, only_list=options.list)
    if options.log is None and not options.situation:
        last = Last.load()
        if last is None:
            raise UsageError("report: no failure has been diagnosed yet; name a log file")
    else:
        snapshot, _ = _snapshot(options.log, options.situation)
        last = Last(snapshot=snapshot, diagnosis=diagnose(load(), snapshot))
    if options.format == "json":
        print(msgspec.json.encode(last).decode())
    else:
        print(to_markdown(last.diagnosis, last.snapshot), end="")
    return NOTHING

"""Sub-command `diagnose`: answers for what the user names; or for many cases at once."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from dtdebug.cli.verbs import DOCTOR
from dtdebug.errors import NOTHING, USAGE, UsageError

_EACH_CASE = 0.5
"""Processor seconds granted for each case of a batch."""


def add(commands: Any) -> None:
    """Add the sub-command to the command-line parser."""
    diagnose = commands.add_parser(
        "diagnose",
        help="diagnose a log, a pasted error or a description",
        description="Says why a run failed, from what it printed or from your words: what happened, on which rank and "
        "where, the record behind each sentence, the likely cause with its fix, and what to do next.",
        epilog="Examples: `dtdebug diagnose train.log`, `torchrun train.py 2>&1 | dtdebug diagnose - --tee`. "
        "Exit status: 0 no failure was recognised, 1 one was, 2 usage error or unreadable input.",
    )
    diagnose.add_argument(
        "things",
        nargs="*",
        metavar="THING",
        help="logs, folders, patterns, archives, runs, dumps, traces, a process id, a saved answer, what you see in "
        "quotes; - for standard input; several are taken for one failure",
    )
    diagnose.add_argument("--situation", default="", metavar="TEXT", help="what you see, in plain words")
    diagnose.add_argument(
        "--answer", action="append", default=[], metavar="KEY=VALUE", help="answer a question (repeatable)"
    )
    diagnose.add_argument("--doctor", action="store_true", help=DOCTOR)
    diagnose.add_argument("--full", action="store_true", help="also all that `dtdebug why` shows")
    diagnose.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    diagnose.add_argument("--tee", action="store_true", help="with -: also copy the input to standard output")
    diagnose.add_argument("--batch", metavar="CASES.jsonl", help="diagnose many cases; one JSON line each")
    diagnose.add_argument(
        "--questions", type=int, default=0, metavar="N", help="with --batch: ask at most N questions a case"
    )
    diagnose.set_defaults(run=_diagnose)


def _diagnose(options: argparse.Namespace) -> int:
    """Answer for what the user names; return 1 if something is found."""
    from dtdebug.cli.help import misspelt

    if said := next((said for word in options.things if (said := misspelt(word))), ""):
        raise UsageError(said)
    if options.batch:
        return _batch(options.batch, options.questions)
    if not options.things and not options.situation:
        raise UsageError("diagnose: name a log file, or - for standard input, or describe it with --situation")
    from dtdebug.cli import door
    from dtdebug.cli.readings import Asked

    return door.answer(options.things, Asked.of(options), aside=getattr(options, "aside", False))


def _batch(path: str, questions: int) -> int:
    import io

    import msgspec

    from dtdebug.storage import budget, safe_open
    from dtdebug_taxonomy.diagnosis.batch import run_case
    from dtdebug_taxonomy.knowledge.loader import load

    if questions < 0:
        raise UsageError(f"--questions {questions}: 0 or more")
    try:
        lines = safe_open.standard_input() if path == "-" else io.BufferedReader(safe_open.log(path, pipes=True))
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    knowledge, bad = load(), 0
    with lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            budget.current().grant(_EACH_CASE)
            try:
                result = run_case(knowledge, msgspec.json.decode(line, type=dict[str, Any]), questions)
            except (ValueError, RecursionError) as error:
                from dtdebug.privacy.sanitize import complain

                bad += 1
                complain(f"{path}:{number}: {error}; case left out")
                continue
            sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    return USAGE if bad else NOTHING

"""Feeds every command files that are no training, and counts what it says of them.

    python benchmarks/foreign.py FOLDER [FOLDER ...] [--most 40] [--seed 1] [--show]

Each folder is one kind of material, fetched by whoever runs this: other systems' logs, other profilers' output, data.
An answer is wrong if it says that all is well without a measure of what was understood (of a program: its files). A
finding is shown with --show, to be looked at: of a file of training it may be true.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import re
import sys
from collections import Counter
from pathlib import Path

from dtdebug.cli.main import main as main_of_command

COMMANDS = ("", "diagnose", "triage", "slow", "flight", "join", "check", "fix", "compare")
CLEARED = re.compile(
    r"(?i)no rank (?:is late|failed)|\bhealthy\b|training went on|no (?:known )?failure\b|no rank stands out"
    r"|nothing (?:found|to fix) in [\d,]+ (?:file|line|program)"
)
MEASURE = re.compile(
    r"\d[\d,]* of [\d,]+ (?:lines?|events|traces|files)|\d[\d,]* lines? looked at|up to step \d|in \d+ files?\b"
)
KINDS = ("not understood", "refused", "found", "cleared with a measure", "WRONG")


def answer(command: str, file: Path) -> tuple[int, str]:
    """Return exit status and text of one command."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            status = main_of_command([*([command] if command else []), str(file)])
        except SystemExit as end:
            status = int(end.code or 0)
    return status, " ".join(out.getvalue().split())


def kind_of(status: int, said: str) -> str:
    """Return the kind of an answer."""
    if status == 2:
        return "refused"
    if CLEARED.search(said) or status == 0:
        return "cleared with a measure" if MEASURE.search(said) else "WRONG"
    return "not understood" if re.search("(?i)not (?:understood|recognised)", said) else "found"


def main() -> None:
    """Print a row for each folder and command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=40, help="files drawn of each folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=COMMANDS)
    parser.add_argument("--show", action="store_true", help="also findings and clearances, not only wrong ones")
    options = parser.parse_args()
    commands = COMMANDS if options.only is None else (options.only,)
    wrong = 0
    print(f"{'folder':28} {'command':9} " + " ".join(f"{kind:>22}" for kind in KINDS))
    for folder in options.folders:
        files = sorted(f for f in folder.rglob("*") if f.is_file())
        random.Random(options.seed).shuffle(files)
        for command in commands:
            counts: Counter[str] = Counter()
            for file in files[: options.most]:
                status, said = answer(command, file)
                kind = kind_of(status, said)
                counts[kind] += 1
                if kind == "WRONG" or (options.show and kind in {"found", "cleared with a measure"}):
                    print(f"  {kind}: {command or 'dtdebug'} {file}: {said[:240]}")
            wrong += counts["WRONG"]
            row = " ".join(f"{counts[kind]:22}" for kind in KINDS)
            print(f"{folder.name[:28]:28} {command or 'dtdebug':9} {row}", flush=True)
    print(f"{wrong} answers say that all is well without a measure")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

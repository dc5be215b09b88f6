"""Measures accounts of failures: over a folder of failing programs, how often the line that is wrong and its values.

    python benchmarks/account.py tests/accounts [--only NAME] [--show]

The folder holds the programs and `expected.toml`: of each, the number of ranks, lines that a reader would accept as
the mistake, values that explain it, and, where a diff is shown, the line that it adds. Each program is run once under
the agent, as by `dtdebug run`; what it prints is then read as `dtdebug diagnose` does, without values.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dtdebug.account.printed import with_accounts
from dtdebug.live.agent.arm import arming_variables
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.account import Account, NamedValue
from dtdebug_taxonomy.model.snapshot import Snapshot

SECONDS = 60


class Expected(NamedTuple):
    """What the account of a program has to hold."""

    ranks: int
    root: Sequence[str]
    values: Sequence[str]
    fix: str = ""
    """Line that the diff adds; empty if no diff is expected."""


class Score(NamedTuple):
    """What one account holds."""

    root: bool
    """Its root is a line that is wrong."""
    line: bool
    """Any of its links, or its place, is."""
    values: bool


def expected_of(folder: Path) -> dict[str, Expected]:
    """Return name of a program -> what is expected of it."""
    table = tomllib.loads((folder / "expected.toml").read_text())
    return {
        n: Expected(row.get("ranks", 1), row["root"], row["values"], row.get("fix", "")) for n, row in table.items()
    }


def run(program: Path, ranks: int, folder: RunFolder) -> str:
    """Run a program on some ranks under the agent, and return what they printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    common = {**os.environ, **arming_variables(folder), **job, "PORT_FOR_SPAWN": str(int(port) % 9000 + 20_000)}
    with tempfile.TemporaryFile() as printed:
        started = [
            subprocess.Popen(
                [sys.executable, str(program)],
                env={**common, "RANK": str(n), "LOCAL_RANK": str(n)},
                stdout=printed,
                stderr=printed,
                start_new_session=True,
                cwd=folder.path,
            )
            for n in range(ranks)
        ]
        deadline = time.monotonic() + SECONDS
        for process in started:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        printed.seek(0)
        return printed.read().decode(errors="replace")


def accounts_of(program: Path, expected: Expected) -> tuple[Sequence[Account], str]:
    """Return the accounts of a program's ranks, and what they printed."""
    with tempfile.TemporaryDirectory() as home:
        folder = RunFolder.make(Path(home))
        printed = run(program, expected.ranks, folder)
        return tuple(each for record in folder.records() for each in record.accounts), printed


def shown(account: Account) -> Iterator[NamedValue]:
    """Yield all values of an account."""
    yield from (link.value for link in account.links)
    if account.refusal is not None:
        yield from (*account.refusal.values, *account.refusal.arguments)


def score(account: Account, expected: Expected) -> Score:
    """Return what an account holds of what is expected."""
    lines = [link.place.code for link in account.links]
    root = lines[account.root] if account.root >= 0 else ""
    every = [*lines, account.place.code if account.place else ""]
    texts = [value.text for value in shown(account)]
    return Score(
        any(root.startswith(each) or each.startswith(root) for each in expected.root) if root else False,
        any(line.startswith(each) for line in every for each in expected.root),
        all(any(wanted in text for text in texts) for wanted in expected.values),
    )


def describe(account: Account) -> Iterator[str]:
    """Yield the lines of an account, for a reader."""
    at = account.place
    yield f"  rank {account.rank}: {account.exception}"
    yield f"  at {at.file.rpartition('/')[2]}:{at.line}: {at.code}" if at else "  at no line"
    if account.refusal:
        r = account.refusal
        yield f"  {r.api} {[f'{test} is {way}' for test, way in r.tests]}"
        yield f"  values {[f'{v.name}={v.text}' for v in r.values]}"
        yield f"  arguments {[f'{v.name}={v.text}' for v in r.arguments]}"
    for n, link in enumerate(account.links):
        mark, place = "*" if n == account.root else " ", link.place
        where = f"{place.file.rpartition('/')[2]}:{place.line}: {place.code}"
        yield f"  {mark} {'  ' * link.depth}{link.value.name} = {link.value.text} [{link.how}] {where}"
    if account.stopped:
        yield f"  stopped: {account.stopped}"


def main() -> None:
    """Print the share of programs with the line and the values."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    lived, read = [], []
    for name, expected in expected_of(options.folder).items():
        if options.only not in name:
            continue
        found, printed = accounts_of((options.folder / f"{name}.py").resolve(), expected)
        texts = with_accounts(Snapshot(output=printed)).accounts
        lived.append(best(found, expected))
        read.append(best(texts, expected))
        print(f"{name}: {said(lived[-1])}; from text: {said(read[-1])}", flush=True)
        for each in [*found[:1], *texts[:1]] if options.show else ():
            print("\n".join(describe(each)))
        if options.show and not found:
            print(printed[-2000:])
    for name, scores in (("with values", lived), ("from text", read)):
        root, line, values = (sum(part) for part in zip(*scores, strict=True)) if scores else (0, 0, 0)
        print(f"{name}: root {root}, line {line}, values {values} of {len(scores)} programs")


def best(found: Sequence[Account], expected: Expected) -> Score:
    """Return the score of the best of a program's accounts."""
    return max((score(each, expected) for each in found), default=Score(root=False, line=False, values=False))


def said(held: Score) -> str:
    """Return a score in words."""
    return ", ".join(part for part, ok in zip(("root", "line", "values"), held, strict=True) if ok) or "nothing"


if __name__ == "__main__":
    main()

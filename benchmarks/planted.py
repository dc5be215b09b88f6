"""Plants a misspelt variable into real shell scripts and checks that `dtdebug check` finds it.

python benchmarks/planted.py FOLDER

Each script that bash accepts gets `export NCCL_DEBGU=INFO` on some lines, one at a time: those on which bash
would run it: it accepts that line there and rejects `then :` in its place (in a quote, a
here-document or between the words of a command it would accept both). Nothing is run or kept. It prints
plants that were found, plants that were reported as part of unparsed text, and plants that were
missed silently, each with its place; and scripts with a part reported as unparsed.
"""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source.shell.script import Script

PLANT, ORACLE = "export NCCL_DEBGU=INFO", "then :"
SUFFIXES = (".sh", ".bash", ".slurm", ".sbatch", ".sub")
PLACES = 5
"""Lines of a script that are tried."""


def main() -> int:
    """Print the figures; return 1 if a plant was missed silently."""
    files = sorted(f for f in Path(sys.argv[1]).rglob("*") if f.suffix in SUFFIXES and f.is_file())
    with ThreadPoolExecutor(2) as pool:
        rows = [r for r in pool.map(_planted, files) if r is not None]
    found, said, silent = (sum(row[i] for row in rows) for i in range(3))
    unread = [f for *_, f in rows if f]
    for *_, places, _ in rows:
        for place in places:
            print(place)
    print(f"{len(files)} scripts, {len(rows)} accepted by bash, {len(unread)} with parts that are not understood")
    print(f"{found + said + silent} plants: {found} found, {said} in such parts, {silent} passed over")
    return 1 if silent else 0


def _planted(file: Path) -> tuple[int, int, int, list[str], bool] | None:
    """Return plants found, reported, missed; places of the missed ones; True if a plantless script is reported."""
    try:
        text = file.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
    if not _accepts(text):
        return None
    lines = text.split("\n")
    counts, where = [0, 0, 0], list[str]()
    chosen = random.Random(str(len(text))).sample(range(1, len(lines)), min(PLACES, len(lines) - 1))
    for at in chosen:
        planted = "\n".join([*lines[:at], PLANT, *lines[at:]])
        refused = "\n".join([*lines[:at], ORACLE, *lines[at:]])
        if not _accepts(planted) or _accepts(refused):
            continue
        script = Script(planted, path=str(file))
        hits = {script.text.place(h.span.start).line for h in examine(script, Settings(select=("DT901",)))}
        parts = [(script.text.place(u.span.start).line, script.text.place(u.span.end).line) for u in script.unread]
        kind = 0 if at + 1 in hits else 1 if any(a <= at + 1 <= b for a, b in parts) else 2
        counts[kind] += 1
        if kind:
            where.append(f"{file}:{at + 1}: {('found', 'not understood', 'passed over')[kind]}")
    script = Script(text, path=str(file))
    where += [f"{file}:{script.text.place(u.span.start).line}: {u.why}" for u in script.unread]
    return counts[0], counts[1], counts[2], where, bool(script.unread)


def _accepts(text: str) -> bool:
    """True if bash parses a script to its end without an error; nothing is executed."""
    done = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, timeout=10, check=False)
    return done.returncode == 0 and b"here-document" not in done.stderr


if __name__ == "__main__":
    sys.exit(main())

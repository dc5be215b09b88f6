"""Measures answers on planted jobs: one line a job, then tables; raw results stay in the folder."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import judging
import planted_jobs
from judging import Judged
from planted_jobs import Outcome
from planting import Fault


def main(argv: Sequence[str] | None = None) -> int:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", help="FIRST-LAST, or one; none: judges again what is in the folder")
    parser.add_argument("--most", type=int, default=4, help="ranks of a job")
    parser.add_argument("--minutes", type=float, default=60.0, help="no new job begins after so long")
    parser.add_argument("--folder", type=Path, required=True, help="where jobs, reports and results stay")
    options = parser.parse_args(argv)
    if options.seeds is None:
        kept = again(options.folder)
        print("\n".join(map(line, kept)), table(kept), sep="\n")
        return 0
    first, _, last = options.seeds.partition("-")
    until = time.monotonic() + options.minutes * 60
    judged = []
    options.folder.mkdir(parents=True, exist_ok=True)
    with (options.folder / "results.jsonl").open("a") as results:
        for seed in range(int(first), int(last or first) + 1):
            if time.monotonic() > until:
                break
            one = examine(seed, options.folder, options.most)
            judged.append(one)
            results.write(json.dumps(asdict(one)) + "\n")
            results.flush()
            print(line(one), flush=True)
    print(table(judged))
    return 0


def examine(seed: int, folder: Path, most: int = 4) -> Judged:
    """One job."""
    fault = planted_jobs.prepare(seed, folder, most)
    outcome = planted_jobs.observe(fault, folder / fault.title)
    return judging.judge(fault, outcome, folder / fault.title)


def again(folder: Path) -> list[Judged]:
    """Holds kept answers against the truth once more, without running a job."""
    rows = [json.loads(row) for row in (folder / "results.jsonl").read_text().splitlines()]
    kept = []
    for row in rows:
        truth = row["fault"] | {"lines": [tuple(one) for one in row["fault"]["lines"]]}
        fault = Fault(**truth)
        kept.append(judging.judge(fault, Outcome(**row["outcome"]), folder / fault.title))
    return kept


def line(one: Judged) -> str:
    """One job in some lines."""
    fault = one.fault
    marks = f"rank {_mark(one.rank)} kind {_mark(one.kind)} line {_mark(one.line)} cause {one.cause or '-'}"
    head = f"{fault.title} [{one.outcome.asked}] rank {fault.rank} {fault.file}:{fault.line} `{fault.statement[:90]}`"
    if one.void:
        return f"VOID {head}: {one.void}"
    bad = "".join(f"\n     CONTRADICTED {text}" for text in one.contradicted)
    end = f"after {one.outcome.after:.0f} s, status {one.outcome.status}"
    interrupted = ", interrupted" if one.outcome.interrupted else ""
    return f"{head}\n     {marks}  {end}{interrupted}\n     {one.said}{bad}"


def table(judged: Sequence[Judged]) -> str:
    """Kind of fault, program and way of asking by what was right."""
    counted = [one for one in judged if not one.void]
    failing = [one for one in counted if one.fault.family != "healthy"]
    rows: dict[str, list[Judged]] = defaultdict(list)
    for one in failing:
        for name in (f"  {one.fault.fault}", one.fault.family, one.fault.program, one.outcome.asked):
            rows[name].append(one)
    lines = [f"{'':16}{'jobs':>6}{'rank':>8}{'kind':>8}{'line':>8}{'cause right/open':>18}{'contradicted':>14}"]
    for name, some in [*sorted(rows.items()), ("all failing", failing)]:
        causes = [one.cause in ("right", "open") for one in some if one.cause]
        right = sum(one.cause == "right" for one in some)
        lines.append(
            f"{name:16}{len(some):6}{_share(s.rank for s in some):>8}{_share(s.kind for s in some):>8}"
            f"{_share(s.line for s in some):>8}{f'{right}+{sum(causes) - right}/{len(causes)}':>18}"
            f"{sum(bool(s.contradicted) for s in some):14}"
        )
    healthy = [one for one in counted if one.fault.family == "healthy"]
    lines.append(f"healthy: {len(healthy)}, ended or accused: {sum(one.stopped for one in healthy)}")
    return "\n".join(lines)


def _mark(value: bool | None) -> str:
    return "-" if value is None else "ok" if value else "WRONG"


def _share(values: Iterable[bool | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known)}/{len(known)}" if known else "-"


if __name__ == "__main__":
    sys.exit(main())

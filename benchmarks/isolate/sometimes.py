"""Simulates how many runs an intermittent failure takes; prints a line for each explanation.

.venv/bin/python benchmarks/isolate/sometimes.py RATE COUNT [SEED]
"""

import random
import sys

from dtdebug.experiments.isolate.bayes_odds import PROGRAM, Odds, Trial

PARTS, MOST, SURE, COSTS = 8, 40, 0.93, (2.0, 1.3)


def simulated(rate: float, part: str, draw: random.Random, *, needs_ranks: bool) -> tuple[int, bool | None]:
    """Return (runs, True if the named one is right, None if none is named)."""
    odds = Odds([f"part {i}" for i in range(PARTS)], ["data"], 2)

    def fails(trial: Trial) -> bool:
        return part not in trial.changed and not (needs_ranks and trial.one) and draw.random() < rate

    trial, runs = Trial(), 0
    while runs < MOST and (runs == 0 or odds.causes()[0][1] < SURE):
        failed = fails(trial)
        odds.see(trial, failed=failed)
        runs += 1
        if failed or trial != Trial():  # until it has failed once, it is run as it is
            trial = odds.next(COSTS)[0]
    (cause, probability), *_ = odds.causes()
    return runs, (cause.part, cause.needs_ranks) == (part, needs_ranks) if probability >= SURE else None


def main() -> None:
    """Simulate all four explanations."""
    rate, count = float(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    for part in (PROGRAM, "part 3"):
        for needs_ranks in (False, True):
            rows = [simulated(rate, part, draw, needs_ranks=needs_ranks) for _ in range(count)]
            told = f"right {sum(said is True for _, said in rows)}, wrong {sum(said is False for _, said in rows)}"
            ranks = "only with several ranks" if needs_ranks else "also with one rank"
            print(
                f"{part or 'the program'}, {ranks}: runs {sorted(runs for runs, _ in rows)}, {told} of {count}",
                flush=True,
            )


if __name__ == "__main__":
    main()

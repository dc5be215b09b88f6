"""Checks that the first stage of a pipeline reads the inputs of the targets that the last stage reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from dtdebug.experiments.invariants.judge.common import violation
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import Fetch, Model, Step
from dtdebug_taxonomy.model.training import Violation

_MESSAGES = frozenset(("send", "recv", "isend", "irecv"))
_TWICE = 2


def read_apart(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report stages that read different samples at the same time.

    Only if all ranks are stages of one pipeline: copies of it are given other samples.
    """
    lasts = {r.rank: r.of(Step)[-1] for r in ranks if r.of(Step)}
    if len(lasts) < len(ranks) or any(r.of(Model) for r in ranks):
        return
    if any(not _MESSAGES.intersection(s.calls) or any(p.own or p.group for p in s.sets) for s in lasts.values()):
        return
    rows = {r.rank: {(f.w, f.e, f.n): f for f in (*r.workers, *r.of(Fetch)) if f.size} for r in ranks}
    for a, b in combinations([r for r in ranks if rows[r.rank]], 2):
        mine, theirs = rows[a.rank], rows[b.rank]
        both = sorted(mine.keys() & theirs.keys())
        apart = [key for key in both if mine[key].index != theirs[key].index]
        if (
            any(mine[key].size != theirs[key].size for key in both)
            or len(apart) < _TWICE
            or len(apart) * 2 <= len(both)
        ):
            continue
        row = theirs[apart[0]]
        yield violation(
            "stages-read-apart", "D.2.4", (a.rank, b.rank), row.s, (row.file, row.line),
            f"Ranks {a.rank} and {b.rank} are stages of one pipeline and read other samples at the same time: the "
            "targets belong to other inputs.",
            fix="Give their loaders one order, as by generators with one seed.",
        )  # fmt: skip
        return


LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (read_apart,)

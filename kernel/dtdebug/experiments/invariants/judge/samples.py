"""Checks the samples of the ranks: disjoint parts, and no repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise

from dtdebug.experiments.invariants.judge.common import violation, who
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import Batch, Epoch, Model, Step
from dtdebug_taxonomy.model.training import Violation

_FEW, _TIMES, _OFTEN = 4, 4, 4
"""Samples that two ranks may share, and how many times the duplicates on one rank; minimum epochs begun.

Ranks share samples by padding, and a data set may contain equal ones. Of each epoch only the first batch was taken.
"""


def shared_samples(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report samples that are given in one epoch to two ranks that share the work of a model."""
    groups = {r.rank: _works_with(r) for r in ranks}
    given = {r.rank: _training_batches(r) for r in ranks}
    for a, b in combinations([r for r in ranks if given[r.rank]], 2):
        if groups[a.rank] != groups[b.rank] or b.rank not in groups[a.rank]:
            continue
        for key in given[a.rank].keys() & given[b.rank].keys():
            mine, theirs = given[a.rank][key], given[b.rank][key]
            ours, others = _rows(mine), _rows(theirs)
            both = set(ours) & set(others)
            again = len(ours) - len(set(ours)) + len(others) - len(set(others))
            if len(both) <= _FEW + _TIMES * again:
                continue
            row = next(batch for batch in theirs if both.intersection(batch.rows))
            yield violation(
                "samples-shared", "D.2.4", (a.rank, b.rank), row.s, b.place(row.made or row.site),
                f"In one epoch {len(both)} of {len(set(others))} samples of rank {b.rank} that were looked at were "
                f"also given to rank {a.rank}: each takes its samples from another order, another part of the data, or "
                "all of it.",
                fix="Let all ranks divide one order, which is the same on each.",
            )  # fmt: skip
            return


def _training_batches(rank: Rank) -> dict[tuple[int, int], list[Batch]]:
    """Return (loader, epoch) -> its batches used in training."""
    found: dict[tuple[int, int], list[Batch]] = {}
    for one, after in pairwise(rank.of(Batch)):
        if one.rows and (after.i, after.e) == (one.i, one.e) and after.b > one.b:
            found.setdefault((one.i, one.e), []).append(one)
    return found


def _rows(batches: Sequence[Batch]) -> list[int]:
    return [row for batch in batches for row in batch.rows]


def _works_with(rank: Rank) -> tuple[int, ...]:
    """Return the ranks that train one model on other samples, from its wrapper or the program's own sums."""
    wrapped = next((tuple(m.group) for m in rank.of(Model) if len(m.group) > 1), ())
    return wrapped or next((tuple(p.group) for s in rank.of(Step) for p in s.sets if p.own and p.own == p.of), ())


def repeated_samples(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report workers that repeat each other's samples, and loaders that repeat their first batch."""
    for name, look, means in _REPEATED:
        hits = {rank.rank: (row, rank) for rank in ranks if (row := look(rank)) is not None}
        if hits:
            row, rank = hits[min(hits)]
            text = f"The loader of {who(hits).lower()} {means}"
            yield violation(name, "D.2.4", hits, row.s, rank.place(row.made or row.site), text)


def _by_each_worker(rank: Rank) -> Batch | None:
    """Return the first batch that another worker had already given, or None."""
    epochs: dict[tuple[int, int], dict[int, Batch]] = {}
    for batch in rank.of(Batch):
        if batch.workers > 1 and batch.h:
            epochs.setdefault((batch.i, batch.e), {})[batch.n] = batch
    for rows in epochs.values():
        workers = next(iter(rows.values())).workers
        rounds = [
            [rows[n + w].h for w in range(workers)]
            for n in rows
            if n % workers == 1 and all(n + w in rows for w in range(workers))
        ]
        if len(rounds) > 1 and all(len(set(one)) == 1 for one in rounds) and len({one[0] for one in rounds}) > 1:
            return rows[2]
    return None


def _only_first(rank: Rank) -> Batch | None:
    """Return the first batch that was repeated, or None."""
    ended = {(e.i, e.e) for e in rank.of(Epoch)}
    begun: dict[int, list[Batch]] = {}
    for batch in rank.of(Batch):
        begun.setdefault(batch.i, []).append(batch)
    for rows in begun.values():
        alone = all(b.n == 1 and b.of != 1 and (b.i, b.e) not in ended for b in rows)
        trained = all(after.b > one.b for one, after in pairwise(rows))
        if alone and trained and len(rows) >= _OFTEN and len({b.h for b in rows}) == 1 and rows[0].h:
            return rows[1]
    return None


_REPEATED: tuple[tuple[str, Callable[[Rank], Batch | None], str], ...] = (
    (
        "workers-repeat",
        _by_each_worker,
        (
            "gives each batch once for every one of its workers: each worker reads the whole stream. Divide it by "
            "get_worker_info() as well as by rank."
        ),
    ),
    (
        "batch-repeats",
        _only_first,
        (
            "is begun anew for each batch and gives its first one every time: all steps train on the same samples. "
            "Make the iterator once, before the loop."
        ),
    ),
)
LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (shared_samples, repeated_samples)

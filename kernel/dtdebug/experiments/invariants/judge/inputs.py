"""Checks the data of the ranks: samples, their order and number, and the random numbers drawn for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise

from dtdebug.experiments.invariants.judge.common import violation, who
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import Batch, Epoch, Fetch, Forward, Join, Model, Order, Step
from dtdebug_taxonomy.model.training import Violation

_TWICE = 2
"""Minimum number of different batches that must be alike: fewer may be chance."""


def inputs(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks that share the work of one model and are given the same samples."""
    wrapped = _forwards(ranks)
    rows = wrapped if any(wrapped.values()) else _batches(ranks)
    alike: dict[int, set[int]] = {}
    first: tuple[int, tuple[str, int]] | None = None
    for a, b in combinations([r for r in ranks if rows.get(r.rank)], 2):
        mine, theirs = rows[a.rank], rows[b.rank]
        same = [
            key for key in mine
            if key in theirs and mine[key][0] == theirs[key][0] and mine[key][3] == theirs[key][3]
            and b.rank in mine[key][3]
        ]  # fmt: skip
        common = [key for key in mine if key in theirs]
        if len({mine[key][0] for key in same}) < _TWICE or len(same) * 2 < len(common):
            continue
        alike.setdefault(a.rank, set()).add(b.rank)
        at = mine[same[0]]
        place = _loader_place(a) or a.place(at[2])
        first = first if first is not None and first[0] <= at[1] else (at[1], place)
    if first is not None:
        who_ = {*alike, *(b for others in alike.values() for b in others)}
        yield violation(
            "inputs-alike", "D.2.4", who_, first[0], first[1],
            f"{who(who_)} are given the same samples, step after step: all but one add nothing.",
            fix=f"Give each its part, as by a DistributedSampler{_rank_hint(ranks)}.",
        )  # fmt: skip


Given = dict[tuple[int, ...], tuple[str, int, int, tuple[int, ...]]]
"""Batch -> its hash, step and place, and the ranks that share its work."""


def _forwards(ranks: Sequence[Rank]) -> dict[int, Given]:
    found: dict[int, Given] = {}
    for rank in ranks:
        groups = {m.m: tuple(m.group) for m in rank.of(Model)}
        found[rank.rank] = {
            (f.m, f.n): (f.h, f.s, f.site, groups.get(f.m, ()))
            for f in rank.of(Forward)
            if f.h and f.train and len(groups.get(f.m, ())) > 1
        }
    return found


def _batches(ranks: Sequence[Rank]) -> dict[int, Given]:
    """Return the batches of the loaders in training, for programs that reduce gradients themselves."""
    found: dict[int, Given] = {}
    for rank in ranks:
        group = next(
            (tuple(p.group) for s in rank.of(Step) for p in s.sets if p.kind == "own" and p.own == p.of and p.own), ()
        )
        rows = rank.of(Batch)
        found[rank.rank] = {
            (b.i, b.e, b.n): (b.h, b.s, b.made or b.site, group)
            for b, after in pairwise(rows)
            if b.h and len(group) > 1 and after.i == b.i and after.b > b.b
        }
    return found


def _loader_place(rank: Rank) -> tuple[str, int] | None:
    """Return the place where the loader used in training was made."""
    rows = rank.of(Batch)
    for b, after in pairwise(rows):
        if after.i == b.i and after.b > b.b and b.made:
            return rank.place(b.made)
    return None


def _rank_hint(ranks: Sequence[Rank]) -> str:
    rows = {o.rank for r in ranks for o in r.of(Order)[:1]}
    return f" (its rank is {rows.pop()} on all of them)" if len(rows) == 1 and len(ranks) > 1 else ""


def order(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report shuffling samplers whose epoch is not set."""
    hits: dict[int, tuple[Order, Rank]] = {}
    for rank in ranks:
        for before, after in _pairs(rank):
            if before.shuffle and after.shuffle and before.epoch == after.epoch:
                hits.setdefault(rank.rank, (after, rank))
    if hits:
        row, rank = next(iter(hits.values()))
        yield violation(
            "order-repeats", "D.2.4", hits, row.s, rank.place(row.site),
            "The sampler shuffles, and its epoch was not set: the samples come in the same order in each epoch.",
            fix="Call sampler.set_epoch(epoch) before each epoch.",
        )  # fmt: skip


def repeated_orders(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report shuffling loaders that repeat the order of the previous epoch."""
    hits: dict[int, tuple[Batch, Rank]] = {}
    for rank in ranks:
        epochs: dict[int, dict[int, dict[int, Batch]]] = {}
        for b in rank.of(Batch):
            if b.shuffles and b.h:
                epochs.setdefault(b.i, {}).setdefault(b.e, {})[b.n] = b
        for one, *others in (list(rows.values()) for rows in epochs.values()):
            for other in others[:1]:
                both = one.keys() & other.keys()
                trained = (
                    other[max(both)].b > other[min(both)].b > one[max(both)].b > one[min(both)].b if both else False
                )
                alike = trained and all(one[n].h == other[n].h for n in both)
                if alike and len({one[n].h for n in both}) > _TWICE:
                    hits.setdefault(rank.rank, (other[min(both)], rank))
    if hits:
        row, rank = next(iter(hits.values()))
        yield violation(
            "order-repeats", "D.2.4", hits, row.s, rank.place(row.made or row.site),
            "The loader shuffles, and gave the same samples in the same order in each epoch: its generator is seeded "
            "anew each time.",
            fix="Seed once, before the first epoch.",
        )  # fmt: skip


def divided_orders(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report samplers that divide different orders between the ranks, or leave a part out."""
    begun = {r.rank: [o for o in r.of(Order) if _was_trained_on(r, o.loader, o.e)] for r in ranks}
    for a, b in combinations([r for r in ranks if begun[r.rank]], 2):
        for one, other in zip(begun[a.rank], begun[b.rank], strict=False):
            same = one.shuffle and other.shuffle and (one.replicas, one.i) == (other.replicas, other.i)
            if same and one.rank != other.rank and (one.seed, one.epoch) != (other.seed, other.epoch):
                what = "seed" if one.seed != other.seed else "epoch"
                yield violation(
                    "order-differs", "D.2.4", (a.rank, b.rank), other.s, b.place(other.site),
                    f"The samplers of ranks {a.rank} and {b.rank} shuffle with another {what} "
                    f"({getattr(one, what)} and {getattr(other, what)}): they divide different orders, so that some "
                    "samples are given twice and others never.",
                    fix=f"Give the samplers of all ranks the same {what}.",
                )  # fmt: skip
                return
    firsts = [rows[0] for rows in begun.values() if rows]
    replicas, parts = {o.replicas for o in firsts}, {o.rank for o in firsts}
    if len(ranks) < max((r.world for r in ranks), default=0) or len(replicas) != 1:
        return
    if len(parts) < (of := replicas.pop()):
        rank = next(r for r in ranks if begun[r.rank])
        yield violation(
            "samples-left-out", "D.2.4", [r for r, rows in begun.items() if rows], firsts[0].s,
            rank.place(firsts[0].site),
            f"The samplers divide the data into {of} parts, and the ranks of this job read {len(parts)} of them: the "
            "other samples are never trained on. num_replicas is the number of ranks that share the data.",
        )  # fmt: skip


def _pairs(rank: Rank) -> Iterator[tuple[Order, Order]]:
    """Yield consecutive orders used in training; a program may take a first batch only to inspect it."""
    last: dict[tuple[int, ...], Order] = {}
    for row in rank.of(Order):
        if not _was_trained_on(rank, row.loader, row.e):
            continue
        key = (row.data, row.seed, row.replicas, row.samples) if row.data else (row.i,)
        if key in last and last[key].backwards < row.backwards:
            yield last[key], row
        last[key] = row


def _was_trained_on(rank: Rank, loader: int, epoch: int) -> bool:
    """True if backward passes ran while that loader gave batches."""
    rows = [b for b in rank.of(Batch) if b.i == loader and b.e == epoch]
    return any(b.b > a.b for a, b in pairwise(rows)) or any(
        e.trained > 0 for e in rank.of(Epoch) if e.i == loader and e.e == epoch
    )


def alike_draws(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report data sets that draw the same random numbers on several ranks or workers."""
    rows = {r.rank: [f for f in (*r.workers, *r.of(Fetch)) if f.before] for r in ranks}
    for a, b in combinations([r for r in ranks if rows[r.rank]], 2):
        theirs = {(f.w, f.e, f.n): f for f in rows[b.rank]}
        same = [
            f for f in rows[a.rank]
            if (other := theirs.get((f.w, f.e, f.n))) and other.index != f.index
            and any(other.before.get(name) == state for name, state in f.before.items())
        ]  # fmt: skip
        if len(same) >= _TWICE:
            f = same[0]
            alike = {a.rank, b.rank}
            yield violation(
                "augmentation-alike", "D.2.4", alike, f.s, (f.file, f.line) if f.file else a.place(f.site),
                f"The data sets of {who(alike).lower()} draw the same random numbers for different samples: all "
                "ranks make the same "
                "random changes.",
                fix="Seed what augments with the rank.",
            )  # fmt: skip
            break
    one_seed = {}
    for rank in ranks:
        starts: dict[tuple[int, str, str], set[int]] = {}
        for f in rank.workers:
            for name, state in f.before.items():
                starts.setdefault((f.e, name, state), set()).add(f.w)
        if any(len(workers) > 1 for workers in starts.values()):
            one_seed[rank.rank] = rank.workers[0]
    if one_seed:
        f = one_seed[min(one_seed)]
        yield violation(
            "workers-alike", "D.2.4", one_seed, f.s, (f.file, f.line),
            "Several workers of one loader draw the same random numbers: worker_init_fn gives all of them one seed.",
        )  # fmt: skip


def numbers(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks with different numbers of batches in an epoch, unless they may join early."""
    if any(r.of(Join) for r in ranks):
        return
    counts: dict[tuple[int, int], dict[int, tuple[Epoch, Rank]]] = {}
    groups = {r.rank: tuple(next(iter(r.of(Model)), Model(0, "", [])).group) for r in ranks}
    for rank in ranks:
        for row in rank.of(Epoch):
            if row.trained:
                counts.setdefault((row.i, row.e), {})[rank.rank] = (row, rank)
    for found in counts.values():
        together = {r: v for r, v in found.items() if r in groups[r] and len(groups[r]) == len(found)}
        if len({row.n for row, _ in together.values()}) > 1:
            row, rank = min((v for v in together.values()), key=lambda v: v[0].n)
            texts = ", ".join(f"{v[0].n} on rank {r}" for r, v in list(together.items())[:8])
            yield violation(
                "batches-differ", "D.2.4", [rank.rank], row.s, rank.place(row.site),
                f"The ranks have different numbers of batches in an epoch: {texts}.",
            )  # fmt: skip
            return


LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (
    inputs, order, repeated_orders, divided_orders, alike_draws, numbers,
)  # fmt: skip

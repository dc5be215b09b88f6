"""Checks how models run: random state, modes, finite numbers, precision, devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dtdebug.experiments.invariants.judge.common import odd, violation, who
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import Backward, Forward, Model, Shape, Step
from dtdebug_taxonomy.model.training import Violation

_TWICE, _IN_A_ROW, _LOOKS = 2, 3, 8


def _together(ranks: Sequence[Rank]) -> Iterator[tuple[int, list[Rank]]]:
    """Yield each wrapped model with the ranks that share its work."""
    found: dict[tuple[int, ...], list[Rank]] = {}
    for rank in ranks:
        for model in rank.of(Model):
            if len(model.group) > 1 and rank.rank in model.group:
                found.setdefault((*model.group, -1 - model.m), []).append(rank)
    for key, members in found.items():
        if len(members) > 1:
            yield -1 - key[-1], members


def _by_pass(rank: Rank, model: int) -> dict[int, Forward]:
    return {f.n: f for f in rank.of(Forward) if f.m == model}


def randomness(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks with separate random states that become equal where the model draws, as for dropout."""
    for members, hit, apart in _drawn_alike(ranks):
        if apart:
            yield violation(
                "randomness-alike", "D.2.4", [r.rank for r in members], hit.s, members[0].place(hit.site),
                f"{who(r.rank for r in members)} had random states of their own, and then were seeded alike: the model "
                "draws the same random numbers on all of them, as for dropout.",
                fix="Seed with the rank, here too.",
            )  # fmt: skip


def same_draws(ranks: Sequence[Rank]) -> tuple[str, ...]:
    """Return notes on equal random states, which many programs intend, and with which torch itself begins."""
    return tuple(
        f"watch: the model draws the same random numbers on {who(r.rank for r in members).lower()}, as for dropout: "
        "they are seeded alike. If that is not meant, seed with the rank after the model is made."
        for members, _, apart in _drawn_alike(ranks)
        if not apart
    )


def _drawn_alike(ranks: Sequence[Rank]) -> Iterator[tuple[list[Rank], Forward, bool]]:
    """Yield the ranks of a model that draws the same numbers, the first such pass, and whether they differed before."""
    for model, members in _together(ranks):
        passes = [_by_pass(r, model) for r in members]
        after = [{b.f: b.rng for b in r.of(Backward) if b.m == model} for r in members]
        begun = [m.rng for r in members for m in r.of(Model) if m.m == model and m.rng]
        apart, hits = len(set(begun)) > 1, list[Forward]()
        for n in passes[0]:
            rows = [p.get(n) for p in passes]
            known = [row for row in rows if row is not None]
            alike = len(known) == len(rows) and len({row.rng for row in known}) == 1
            apart = apart or (not alike and not hits and len(known) == len(rows))
            if not alike or not all(row.train for row in known):
                continue
            draws = all(n in a and a[n] != row.rng for a, row in zip(after, known, strict=True))
            if draws and len({row.h for row in known}) == len(known):
                hits.append(known[0])
        if len(hits) >= _TWICE:
            yield members, hits[0], apart


def modes(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report models that are trained in evaluation mode."""
    for model, members in _together(ranks):
        hits: dict[int, Forward] = {}
        for rank in members:
            used = {b.f for b in rank.of(Backward) if b.m == model}
            rows = [f for f in rank.of(Forward) if f.m == model and f.varies and f.n in used]
            trained = next((i for i, f in enumerate(rows) if f.train), None)
            left = next((f for f in rows[trained:] if not f.train), None) if trained is not None else None
            if left is not None:
                hits[rank.rank] = left
            elif rows and not rows[0].train and any(f.train for r in members for f in r.of(Forward) if f.m == model):
                hits[rank.rank] = rows[0]
        if hits:
            n = min(hits, key=lambda r: hits[r].s)
            rank = next(r for r in members if r.rank == n)
            yield violation(
                "left-in-evaluation-mode", "D.2.4", hits, hits[n].s, rank.place(hits[n].site),
                f"{who(hits)} trained the model in evaluation mode: dropout is off and statistics of batches stay "
                "as they were.",
                fix="Call model.train() after each evaluation.",
            )  # fmt: skip


def finite(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report losses, gradients and weights that are not finite."""
    hits: dict[int, tuple[Backward, Rank]] = {}
    for rank in ranks:
        rows = rank.of(Backward)
        for i, b in enumerate(rows):
            if isinstance(b.loss, str):
                run = rows[i : i + _IN_A_ROW]
                if not b.scaled or (len(run) == _IN_A_ROW and all(isinstance(x.loss, str) for x in run)):
                    hits[rank.rank] = (b, rank)
                break
    bad = {r.rank: (s, r) for r in ranks for s in reversed(r.of(Step)) if any(not p.finite for p in s.sets)}
    if hits and not (bad and min(s.s for s, _ in bad.values()) < min(b.s for b, _ in hits.values())):
        earliest = min(b.n for b, _ in hits.values())
        who_ = [r for r, (b, _) in hits.items() if b.n == earliest]
        b, rank = hits[who_[0]]
        yield violation(
            "loss-not-finite", "D.2.5", who_, b.s, rank.place(b.site),
            f"The loss of {who(who_).lower()} is {b.loss}; other ranks got it with the averaged "
            "gradients." if len(ranks) > len(who_)
            else f"The loss is {b.loss} on all ranks.",
        )  # fmt: skip
        return
    if bad:
        step, rank = min(bad.values(), key=lambda v: v[0].s)
        yield violation(
            "gradient-not-finite", "D.2.5", bad, step.s, rank.place(step.site),
            f"{who(bad)} made a step with gradients that are not finite, though the loss was.",
        )  # fmt: skip


def precision(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks that run one model with different types, autocast or kinds of device."""
    for model, members in _together(ranks):
        shapes = {r.rank: next((s for s in r.of(Shape) if s.m == model), None) for r in members}
        devices = {r: s.device.partition(":")[0] for r, s in shapes.items() if s is not None}
        if apart := odd(devices):
            yield violation(
                "device-differs", "D.2.2", apart, 1, _place(members, apart, model),
                f"The model is on {', '.join(f'{d} on rank {r}' for r, d in list(devices.items())[:8])}.",
            )  # fmt: skip
        passes = [_by_pass(r, model) for r in members]
        for n in sorted(passes[0]):
            rows = {r.rank: p[n] for r, p in zip(members, passes, strict=True) if n in p}
            for what, values in (
                ("autocast", {r: f.cast for r, f in rows.items()}),
                ("inputs", {r: sorted(set(f.kinds)) for r, f in rows.items()}),
                ("weights", {r: s.dtypes for r, s in shapes.items() if s is not None}),
            ):
                apart = odd(values)
                if apart and not devices.keys() & set(odd(devices)):
                    shown = ", ".join(f"{' '.join(v) or 'none'} on rank {r}" for r, v in list(values.items())[:8])
                    yield violation(
                        "precision-differs", "D.2.4", apart, min(f.s for f in rows.values()),
                        _place(members, apart, model),
                        f"The ranks run one model in different precision; {what}: {shown}.",
                    )  # fmt: skip
                    return


def settings(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report replicas of one model whose layers have different settings."""
    for model, members in _together(ranks):
        shapes = {r.rank: next((s for s in r.of(Shape) if s.m == model), None) for r in members}
        layers = {r: s.layers for r, s in shapes.items() if s is not None and s.layers}
        if len(layers) == len(members) and (apart := odd(layers)):
            common = set.intersection(*map(set, layers.values()))
            own = {r: [x for x in rows if x not in common][:1] for r, rows in layers.items()}
            shown = ", ".join(f"{row[0]} on rank {r}" for r, row in list(own.items())[:8] if row)
            yield violation(
                "settings-differ", "D.2.4", apart, 1, _place(members, apart, model),
                f"The ranks train one model that is not set alike: {shown}, not on all. The averaged gradient is that "
                "of no one model.",
            )  # fmt: skip


def nothing(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report replicas whose loss is always 0, which adds nothing to the averaged gradients."""
    for model, members in _together(ranks):
        losses = {r.rank: [b for b in r.of(Backward) if b.m == model] for r in members}
        always = [r for r, rows in losses.items() if len(rows) >= _LOOKS and all(b.loss == 0 for b in rows)]
        others = [r for r in losses if r not in always]
        if always and others and all(b.loss != 0 for r in others for b in losses[r]):
            rank = next(r for r in members if r.rank == always[0])
            first = losses[always[0]][0]
            yield violation(
                "loss-always-zero", "D.2.4", always, first.s, rank.place(first.site),
                f"The loss of {who(always).lower()} was 0 in each of {len(losses[always[0]])} backward passes that "
                f"were looked at, that of {who(others).lower()} in none: nothing is learnt there, and the average is "
                "taken over all.",
            )  # fmt: skip


def cards(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report ranks of a host that share a GPU."""
    held: dict[tuple[str, str], list[Rank]] = {}
    for rank in ranks:
        for shape in rank.of(Shape)[:1]:
            if shape.uuid:
                held.setdefault((rank.host, shape.uuid), []).append(rank)
    for sharing in held.values():
        if len(sharing) > 1:
            who_ = [r.rank for r in sharing]
            yield violation(
                "card-shared", "D.2.2", who_, 1, _place(sharing, who_[:1], 0), f"{who(who_)} use the same GPU."
            )


def _place(members: Sequence[Rank], apart: Sequence[int], model: int) -> tuple[str, int]:
    rank = next((r for r in members if r.rank in apart), members[0])
    found = next((f for f in rank.of(Forward) if f.m == model), None)
    return rank.place(found.site) if found is not None else ("", 0)


LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (
    randomness, modes, finite, precision, settings, nothing, cards,
)  # fmt: skip

"""Finds what differs between a resumed run and one that was not interrupted, and what of it matters most."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import msgspec

from dtdebug.experiments.resume.records import RankNotes, Site, Step
from dtdebug.experiments.resume.runs import Runs

Kind = Literal[
    "weights", "buffers", "moments", "scaler", "counter", "scheduler", "settings", "copy", "samples", "random", "loss",
    "later"
]  # fmt: skip
_NOWHERE: Site = ("", 0)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not the same."""

    kind: Kind
    ranks: tuple[int, ...]
    step: int
    """Step of the uninterrupted run, from 1."""
    names: tuple[str, ...] = ()
    """Names of the differing parts: parameters, keys, settings, a variable."""
    of: int = 0
    """Number of things compared."""
    before: str = ""
    """Value in the uninterrupted run."""
    after: str = ""
    """Value in the resumed run."""
    anew: bool = False
    """True if it is as it was before the first step."""
    earlier: int = 0
    """Step of the uninterrupted run whose value it has; 0 if none."""
    of_rank: int | None = None
    """Another rank, whose value of the same step it has."""
    site: Site = _NOWHERE
    """Line that made the object, or that steps it."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Result."""

    differences: tuple[Difference, ...]
    compared: tuple[str, ...]
    """Kinds of state found the same."""
    excluded: tuple[str, ...]
    """Kinds of state that already differ between two equal runs."""
    steps: int
    """Number of steps compared."""
    ranks: int


def compare(runs: Runs) -> Comparison:
    """Compare the resumed run with the second one, and that with the first."""
    same_world = {n.world for n in runs.resumed.values()} == {n.world for n in runs.second.values()}
    ranks = sorted(runs.resumed.keys() & runs.second.keys())
    varies = _varying(runs)
    found: list[Difference] = []
    compared: set[str] = set()
    steps = 0
    for rank in ranks if same_world else ranks[:1]:
        old, new = runs.second[rank], runs.resumed[rank]
        pairs = _pairs(old, new, runs.saved_at)
        steps = max(steps, len(pairs))
        for place, (then, now) in enumerate(pairs):
            rows = list(
                _differences(rank, runs, (then, _with_names_of(now, then)), place, varies, same_world=same_world)
            )
            rows = [msgspec.structs.replace(d, of_rank=_rank_with(d, runs, now, rank)) for d in rows]
            compared |= _states(then, drawn=bool(_drawn_states(then, old)), same_world=same_world)
            found += rows
            if rows:
                break
    merged = _merge(found)
    bad = {d.kind for d in merged}
    return Comparison(
        differences=tuple(sorted(merged, key=lambda d: (d.step, _ORDER.index(d.kind)))),
        compared=tuple(k for k in _ORDER if k in compared - bad - {"later"} and k not in varies),
        excluded=tuple(k for k in _ORDER if k in varies),
        steps=steps,
        ranks=len(ranks),
    )


_ORDER: tuple[Kind, ...] = (
    "weights", "buffers", "moments", "scaler", "counter", "scheduler", "settings", "copy", "samples", "random", "loss",
    "later",
)  # fmt: skip
"""Order of importance, the best explanation first: other weights make another loss."""


def _pairs(old: RankNotes, new: RankNotes, saved_at: int) -> list[tuple[Step, Step]]:
    then = {s.n: s for s in old.steps}
    return [(then[s.n + saved_at], s) for s in new.steps if s.n + saved_at in then]


def _with_names_of(step: Step, like: Step) -> Step:
    """Return a step with another one's names of the parameters, by their place in the optimizer."""
    if step.weights.keys() == like.weights.keys() or len(step.weights) != len(like.weights):
        return step
    names = dict(zip(step.weights, like.weights, strict=True))
    moments = {k: {names.get(n, n): v for n, v in row.items()} for k, row in step.moments.items()}
    weights = {names[n]: v for n, v in step.weights.items()}
    return msgspec.structs.replace(step, weights=weights, moments=moments)


def _rank_with(d: Difference, runs: Runs, now: Step, rank: int) -> int | None:
    """Return another rank whose weights, buffers, optimizer or random state of that step without interruption it is."""
    if d.kind not in ("weights", "buffers", "moments", "random"):
        return None
    has: dict[str, object] = getattr(now, d.kind)
    for other, notes in runs.second.items():
        then = next((s for s in notes.steps if s.n == d.step - 1), None)
        if other != rank and then is not None and all(getattr(then, d.kind).get(n) == has.get(n) for n in d.names):
            return other
    return None


def _varying(runs: Runs) -> set[Kind]:
    """Return what differs between two equal runs that were not interrupted."""
    found: set[Kind] = set()
    for rank in runs.first.keys() & runs.second.keys():
        other = {s.n: s for s in runs.second[rank].steps}
        for one in runs.first[rank].steps:
            two = other.get(one.n)
            if two is None:
                continue
            pairs: tuple[tuple[Kind, object, object], ...] = (
                ("samples", one.samples, two.samples), ("loss", one.loss, two.loss),
                ("random", _drawn_states(one, runs.first[rank]), _drawn_states(two, runs.second[rank])),
                ("later", one.weights, two.weights), ("copy", one.copies, two.copies),
            )  # fmt: skip
            found |= {kind for kind, a, b in pairs if a != b}
    return found


def _drawn_states(step: Step, notes: RankNotes) -> dict[str, str]:
    """Return the generators that matter: those from which the data or the passes of any step draw."""
    drawn = {g for s in notes.steps for g in s.draws}
    return {g: state for g, state in step.random.items() if g in drawn}


def _states(step: Step, *, drawn: bool, same_world: bool) -> set[str]:
    rows = {
        "weights": step.weights, "buffers": step.buffers, "moments": step.moments, "scaler": step.scalers,
        "scheduler": step.schedulers, "settings": step.settings, "copy": step.copies,
        "samples": same_world and step.samples, "random": same_world and drawn, "loss": same_world and step.loss,
    }  # fmt: skip
    return {name for name, held in rows.items() if held}


def _differences(
    rank: int, runs: Runs, pair: tuple[Step, Step], place: int, varies: set[Kind], *, same_world: bool
) -> Iterator[Difference]:
    (then, now), old = pair, runs.second[rank]
    difference = functools.partial(Difference, ranks=(rank,), step=then.n + 1)
    if place:  # what was the same at first
        if then.settings != now.settings and then.schedulers != now.schedulers:
            yield from _of_schedulers(difference, then, now)
        yield from _of_settings(difference, then, now)
        if same_world:
            yield from _of_data(difference, old, (then, now), varies)
        if then.weights != now.weights and not varies and same_world:
            names = tuple(n for n in then.weights if then.weights[n] != now.weights.get(n))
            yield difference(kind="later", names=names, of=len(then.weights), site=now.site)
        elif then.weights == now.weights and "copy" not in varies:
            yield from _of_later_copies(difference, old, (then, now))
        return
    sharded = (then.sharded or now.sharded) and not same_world
    if not sharded:
        yield from _of_weights(difference, old, (then, now))
    if then.scalers and then.scalers != now.scalers:
        yield difference(kind="scaler", before=_first(then.scalers), after=_first(now.scalers))
    yield from _of_schedulers(difference, then, now)
    yield from _of_settings(difference, then, now)
    yield from _of_counters(difference, runs, old, (then, now))
    if same_world:
        yield from _of_data(difference, old, (then, now), varies)


Make = Callable[..., Difference]
_OF_CALLS = frozenset(("_step_count", "verbose"))
"""Attributes of a scheduler that do not change the learning rate."""


def _of_weights(difference: Make, old: RankNotes, pair: tuple[Step, Step]) -> Iterator[Difference]:
    """Yield what differs of weights, buffers, the optimizer's state, and copies of the weights."""
    then, now = pair
    first = next((s for s in old.steps if s.o == then.o), then)
    kinds: tuple[Kind, ...] = ("weights", "buffers")
    for kind in kinds:
        held: dict[str, str] = getattr(then, kind)
        has: dict[str, str] = getattr(now, kind)
        names = tuple(n for n in held if has.get(n) != held[n] and (n in has or kind == "weights"))
        if not names or (kind == "buffers" and then.samples != now.samples):  # passes of other samples change them
            continue
        before = [s for s in old.steps if s.n < then.n]
        earlier = [s.n + 1 for s in before if all(getattr(s, kind).get(n) == has.get(n) for n in names)]
        anew = all(has.get(n) == getattr(first, kind).get(n) for n in names)
        at = earlier[0] if earlier else 0
        yield difference(kind=kind, names=names, of=len(held), anew=anew, earlier=at, site=now.made)
    lost = tuple(k for k in then.moments if _differ(then.moments[k], now.moments.get(k, {})))
    if lost:
        yield difference(
            kind="moments", names=lost, of=len(then.moments), anew=not now.moments, site=now.made,
            before=_one(then.moments.get("step", {})), after=_one(now.moments.get("step", {})),
        )  # fmt: skip
    for name in sorted(then.copies.keys() & now.copies.keys()):
        a, b, c = then.copies[name], now.copies[name], first.copies.get(name, [])
        if a != b and len(a) == len(b) and c and a != c:
            differing = sum(x != y for x, y in zip(a, b, strict=True))
            yield difference(kind="copy", names=(name,), of=differing, anew=b == c, after=_alike(b, now))


def _of_later_copies(difference: Make, old: RankNotes, pair: tuple[Step, Step]) -> Iterator[Difference]:
    """Yield copies of the weights that are updated otherwise, and a number beside them that is not the same."""
    then, now = pair
    for name in sorted(then.copies.keys() & now.copies.keys()):
        if then.copies[name] == now.copies[name] or len(then.copies[name]) != len(now.copies[name]):
            continue
        if len({tuple(s.copies.get(name, ())) for s in old.steps}) < 3:
            continue  # updated once, as a best state is
        owners = {name, name.rpartition(".")[0]} - {""}
        beside = [n for n in then.numbers.keys() & now.numbers.keys() if n.rpartition(".")[0] in owners]
        apart = next((n for n in sorted(beside) if then.numbers[n] != now.numbers[n]), "")
        before, after = (f"{s.numbers[apart]:g}" if apart else "" for s in (then, now))
        yield difference(kind="copy", names=(name, apart), before=before, after=after, site=now.site)
        return


def _of_schedulers(difference: Make, then: Step, now: Step) -> Iterator[Difference]:
    for one, two in zip(then.schedulers, now.schedulers, strict=False):
        keys = [k for k in one.values if k not in _OF_CALLS and two.values.get(k) != one.values[k] and k in two.values]
        keys.sort(key=lambda k: k != "last_epoch")
        if keys and one.kind == two.kind:
            before, after = one.values[keys[0]], two.values[keys[0]]
            yield difference(kind="scheduler", names=(one.kind, *keys), before=before, after=after, site=two.site)
            return


def _of_settings(difference: Make, then: Step, now: Step) -> Iterator[Difference]:
    for one, two in zip(then.settings, now.settings, strict=False):
        keys = [k for k in one if k in two and one[k] != two[k]]
        if keys:
            keys.sort(key=lambda k: k != "lr")
            yield difference(kind="settings", names=tuple(keys), before=one[keys[0]], after=two[keys[0]], site=now.made)
            return


def _of_data(difference: Make, old: RankNotes, pair: tuple[Step, Step], varies: set[Kind]) -> Iterator[Difference]:
    then, now = pair
    if then.samples != now.samples and "samples" not in varies:
        earlier = next((s.n + 1 for s in old.steps if s.samples == now.samples and s.n != then.n), 0)
        before, after = (str(s.epochs[0]) if s.epochs and s.epochs[0] is not None else "" for s in (then, now))
        yield difference(kind="samples", before=before, after=after, anew=earlier == 1, earlier=earlier, site=now.site)
    used = _drawn_states(then, old)
    names = tuple(g for g in used if now.random.get(g) != used[g])
    if names and "random" not in varies:
        earlier = next((s.n + 1 for s in old.steps if all(s.random.get(g) == now.random.get(g) for g in names)), 0)
        yield difference(kind="random", names=names, earlier=earlier, site=now.site)
    if then.loss != now.loss and then.loss and "loss" not in varies:
        yield difference(kind="loss", before="".join(then.loss), after="".join(now.loss), site=now.site)


def _of_counters(difference: Make, runs: Runs, old: RankNotes, pair: tuple[Step, Step]) -> Iterator[Difference]:
    """Yield the saved counters whose variable continues with another number."""
    then, now = pair
    rows = [row for save in runs.saves for row in save.numbers.items()]
    saved = {key: value for key, value in rows if not key.endswith(".last_epoch")}  # a scheduler's own
    near = [s for s in old.steps if s.n in (then.n - 1, then.n)]
    moves = {
        name for name in then.numbers if len({s.numbers[name] for s in old.steps if name in s.numbers}) > 1
    } & now.numbers.keys()
    for key, value in saved.items():
        fitting = [n for n in moves if any(s.numbers.get(n) == value for s in near)]
        exact = [n for n in fitting if _last(n) == _last(key)]
        chosen = exact or [n for n in fitting if _tokens(_last(n)) & _tokens(_last(key))]
        if chosen and all(then.numbers[n] != now.numbers[n] for n in chosen):
            name = min(chosen, key=len)
            before, after = (f"{s.numbers[name]:g}" for s in (then, now))
            yield difference(kind="counter", names=(name, key), before=before, after=after, site=now.site)


def _last(name: str) -> str:
    return "".join(c if c.isalnum() else "." for c in name.replace("_", "").lower()).strip(".").rpartition(".")[2]


def _tokens(name: str) -> set[str]:
    return {word for word in ("epoch", "step", "iter", "batch", "sample", "token", "best") if word in name}


def _differ(a: Mapping[str, str], b: Mapping[str, str]) -> bool:
    return any(b.get(name) != value for name, value in a.items())


def _one(values: Mapping[str, str]) -> str:
    return next(iter(values.values()), "")


def _first(scalers: list[dict[str, str]]) -> str:
    return scalers[0].get("_scale", scalers[0].get("_init_scale", "")) if scalers else ""


def _alike(copy: list[str], now: Step) -> str:
    """Return "weights" if the copy equals the present weights."""
    return "weights" if set(now.weights.values()) <= set(copy) else ""


def _merge(found: list[Difference]) -> list[Difference]:
    """Join what differs in the same way on several ranks; only what comes first of each kind is kept."""
    rows: dict[tuple[str, tuple[str, ...]], Difference] = {}
    for one in sorted(found, key=lambda d: d.step):
        key = (one.kind, one.names[:1] if one.kind in ("copy", "counter") else ())
        known = rows.get(key)
        if known is None:
            rows[key] = one
        elif known.step == one.step:
            rows[key] = msgspec.structs.replace(known, ranks=(*known.ranks, *one.ranks))
    return list(rows.values())

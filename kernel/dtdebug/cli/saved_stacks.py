"""Answers for stacks that were saved in files: by the rules for living ranks, from as many looks as there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dtdebug.errors import UsageError
from dtdebug.privacy.sanitize import clean, one_line
from dtdebug_taxonomy.inference.lines_apart import step_of_lines_apart
from dtdebug_taxonomy.model.ranks import Alternative, RankState, Verdict, say, spell
from dtdebug_taxonomy.model.waiting import ACTIVE, phrase
from dtdebug_taxonomy.stacks.activity import in_step_of_all
from dtdebug_taxonomy.stacks.frames import call_sites, short, shown_frame

if TYPE_CHECKING:
    from dtdebug.live.job.saved_case import Saved
    from dtdebug.recorded.stack_texts import Stacks

_ONCE = 0.6
"""Maximum confidence in a verdict on ranks that were looked at once: one may have been there for a moment only."""
_AGAIN = "read once: if a second dump, 30 s later, shows it elsewhere, it is slow and not stuck"
_AGAIN_STEP = "Save the stacks once more, 30 s later, and give both: that shows which ranks move."
_OTHERS_STEP = "Save the stacks of all ranks, twice, 30 s apart, and give them together."
_NAMED = 3


def case_of_stacks(paths: Sequence[Path]) -> Saved | str:
    """Return the case of the stacks in these files; a sentence if they are of another program, or of none.

    Raises:
        UsageError: a file can't be read.

    """
    from dtdebug.check.stack_files import sourced_snapshot
    from dtdebug.live.job import saved_case
    from dtdebug.live.job.conclude import conclude
    from dtdebug.live.job.observe import LiveRanks
    from dtdebug.privacy.boundary import diagnose
    from dtdebug.recorded.stack_texts import read_stacks
    from dtdebug_taxonomy.knowledge.loader import load

    try:
        found = read_stacks(paths)
    except OSError as error:
        raise UsageError(f"{one_line(str(paths[0]), 200)}: can't be read: {error.strerror or error}") from None
    if not found.states:
        return _of_others(found)
    states, progress = found.states, _progress(found.rounds)
    once = len(found.rounds) == 1  # then they are taken to stand, and the verdict says what would refute that
    seen = LiveRanks(states=states, progress={s.rank or 0: "stuck" for s in states} if once else progress)
    case = conclude(None, seen, keep=False)
    case = replace(case, verdict=_outside_of_wait(case.verdict, states, {} if once else progress))
    calm = not once and _none_waits(states, progress)
    case = replace(case, verdict=_moving(case.verdict, states, progress)) if calm else case
    case = replace(case, verdict=_read_once(case.verdict)) if once else case
    verdict = case.verdict
    if not calm:
        verdict = _without_sure_world(_with_looks(verdict, found, progress), found, progress)
    step = "" if not once else _AGAIN_STEP if len(states) > 1 else _OTHERS_STEP
    step = step_of_lines_apart(verdict, states) or step
    case = replace(case, verdict=verdict, notes=(*_notes(found, verdict), *case.notes), next=step)
    snapshot = sourced_snapshot(saved_case.snapshot_of(case, None))
    case = saved_case.without_step(replace(case, diagnosis=diagnose(load(), snapshot)), "dtdebug attach")
    return saved_case.Saved(case, snapshot)


NOT_READ = "Not understood: no stack of a process could be read here"


def _of_others(found: Stacks) -> str:
    """Return what the files are that hold no stack of a rank."""
    if not found.others:
        return f"{NOT_READ}; where the ranks are is not known."
    name, what = found.others[0]
    more = f", and {len(found.others) - 1} more" if len(found.others) > 1 else ""
    return f"{one_line(Path(name).name, 80)} is {what}{more}: no rank of a training is in it."


def _progress(rounds: Sequence[Sequence[RankState]]) -> dict[int, str]:
    """Return the progress of each rank over all looks: it has moved if two of them in a row show it elsewhere."""
    from dtdebug.live.probe.stack_tree import compare

    found: dict[int, str] = {}
    for before, after in pairwise(rounds):
        for rank, now in compare(before, after).items():
            if found.get(rank) not in ("busy", "slow") or now in ("busy", "slow"):
                found[rank] = now if now != "unknown" else found.get(rank, now)
    return found


def _none_waits(states: Sequence[RankState], progress: Mapping[int, str]) -> bool:
    """True if ranks moved and the others compute: a rank that hangs would soon keep those that move waiting."""
    moved = {rank for rank, now in progress.items() if now in ("busy", "slow")}
    still = [s for s in states if s.rank not in moved]
    computes = all(shown_frame(s.stack) and not (s.waiting or s.pending or s.beside) for s in still)
    return bool(moved) and computes


def _moving(verdict: Verdict, states: Sequence[RankState], progress: Mapping[int, str]) -> Verdict:
    """Return the verdict that nothing hangs as far as is seen, unless ranks are accused."""
    if verdict.kind != "not_understood" or verdict.culprits:
        return verdict
    moved = [rank for rank, now in progress.items() if now in ("busy", "slow")]
    still = [s.rank or 0 for s in states if s.rank not in moved]
    rest = (
        f"; {say(still, 'are')} at one line in both looks, and wait{'s' * (len(still) == 1)} for none" if still else ""
    )
    summary = f"No hang so far: {spell(moved)} moved{rest}."
    return replace(verdict, kind="none", waiting=(), sites=(), summary=summary)


def _outside_of_wait(verdict: Verdict, states: Sequence[RankState], progress: Mapping[int, str]) -> Verdict:
    """Return the verdict on the ranks that are outside of the step in which the others wait, if no record names them.

    The frames of a backward pass or of a synchronisation show no collective, and wait for the other ranks in one.
    """
    inside = [s for s in states if in_step_of_all(s)]
    outside = [s for s in states if s not in inside]
    known = all(s.rank is not None and shown_frame(s.stack) is not None and not s.beside for s in states)
    if verdict.kind != "not_understood" or verdict.culprits or not inside or not outside or not known:
        return verdict
    if len(outside) > len(inside) or any(progress.get(s.rank or 0) in ("busy", "slow") for s in states):
        return verdict
    who, rest = (tuple(s.rank for s in part if s.rank is not None) for part in (outside, inside))
    said = [_place_words(s).partition(" ") for s in outside[:_NAMED]]
    verb = said[0][0]
    words = "; ".join(dict.fromkeys(rest for first, _, rest in said if first == verb))
    step = "backward" if any(f.function == "backward" for f in inside[0].stack) else inside[0].stack[-1].function
    summary = f"{say(who, verb).capitalize()} {words}, outside of the {step} in which {say(rest, 'wait')}."
    return replace(
        verdict, kind="not_arrived", culprits=who, waiting=rest, confidence=_ONCE, summary=summary,
        sites=call_sites((*outside, *inside)),
    )  # fmt: skip


def _read_once(verdict: Verdict) -> Verdict:
    """Return a verdict that assumes that ranks stand, with what would refute that."""
    claims = tuple(c for c in verdict.claims if c.what != "unmoved")
    texts = {c.text for c in verdict.claims if c.what == "unmoved"}
    doubt = Alternative(kind="none", culprits=(), because=_AGAIN, refute="two dumps, 30 s apart")
    holds = verdict.kind not in ("not_arrived", "gil_held", "skipped")
    return replace(
        verdict,
        confidence=verdict.confidence if holds else min(verdict.confidence, _ONCE),
        claims=claims,
        evidence=tuple(e for e in verdict.evidence if e not in texts),
        alternatives=verdict.alternatives if holds else (*verdict.alternatives, doubt),
    )


def _without_sure_world(verdict: Verdict, found: Stacks, progress: dict[int, str]) -> Verdict:
    """Return the verdict, or the places of the ranks if it rests on these being all ranks, which no file says."""
    if verdict.kind not in ("fabric", "not_understood") and not found.is_cut:
        return verdict
    places: dict[str, list[int]] = {}
    for state in found.states:
        if words := _place_words(state):
            places.setdefault(words, []).append(state.rank or 0)
    rows = sorted(places.items(), key=lambda row: -len(row[1]))[:_NAMED]
    seen = "; ".join(
        f"{say(ranks, verb)} {rest}" for (verb, _, rest), ranks in ((w.partition(" "), r) for w, r in rows)
    )
    stand = any(now == "stuck" for now in progress.values())
    told = (
        f"{seen[:1].upper()}{seen[1:]}"
        if seen
        else f"{say([s.rank or 0 for s in found.states], 'show').capitalize()} no place"
    )
    alike = len(places) == 1 and len(found.states) > 1
    last = "none of them is behind: another rank may be, or the transport between them" if alike else (
        "they did not move" if stand else "read once, so whether it moves is not known"
    )  # fmt: skip
    if len(found.states) == 1:
        last = "one process alone does not show which rank is behind"
    if len(found.states) == 1 and found.numbered and found.states[0].pid is not None:
        told = told.replace("Rank 0", f"Process {found.states[0].pid}")
    return replace(
        verdict, kind="not_understood", culprits=(), confidence=0.0, summary=f"{told}; {last}.", alternatives=()
    )


def _place_words(state: RankState) -> str:
    """Return what a rank is in, and where, from a verb in the plural on."""
    frame = shown_frame(state.stack)
    place = f" at {short(frame.file)}:{frame.line} in {frame.function}" if frame is not None and frame.line else ""
    w = state.waiting
    if state.pending is not None:
        return f"wait in {state.pending.op}{place}"
    if w is not None:
        return f"{'are' if w.kind in ACTIVE else 'wait'} {phrase(w)}{place}"
    if frame is not None:
        return f"are in {frame.function}{place.rpartition(' in ')[0]}"
    return f"are in {state.native[0]}" if state.native else ""


def _with_looks(verdict: Verdict, found: Stacks, progress: dict[int, str]) -> Verdict:
    """Return the verdict with what several looks show: who moved, who did not."""
    if len(found.rounds) < 2:
        return verdict
    moved = sorted(rank for rank, now in progress.items() if now in ("busy", "slow"))
    still = sorted(rank for rank, now in progress.items() if now == "stuck")
    if not moved or not still:
        return verdict
    only = f"rank {moved[0]} is the only one that moved" if len(moved) == 1 else f"only {spell(moved, 8)} moved"
    said = f"{only[0].upper()}{only[1:]} between {len(found.rounds)} looks; {say(still, 'stand')} still."
    if verdict.kind == "none" and verdict.stragglers:
        waiting = tuple(still)
        rest = verdict.summary.removeprefix("No hang so far: ").rstrip(".")
        summary = f"{said} {rest[:1].upper()}{rest[1:]}: slow, or in a loop that does not end."
        return replace(
            verdict, kind="not_arrived", culprits=verdict.stragglers, waiting=waiting, stragglers=(), confidence=0.4,
            open=True, summary=summary, evidence=(said, *verdict.evidence),
        )  # fmt: skip
    return replace(verdict, summary=f"{verdict.summary} {said}", evidence=(*verdict.evidence, said))


def _notes(found: Stacks, verdict: Verdict) -> tuple[str, ...]:
    """Return how ranks are known, and what was left out."""
    notes = []
    if found.numbered:
        named = {*verdict.culprits} or ({*range(_NAMED)} if len(found.states) <= _NAMED else set())
        who = [words for s in found.states if s.rank in named and (words := _process_words(s))][:_NAMED]
        notes.append("; ".join(filter(None, (", ".join(who), found.numbered))))
    if found.left_out:
        notes.append(f"left out: {clean(', '.join(found.left_out))}")
    notes += [f"left out: {clean(Path(name).name)} is {what}" for name, what in found.others[:_NAMED]]
    return tuple(sorted(notes, key=lambda note: found.is_cut and not note.startswith("left out")))


def _process_words(state: RankState) -> str:
    """Return which process a numbered rank is."""
    of = f" on {clean(state.host)}" if state.host else ""
    return f"rank {state.rank} is process {state.pid}{of}" if state.pid is not None else ""

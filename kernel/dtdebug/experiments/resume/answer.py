"""Words what differs after resuming, with the line that should have saved or restored it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import NamedTuple

from dtdebug.experiments.resume import repair
from dtdebug.experiments.resume.compare import Comparison, Difference
from dtdebug.experiments.resume.records import Load, Restore, Save, Site
from dtdebug.experiments.resume.runs import Runs
from dtdebug_taxonomy.model.answer import Answer, Fix, Spot, Step
from dtdebug_taxonomy.model.isolation import IsolationResult, ResponsiblePart
from dtdebug_taxonomy.model.rank_ranges import spell

_NAMES = {
    "weights": "weights", "buffers": "buffers", "moments": "optimizer state", "settings": "learning rate and settings",
    "scaler": "loss scale", "scheduler": "scheduler", "copy": "copies of the weights", "counter": "counters",
    "samples": "samples", "random": "random state", "loss": "loss", "later": "weights after later steps",
}  # fmt: skip
_CALLS = {"moments": "optimizer", "scheduler": "scheduler", "scaler": "scaler", "weights": "model", "buffers": "model"}
_STATE = {
    "moments": "optimizer",
    "scheduler": "scheduler",
    "scaler": "scaler",
    "weights": "module",
    "buffers": "module",
}
"""Kind of difference -> kind of state that a save holds and a restore fills."""
CodeAt = Callable[[str, int], str]


class _Words(NamedTuple):
    """Parts of the answer about one difference."""

    headline: str
    why: str = ""
    fix: str = ""
    at: tuple[tuple[Site, str], ...] = ()
    """Lines, and what happens there."""
    edit: Site = ("", 0)
    diff: str = ""


class Wording:
    """Words for the result of a check."""

    def __init__(self, runs: Runs, found: Comparison, home: str, code_at: CodeAt) -> None:
        self._runs, self._found, self._home, self._code_at = runs, found, home, code_at
        notes = runs.resumed
        self._loads = [x for r in notes.values() for x in r.loads if x.n == 0]
        self._restores = [x for r in notes.values() for x in r.restores if x.n == 0]

    def answer(self) -> Answer:
        """Return the short answer."""
        first = self._first()
        if self._found.steps == 0:
            return self._without_steps()
        if first is None:
            return Answer(headline=self._healthy(), sure="well", notes=tuple(self._notes()))
        words = self.words(first)
        lines = {site: state for site, state in reversed(words.at) if site[0]}
        spots = tuple(self._spot(site, state) for site, state in reversed(lines.items()))[:3]
        file, line = self._home_site(words.edit)
        return Answer(
            headline=words.headline,
            spots=spots,
            why=" ".join(filter(None, (words.why, self._also(first)))),
            fix=Fix(text=words.fix, file=file, line=line, diff=words.diff, proven=not words.diff)
            if words.fix else None,
            sure="certain" if first.kind != "later" else "place",
            next=None if words.fix else Step(text="Record both runs, and compare their collectives.",
                                             command="dtdebug run --record DIR -- ..."),
            notes=tuple(self._notes()),
        )  # fmt: skip

    def result(self) -> IsolationResult | None:
        """Return the first difference as something measured; None if nothing differs."""
        first = self._first()
        if first is None or not self._found.steps:
            return None
        words = self.words(first)
        part = ResponsiblePart(factor=f"resume-{first.kind}", title=words.headline.rstrip("."), fix=words.fix)
        means = f"Of a resumed and an uninterrupted run, {self._scope_words()} were compared. {words.why}".strip()
        return IsolationResult(parts=(part,), means=means, sure=True)

    def _first(self) -> Difference | None:
        """Return the difference that explains the others."""
        first = next(iter(self._found.differences), None)
        if first is None or first.kind != "samples" or first.before != first.after or self._sets_random() is None:
            return first
        drawn = (d for d in self._found.differences if d.kind == "random" and d.step == first.step)
        return next((d for d in drawn if d.earlier == first.earlier), first)

    def _without_steps(self) -> Answer:
        runs = self._runs
        ended = f"ended with {runs.status}" if runs.status else "ended" if runs.status == 0 else "made no step in time"
        loads = {self._home_site(x.site): x for x in self._loads}
        spots = tuple(self._spot(site, f"read {PurePath(x.path).name}") for site, x in list(loads.items())[:2])
        failed = bool(runs.status) or runs.status is None
        return Answer(
            headline=f"The resumed run {ended} before its first step" + (f": {runs.said}" if runs.said else "."),
            spots=spots,
            sure="place" if failed and spots else "unknown",
            next=Step(
                text="Look at its output: an exception names the line."
                if failed
                else "Let the job train longer than until its save, so that something is left to do after resuming."
            ),
            notes=tuple(self._notes()),
        )

    def _healthy(self) -> str:
        return f"It goes on where it stopped: {self._scope_words()} are those of the uninterrupted run."

    def _scope_words(self) -> str:
        names = [_NAMES[k] for k in self._found.compared]
        whole = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
        steps = self._found.steps
        return f"{whole} of {steps} step{'s' * (steps != 1)} after step {self._runs.saved_at}"

    def _also(self, first: Difference) -> str:
        """Return what else differs; other losses follow from it."""
        rest = [d for d in self._found.differences if d.kind not in ("loss", "later", first.kind)]
        kinds = list(dict.fromkeys(_NAMES[d.kind] for d in rest))
        return f"Also not as before: {', '.join(kinds)}." if kinds else ""

    def _notes(self) -> Iterable[str]:
        if self._found.excluded:
            names = ", ".join(_NAMES[k] for k in self._found.excluded)
            yield f"Not compared, for two equal runs differ in it (no seed?): {names}."

    def words(self, d: Difference) -> _Words:
        """Return the words for a difference."""
        if not self._loads and d.kind in ("weights", "moments"):
            return self._nothing_loaded()
        match d.kind:
            case "weights" | "buffers":
                return self._weights(d)
            case "moments" | "scheduler" | "scaler":
                return self._state(d)
            case "settings":
                return self._settings(d)
            case "copy":
                return self._copy(d)
            case "counter":
                return self._counter(d)
            case "samples":
                return self._samples(d)
            case "random":
                return self._random(d)
            case "loss":
                return _Words(
                    f"The loss after resuming is {_short(d.after, 9)}, without interruption {_short(d.before, 9)}.",
                    "What was compared before it is the same: something else in the program has a state.",
                    at=((d.site, ""),),
                )
            case _:
                return _Words(
                    f"From step {d.step} on, {len(d.names)} of {d.of} parameters differ.",
                    "All that was compared before that step is the same: something else has a state.",
                    at=((d.site, ""),),
                )

    def _nothing_loaded(self) -> _Words:
        saves = dict.fromkeys((s.site, f"saved {PurePath(s.path).name}, step {s.n}") for s in self._runs.saves)
        at = tuple(saves)[:2]
        option = self._runs.option
        added = option is not None and option.name in self._runs.command
        if added and option is not None:
            return _Words(
                f"With {option.name} the program reads nothing that it saved: it begins anew.", at=at,
                fix="Load what was saved before the first step.",
            )  # fmt: skip
        return _Words(
            "Started again, the program reads nothing that it saved: it begins anew.",
            "No option to resume was found in its source, and it looks for no checkpoint by itself.", at=at,
            fix="Load what was saved before the first step; if it has an option for that, name it with --resume-args.",
        )  # fmt: skip

    def _weights(self, d: Difference) -> _Words:
        what = _NAMES[d.kind]
        of = f"{len(d.names)} of {d.of}" if len(d.names) < d.of else "None of the"
        ranks = f" on {spell(d.ranks, 8)}" if len(d.ranks) < self._found.ranks else ""
        state = "are as before the first step" if d.anew else "differ"
        if d.earlier > 1:
            state = f"are those before step {d.earlier}"
        head = (
            f"After resuming, all {d.of} {what}{ranks} {state}."
            if len(d.names) == d.of
            else f"After resuming, {of} {what}{ranks} {state}, such as {d.names[0]}."
        )
        filled = [r for r in self._restores if r.what == "module"]
        lacking = next((r for r in filled if r.missing or r.unexpected), None)
        if lacking is not None:
            example = next(iter(lacking.examples), "")
            return _Words(
                head,
                f"{lacking.missing} names of the model are not in the file, {lacking.unexpected} of it are not in "
                f"the model ({example}); strict=False drops them without a word.",
                "Make the names equal (for instance without the wrapper's `module.`), and load with strict=True.",
                ((lacking.site, "loaded with strict=False"),), lacking.site,
            )  # fmt: skip
        if not filled:
            return self._not_restored(d, head)
        if d.of_rank is not None:
            return _Words(
                head, f"They are those of rank {d.of_rank}.", "Load on each rank what that rank saved.",
                ((filled[0].site, "restored the model"), *self._read()), filled[0].site,
            )  # fmt: skip
        if ranks and not self._restores_on(d.ranks, "module"):
            return _Words(
                head, "Only the other ranks restore it.",
                "Load on every rank, or before DDP wraps the model and sends rank 0's weights to the others.",
                ((filled[0].site, "restored on other ranks only"),), filled[0].site,
            )  # fmt: skip
        last = filled[-1]
        why = "Another file or an older state was loaded." if d.earlier > 1 else ""
        return _Words(
            head, why or "What is loaded is not what was saved last, or it is changed before the first step.",
            "Load the newest save; change no weights between loading and the first step.",
            ((last.site, "restored the model"),), last.site,
        )  # fmt: skip

    def _state(self, d: Difference) -> _Words:
        what = _CALLS[d.kind]
        if d.kind == "moments":
            lost = ", ".join(d.names[:3])
            head = f"After resuming, the optimizer has no state ({lost})." if d.anew else (
                f"After resuming, the optimizer's state is another one ({lost}).")  # fmt: skip
            if d.before and d.after and "step" in d.names:
                head = f"After resuming, the optimizer counts step {d.after}, without interruption {d.before}."
        elif d.kind == "scheduler":
            after, before = _short(d.after), _short(d.before)
            head = f"After resuming, {d.names[0]} is at {d.names[1]} {after}, without interruption at {before}."
        else:
            head = f"After resuming, the loss scale is {d.after}, without interruption {d.before}."
        if d.of_rank is not None:
            return self._of_another_rank(d)
        filled = [r for r in self._restores if r.what == _STATE[d.kind]]
        if not filled and d.kind == "moments" and not d.anew:
            return _Words(
                head, "No load_state_dict() filled it: the program has put its values there itself.",
                "Compare what it puts there with what it saves.", (*self._read(), (d.site, "made the optimizer")),
            )  # fmt: skip
        if not filled:
            return self._not_restored(d, head)
        last = filled[-1]
        if not self._restores_on(d.ranks, _STATE[d.kind]):
            return _Words(
                head.replace("After resuming,", f"After resuming, on {spell(d.ranks, 8)}", 1),
                "Only the other ranks restore it.", f"Restore the {what} on every rank.",
                ((last.site, "restored on other ranks only"),), last.site,
            )  # fmt: skip
        unused = d.kind == "moments" and all(r.object for r in filled) and not self._is_restored(d)
        if unused and self._others_step():
            return _Words(
                head, "Another optimizer is restored, and this one is not.",
                "Save and load the state of each optimizer.",
                ((d.site, "made this one"), (last.site, "restored another one")), last.site,
            )  # fmt: skip
        if unused:
            return _Words(
                head, "It is restored into an optimizer that is not the one which steps.",
                "Restore it after the optimizer that steps was made.",
                ((last.site, "restored another optimizer"), (d.site, "made the one that steps")), last.site,
            )  # fmt: skip
        if (early := self._saved_early(d)) is not None:
            return _Words(
                head, f"It was saved at {_short(d.after)}, and stepped after the save: that step is lost.",
                "Step the scheduler before the save.", ((early.site, "saved it"), *self._read()), early.site,
            )  # fmt: skip
        return _Words(
            head, f"It is restored, and changed again before the first step, or the save holds another {what}.",
            f"Restore the {what} last, after everything that makes or steps it.",
            ((last.site, f"restored the {what}"), (d.site, f"made the {what}")), last.site,
        )  # fmt: skip

    def _saved_early(self, d: Difference) -> Save | None:
        """Return the save that has the scheduler's count as it is after resuming; None if it was changed since."""
        ends = f".{d.names[1]}" if d.kind == "scheduler" else ""
        return next(
            (s for s in self._runs.saves for key, value in s.numbers.items()
             if ends and key.endswith(ends) and _short(f"{value}") == _short(d.after)), None,
        )  # fmt: skip

    def _of_another_rank(self, d: Difference) -> _Words:
        """Return the words for an optimizer's state that another rank has saved."""
        head = f"After resuming, the optimizer of {spell(d.ranks, 8)} has the state of rank {d.of_rank}."
        saved = {s.path for s in self._runs.second[d.of_rank or 0].saves} if d.of_rank in self._runs.second else set()
        read = [x for r in d.ranks for x in self._runs.resumed[r].loads if x.path in saved and x.n == 0]
        own = [x for x in read if all(x.path not in {s.path for s in self._runs.second[r].saves} for r in d.ranks)]
        at = tuple((x.site, f"read {PurePath(x.path).name}") for x in (own or read)[-1:])
        return _Words(
            head, "Each rank has a part of its own, and this is another rank's.",
            "Load on each rank what that rank saved.", at, at[0][0] if at else ("", 0),
        )  # fmt: skip

    def _is_restored(self, d: Difference) -> bool:
        """True if the optimizer that steps there is one of those that were restored."""
        notes = self._runs.resumed[min(d.ranks)]
        now = next((s.object for s in notes.steps if s.n + self._runs.saved_at == d.step - 1), 0)
        return any(r.object == now for r in notes.restores if r.what == "optimizer" and r.n == 0)

    def _others_step(self) -> bool:
        """True if an optimizer that was restored steps, too."""
        notes = self._runs.resumed[min(self._runs.resumed)]
        return bool({s.object for s in notes.steps} & {r.object for r in notes.restores if r.what == "optimizer"})

    def _not_restored(self, d: Difference, head: str) -> _Words:
        """Return the words where no restore was seen: either it was not saved, or it was not loaded."""
        what, state = _CALLS[d.kind], _STATE[d.kind]
        holding = next((s for s in self._runs.saves if state in s.kinds), None)
        if holding is None:
            save = self._largest_save()
            keys = ", ".join(save.keys[:6]) if len(save.keys) <= 12 else f"{len(save.keys)} tensors"
            return _Words(
                head, f"It is not saved: {PurePath(save.path).name} holds {keys}.",
                f"Save {what}.state_dict() there, and load it when resuming.",
                ((save.site, f"saves no {what}"), *self._read()), save.site, self._patch(d, save),
            )  # fmt: skip
        load = next((x for x in self._loads if state in x.kinds), next(iter(self._loads), None))
        site = load.site if load is not None else ("", 0)
        return _Words(
            head, f"It is saved ({PurePath(holding.path).name}), and never put into the {what}.",
            f"Call {what}.load_state_dict() with it after loading.",
            ((site, "read, and not restored"), (holding.site, f"saved the {what}")), site, self._patch(d, holding),
        )  # fmt: skip

    def _patch(self, d: Difference, save: Save) -> str:
        """Return the patch that saves and restores what differs; "" if the source does not show how."""
        kinds = {"scheduler": d.names[:1], "scaler": ("GradScaler",)}.get(d.kind, ())
        load = next((self._home_site(x.site) for x in self._loads), ("", 0))
        file, line = self._home_site(save.site)
        return repair.patch(file, line, load[1], tuple(kinds)) if kinds and file and load[0] == file else ""

    def _read(self) -> tuple[tuple[Site, str], ...]:
        return tuple((x.site, "read it") for x in self._loads[:1])

    def _settings(self, d: Difference) -> _Words:
        name = "learning rate" if d.names[0] == "lr" else d.names[0]
        head = f"At step {d.step}, the {name} is {_short(d.after)}, without interruption {_short(d.before)}."
        step = "optimizer" not in {k for s in self._runs.saves for k in s.kinds}
        schedules = any(s.schedulers for r in self._runs.resumed.values() for s in r.steps[:1])
        if not schedules and step:
            return _Words(
                head, "No scheduler and no optimizer state is saved from which it could go on.",
                "Save and load what it is computed from.", ((d.site, f"made with {name} {d.after}"),), d.site,
            )  # fmt: skip
        return _Words(
            head, "What it is computed from goes on with another number, or was set after loading.",
            "Restore it last: the scheduler's state, then what sets the optimizer's groups.", ((d.site, ""),), d.site,
        )  # fmt: skip

    def _copy(self, d: Difference) -> _Words:
        name = d.names[0]
        if len(d.names) > 1:
            return self._updated_otherwise(d)
        how = "equals the weights" if d.after else "is as before the first step" if d.anew else "has other values"
        save = self._largest_save()
        words = set(re.findall(r"[a-z]{3,}", name.lower())) - {"self", "model", "module", "state", "dict"}
        saved = next((k for s in self._runs.saves for k in s.keys if any(w in k.lower() for w in words)), "")
        where = f"`{name}`, a copy of the weights that training updates,"
        if saved:
            return _Words(
                f"After resuming, {where} {how}.", f"It is saved as `{saved}`, and not put back.",
                f"Load `{saved}` into it, after it was made.", (*self._read(), (save.site, f"saved `{saved}`")),
                self._loads[0].site if self._loads else save.site,
            )  # fmt: skip
        return _Words(
            f"After resuming, {where} {how}.", f"It is not saved: {PurePath(save.path).name} holds {_list(save)}.",
            "Save it, and load it when resuming.", ((save.site, "saves no copy"), *self._read()), save.site,
        )  # fmt: skip

    def _updated_otherwise(self, d: Difference) -> _Words:
        """Return the words for a copy of the weights that was restored, and then goes another way."""
        name, number = d.names
        save = self._largest_save()
        head = f"From step {d.step} on, `{name}` is updated otherwise, and was the same when training went on."
        if not number:
            why = "The weights are the same: what its update is computed from, such as a counter, is not."
            return _Words(head, why, "Save and restore that, too.", ((d.site, ""),))
        return _Words(
            head, f"`{number}` is {d.after}, without interruption {d.before}; the weights are the same.",
            f"Save `{number}` with it, as a buffer if it belongs to a module, and restore it.",
            ((save.site, f"does not save `{number}`"), *self._read()), save.site,
        )  # fmt: skip

    def _counter(self, d: Difference) -> _Words:
        name, key = d.names
        gap = float(d.after) - float(d.before)
        by = f"{abs(gap):g} {'less' if gap < 0 else 'more'}"
        save = next((s for s in self._runs.saves if key in s.numbers), self._runs.saves[0])
        value = f"{save.numbers.get(key, 0):g}"
        again = "; what it counts is done again" if gap < 0 else "; some of it is left out"
        return _Words(
            f"After resuming, `{name}` is {d.after}, without interruption {d.before}: {by}{again}.",
            f"`{key}` was saved as {value} after step {self._runs.saved_at}.",
            f"Go on with what follows the saved {value}, or save the number of the next one.",
            (*self._read(), (save.site, f"saved `{key}` as {value}")),
            self._loads[0].site if self._loads else save.site,
        )  # fmt: skip

    def _samples(self, d: Difference) -> _Words:
        last = self._runs.saved_at
        epoch = (
            f" The sampler is in epoch {d.after}, without interruption in {d.before}." if d.before != d.after else ""
        )
        if d.anew:
            head = f"After resuming, the data begin again with the samples of step 1 instead of those of step {d.step}."
        elif d.earlier:
            head = f"After resuming, the samples of step {d.earlier} come again instead of those of step {d.step}."
        else:
            head = "After resuming, other samples come than without interruption."
        drawn = next((o for o in self._found.differences if o.kind == "random" and o.step == d.step), None)
        if drawn is not None and drawn.earlier == d.earlier and not epoch:
            fix = "Save torch.get_rng_state() of each rank, and restore it before the loader is iterated."
            epoch = " Their order is drawn from the random state, which is not restored."
        elif epoch:
            fix = "Call sampler.set_epoch() with the epoch that follows the saved one, before the loader is iterated."
        elif d.earlier:
            fix = "Save the place in the data, and skip what was trained (StatefulDataLoader, skip_first_batches)."
        else:
            fix = "Save and restore what draws their order: the generator of the sampler, or torch's random state."
        why = f"The save came after step {last}.{epoch}"
        return _Words(head, why, fix, ((d.site, "steps with them"), *self._read()), ("", 0))

    def _random(self, d: Difference) -> _Words:
        save = self._largest_save()
        names = ", ".join(d.names)
        set_ = self._sets_random()
        if set_ is not None and d.of_rank is not None:
            head = f"After resuming, {spell(d.ranks, 8)} {'has' if len(d.ranks) == 1 else 'have'} the random state "
            return _Words(
                f"{head}({names}) of rank {d.of_rank}: they draw the same numbers.",
                "The state of one rank is restored on others.",
                "Save the states of all ranks (all_gather_object), and restore on each its own.",
                ((set_.site, "restored it"), *self._read()), set_.site,
            )  # fmt: skip
        if set_ is not None:
            why = "It is restored, and drawn from again before the first step. Training is as valid as before, but not "
            why += "the same numbers."
            return _Words(
                f"After resuming, the random state ({names}) is not that of the uninterrupted run.", why,
                "To get equal numbers, restore it right before training goes on.", ((set_.site, "restored it"),),
                set_.site,
            )  # fmt: skip
        return _Words(
            f"The random state ({names}) is not restored: dropout, augmentation and order draw other numbers.",
            "Training is as valid as before, but not the same numbers.",
            "To get equal numbers, save and restore torch.get_rng_state() and its like on each rank.",
            ((save.site, "saves no random state"),), save.site,
        )  # fmt: skip

    def _largest_save(self) -> Save:
        """Return the save that holds most, rather one of the program's own lines than of a library's thread."""
        return max(self._runs.saves, key=lambda s: (bool(s.site[0]), len(s.kinds)))

    def _restores_on(self, ranks: Iterable[int], what: str) -> bool:
        """True if any of these ranks restores such a state."""
        return any(r.what == what and r.n == 0 for rank in ranks for r in self._runs.resumed[rank].restores)

    def _sets_random(self) -> Restore | None:
        """Return where the program restores a random state itself."""
        return next((r for r in self._restores if r.what.startswith("random ")), None)

    def _spot(self, site: Site, state: str) -> Spot:
        file, line = self._home_site(site)
        return Spot(file=file, line=line, code=self._code_at(file, line), state=state)

    def _home_site(self, site: Site) -> Site:
        file = site[0]
        if file.startswith(self._runs.home + "/"):
            file = self._home + file[len(self._runs.home) :]
        elif file and not file.startswith("/"):
            file = f"{self._home}/{file}"
        return file, site[1]


def _list(save: Save | Load) -> str:
    return ", ".join(save.keys[:6]) if len(save.keys) <= 12 else f"{len(save.keys)} tensors"


def _short(text: str, digits: int = 6) -> str:
    try:
        return f"{float(text):.{digits}g}"
    except ValueError:
        return text

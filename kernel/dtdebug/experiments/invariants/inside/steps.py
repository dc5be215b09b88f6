"""Notes the steps of optimizers and the backward passes before them, through torch's global optimizer hooks."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.invariants.inside.models import Models, WrappedModel, random_state
from dtdebug.experiments.invariants.inside.optimizers import (
    KnownOptimizer,
    divisors,
    gradients_of,
    is_mean,
    membership,
    parameters_of,
    ratio,
    settings_of,
)
from dtdebug.experiments.invariants.inside.record_writer import WatchNotes, guard_method, json_number

_MOST = 100_000


class Reductions:
    """Reductions of this process."""

    def __init__(self, notes: WatchNotes) -> None:
        self.notes = notes
        self._reduced: dict[int, tuple[list[int], str, Any, Any]] = {}
        """Data pointer of a tensor -> group, operation, sampled value, weak reference to its storage: once it
        is freed, another tensor may have the same address."""
        self.sizes: dict[int, tuple[list[int], str, int]] = {}
        """Number of elements -> group, operation and backward passes so far, for gradients that are copied into one
        tensor; tensors reduced before the last backward pass are weights."""
        self._sizes_at: dict[int, int] = {}
        """Data pointer -> number of elements."""
        self.largest = self.other = 0
        """Elements of the largest tensor ever exchanged, and of the largest other than gradients."""
        self.calls: set[str] = set()
        """Names of the functions that exchanged tensors."""
        self.clipped: dict[int, tuple[Any, int]] = {}
        """Data pointer of a clipped gradient -> (weak reference to its storage, site)."""
        self._told_early = False
        self._given: dict[int, Any] = {}
        """Data pointer of a tensor reduced to another rank -> weak reference to its storage."""

    def add(self, tensors: list[Any], group: list[int], op: str, *, now: int, backwards: int, close: bool) -> None:
        """Add tensors reduced in the step `now`; if `close`, remember a sample of their values."""
        for tensor in tensors:
            if not fingerprints.is_whole(tensor) or not tensor.numel() or not tensor.is_floating_point():
                continue
            self.largest = max(self.largest, tensor.numel())
            if len(group) > 1 and op in ("SUM", "AVG"):
                self._was_clipped(tensor, now)
            again = self.of(tensor) is not None  # as within hosts, then between them
            value = fingerprints.sample([tensor]) if close and not again else None
            weak = sys.modules["torch.multiprocessing.reductions"].StorageWeakRef(tensor.untyped_storage())
            self._reduced[tensor.data_ptr()] = (group, op, value, weak)
            self.sizes[tensor.numel()] = (group, op, backwards)
            self._sizes_at[tensor.data_ptr()] = tensor.numel()
        if len(self._reduced) > _MOST:
            self._reduced.clear()

    def _was_clipped(self, tensor: Any, now: int) -> None:
        weak, site = self.clipped.get(tensor.data_ptr(), (None, 0))
        if weak is not None and not weak.expired() and not self._told_early:
            self._told_early = True
            self.notes.put("clip", how="early", call="clip_grad_norm_", s=now, site=site)

    def gives(self, tensors: list[Any]) -> None:
        """Remember tensors that were reduced to another rank."""
        weak = sys.modules["torch.multiprocessing.reductions"].StorageWeakRef
        if len(self._given) < _MOST:
            self._given |= {t.data_ptr(): weak(t.untyped_storage()) for t in tensors if fingerprints.is_whole(t)}

    def is_reduced_elsewhere(self, tensor: Any) -> bool:
        """True if the tensor was reduced to another rank since the last step."""
        found = self._given.get(tensor.data_ptr())
        return found is not None and not found.expired()

    def of(self, tensor: Any) -> tuple[list[int], str, Any, Any] | None:
        """Return the program's reduction of that tensor since the last step, or None."""
        found = self._reduced.get(tensor.data_ptr())
        return found if found is not None and not found[3].expired() else None

    def note_others(self, parameters: list[Any]) -> None:
        """Note reductions other than of these parameters' gradients, at the beginning of a step."""
        grads = {p.grad.data_ptr() for p in parameters if p.grad is not None and fingerprints.is_whole(p.grad)}
        whole = sum(p.numel() for p in parameters)
        for at, size in self._sizes_at.items():
            if at not in grads and size != whole:
                self.other = max(self.other, size)

    def clear(self) -> None:
        """Forget everything at the end of a step."""
        for held in (self._reduced, self.clipped, self.sizes, self._sizes_at, self._given):
            held.clear()


_CLOSE_LOOKS = 8
"""Steps whose gradients are also compared between reduction and step."""


class Steps:
    """Observer of this process's optimizers."""

    def __init__(self, notes: WatchNotes, models: Models) -> None:
        self.notes, self._models = notes, models
        self._known: weakref.WeakKeyDictionary[Any, KnownOptimizer] = weakref.WeakKeyDictionary()
        self._most = 0
        self.done = 0
        """Number of steps of all optimizers."""
        self.backwards = 0
        self.reductions = Reductions(notes)
        self._scaled = False
        self._after: dict[int, list[float | str]] = {}

    @property
    def now(self) -> int:
        """Current step, from 1, of the optimizer with the most steps."""
        return self._most + 1

    def passes(self) -> dict[str, int]:
        """Return the forward passes of each wrapped model so far, by its number."""
        return {str(m.number): m.forwards for m in self._models.all}

    @guard_method
    def backward(self, tensors: Any, frame: Any) -> None:
        """Note the beginning of a backward pass."""
        self.backwards += 1
        for known in self._known.values():
            known.backwards += 1
            if (known.cleared is None and not known.holds()) or (known.cleared is False and known.was_cleared()):
                known.cleared = True  # also if another backward pass used its parameters, as in a GAN
        model = self._models.last
        looked = model.looked if model is not None else self.notes.looks(self.backwards)
        loss = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
        if not looked or not hasattr(loss, "grad_fn"):
            return
        value = loss.detach().item() if loss.numel() == 1 and loss.device.type != "meta" else 0.0
        self.notes.put(
            "backward",
            s=self.now,
            n=self.backwards,
            loss=json_number(float(value.real)),
            scaled="torch.amp.grad_scaler" in sys.modules and self._scaled,
            rng=random_state(model) if model is not None else "",
            mean=is_mean(loss.grad_fn),
            divided=divisors(loss.grad_fn),
            m=model.number if model is not None else -1,
            f=model.forwards if model is not None else 0,
            site=self.notes.site(frame),
        )

    @guard_method
    def after_backward(self) -> None:
        """Note the gradients that the wrappers have left after a backward pass."""
        for known in self._known.values():
            if known.cleared is None and not known.holds():
                known.cleared = False
        for optimizer, known in self._known.items():
            if known.steps < _CLOSE_LOOKS and not known.models:
                known.local = fingerprints.sample(gradients_of(optimizer))
        for model in self._models.all:
            if model.kind != "ddp" and model.forwards <= _CLOSE_LOOKS:
                self._after[model.number] = fingerprints.sample(model.shards()[1])
            elif model.since["synced"] and model.forwards <= _CLOSE_LOOKS:
                found = [p.grad for p in model.parameters().values() if p.grad is not None]
                self._after[model.number] = fingerprints.sample(found)
                if model.given:
                    self._note_hooked(model)

    def _note_hooked(self, model: WrappedModel) -> None:
        """Note the inputs of a custom communication hook, and the resulting gradients at the same places."""
        given, model.given = model.given, []
        pairs = [(before, p.grad) for p, before in given if p.grad is not None and fingerprints.is_whole(p.grad)]
        before, after = [json_number(b) for b, _ in pairs], [v for _, g in pairs for v in fingerprints.sample([g])]
        self.notes.put("hooked", m=model.number, n=model.forwards, s=self.now, given=before, after=after)

    def _note_summed(self, optimizer: Any, known: KnownOptimizer, group: list[int]) -> None:
        """Note the gradients before and after the program's own reduction."""
        now, known.local, before = fingerprints.sample(gradients_of(optimizer)), [], known.local
        self.notes.put("hooked", m=-1, n=known.steps + 1, s=known.steps + 1, group=group, given=before, after=now)

    def note_scaling(self) -> None:
        """Note that losses are scaled for half precision: they may occasionally be infinite on purpose."""
        self._scaled = True

    def steps_without_backward(self, parameters: list[Any]) -> int:
        """Return the steps of the optimizer of these parameters if no backward pass followed the last, else 0."""
        for optimizer, known in self._known.items():
            if any(p is parameters[0] for p in parameters_of(optimizer)):
                return known.steps if not known.backwards else 0
        return 0

    @guard_method
    def reduces(self, tensors: list[Any], group: list[int], op: str, *, ended: bool) -> None:
        """Note tensors that the program itself reduced."""
        close = ended and self.done < _CLOSE_LOOKS
        self.reductions.add(tensors, group, op, now=self.now, backwards=self.backwards, close=close)

    def before_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Handle the beginning of a step; with a closure, gradients exist only after it."""
        self._begins(optimizer)
        frame = sys._getframe(1)  # noqa: SLF001 - documented
        closure = kwargs.get("closure") or (args[1] if len(args) > 1 and callable(args[1]) else None)
        if closure is None or not callable(closure):
            self._looks(optimizer, frame)
            return None

        def looking(*a: Any, **k: Any) -> Any:
            result = closure(*a, **k)
            self._looks(optimizer, frame)
            return result

        if "closure" in kwargs:
            return args, {**kwargs, "closure": looking}
        return (args[0], looking, *args[2:]), kwargs

    @guard_method
    def _begins(self, optimizer: Any) -> None:
        if optimizer not in self._known:
            self._known[optimizer] = KnownOptimizer(len(self._known))
            self._known[optimizer].backwards = self.backwards
        self._known[optimizer].pending = None

    @guard_method
    def _looks(self, optimizer: Any, frame: Any) -> None:
        known = self._known[optimizer]
        if self.done == 0:
            self.notes.put("begun", **membership())
        clock = next((m.forwards for m in known.models if m.kind == "ddp" and m.forwards), known.steps + 1)
        if not self.notes.looks(clock):
            return
        held = {id(p) for p in parameters_of(optimizer)}
        known.models = [m for m in self._models.all if held & (m.parameters().keys() | m.synced_ids())]
        self.reductions.note_others(parameters_of(optimizer))
        sets = [self._set(*one) for one in self._sets(optimizer)]
        sets += [self._shard_record(model) for model in known.models if model.kind != "ddp"]
        if known.local and sets and sets[0]["own"] == sets[0]["of"]:
            self._note_summed(optimizer, known, sets[0]["group"])
        with_gradient = [p for p in parameters_of(optimizer) if p.grad is not None]
        known.pending = {
            "o": known.index,
            "s": known.steps + 1,
            "f": self.passes(),
            "hyper": [settings_of(group) for group in optimizer.param_groups[:16]],
            "sets": sets,
            "grads": len(with_gradient),
            "trainable": sum(p.requires_grad for p in parameters_of(optimizer)),
            "backwards": known.backwards,
            "cleared": known.cleared is not False,
            "site": self.notes.site(frame),
            "calls": sorted(self.reductions.calls),
            "models": [m.number for m in known.models],
        }
        plain = [p for p in with_gradient if fingerprints.is_whole(p) and fingerprints.is_whole(p.grad)][:1]
        known.left = (weakref.ref(plain[0]), fingerprints.sample([plain[0].grad])) if plain else None
        if known.left is not None and not any(isinstance(v, str) or v for v in known.left[1]):
            known.left = None  # a gradient of zero is indistinguishable from a cleared one

    @guard_method
    def after_step(self, optimizer: Any) -> None:
        """Handle the end of a step."""
        known = self._known.get(optimizer)
        if known is None:
            return
        known.steps += 1
        self._most = max(self._most, known.steps)
        self.done += 1
        record, known.pending = known.pending, None
        if record is not None:
            held = [parameters for _, parameters, _ in self._sets(optimizer)]
            held += [model.shards()[0] for model in known.models if model.kind != "ddp"]
            for row, parameters in zip(record["sets"], held, strict=False):
                row["p1"], row["p1s"] = fingerprints.hashes(parameters)
            self.notes.put("step", **record)
            self.notes.flush()
        known.cleared, known.backwards = (True if known.left is None else None), 0
        for model in known.models:
            model.since = {"forward": 0, "synced": 0}
            self._after.pop(model.number, None)
        self.reductions.clear()

    def _sets(self, optimizer: Any) -> list[tuple[WrappedModel | None, list[Any], str]]:
        """Return its whole parameters: those of each replicated model, and the others."""
        mine = [p for p in parameters_of(optimizer) if fingerprints.is_whole(p)]
        found: list[tuple[WrappedModel | None, list[Any], str]] = []
        for model in self._models.all:
            if model.kind == "ddp":
                theirs = model.parameters()
                held = [p for p in mine if id(p) in theirs]
                if held:
                    found.append((model, held, "ddp"))
                    mine = [p for p in mine if id(p) not in theirs]
        for model in self._models.all:
            if model.kind == "ddp" and model.ref() is None and model.synced_ids() <= {id(p) for p in mine}:
                held = [p for p in mine if id(p) in model.synced_ids()]  # the wrapper is gone, its module is not
                found.append((model, held, "ddp"))
                mine = [p for p in mine if id(p) not in model.synced_ids()]
        graded = [p for p in mine if p.grad is not None and fingerprints.is_whole(p.grad)]
        reduced = [p for p in graded if self.reductions.of(p.grad)]
        rest = [p for p in graded if not self.reductions.of(p.grad)]
        if reduced and rest and not found:
            return [(None, reduced, "own"), (None, rest, "rest")]
        if mine and any(hasattr(p, "device_mesh") for p in parameters_of(optimizer)):
            return [*found, (None, mine, "plan")]
        if mine:
            found.append((None, mine, "beside" if found else "own"))
        return found

    def _shard_record(self, model: WrappedModel) -> dict[str, Any]:
        """Return the record of a sharded model on this rank."""
        weights, grads = model.shards()
        p0, p0s = fingerprints.hashes(weights)
        return {
            "kind": "shards", "m": model.number, "n": sum(p.numel() for p in weights), "shapes": "",
            "group": model.group, "g": "", "gs": fingerprints.sample(grads), "p0": p0, "p0s": p0s,
            "finite": fingerprints.finite(grads), "own": 0, "of": len(grads), "largest": self.reductions.largest,
            "hook": model.divisor(), "since": dict(model.since),
            "ratio": ratio(self._after.get(model.number), fingerprints.sample(grads)),
        }  # fmt: skip

    def _set(self, model: WrappedModel | None, parameters: list[Any], kind: str) -> dict[str, Any]:
        grads = [p.grad for p in parameters if p.grad is not None and fingerprints.is_whole(p.grad)]
        own = [found for g in grads if (found := self.reductions.of(g))]
        shapes = hash(tuple(tuple(p.shape) for p in parameters))
        row: dict[str, Any] = {
            "kind": kind,
            "m": model.number if model else -1,
            "n": sum(p.numel() for p in parameters),
        }
        row["shapes"] = f"{shapes & 0xFFFFFFFF:08x}"
        row["group"] = model.group if model else []
        row["g"], row["gs"] = fingerprints.hashes(grads)
        row["p0"], row["p0s"] = fingerprints.hashes(parameters)
        row["finite"] = fingerprints.finite(grads)
        row["own"] = len(own)
        row["of"], row["rooted"] = len(grads), sum(map(self.reductions.is_reduced_elsewhere, grads))
        row["largest"], row["other"] = self.reductions.largest, self.reductions.other
        row["shaped"] = bool(grads) and model is None and all(g.numel() in self.reductions.sizes for g in grads)
        if model is not None:
            row["since"] = dict(model.since)
            row["hook"] = model.hook
            row["b"], row["bs"] = fingerprints.hashes(model.buffers())
            known = model.synced_ids()
            row["unknown"] = sum(id(p) not in known and p.grad is not None for p in parameters) if known else 0
            if own and all(group == model.group for group, *_ in own):
                row["twice"] = len(own) == len(grads)
            row["ratio"] = ratio(self._after.get(model.number), fingerprints.sample(grads))
        elif own:
            row["group"], row["op"] = own[0][0], own[0][1]
            if all(value for _, _, value, _ in own):
                mine = [g for g in grads if self.reductions.of(g)]
                now = [fingerprints.sample([g])[0] for g in mine]
                row["ratio"] = ratio([value[0] for _, _, value, _ in own], now)
        elif grads and (flat := self.reductions.sizes.get(sum(g.numel() for g in grads))) and flat[2] == self.backwards:
            row["group"], row["op"], row["own"] = flat[0], flat[1], len(grads)
        return row

"""Notes the wrapped models of this process: their group, inputs and modes."""

from __future__ import annotations

import functools
import sys
import weakref
import zlib
from collections.abc import Iterator
from typing import Any

from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.invariants.inside.record_writer import WatchNotes, guard_method

_HOOKED, _VALUES = 8, 12
"""Forward passes, and values of each, for which the effect of a communication hook is noted."""
_LAYERS, _LONGEST = 64, 160
"""Maximum layers to note, and characters of each."""


class WrappedModel:
    """Wrapped model."""

    def __init__(self, number: int, module: Any, kind: str, group: list[int]) -> None:
        self.number, self.kind, self.group = number, kind, group
        self.ref = weakref.ref(module)
        self.forwards = 0
        self.since: dict[str, int] = {"forward": 0, "synced": 0}
        """Forward passes with gradients since the last step of an optimizer with its parameters; the number of these
        that are reduced, and whether the last one is."""
        self.hook = ""
        self.given: list[tuple[Any, float]] = []
        """(parameter, value of its gradient) as passed to a custom communication hook."""
        self.looked = False
        self.noted = False
        self.varies = False
        """It has layers that behave differently in evaluation mode."""
        self._trainable = {id(p) for p in module.parameters() if p.requires_grad}

    def parameters(self) -> dict[int, Any]:
        """Return id -> parameter, without those that the wrapper ignores."""
        module = self.ref()
        if module is None:
            return {}
        ignored = set(getattr(module, "parameters_to_ignore", ()))
        inner = getattr(module, "module", module)
        return {id(p): p for name, p in inner.named_parameters() if name not in ignored and fingerprints.is_whole(p)}

    def shards(self) -> tuple[list[Any], list[Any]]:
        """Return this rank's shards of the parameters and gradients of a sharded model."""
        module = self.ref()
        rows = list(module.parameters()) if module is not None else []
        parts = [_part(p) for p in rows], [_part(p.grad) for p in rows if p.grad is not None]
        return [p for p in parts[0] if p is not None], [g for g in parts[1] if g is not None]

    def divisor(self) -> str:
        """Return "own divisor" if the program chose the divisor of a sharded model's gradient sums, else ""."""
        module = self.ref()
        groups = sharded_by(module) if module is not None and self.kind == "fully_shard" else ()
        return "own divisor" if any(getattr(g, "gradient_divide_factor", None) is not None for g in groups) else ""

    def buffers(self) -> list[Any]:
        """Return the buffers that are not synchronised, except those of normalisation layers."""
        module = self.ref()
        if module is None or getattr(module, "broadcast_buffers", True):
            return []
        return [
            buffer
            for inner in module.modules()
            if "norm" not in type(inner).__name__.lower()
            for name, buffer in inner.named_buffers(recurse=False)
            if buffer.is_floating_point() and fingerprints.is_whole(buffer) and not name.startswith(("running", "_"))
        ]

    def synced_ids(self) -> set[int]:
        """Return the ids of the parameters whose gradients it averages: those trainable when it was made."""
        return self._trainable


class Models:
    """Wrapped models of this process, in the order in which they were made."""

    def __init__(self, notes: WatchNotes) -> None:
        self.notes = notes
        self.all: list[WrappedModel] = []
        self.loaded: weakref.WeakSet[Any] = weakref.WeakSet()
        """Modules into which weights were loaded."""
        self.last: WrappedModel | None = None
        """Model with the latest forward pass."""

    def find(self, module: Any) -> WrappedModel | None:
        """Return the model of a wrapper."""
        return next((m for m in self.all if m.ref() is module), None)

    @guard_method
    def note_model(self, module: Any, kind: str, group: list[int], frame: Any) -> None:
        """Note a new wrapper."""
        known = WrappedModel(len(self.all), module, kind, group)
        self.all.append(known)
        p, ps = fingerprints.hashes(list(known.parameters().values())) if kind == "ddp" else ("", [])
        loaded = any(part in self.loaded for part in module.modules()) if self.loaded else False
        site = self.notes.site(frame)
        self.notes.put(
            "model", m=known.number, kind=kind, group=group, p=p, ps=ps, loaded=loaded, site=site,
            rng=random_state(known, module),
        )  # fmt: skip

    @guard_method
    def note_hook(self, module: Any, hook: Any) -> None:
        """Note a communication hook."""
        known = self.find(module)
        if known is not None:
            known.hook = getattr(hook, "__name__", type(hook).__name__)
            self.notes.put("hook", m=known.number, name=known.hook)

    def wrap_hook(self, module: Any, hook: Any) -> Any:
        """Return the hook, wrapped to note its inputs; its effect is noted after the backward pass."""

        @functools.wraps(hook)
        def noting_hook(state: Any, bucket: Any) -> Any:
            self._note_inputs(module, bucket)
            return hook(state, bucket)

        return noting_hook

    @guard_method
    def _note_inputs(self, module: Any, bucket: Any) -> None:
        known = self.find(module)
        if known is None or known.forwards > _HOOKED or len(known.given) >= _VALUES:
            return
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=False):
            value = fingerprints.sample([gradient]) if fingerprints.is_whole(gradient) and gradient.numel() else []
            if value and isinstance(value[0], float) and len(known.given) < _VALUES:
                known.given.append((parameter, value[0]))

    @guard_method
    def forward(self, module: Any, given: Any, step: int, frame: Any, *, synced: bool) -> None:
        """Note the beginning of a forward pass with gradients."""
        known = self.find(module)
        if known is None:
            return
        known.forwards += 1
        known.since["forward"] += 1
        known.since["synced"] += synced
        known.since["last"] = int(synced)
        self.last = known
        if not known.noted:
            known.noted = True
            known.varies = _varies(module)
            rows = list(module.parameters())
            device = next((p.device for p in rows), None)
            self.notes.put(
                "shape",
                m=known.number,
                device=str(device) if device is not None else "",
                uuid=_uuid(device),
                dtypes=sorted({str(p.dtype)[6:] for p in rows}),
                numel=sum(p.numel() for p in rows),
                layers=_layers(module) if known.kind == "ddp" else [],
            )
        known.looked = self.notes.looks(known.forwards)
        if not known.looked:
            return
        self.notes.put(
            "forward",
            s=step,
            m=known.number,
            n=known.forwards,
            h=fingerprints.digest(given),
            kinds=fingerprints.kinds(given),
            train=bool(module.training),
            varies=known.varies,
            synced=synced,
            cast=_cast(),
            rng=random_state(known, module),
            site=self.notes.site(frame),
        )


def sharded_by(model: Any) -> Iterator[Any]:
    """Yield FSDP2's parameter groups of a model."""
    for module in model.modules():
        state = module._get_fsdp_state() if hasattr(module, "_get_fsdp_state") else None  # noqa: SLF001 - no public name
        yield from getattr(state, "_fsdp_param_groups", None) or filter(
            None, [getattr(state, "_fsdp_param_group", None)]
        )


def _part(tensor: Any) -> Any:
    """Return this rank's part of a tensor, or None if it is empty."""
    torch: Any = sys.modules["torch"]
    local = getattr(tensor, "_local_tensor", tensor).detach()
    known = type(local) is torch.Tensor and local.layout is torch.strided and local.device.type != "meta"
    return local if known and local.numel() and local.untyped_storage().size() else None


def _varies(module: Any) -> bool:
    """True if it has layers that behave differently in evaluation mode."""
    torch: Any = sys.modules["torch"]
    kinds = (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._BatchNorm)  # noqa: SLF001 - their bases
    return any(isinstance(m, kinds) for m in module.modules())


def _layers(module: Any) -> list[str]:
    """Return the torch.nn layers with their settings, without duplicates and those that the wrapper ignores."""
    ignored = set(getattr(module, "parameters_to_ignore", ()))
    found: set[str] = set()
    for name, inner in getattr(module, "module", module).named_modules():
        own = [f"{name}.{each}" for each, _ in inner.named_parameters(recurse=False)]
        if type(inner).__module__.startswith("torch.nn.modules.") and (not own or not ignored.issuperset(own)):
            found.add(f"{type(inner).__name__}({inner.extra_repr()})"[:_LONGEST])
    return sorted(found) if len(found) <= _LAYERS else []


def _cast() -> list[str]:
    """Return the devices with autocast enabled, with its type."""
    torch: Any = sys.modules["torch"]
    found = []
    for device in ("cpu", "cuda"):
        try:
            if torch.is_autocast_enabled(device):
                found.append(f"{device}:{str(torch.get_autocast_dtype(device))[6:]}")
        except (TypeError, RuntimeError, AttributeError):  # before torch 2.4
            continue
    return found


def _uuid(device: Any) -> str:
    """Return the UUID of the GPU, or "" if CUDA is not initialised."""
    torch: Any = sys.modules["torch"]
    if device is None or device.type != "cuda" or not torch.cuda.is_initialized():
        return ""
    return str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))


def random_state(known: WrappedModel | None, module: Any = None) -> str:
    """Return a hash of the state of the generator that a model uses."""
    torch: Any = sys.modules["torch"]
    module = module if module is not None else known.ref() if known is not None else None
    device = next((p.device for p in module.parameters()), None) if module is not None else None
    on_card = device is not None and device.type == "cuda"
    state = torch.cuda.get_rng_state(device) if on_card else torch.get_rng_state()
    return f"{zlib.crc32(state.numpy().tobytes()):08x}"

"""Recomputes the calls of all ranks on one process, from its weights and the ranks' inputs and random states."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from dtdebug.experiments.parity.inside.entries import entries
from dtdebug.experiments.parity.inside.parts import whole_of
from dtdebug.experiments.parity.inside.window import Window
from dtdebug.experiments.repeat.calls import Call, digest, repeat
from dtdebug.experiments.repeat.module_copy import ModuleCopy
from dtdebug.experiments.repeat.one_process import CommunicatesError, one_process, whole_tensor
from dtdebug.experiments.repeat.tensors import tensors_in, with_tensors


class Watched:
    """Outputs of one module in a recomputation, and the sum of their gradients over all but the last dimension."""

    def __init__(self) -> None:
        self.outputs: list[Any] = []
        self.gradient: Any = None

    def note(self, output: Any) -> None:
        """Keep an output, and its gradient once it has one."""
        torch: Any = sys.modules["torch"]
        if isinstance(output, torch.Tensor):
            self.outputs.append(output.detach().clone())
            if output.requires_grad:
                output.register_hook(self._add)

    def _add(self, gradient: Any) -> None:
        now = gradient.detach().reshape(-1, gradient.shape[-1]).sum(0)
        self.gradient = now if self.gradient is None else self.gradient + now


class Run(NamedTuple):
    """One recomputation."""

    grads: dict[str, Any]
    seen: list[list[tuple[str, float]]]
    """For each call: (module, digest of its output)."""
    drawn: bool
    """The model draws random numbers."""
    summed: bool
    """The model sums over ranks by a call of its own."""
    watched: dict[str, Watched]
    """Module -> its outputs."""


class Again(NamedTuple):
    """Gradients of the recomputation: rank -> name -> entries; their change under one unit in the last place."""

    grads: dict[int, dict[str, Any]]
    change: dict[str, float]
    told: dict[str, Any]
    runs: dict[int, Run] = {}


def recompute(window: Window, given: dict[int, Any], summing: list[str] | None = None) -> Again:
    """Return the gradients of each rank's inputs with this rank's model.

    `summing`: names of the groups of ranks that share a model, over which it may sum.
    """
    lead = next(iter(given))
    mine = window.calls.calls
    told: dict[str, Any] = {}
    if window.sharded - window.weights.keys():
        return Again({}, {}, {"left_out": "weights"})
    runs: dict[int, Run] = {}
    try:
        for rank, row in given.items():
            calls = row["calls"]
            if len(calls) != len(mine) or any(c["args"] is None for c in calls):
                told["left_out"] = "inputs" if len(calls) == len(mine) else "calls"
                told.setdefault("ranks", []).append(rank)
                continue
            runs[rank] = run_once(window, mine, calls, summing)
            first = [] if summing else _first_difference(calls, runs[rank].seen)
            if first:
                told.setdefault("differs", {})[str(rank)] = first
        if lead not in runs:
            return Again({}, {}, told)
        once, twice = runs[lead].grads, run_once(window, mine, given[lead]["calls"], summing)
        unequal = [n for n in twice.grads if not bool((twice.grads[n] == once[n]).all())]
        if unequal:
            told["random"] = {"parameter": unequal[0], "first": _first_difference(given[lead]["calls"], twice.seen)}
        nudged = run_once(window, mine, given[lead]["calls"], summing, nudge=True).grads
    except CommunicatesError as error:
        return Again({}, {}, {**told, "left_out": "communicates", "call": str(error)})
    except (RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError) as error:
        if not summing:
            raise
        return Again({}, {}, {**told, "left_out": "whole", "call": f"{type(error).__name__}: {error}"[:200]})
    change = {n: float((nudged[n] - once[n]).norm()) for n in once if n in nudged}
    grads = {rank: run.grads for rank, run in runs.items()}
    told["matches"] = _matches(given, grads, change)
    return Again(grads, change, told, runs)


def _matches(given: dict[int, Any], grads: dict[int, Any], change: dict[str, float]) -> dict[str, Any]:
    """Return rank -> parameters whose own gradient there is not the recomputed one, with the factor if it is one."""
    found: dict[str, Any] = {}
    for rank, again in grads.items():
        for name, row in given[rank]["rows"].items():
            own = [v for v in row["local"] if v is not None]
            if not own and name not in again:
                continue
            actual = sum(own) if own else None
            expected = again.get(name)
            if actual is None or expected is None:
                missing = "here" if actual is None else "there"
                size = float((expected if actual is None else actual).norm())
                if size:
                    found.setdefault(str(rank), []).append([name, missing, 1.0, 0.0])
                continue
            size = float(expected.norm())
            limit = 8 * change.get(name, 0.0) + (5e-2 if "16" in row["dtype"] else 1e-6) * size
            off = float((actual - expected).norm())
            if off > limit and off > 1e-12:
                factor = float((actual * expected).sum() / max(1e-300, float((expected * expected).sum())))
                exact = float((actual - factor * expected).norm()) <= limit
                found.setdefault(str(rank), []).append(
                    [name, "factor" if exact else "other", factor, off / (size or 1.0)]
                )
    return found


def run_once(
    window: Window,
    mine: list[Call],
    calls: list[dict[str, Any]],
    summing: list[str] | None,
    *,
    nudge: bool = False,
    watch: tuple[str, ...] = (),
) -> Run:
    """Return the gradients by name, the digests of the modules' outputs of each call, and what the model did."""
    torch: Any = sys.modules["torch"]
    drawn, watched = False, {name: Watched() for name in watch}
    copies: dict[int, ModuleCopy] = {}
    seen: list[list[tuple[str, float]]] = []
    with one_process(summing) as summed:
        done = []
        for call, row in zip(mine, calls, strict=True):
            if id(call.root) not in copies:
                copies[id(call.root)] = copy_of(window, call.root)
                if nudge:
                    _nudge(copies[id(call.root)].module)
            copies[id(call.root)].set_forward(call.forward)
            model = copies[id(call.root)].module
            rows: list[tuple[str, float]] = []
            handles = [module.register_forward_hook(_digesting(rows, name)) for name, module in model.named_modules()]
            handles += [
                module.register_forward_hook(lambda _m, _i, output, held=watched[name]: held.note(output))
                for name, module in model.named_modules()
                if name in watched
            ]
            output = repeat(_call_of(call, row, model), model)
            drawn = drawn or not torch.equal(torch.get_rng_state(), row["random"]["cpu"])
            for handle in handles:
                handle.remove()
            seen.append(rows)
            done.append((row["grads"], list(tensors_in(output))))
        _step_back(done)
    found = {}
    for call in mine:
        prefix = window.prefix_of(call.root)
        for name, parameter in copies[id(call.root)].module.named_parameters():
            if parameter.grad is not None:
                found[prefix + name] = entries(parameter.grad)
    return Run(found, seen, drawn, bool(summed), watched)


def copy_of(window: Window, root: Any) -> ModuleCopy:
    """Return a copy of a model with whole weights."""
    prefix = window.prefix_of(root)
    whole = {n.removeprefix(prefix): w for n, w in window.weights.items() if n.startswith(prefix)}
    if window.layers:
        kind = whole_tensor()
        whole = {n: w.as_subclass(kind) for n, w in whole.items()}
    return ModuleCopy(root, whole)


def _call_of(call: Call, row: dict[str, Any], model: Any) -> Call:
    """Return the call as another rank made it, on this rank's device and in its precision."""
    home, cast = next(iter(model.parameters())).device, _input_type(call.root)

    def moved(tensor: Any) -> Any:
        there = tensor.to(home, cast) if cast is not None and tensor.is_floating_point() else tensor.to(home)
        return there.requires_grad_(tensor.requires_grad)

    one = Call.__new__(Call)
    one.args, one.kwargs, one.cast = with_tensors(row["args"], moved), with_tensors(row["kwargs"], moved), call.cast
    one.random = {**call.random, **row["random"], "python": _as_tuple(row["random"]["python"])}
    if row["cuda"] is not None:
        one.random["cuda"] = [state.cpu() for state in row["cuda"]]
    one.training, one.buffers = row["training"], row["buffers"]
    return one


def _step_back(done: list[tuple[list[dict[int, Any]], list[Any]]]) -> None:
    """Repeat the backward passes, from the gradients that came to the outputs."""
    torch: Any = sys.modules["torch"]
    passes = max((len(grads) for grads, _ in done), default=0)
    for number in range(passes):
        outs, given = [], []
        for grads, outputs in done:
            for index, gradient in grads[number].items() if number < len(grads) else ():
                if index < len(outputs) and outputs[index].requires_grad:
                    whole = whole_of(gradient, tuple(outputs[index].shape))
                    if whole is None or whole.shape != outputs[index].shape:
                        raise ValueError("the gradients of an output do not make up a whole one")
                    outs.append(outputs[index])
                    given.append(whole.to(outputs[index].device, outputs[index].dtype))
        if outs:
            torch.autograd.backward(outs, given, retain_graph=number + 1 < passes)


def _digesting(rows: list[tuple[str, float]], name: str) -> Any:
    def note(_module: Any, _inputs: Any, output: Any) -> None:
        rows.append((name, digest(output)))

    return note


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(one) for one in value) if isinstance(value, (list, tuple)) else value


def _input_type(root: Any) -> Any:
    """Return the type to which a sharded model casts its inputs, or None."""
    get = getattr(root, "_get_fsdp_state", None)
    policy = getattr(get(), "_mp_policy", None) if get is not None else None
    return policy.param_dtype if policy is not None and policy.cast_forward_inputs else None


def _nudge(model: Any) -> None:
    """Change each weight by one unit in the last place, up or down."""
    torch: Any = sys.modules["torch"]
    own = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                signs = torch.randint(0, 2, parameter.shape, generator=own).to(parameter.device) * 2 - 1
                parameter.mul_(1 + torch.finfo(parameter.dtype).eps * signs)


def _first_difference(calls: list[dict[str, Any]], seen: list[list[tuple[str, float]]]) -> list[Any]:
    """Return the first module whose output is not the recorded one: its name and both digests; [] if there is none."""
    for call, rows in zip(calls, seen, strict=True):
        for (name, before), (other, now) in zip(call["seen"], rows, strict=False):
            if name != other:
                break
            if abs(before - now) > 1e-5 * max(abs(before), abs(now)) or (before == before) != (now == now):  # noqa: PLR0124
                return [name, before, now]
    return []

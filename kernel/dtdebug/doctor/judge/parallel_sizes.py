"""Checks batch and parallel sizes against the number of ranks that the command starts.

Only what the framework itself rejects, by its own rule, is a problem; what it rounds, pads or leaves to other options
is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from dtdebug.doctor.judge import read_sizes
from dtdebug.doctor.judge.read_sizes import Sizes
from dtdebug.doctor.types import HostProblem, Launch


def judge(launch: Launch) -> tuple[list[HostProblem], bool]:
    """Return (problems, whether any sizes were found)."""
    found = read_sizes.sizes_of(launch)
    rules = {"megatron": _check_megatron, "deepspeed": _check_deepspeed, "torchtitan": _check_titan}
    return [p for spoken in found for p in rules[spoken.dialect](spoken, launch.ranks)], bool(found)


def _check_megatron(s: Sizes, world: int | None) -> Iterator[HostProblem]:
    """Apply Megatron-LM's own checks: world, batch, layers, heads, query groups, sequence, experts.

    `validate_args` of
    https://github.com/NVIDIA/Megatron-LM/blob/d98e8a64ddf34856e74b24714e3bedb2f5a39553/megatron/training/arguments.py,
    and in the same commit `initialize_model_parallel` of `megatron/core/parallel_state.py` (the ranks of experts),
    `megatron/core/transformer/transformer_config.py` (heads and query groups) and
    `megatron/core/num_microbatches_calculator.py` (the batch).
    """
    product = prod(s.number(n) or 1 for n in ("tp", "pp", "cp"))
    if world and world % product:
        yield _indivisible(s, world, product, "tp", "pp", "cp")
        return
    tensor = "etp" if s.number("etp") else "tp"  # experts default to the tensor parallel size
    experts = prod(s.number(n) or 1 for n in ("ep", tensor, "pp"))
    if world and s.number("ep") and world % experts:
        yield _indivisible(s, world, experts, "ep", tensor, "pp")
    if world and "batch" not in s.open and s.number("micro"):
        yield from _batch(s, world, world // product)
    yield from _cut(s, "heads", "tp", "attention heads")
    yield from _cut(s, "experts", "ep", "experts")
    if "layers" not in s.open:
        yield from _cut(s, "layers", "pp", "layers")
    groups, ways = s.number("groups"), s.number("tp")
    if "groups" not in s.open and groups and ways and ways % groups:  # newer releases copy groups to more ranks
        yield from _cut(s, "groups", "tp", "query groups")
    if (s.number("cp") or 1) > 1:
        yield from _cut(s, "length", "cp", "tokens of a sequence", times=2)


def _check_deepspeed(s: Sizes, world: int | None) -> Iterator[HostProblem]:
    """Apply DeepSpeed's check: of batch, micro batch and steps, missing ones follow from the others."""
    parts = (s.number("tp") or 1) * (s.number("pp") or 1)
    if world and world % parts == 0 and "batch" not in s.open:
        yield from _batch(s, world, world // parts)


def _check_titan(s: Sizes, world: int | None) -> Iterator[HostProblem]:
    """Apply torchtitan's ParallelDims: the degrees multiply to the world; a shard degree of -1 takes the rest.

    `_validate` of
    https://github.com/pytorch/torchtitan/blob/b5bcd76c66d0acb1a08b176d9639425bc55e0b2a/torchtitan/distributed/parallel_dims.py
    """
    if not world:
        return
    product = prod(s.number(n) or 1 for n in ("replicate", "shard", "tp", "pp", "cp"))
    if s.number("shard") and product != world:
        names = ("replicate", "shard", "tp", "pp", "cp")
        yield HostProblem(
            id="DR702",
            text=f"the degrees multiply to {product}, and {world} ranks are started ({s.places(*names)})",
            measured=str(product),
            expected=str(world),
        )
    elif world % product:
        yield _indivisible(s, world, product, "replicate", "tp", "pp", "cp")
    else:
        parts = prod(s.number(n) or 1 for n in ("tp", "pp", "cp"))
        if s.number("micro"):
            yield from _batch(s, world, world // parts)
        sparse = world // ((s.number("replicate") or 1) * (s.number("pp") or 1))
        if sparse % (s.number("ep") or 1):
            yield HostProblem(
                id="DR702",
                text=f"the experts' degree of {s.number('ep')} does not divide the {sparse} ranks of one copy "
                f"and stage ({s.places('ep', 'replicate', 'pp')}; {world} ranks are started)",
                measured=f"{sparse} / {s.number('ep')}",
                expected=f"a divisor of {sparse}",
            )


def _indivisible(s: Sizes, world: int, product: int, *names: str) -> HostProblem:
    return HostProblem(
        id="DR702",
        text=f"{world} ranks can't be split into parts of {product} ({s.places(*names)})",
        measured=f"{world} ranks, {product} for one copy of the model",
        expected=f"a multiple of {product}",
    )


def _cut(s: Sizes, one: str, other: str, words: str, times: int = 1) -> Iterator[HostProblem]:
    many, ways = s.number(one), (s.number(other) or 0) * times
    if many and ways and many % ways:
        yield HostProblem(
            id="DR703",
            text=f"{many} {words} can't be cut into {ways} parts ({s.places(one, other)})",
            measured=f"{many} / {ways}",
            expected=f"a multiple of {ways}",
        )


def _batch(s: Sizes, world: int, copies: int) -> Iterator[HostProblem]:
    total, micro, steps = (s.number(n) for n in ("total", "micro", "steps"))
    if not total:
        return
    said = s.places("total", "micro", "steps", "tp", "pp", "cp")
    part = (micro or 1) * (steps or 1) * copies
    if micro and steps and total != part:
        yield HostProblem(
            id="DR701",
            text=f"the whole batch is {total}; {micro} x {steps} steps x {copies} ranks with data of their own "
            f"are {part} ({said}; {world} ranks are started)",
            measured=str(part),
            expected=str(total),
        )
    elif total % part:
        yield HostProblem(
            id="DR701",
            text=f"the whole batch of {total} can't be split into parts of {part}, for {copies} ranks with data "
            f"of their own ({said}; {world} ranks are started)",
            measured=f"{total} / {part}",
            expected=f"a multiple of {part}",
        )

"""Parts of the data by rank in DistributedDataParallel programs that do not equalise the steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.names import DDP, FSDP
from dtdebug_taxonomy.checks.shared.ranks_seen import is_started_here
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size, rank
from dtdebug_taxonomy.source.text import Span

_EVENS = re.compile(
    r"\bJoin\b|\.join\(\s*(\[|throw|divide)|with\s+[\w.]+\.join\(|join\(\)|drop_last\s*=\s*True|MIN\b|steps_per_epoch|max_steps|islice|"
    r"min\(\s*(len\b|lengths|sizes|counts)|(%|//)\s*\(?\s*(int\()?[\w.]*?(world|size|num_replicas|n_?ranks|n_?procs|n_?gpus)"
)
"""Functions that even out the number of steps: a common end, or a length that the number of ranks divides."""
_PARTS = {"numpy.array_split", "torch.chunk", "torch.tensor_split"}
_TEST = re.compile(r"test|val|eval|dev|predict|infer|generat|prompt", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report each rank's part, such as `data[rank::world_size]`."""
    if (
        not (code.calls(DDP, FSDP) or horovod.calls(code, "DistributedOptimizer"))
        or not code.methods("backward")
        or not is_started_here(code)
    ):
        return
    cuts = [share for share in _shares(code) if not _is_for_tests(code, share.node)]
    if not cuts or _EVENS.search(_without(code, cuts)):
        return
    for share in cuts:
        together = [c.fix for c in cuts if code.function(c.node) is code.function(share.node)]
        edits = tuple(e for one in together for e in one)
        yield Hit(
            code.span(share.node),
            "The parts of the ranks can differ in length by one: then one rank takes a step more than the others and "
            "waits in its backward pass for ever.",
            Fix("Give every rank the same number of samples", edits, safe=False) if all(together) else None,
        )


class _Share(NamedTuple):
    """Expression for a rank's own part of the data."""

    node: ast.expr
    counts: Span
    """Expression that counts by the rank and the number of ranks."""
    fix: tuple[Edit, ...]
    """Edits after which all parts have the same length; empty if there are none."""


def _shares(code: Code) -> Iterator[_Share]:
    """Yield `data[rank::world]`, `range(rank, n, world)`, `array_split(data, world)[rank]`, `if i % world == rank`."""
    for cut in code.nodes(ast.Slice):
        whole = code.parent[cut]
        if cut.lower is None or cut.step is None or cut.upper is not None or not isinstance(whole, ast.Subscript):
            continue
        if _is_share(code, cut.lower, cut.step):
            yield _Share(whole, code.span(cut), _trim_edit(code, whole.value, cut.step))
    for call in code.calls("range"):
        if len(call.args) == 3 and _is_share(code, call.args[0], call.args[2]):
            end, size = call.args[1], code.source_of(call.args[2])
            known = "\n" not in code.source_of(end) and _is_simple(end)
            at = code.span(end).end
            yield _Share(
                call, Span(at, code.span(call).end), (Edit(Span(at, at), f" // {size} * {size}"),) if known else ()
            )
    for call in code.calls(*_PARTS):
        taken = code.parent[call]
        if isinstance(taken, ast.Subscript) and len(call.args) > 1 and _is_share(code, taken.slice, call.args[1]):
            yield _Share(taken, code.span(call.args[1]), _trim_edit(code, call.args[0], call.args[1]))
    for test in code.nodes(ast.Compare):
        left = test.left
        if not (isinstance(code.parent[test], ast.comprehension) and isinstance(left, ast.BinOp)):
            continue
        if (
            isinstance(left.op, ast.Mod)
            and isinstance(test.ops[0], ast.Eq)
            and _is_share(code, test.comparators[0], left.right)
        ):
            yield _Share(test, code.span(test), ())


def _is_share(code: Code, first: ast.expr, step: ast.expr) -> bool:
    return rank(code, first) == "global" and is_size(code, step)


def _is_simple(node: ast.expr) -> bool:
    """True for a name, or the length of one: evaluated twice, it is the same."""
    return bool(dotted_name(node)) or (
        isinstance(node, ast.Call)
        and dotted_name(node.func) == "len"
        and len(node.args) == 1
        and bool(dotted_name(node.args[0]))
    )


def _trim_edit(code: Code, data: ast.expr, size: ast.expr) -> tuple[Edit, ...]:
    """Return the edit that cuts data to a multiple of the number of ranks."""
    name, number = dotted_name(data), code.source_of(size)
    at = code.span(data).end
    return (Edit(Span(at, at), f"[: len({name}) // {number} * {number}]"),) if name and "\n" not in number else ()


def _without(code: Code, cuts: list[_Share]) -> str:
    """Return the text without the shares themselves, which may count by the number of ranks."""
    text = str(code.text)
    for share in cuts:
        start, end = share.counts
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _is_for_tests(code: Code, whole: ast.expr) -> bool:
    statement, home = code.statement(whole), code.function(whole)
    names = [dotted_name(t) for t in getattr(statement, "targets", [])] + [home.name if home else ""]
    names.append(dotted_name(whole.value) if isinstance(whole, ast.Subscript) else "")
    return any(_TEST.search(n) for n in names)

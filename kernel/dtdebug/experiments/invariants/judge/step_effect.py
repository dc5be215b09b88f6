"""Finds steps with too little effect: the loss is divided by the number of ranks, or no weight changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from dtdebug.experiments.invariants.judge.common import violation, who
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug.experiments.invariants.record_types import Backward, Hook, Model, Step
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.model.training import Violation

_TIMES, _LOOKS = 2, 8
_RATE = re.compile(r"(^|[^a-z])(lr|learning_?rate)([^a-z]|$)", re.IGNORECASE)
_OPTIMIZER = re.compile(r"(SGD|Ada\w*|RMSprop|Lion|LAMB|Optimizer)$", re.IGNORECASE)
_RANKS = re.compile(r"world|num_?gpus|n_?gpus|nprocs|num_?processes|num_?replicas|dp_size", re.IGNORECASE)
"""Names that programs use for the number of ranks."""


def divided_losses(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report losses divided by the number of ranks although a wrapper averages their gradients.

    The divisor may be a coincidence, such as a weight of 1/2 on two ranks: the source must divide by it, too.
    """
    found: dict[int, tuple[Backward, Rank, int, int]] = {}
    for rank in ranks:
        if rank.of(Hook):
            continue
        sizes = {m.m: len(m.group) for m in rank.of(Model)}
        passes = {s.s: s.backwards for s in rank.of(Step) if all(p.hook != "own divisor" for p in s.sets)}
        rows = [
            b for b in rank.of(Backward)
            if sizes.get(b.m, 0) > 1 and b.s in passes and _by_ranks(b.divided, sizes[b.m], passes[b.s])
        ]  # fmt: skip
        if len({b.s for b in rows}) < _TIMES:
            continue
        line = _division(*rank.place(rows[0].site))
        if line:
            found[rank.rank] = (rows[0], rank, line, sizes[rows[0].m])
    if found:
        row, rank, line, world = found[min(found)]
        yield violation(
            "loss-divided", "D.2.4", found, row.s, (rank.place(row.site)[0], line),
            f"{who(found)} divided the loss by {world}, the number of ranks, and the wrapper averages the gradients "
            f"over the ranks: steps are {world} times too small.",
            fix="Leave out the division.",
        )  # fmt: skip


def _by_ranks(numbers: Sequence[float], world: int, passes: int) -> bool:
    """True if the number of ranks is among the divisors, in addition to the number of backward passes."""
    return numbers.count(world) > (passes == world) and (passes == 1 or passes in numbers)


def _division(file: str, line: int) -> int:
    """Return the line that divides the loss of that backward pass by the number of ranks, or 0."""
    tree = _program(file)
    called = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    names = {n.id for call in called for n in ast.walk(call) if isinstance(n, ast.Name)}
    worlds = {
        target.id for n in ast.walk(tree) if isinstance(n, ast.Assign) and _is_world(n.value, set())
        for target in n.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div) and _is_world(node.value, worlds):
            if isinstance(node.target, ast.Name) and node.target.id in names:
                return node.lineno
        elif isinstance(node, ast.Assign) and names & {t.id for t in node.targets if isinstance(t, ast.Name)}:
            if at := _divides(node.value, worlds) or _division_in_return(tree, node.value, worlds):
                return at
        elif isinstance(node, ast.Call) and node in called and (at := _divides(node, worlds)):
            return at
    return 0


def _program(file: str) -> ast.Module:
    """Return the parsed program, or an empty module if it can't be read."""
    try:
        return ast.parse(named_files.read_source(file) or b"")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def _divides(node: ast.AST, worlds: set[str]) -> int:
    """Return the line of a division by the number of ranks, or 0."""
    for n in ast.walk(node):
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) and _is_world(n.right, worlds):
            return n.lineno
    return 0


def _division_in_return(tree: ast.Module, value: ast.expr, worlds: set[str]) -> int:
    """Return the line of such a division in the returned value of a called function, or 0."""
    name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
    inner = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    returns = [n.value for f in inner for n in ast.walk(f) if isinstance(n, ast.Return) and n.value is not None]
    return next((at for one in returns if (at := _divides(one, worlds))), 0)


def _is_world(node: ast.AST, worlds: set[str]) -> bool:
    return (isinstance(node, ast.Name) and node.id in worlds) or _RANKS.search(ast.unparse(node)) is not None


_NO_RATE = "with a learning rate of 0: its part of the weights stays as it was."


def _rests(file: str) -> bool:
    """True if the program itself sets a learning rate of 0, so unchanged weights are intended."""
    for node in ast.walk(_program(file)):
        if isinstance(node, ast.keyword):
            named, value = node.arg or "", node.value
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            named, value = ast.unparse(node.targets[0]), node.value
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            if any(key is not None and _RATE.search(ast.unparse(key)) and _is_zero(v) for key, v in pairs):
                return True
            continue
        elif isinstance(node, ast.Call) and len(node.args) == 2 and _OPTIMIZER.search(ast.unparse(node.func)):
            named, value = "lr", node.args[1]
        else:
            continue
        if _RATE.search(named) and _is_zero(value):
            return True
    return False


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and not node.value


def unchanged_weights(ranks: Sequence[Rank]) -> Iterator[Violation]:
    """Report steps with gradients that do not change the weights, unless the program intends it."""
    hits: dict[str, dict[int, tuple[Step, Rank]]] = {}
    for rank in ranks:
        by_optimizer: dict[int, list[Step]] = {}
        for step in rank.of(Step):
            by_optimizer.setdefault(step.o, []).append(step)
        reasons = [{_idle(step) for step in steps} for steps in by_optimizer.values()]
        for steps, found in zip(by_optimizer.values(), reasons, strict=True):
            if len(steps) < _LOOKS or len(found) > 1 or not (one := next(iter(found))):
                continue
            if one == _NO_RATE and (
                any(other != {_NO_RATE} for other in reasons) or _rests(rank.place(steps[0].site)[0])
            ):
                continue
            hits.setdefault(one, {}).setdefault(rank.rank, (steps[0], rank))
    for why, seen in hits.items():
        step, rank = seen[min(seen)]
        yield violation(
            "weights-unchanged", "D.2.5", seen, step.s, rank.place(step.site),
            f"{who(seen)} made each step that was looked at {why}",
        )  # fmt: skip


def _idle(step: Step) -> str:
    """Return why a step changed nothing; "" if it changed something or nothing was expected."""
    if not step.grads or any(not p.finite for p in step.sets):
        return ""
    rates = [rate for group in step.hyper for rate in group.get("lr", ())]
    if rates and not any(rates):
        return _NO_RATE
    if not step.sets or any(not p.p1 or p.p0 != p.p1 for p in step.sets):
        return ""
    if not any(value for p in step.sets for value in p.gs):
        return "with gradients of 0, as where zero_grad() stands between backward() and step(): no weight changes."
    return "without a change of any weight, though there are gradients: each step is lost in rounding."


LOOKS: tuple[Callable[[Sequence[Rank]], Iterator[Violation]], ...] = (divided_losses, unchanged_weights)

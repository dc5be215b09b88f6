"""Learning rate schedules that Accelerate steps once per process, without accounting for that."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_MAKER = re.compile(r"get_(scheduler|\w+_schedule\w*|\w*lr_scheduler)")
_SCHEDULERS = "torch.optim.lr_scheduler."
_LENGTHS = {
    "LinearLR": "total_iters",
    "PolynomialLR": "total_iters",
    "CosineAnnealingLR": "T_max",
    "OneCycleLR": "total_steps",
}
_JOINED = (f"{_SCHEDULERS}SequentialLR", f"{_SCHEDULERS}ChainedScheduler")
_SIZE = re.compile(r"(num_processes|world_?size)$", re.IGNORECASE)
_DIVISIONS = (ast.Div, ast.FloorDiv)
_COUNTS = re.compile(r"num_processes|world_size|split_batches|step_scheduler_with_optimizer|epoch", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the number of steps."""
    accelerators = code.calls("accelerate.Accelerator")
    if not accelerators or code.role == "test" or any(_COUNTS.search(code.source_of(a)) for a in accelerators):
        return
    prepared = {dotted_name(a) for c in code.methods("prepare", "prepare_scheduler") for a in c.args} - {""}
    prepared |= {
        dotted_name(part)
        for call in code.calls(*_JOINED)
        for assign in (code.parent[call],)
        if isinstance(assign, ast.Assign) and {dotted_name(t) for t in assign.targets} & prepared
        for parts in (code.argument(call, "schedulers", 1), code.argument(call, "schedulers", 0))
        if isinstance(parts, ast.List | ast.Tuple)
        for part in parts.elts
    } - {""}
    for call in code.nodes(ast.Call):
        steps = _steps(code, call)
        if steps is None:
            continue
        assign = code.parent.get(call)
        names = {dotted_name(t) for t in assign.targets} if isinstance(assign, ast.Assign) else set()
        if names & prepared and (_is_divided(code, steps, 3) or _for_one(code, steps) or not _counts(code, steps, 3)):
            yield Hit(
                code.span(steps),
                "A prepared scheduler is stepped once for each process: with N processes it is through after 1/N of "
                "these steps. Multiply by accelerator.num_processes.",
            )


def _steps(code: Code, call: ast.Call) -> ast.expr | None:
    """Return the number of steps that a schedule is made for; None if the call makes no schedule."""
    name = code.name(call.func)
    if name.startswith(_SCHEDULERS):
        keyword = _LENGTHS.get(name.removeprefix(_SCHEDULERS))
        return code.argument(call, keyword) if keyword else None
    last = name.rpartition(".")[2]
    position = 3 if last == "get_scheduler" else 2 if last.endswith("_schedule_with_warmup") else None
    return code.argument(call, "num_training_steps", position) if _MAKER.fullmatch(last) else None


def _is_divided(code: Code, node: ast.expr, left: int) -> bool:
    """True if a number of steps is counted on a prepared loader, so that it is one process's number."""
    if "num_processes" in code.source_of(node):
        return False
    for call in code.inside(node, ast.Call):
        if code.name(call.func) == "len" and call.args and isinstance(call.args[0], ast.Name):
            bound = code.bound(call.args[0])
            if bound and all(_is_prepared(b.node) for b in bound):
                return True
    names = list(code.inside(node, ast.Name)) if left else []
    return any(_is_divided(code, v, left - 1) for n in names for v in code.values(n) if v is not None and v is not node)


def _is_prepared(node: ast.AST) -> bool:
    made = node.value if isinstance(node, ast.Assign) else None
    return isinstance(made, ast.Call) and getattr(made.func, "attr", "") in {"prepare", "prepare_data_loader"}


def _for_one(code: Code, steps: ast.expr) -> bool:
    """True if the number of processes only divides a number of steps, which is then one process's number."""
    todo, divides, seen = [(steps, 3)], False, set[ast.AST]()
    while todo:
        node, left = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        below = {n for d in code.inside(node, ast.BinOp) if isinstance(d.op, _DIVISIONS) for n in ast.walk(d.right)}
        for inner in code.inside(node, ast.Name, ast.Attribute):
            if inner in below:
                divides |= bool(_SIZE.search(dotted_name(inner)))
            elif _SIZE.search(dotted_name(inner)):
                return False
            elif left:
                todo += [(v, left - 1) for v in code.values(inner) if v is not None and v is not inner]
    return divides


def _counts(code: Code, node: ast.expr, left: int) -> bool:
    """True if the number of processes may occur in an expression, or in the values that it is made from."""
    if _COUNTS.search(code.source_of(node)):
        return True
    inner = [n for n in code.inside(node, ast.Name, ast.Attribute) if n is not node or dotted_name(node)]
    values = [v for n in inner for v in code.values(n) if v is not None and v is not node] if left else []
    return any(_counts(code, v, left - 1) for v in values)

"""Changes to ZeRO-3 parameters that are discarded when the context ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_IN_PLACE = re.compile(r"[a-z]\w*[a-z0-9]_$")
_LOADS = frozenset({"load_state_dict", "_load_from_state_dict"})
_NOT_VALUES = frozenset({"requires_grad_", "share_memory_", "zero_grad_", "detach_", "retain_grad_", "pin_memory_"})
_PLAIN = frozenset({"list", "tuple", "filter", "set", "sorted", "iter", "dict", "self", "lambda"})


def check(code: Code) -> Iterator[Hit]:
    """Report the context if its body writes to gathered parameters, and initialisation outside of one."""
    yield from _late_initialisations(code)
    for block in (*code.nodes(ast.With), *code.nodes(ast.AsyncWith)):
        for item in block.items:
            call = item.context_expr
            if not isinstance(call, ast.Call) or code.name(call.func).rsplit(".", 1)[-1] != "GatheredParameters":
                continue
            rank = code.argument(call, "modifier_rank", 1)
            none = isinstance(rank, ast.Constant) and rank.value is None
            if (rank is not None and not none) or code.has_unpacking(call) or not call.args:
                continue
            written = _first_write(code, block, _gathered_names(code, call.args[0]))
            if written:
                yield Hit(
                    code.span(call),
                    f"{written} is changed in here, but without modifier_rank the context throws changes away when it "
                    "ends: the partitions keep their old values.",
                    _fix(code, call, rank),
                )


def _late_initialisations(code: Code) -> Iterator[Hit]:
    """Report the initialisation of a model after the `zero.Init()` in which it is made."""
    inits = [b for b in code.nodes(ast.With) if any(_is(code, i.context_expr, "zero.Init") for i in b.items)]
    if not inits:
        return
    made = {
        (code.scope(b), dotted_name(t)): code.order[b]
        for b in inits
        for s in b.body
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)
        for t in s.targets
        if dotted_name(t)
    }
    for call in code.nodes(ast.Call):
        target = _initialised_parameter(code, call)
        if target is None:
            continue
        roots = {made[k] for r in _roots(code, target) if (k := (code.scope(call), r)) in made}
        around = [a for a in code.ancestors(call) if isinstance(a, ast.With | ast.AsyncWith)]
        gathered = any(_is(code, i.context_expr, "GatheredParameters", "zero.Init") for a in around for i in a.items)
        if roots and max(roots) < code.order[call] and not gathered:
            yield Hit(
                code.span(call),
                "zero.Init() has partitioned the parameters: outside of GatheredParameters this one is empty, and "
                "its initialisation changes nothing.",
            )


def _initialised_parameter(code: Code, call: ast.Call) -> ast.expr | None:
    """Return the parameter that a call sets: `nn.init.zeros_(p)`, `layer.weight.data.normal_()`."""
    func = call.func
    if code.name(func).startswith("torch.nn.init."):
        return call.args[0] if call.args else None
    if isinstance(func, ast.Attribute) and _IN_PLACE.match(func.attr) and func.attr not in _NOT_VALUES:
        return func.value if re.search(r"\.(data|weight|bias)$", dotted_name(func.value)) else None
    return None


def _is(code: Code, node: ast.expr, *names: str) -> bool:
    written = code.name(node.func) if isinstance(node, ast.Call) else ""
    return "deepspeed" in written and written.endswith(names)


def _fix(code: Code, call: ast.Call, rank: ast.expr | None) -> Fix:
    title = "Take the values of rank 0"
    if rank is not None:
        return Fix(title, (Edit(code.span(rank), "0"),))
    end = code.span(call.args[-1] if not call.keywords else call.keywords[-1]).end
    return Fix(title, (Edit(Span(end, end), ", modifier_rank=0"),))


def _gathered_names(code: Code, node: ast.expr) -> set[str]:
    """Return the names in the gathered expression and in their values; `self.x` counts as a whole."""
    found: set[str] = set()
    todo: list[tuple[ast.expr, int]] = [(node, 2)]
    while todo:
        value, depth = todo.pop()
        for inner in code.inside(value, ast.Name, ast.Attribute):
            name = dotted_name(inner)
            if not name or name in _PLAIN:
                continue
            found.add(name)
            if depth and isinstance(inner, ast.Name):
                todo += [(v, depth - 1) for v in code.values(inner) if v is not None and v is not inner]
    return {n.partition(".data")[0] for n in found}


def _first_write(code: Code, block: ast.With | ast.AsyncWith, gathered: set[str]) -> str:
    """Return the first gathered expression that the body writes to; "" if there is none."""
    loops = {
        dotted_name(target)
        for body in block.body
        for loop in code.inside(body, ast.For)
        for target, over in _pairs(code, loop.target, loop.iter)
        if _roots(code, over) & gathered
    }
    mine = gathered | (loops - {""})
    for body in block.body:
        for call in code.inside(body, ast.Call):
            func = call.func
            if code.name(func).startswith("torch.nn.init.") and call.args:
                target: ast.expr | None = call.args[0]
            elif isinstance(func, ast.Attribute) and (_IN_PLACE.match(func.attr) or func.attr in _LOADS):
                target = None if func.attr in _NOT_VALUES else func.value
            else:
                continue
            if target is not None and _roots(code, target) & mine:
                return code.source_of(target)
        for assign in code.inside(body, ast.Assign, ast.AugAssign):
            for place in assign.targets if isinstance(assign, ast.Assign) else [assign.target]:
                stored = place.value if isinstance(place, ast.Subscript) else place
                is_data = isinstance(stored, ast.Attribute) and stored.attr == "data"
                if (is_data or isinstance(place, ast.Subscript)) and _roots(code, stored) & mine:
                    return code.source_of(place)
    return ""


def _pairs(code: Code, target: ast.expr, over: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return pairs of a loop variable and the iterable that it takes values from: `for p, q in zip(a, b)`."""
    if not isinstance(target, ast.Tuple):
        return [(target, over)]
    name = code.name(over.func) if isinstance(over, ast.Call) else ""
    if isinstance(over, ast.Call) and name == "zip" and len(over.args) == len(target.elts):
        return list(zip(target.elts, over.args, strict=True))
    if isinstance(over, ast.Call) and name == "enumerate" and over.args:
        return _pairs(code, target.elts[-1], over.args[0])
    return [(element, over) for element in target.elts]


def _roots(code: Code, node: ast.expr) -> set[str]:
    """Return `model.head.weight.data` and all its prefixes, skipping calls and indices."""
    found: set[str] = set()
    while True:
        name = dotted_name(node)
        if name:
            parts = name.split(".")
            return found | {".".join(parts[:i]) for i in range(1, len(parts) + 1)} - {"self"}
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.args[0] if node.args and isinstance(node.func, ast.Name) else node.func
        else:
            return found

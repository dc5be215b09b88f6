"""Fixed device numbers in programs with one process per device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import environment_number
from dtdebug_taxonomy.checks.shared.names import DDP, INIT
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name

_ELSEWHERE = re.compile(
    r"distribut|ddp|world_?size|rank|parallel|n_?gpus?\b|num_?gpus|multi|device_count|single|debug|launcher|gpu\b",
    re.IGNORECASE,
)


def check(code: Code) -> Iterator[Hit]:
    """Report the device."""
    starts = code.calls(INIT, DDP, "deepspeed.init_distributed")
    if not starts:
        return
    for device in _devices(code):
        if _otherwise(code, device) or _is_for_some(code, device, 3):
            continue
        yield Hit(
            code.span(device),
            "This device is fixed in a program with several processes: all ranks of a machine share it, the other "
            "devices are idle. Take the local rank.",
            _fix(code, device),
        )


def _is_for_some(code: Code, node: ast.AST, left: int) -> bool:
    """True if a condition on the rank surrounds a place, or all calls of its function."""
    if guards(code).around(node):
        return True
    function = code.function(node)
    callers = code.callers.get(function, ()) if function is not None and left else ()
    return bool(callers) and all(_is_for_some(code, c, left - 1) for c in callers)


def _devices(code: Code) -> Iterator[ast.expr]:
    for call in code.calls("torch.cuda.set_device"):
        if (device := code.argument(call, "device", 0)) is not None and (_is_fixed_device(device) or _number(device)):
            yield device
    for call in code.calls("torch.device"):
        device = code.argument(call, "type", 0)
        for part in (device.body, device.orelse) if isinstance(device, ast.IfExp) else (device,):
            if part is not None and _is_fixed_device(part):
                yield part
        index = code.argument(call, "index", 1)
        if index is not None and _number(index) and code.constant(device) == "cuda":
            yield index
    for assign in code.nodes(ast.Assign):
        if _is_fixed_device(assign.value) and any("device" in dotted_name(t).lower() for t in assign.targets):
            yield assign.value
    for call in code.methods("to", "cuda"):
        device = code.argument(call, "device", 0)
        if device is not None and (_is_fixed_device(device) or (_last(call) == "cuda" and _number(device))):
            yield device
    for keyword in code.nodes(ast.keyword):
        if keyword.arg == "device" and _is_fixed_device(keyword.value):
            yield keyword.value


def _is_device(code: Code, node: ast.expr) -> bool:
    """True if an expression is a device, rather than something that is put on one."""
    return isinstance(node, ast.Constant | ast.IfExp) or (
        isinstance(node, ast.Call) and code.name(node.func) == "torch.device"
    )


def _last(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_fixed_device(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(re.match(r"cuda:\d+$", node.value))


def _number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _otherwise(code: Code, device: ast.expr) -> bool:
    """True if this is the path without several processes, a first value that is replaced, or a default."""
    inner: ast.AST = device
    for up in code.ancestors(device):
        if isinstance(up, ast.If | ast.IfExp) and inner is not up.test and _ELSEWHERE.search(code.source_of(up.test)):
            return True
        if isinstance(up, ast.arguments | ast.Lambda | ast.ExceptHandler):
            return True
        if isinstance(up, ast.keyword) and up.arg in {"map_location", "default"}:
            return True
        if isinstance(up, ast.Assign) and _is_device(code, up.value):
            names = {dotted_name(t) for t in up.targets}
            scope = code.scope(up)
            bound = [
                b for (where, name), rows in code.bindings.items() if name in names for b in rows if where is scope
            ]
            if len(bound) > 1:
                return True
        inner = up
    return False


def _fix(code: Code, device: ast.expr) -> Fix:
    """Return a fix that uses the local rank set by torchrun."""
    rank, imports = environment_number(code, "LOCAL_RANK")
    text = rank if _number(device) else "f\"cuda:{os.environ['LOCAL_RANK']}\""
    return Fix("Take the device of LOCAL_RANK", (*imports, Edit(code.span(device), text)), safe=False)

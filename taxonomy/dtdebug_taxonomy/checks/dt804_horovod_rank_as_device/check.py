"""Devices that are chosen by `hvd.rank()` rather than by `hvd.local_rank()`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_CHOOSE = {
    *("torch.cuda.set_device", "torch.cuda.device", "torch.device", "torch.accelerator.set_device_index"),
    *("mxnet.gpu", "mx.gpu", "cupy.cuda.Device", "tensorflow.device"),
}
_METHODS = {"cuda", "to"}
_VISIBLE = re.compile(r"visible_device_list$")
_DEVICES = re.compile(r"gpu|device", re.IGNORECASE)
_PASS = {"str", "int", "format", "repr"}


def check(code: Code) -> Iterator[Hit]:
    """Report the rank that chooses a device."""
    for call in horovod.calls(code, "rank"):
        if _chooses(code, call):
            yield _hit(code, call, _local(code, call))
        else:
            yield from _by_name(code, call)


def _hit(code: Code, node: ast.expr, fix: Fix | None) -> Hit:
    return Hit(
        code.span(node),
        "hvd.rank() counts over all machines: from the second machine on there is no GPU of that number. "
        "hvd.local_rank() counts on the own machine.",
        fix,
    )


def _local(code: Code, call: ast.Call) -> Fix | None:
    if not isinstance(call.func, ast.Attribute):
        return None
    end = code.span(call.func).end
    return Fix("Use local_rank()", (Edit(Span(end - len("rank"), end), "local_rank"),))


def _by_name(code: Code, call: ast.Call) -> Iterator[Hit]:
    """Report uses of a name to which the rank was assigned first."""
    up = code.parent[call]
    if not isinstance(up, ast.Assign) or len(up.targets) != 1 or not (name := dotted_name(up.targets[0])):
        return
    uses: list[ast.Name | ast.Attribute] = [*code.nodes(ast.Name), *code.nodes(ast.Attribute)]
    for use in uses:
        if dotted_name(use) != name or not isinstance(use.ctx, ast.Load) or isinstance(code.parent[use], ast.Attribute):
            continue
        if not _chooses(code, use) or [v for v in code.values(use) if v is not use] != [call]:
            continue
        prefix = horovod.prefix(code, call)
        fix = Fix("Use local_rank()", (Edit(code.span(use), f"{prefix}local_rank()"),)) if prefix else None
        yield _hit(code, use, fix)


def _chooses(code: Code, node: ast.AST) -> bool:
    """True if a value chooses a device unchanged, without a modulo."""
    for up in code.ancestors(node):
        found = _decides(code, up, node)
        if found is not None:
            return found
        node = up
    return False


def _decides(code: Code, up: ast.AST, node: ast.AST) -> bool | None:
    """Return whether the enclosing node makes a value a device; None if only the next enclosing node decides."""
    if isinstance(up, ast.Call):
        return _is_device_call(code, up, node)
    if isinstance(up, ast.Subscript):
        return node is up.slice and bool(_DEVICES.search(dotted_name(up.value)))
    if isinstance(up, ast.Assign):
        return any(_is_variable(code, t) for t in up.targets)
    if isinstance(up, ast.keyword):
        return True if _VISIBLE.search(up.arg or "") else None
    if isinstance(up, ast.BinOp):
        return None if _joins_text(up, node) else False
    if isinstance(up, ast.IfExp):
        return False if node is up.test or "local_rank" in code.source_of(up) else None
    return None if isinstance(up, ast.FormattedValue | ast.JoinedStr | ast.List | ast.Tuple) else False


def _is_device_call(code: Code, call: ast.Call, node: ast.AST) -> bool | None:
    if call.func is node:
        return False
    last = call.func.attr if isinstance(call.func, ast.Attribute) else dotted_name(call.func)
    name = code.name(call.func)
    if name in _CHOOSE or last == "set_visible_devices":
        return True
    if name == "os.environ.setdefault" and _is_visible(code, call.args[0]):
        return True
    if last in _METHODS and isinstance(call.func, ast.Attribute):
        return call.args[:1] == [node] or isinstance(node, ast.keyword)
    return None if last in _PASS else False


def _joins_text(up: ast.BinOp, node: ast.AST) -> bool:
    """True for `"cuda:" + str(rank)` and `"cuda:%d" % rank`."""
    left = up.left
    if isinstance(up.op, ast.Mod):
        return node is not left and isinstance(left, ast.Constant) and isinstance(left.value, str)
    return isinstance(up.op, ast.Add) and isinstance(left, ast.Constant) and isinstance(left.value, str)


def _is_variable(code: Code, target: ast.expr) -> bool:
    """True for `config.gpu_options.visible_device_list` and `os.environ["CUDA_VISIBLE_DEVICES"]`."""
    if isinstance(target, ast.Subscript) and code.name(target.value) == "os.environ":
        return _is_visible(code, target.slice)
    return bool(_VISIBLE.search(dotted_name(target)))


def _is_visible(code: Code, key: ast.expr) -> bool:
    return str(code.constant(key)).endswith("VISIBLE_DEVICES")

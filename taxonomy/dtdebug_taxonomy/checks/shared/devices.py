"""Finds expressions that number a device: `set_device(n)`, `f"cuda:{n}"`, `device_ids=[n]`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_SET = ("torch.cuda.set_device", "torch.cuda.device", *(f"torch.{k}.set_device" for k in ("xpu", "npu", "mlu", "musa")))


def device_numbers(code: Code) -> Iterator[ast.expr]:
    """Yield the expressions that number a device."""
    for call in code.calls(*_SET):
        yield from _index(code, code.argument(call, "device", 0))
    for call in code.calls("torch.device"):
        index = code.argument(call, "index", 1)
        if index is not None and code.constant(code.argument(call, "type", 0)) == "cuda":
            yield index
    texts: list[ast.expr] = [*code.nodes(ast.JoinedStr), *code.nodes(ast.BinOp), *code.methods("format")]
    for text in texts:
        if not _is_printed(code, text):
            yield from _in_text(text)
    for call in code.methods("cuda", "to"):
        yield from _index(code, code.argument(call, "device", 0))
    for table in code.nodes(ast.Dict):
        if len(table.keys) == 1 and code.constant(table.keys[0]) == "" and isinstance(table.keys[0], ast.Constant):
            yield from _index(code, table.values[0])  # device_map={"": rank}
    for keyword in code.nodes(ast.keyword):
        if keyword.arg == "device_ids" and isinstance(keyword.value, ast.List) and len(keyword.value.elts) == 1:
            yield keyword.value.elts[0]
        elif keyword.arg == "output_device":
            yield keyword.value


def _is_printed(code: Code, text: ast.expr) -> bool:
    """True if a text is only printed or logged."""
    up = code.parent[text]
    return isinstance(up, ast.Call) and bool(
        re.search(r"(^|\.)(print|info|debug|warn\w*|log|error)$", dotted_name(up.func))
    )


def _index(code: Code, device: ast.expr | None) -> Iterator[ast.expr]:
    if device is None:
        return
    if not any(True for _ in _in_text(device)) and (
        isinstance(device, ast.Call | ast.Subscript) or dotted_name(device)
    ):
        yield device


def _in_text(device: ast.expr | None) -> Iterator[ast.expr]:
    """Yield the number in `f"cuda:{rank}"`, `"cuda:%d" % rank` or `"cuda:" + str(rank)`."""
    if isinstance(device, ast.JoinedStr) and len(device.values) == 2:
        text, value = device.values
        if isinstance(text, ast.Constant) and text.value == "cuda:" and isinstance(value, ast.FormattedValue):
            yield value.value
    elif isinstance(device, ast.BinOp) and isinstance(device.left, ast.Constant):
        if str(device.left.value).startswith("cuda:"):
            right = device.right
            yield right.elts[0] if isinstance(right, ast.Tuple) and len(right.elts) == 1 else right
    elif isinstance(device, ast.Call) and isinstance(device.func, ast.Attribute) and device.func.attr == "format":
        text = device.func.value
        if isinstance(text, ast.Constant) and str(text.value).startswith("cuda:{") and len(device.args) == 1:
            yield device.args[0]

"""Hard-coded ports for the rendezvous of the ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.environment import Setting, settings
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.source.python.code import Code

_TCP = re.compile(r"^tcp://[\w.\[\]:-]+:(?!0+$)\d+$")
"""Address with a fixed port; port 0 is any free one."""

_HIGHEST = 65535
_PLACE = re.compile(r"\{\}")


def check(code: Code) -> Iterator[Hit]:
    """Report the port."""
    for setting in settings(code):
        if setting.variable != "MASTER_PORT" or setting.only_if_unset or _is_tested_first(code, setting):
            continue
        if _is_fixed_port(code, setting.value):
            yield Hit(
                code.span(setting.value),
                "The port is fixed, whatever the launcher chose: a second job on this machine, or one that has not "
                "quite ended, makes the start fail with 'Address already in use'.",
                _fix(code, setting),
            )
    for call in code.calls(INIT):
        method = code.argument(call, "init_method", 1)
        if method is not None and _TCP.match(_address(code, method)):
            yield Hit(
                code.span(method),
                "The port is fixed: a second job on this machine, or one that has not quite ended, makes the start "
                "fail with 'Address already in use'.",
            )


def _is_fixed_port(code: Code, value: ast.expr) -> bool:
    """True if a port is hard-coded in the program."""
    if isinstance(value, ast.Call) and code.name(value.func) == "str" and value.args:
        return isinstance(port := code.constant(value.args[0]), str | int) and _is_port(str(port))
    return isinstance(port := code.constant(value), str) and _is_port(port)  # DT206 reports a number


def _is_port(text: str) -> bool:
    """True for the number of one port: 0 is any free one, and DT908 reports what is none."""
    return not text.isdecimal() or 0 < int(text[:9]) <= _HIGHEST


def _address(code: Code, method: ast.expr) -> str:
    """Return the address of a rendezvous, with computed parts replaced by HOST."""
    if isinstance(method, ast.JoinedStr):
        return "".join(_part(code, v.value if isinstance(v, ast.FormattedValue) else v) for v in method.values)
    if isinstance(method, ast.Call) and isinstance(method.func, ast.Attribute) and method.func.attr == "format":
        text, parts = str(code.constant(method.func.value)), [_part(code, a) for a in method.args]
        return _PLACE.sub(lambda _: parts.pop(0) if parts else "HOST", text)
    return str(code.constant(method))


def _part(code: Code, value: ast.expr) -> str:
    constant = code.constant(value)
    return "HOST" if constant is None else str(constant)


def _is_tested_first(code: Code, setting: Setting) -> bool:
    """True if the program first tests whether the variable is set."""
    return any("environ" in code.source_of(a.test) for a in code.ancestors(setting.node) if isinstance(a, ast.If))


def _fix(code: Code, setting: Setting) -> Fix | None:
    node = setting.node
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Subscript):
        return None
    target = node.targets[0]
    key, value = code.source_of(target.slice), code.source_of(setting.value)
    text = f"{code.source_of(target.value)}.setdefault({key}, {value})"
    return Fix("Let the launcher's port go first", (Edit(code.span(node), text),))

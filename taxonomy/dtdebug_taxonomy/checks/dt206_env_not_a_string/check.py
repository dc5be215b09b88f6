"""Environment variables that are set to a non-string."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.environment import settings
from dtdebug_taxonomy.checks.shared.values import not_text
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the value."""
    for setting in settings(code):
        kind = not_text(code, setting.value)
        if kind:
            what = setting.variable or "A variable of the environment"
            yield Hit(
                code.span(setting.value),
                f"{what} is set to {kind}, but the environment holds text only: this line raises TypeError.",
                _fix(code, setting.value),
            )


def _fix(code: Code, value: ast.expr) -> Fix | None:
    text = code.source_of(value)
    if isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bytes)):
        return None
    if isinstance(value, ast.List | ast.Tuple | ast.Set | ast.Dict):
        return None
    if isinstance(value, ast.Constant) and type(value.value) is int:
        return Fix("Write it as a text", (Edit(code.span(value), f'"{text}"'),))
    return Fix("Make it a text", (Edit(code.span(value), f"str({text})"),))

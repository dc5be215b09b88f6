"""Defaults of a rank's variable that are the number of another rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.environment import RANKS, reading
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the default."""
    if code.role == "test":
        return
    for call in (*code.methods("get", "setdefault", "pop", "getenv"), *code.calls("getenv")):
        read = reading(code, call)
        if read is None or read.variable not in RANKS or not isinstance(read.default, ast.Constant):
            continue
        value = str(read.default.value)
        if isinstance(read.default.value, int | str) and value.isdecimal() and int(value) > 0:
            written = code.source_of(read.default)
            yield Hit(
                code.span(read.default),
                f"Ranks are counted from 0: where no launcher sets {read.variable}, this process takes itself for rank "
                f"{value}, so that nobody is rank 0 and the first device is passed over.",
                Fix("Count from 0", (Edit(code.span(read.default), written.replace(value, "0")),)),
            )

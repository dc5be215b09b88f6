"""Says of a finding which value of a configuration it rests on, and where that stands."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.configuration import Held
from dtdebug_taxonomy.source.python import Code

_PLAIN = re.compile(r"[\w./:-]{1,40}")
"""A text that is shown as it is."""
_LONGEST = 60
"""Characters of an expression that is shown."""
_MOST = 2


def values_asked(code: Code) -> dict[ast.expr, Held]:
    """The expressions so far that a configuration tells."""
    known: dict[ast.expr, Held | None] = code.__dict__.get("_held", {})
    return {node: found for node, found in known.items() if found is not None}


def with_origin(code: Code, hit: Hit, before: int) -> Hit:
    """A hit whose message says where the values come from: those in its statement, else those asked since the last."""
    asked = values_asked(code)
    if not asked:
        return hit
    first = code.text.place(hit.span.start).line
    last = max((s.end_lineno or 0 for s in code.statements_at(first) if not hasattr(s, "body")), default=first)
    rows = [row for row in asked.items() if first <= row[0].lineno <= last] or [*asked.items()][before:]
    told = list(dict.fromkeys(_told(code, node, found) for node, found in rows))[:_MOST]
    default = any(found.option for _, found in rows)
    return hit._replace(message=" ".join((hit.message, *told)), severity="hint" if default else hit.severity)


def _told(code: Code, node: ast.expr, found: Held) -> str:
    shown = found.value if not isinstance(found.value, str) else f'"{found.value}"'
    value = f"is {shown}" if _PLAIN.fullmatch(str(found.value)) else "stands"
    source = code.source_of(node)
    source = source if len(source) <= _LONGEST and "\n" not in source else "A value here"
    place = f"in {found.file} line {found.line}" if found.file else f"in line {found.line}"
    condition = f", the file that {found.option} names unless it is given" if found.option else ""
    return f"{source} {value} {place}{condition}."

"""Adds to a hit which configuration values it depends on, and where they are set."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.config_values import ConfiguredValue, resolved_expressions

_PLAIN = re.compile(r"[\w./:-]{1,16}")
"""Text that may be shown unchanged, such as the name of a backend."""
_SECRET = re.compile(r"(?i)key|token|pass|secret|auth|cred")
_LONGEST = 60
"""Maximum number of characters of an expression to show."""
_MOST = 2


def with_origin(code: Code, hit: Hit, before: int) -> Hit:
    """Return a hit whose message locates its values: those in its statement, else those read since the last hit."""
    asked = resolved_expressions(code)
    if not asked:
        return hit
    lines: dict[int, list[tuple[ast.expr, ConfiguredValue]]] = code.__dict__.setdefault("_told_lines", {})
    for row in asked[code.__dict__.get("_told_placed", 0) :]:
        lines.setdefault(row[0].lineno, []).append(row)
    code.__dict__["_told_placed"] = len(asked)
    first = code.text.place(hit.span.start).line
    last = max((s.end_lineno or 0 for s in code.statements_at(first) if not hasattr(s, "body")), default=first)
    rows = [row for line in range(first, last + 1) for row in lines.get(line, ())] or asked[before:]
    said = list(dict.fromkeys(_origin_sentence(code, node, found) for node, found in rows))[:_MOST]
    default = any(found.option for _, found in rows)
    return hit._replace(message=" ".join((hit.message, *said)), severity="hint" if default else hit.severity)


def _origin_sentence(code: Code, node: ast.expr, found: ConfiguredValue) -> str:
    shown = found.value if not isinstance(found.value, str) else f'"{found.value}"'
    source = code.source_of(node)
    plain = _PLAIN.fullmatch(str(found.value)) and not _SECRET.search(source)
    value = f"is {shown}" if plain else "stands"
    source = source if len(source) <= _LONGEST and "\n" not in source else "A value here"
    place = f"in {found.file} line {found.line}" if found.file else f"in line {found.line}"
    condition = f", the file that {found.option} names unless it is given" if found.option else ""
    return f"{source} {value} {place}{condition}."

"""Both sides of an assertion whose values are printed above it. Unit: that of the program's own comparison.

Rule: `assert` raises if its condition is false (Python, "The assert statement",
https://docs.python.org/3/reference/simple_stmts.html#the-assert-statement).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from operator import eq, ge, gt, le, lt, ne

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, printed_reason
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain

_ABOVE = 200
"""Lines searched for the values, the last first."""
_CODE = 300
_TESTS: dict[type[ast.cmpop], tuple[Callable[[float, float], bool], str]] = {
    ast.Eq: (eq, "equal to"),
    ast.NotEq: (ne, "other than"),
    ast.Lt: (lt, "below"),
    ast.LtE: (le, "at most"),
    ast.Gt: (gt, "above"),
    ast.GtE: (ge, "at least"),
}
_VISIBLE = "device_count()"


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the values of a comparison that failed, if the output prints them."""
    output = clip_lines(context.incident.snapshot.output).split("\n")
    for error in context.incident.errors:
        code = error.code or (error.frames[-1].code if error.frames else "")
        found = _comparison(code)
        if found is None or error.message.strip():
            continue
        left, test, right = found
        end = error.line or len(output)
        above = output[max(end - _ABOVE, 0) : end]
        a, b = _printed_value(above, left), _printed_value(above, right)
        if a is None or b is None or _TESTS[test][0](a, b):
            continue
        fix = f"Look where `{left}` comes from: it has to be {_TESTS[test][1]} {b:g} here."
        if _VISIBLE in right or _VISIBLE in left:
            fix = (
                "Count visible devices from 0 in each process: CUDA_VISIBLE_DEVICES renumbers them, so that a physical"
                f" number ({max(a, b):g}) is no index of the {min(a, b):g} that it sees."
            )
        yield explanation_for(
            context.symptom,
            f"{plain(left)} is {a:g}, and has to be {_TESTS[test][1]} {plain(right)}, which is {b:g}",
            "The values are printed above the assertion.",
            fix,
            0.6,
            printed_reason(
                error, "sides-of-an-assertion", "Both sides of the assertion are printed.", f"assert {left} ... {right}"
            ),
            pattern="fix device assignment" if _VISIBLE in code else "fix behavior logic",
        )
        return


def _comparison(code: str) -> tuple[str, type[ast.cmpop], str] | None:
    """Return the sides and the operator of an assertion of one comparison."""
    line = code.strip()[:_CODE].removesuffix("(").rstrip(" ,\\")
    if not line.startswith("assert "):
        return None
    try:
        tree = ast.parse(line).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    test = tree.test if isinstance(tree, ast.Assert) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in _TESTS:
        return None
    return ast.unparse(test.left), type(test.ops[0]), ast.unparse(test.comparators[0])


def _printed_value(lines: list[str], side: str) -> float | None:
    """Return the value that was last printed next to the text of a side, or the number that it is."""
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", side):
        return float(side)
    shown = re.compile(rf"(?<![\w.]){re.escape(side)}['\"`]?(?: is|:| ?==?) ?(-?\d{{1,9}}(?:\.\d{{1,9}})?)\b")
    for line in reversed(lines):
        if (found := shown.search(line[:2_000])) is not None:
            return float(found[1])
    return None

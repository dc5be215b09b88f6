"""Evaluates arithmetic and conditions of a shell: `$((A * 2))`, `[ -z "$A" ]`, `[[ $A == b* ]]`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

_LONGEST, _LARGEST = 200, 1 << 60
_SIGNS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Gt: operator.gt, ast.Lt: operator.lt, ast.GtE: operator.ge, ast.LtE: operator.le,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_NUMBERS = {
    "-eq": operator.eq, "-ne": operator.ne, "-gt": operator.gt, "-lt": operator.lt, "-ge": operator.ge,
    "-le": operator.le,
}  # fmt: skip
_FILES: dict[str, Callable[[Path], bool]] = {"-f": Path.is_file, "-d": Path.is_dir, "-e": Path.exists}


def sum_value(text: str, variable: Callable[[str], str | None]) -> int | None:
    """Evaluate a sum of whole numbers and variables; None if it contains anything else."""
    if len(text) > _LONGEST or "**" in text:
        return None
    try:
        tree = ast.parse(text.strip().replace("$", "").replace("/", "//"), mode="eval")
        return _value(tree.body, variable)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, variable: Callable[[str], str | None]) -> int:
    """Evaluate a node; raises ValueError if its value is unknown."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and (said := variable(node.id) or "").lstrip("-").isdecimal() and len(said) < 18:
        return int(said)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, variable)
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        left, right, sign = node.left, node.right, type(node.op)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SIGNS:
        left, right, sign = node.left, node.comparators[0], type(node.ops[0])  # type: ignore[assignment]
    else:
        raise ValueError
    found = int(_SIGNS[sign](_value(left, variable), _value(right, variable)))
    if abs(found) > _LARGEST:
        raise ValueError
    return found


def test_holds(words: Sequence[str]) -> bool | None:
    """Evaluate `[ WORDS ]`, or return None if unknown; unset variables must be substituted by ""."""
    words = list(words)
    if words[:1] == ["!"]:
        of_rest = test_holds(words[1:])
        return None if of_rest is None else not of_rest
    for sign, both in (("-o", any), ("-a", all)):
        if sign in words[1:-1]:
            at = words.index(sign, 1)
            sides = (test_holds(words[:at]), test_holds(words[at + 1 :]))
            return None if None in sides else both(sides)
    if any("$" in word or "`" in word for word in words):
        return None
    if len(words) == 1:
        return bool(words[0])
    if len(words) == 2:
        return _one(*words)
    return _two(*words) if len(words) == 3 else None


def _one(sign: str, word: str) -> bool | None:
    if sign in ("-z", "-n"):
        return (sign == "-n") == bool(word)
    if sign in _FILES:
        try:
            return _FILES[sign](Path(word)) if word else False
        except (OSError, ValueError):
            return None
    return None


def _two(left: str, sign: str, right: str) -> bool | None:
    if sign in ("=", "==", "!="):
        return (left == right or fnmatchcase(left, right)) == (sign != "!=")
    if sign in _NUMBERS and left.lstrip("-").isdecimal() and right.lstrip("-").isdecimal():
        return bool(_NUMBERS[sign](int(left[:18]), int(right[:18])))
    return None

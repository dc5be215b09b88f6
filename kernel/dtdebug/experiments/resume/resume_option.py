"""Finds the option with which a program resumes, in its source, without running it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dtdebug.storage import state_dir

_NAMES = re.compile(
    r"--(?:auto[-_])?(?:resume|restore|continue|load)(?:[-_](?:from|path|file|dir|folder|training|run|last|latest|ckpt|"
    r"checkpoint|snapshot|state|weights)){0,3}\Z|--(?:from[-_])?(?:ckpt|checkpoint|snapshot)\Z"
)
_FOLDER = re.compile(r"dir|folder")
_BYTES, _FILES = 1 << 20, 64
_FUNCTIONS = frozenset(("add_argument", "option", "Option"))
SAVED = "{saved}"
"""Placeholder for the path that was saved, in `--resume-args`."""


class ResumeOption(NamedTuple):
    """Option of the program."""

    name: str
    takes_path: bool
    folder: bool
    file: str
    line: int
    certain: bool
    """False if it takes something else than a path, such as the number of an epoch."""


def find(script: Path) -> ResumeOption | None:
    """Return the program's option, or None; those named `resume` come first, then flags, then paths."""
    files = [script, *sorted(p for p in script.parent.glob("*.py") if p != script)[:_FILES]]
    for file in files:  # its own, then those of the modules next to it
        found = list(_options(file))
        if found:
            return min(found, key=lambda o: ("resume" not in o.name, not o.certain, o.takes_path))
    return None


def _options(file: Path) -> Iterator[ResumeOption]:
    try:
        tree = ast.parse(state_dir.read_start(file, _BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _name_of(node.func) not in _FUNCTIONS:
            continue
        names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        name = next((n for n in names if _NAMES.match(n)), "")
        if not name:
            continue
        given = {k.arg: k.value for k in node.keywords if k.arg}
        action, kind = given.get("action"), given.get("type")
        flag = isinstance(action, ast.Constant) and action.value == "store_true"
        flag = flag or (isinstance(given.get("is_flag"), ast.Constant) and bool(given["is_flag"].value))  # type: ignore[attr-defined]
        number = isinstance(kind, ast.Name) and kind.id in ("int", "float", "bool")
        yield ResumeOption(name, not flag, bool(_FOLDER.search(name)), str(file), node.lineno, not number)


def _name_of(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def arguments(option: ResumeOption, saved: Sequence[str]) -> list[str]:
    """Return the words that resume from what was saved: a file, or the folder of several."""
    if not option.takes_path:
        return [option.name]
    parents = {str(Path(path).parent) for path in saved}
    if option.folder or (len(set(saved)) > 1 and len(parents) == 1):
        return [option.name, min(parents)]
    return [option.name, saved[0]]

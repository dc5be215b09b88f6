"""Finds the line of a configuration file that holds a value which the program read from it."""

from __future__ import annotations

import ast
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtdebug.account.objects import MISSING, is_exactly, stored
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, process_start
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Text

_SUFFIXES = (".yaml", ".yml", ".json", ".toml")
_READS = re.compile(
    r"(?:yaml|json|tomllib|tomli|toml|orjson)\.\w*load\w*|(?:OmegaConf|EasyDict|Config)\.(?:load|fromfile)"
    r"|\w*\.?(?:safe_load|full_load|unsafe_load)"
)
_MOST_BYTES, _MOST_FILES, _MOST_TABLES = 100_000, 8, 100
_TOML = re.compile(r"""^\s*(?:["']?)(?P<key>[\w-]{1,80})["']?\s*=\s*(?P<value>.{1,200}?)\s*(?:#.*)?$""")


class Entry(NamedTuple):
    """One key of a configuration file."""

    file: str
    line: int
    code: str
    keys: str
    """Dotted keys: `optim.lr`."""


def entry_of(keys: tuple[str, ...], value: object, scope: Scope, owner: object = MISSING) -> Entry | None:
    """Return the only entry of the program's configuration files that has a key and a value; None if several have.

    `keys`: those that the program names, the innermost last; `owner`: what the program takes the value from. An entry
    under another key than the program names, or beside keys that the owner has not, was not read here.
    """
    if not keys or not is_exactly(value, (int, float, str)):
        return None
    programs = {s.program.file: s.program for s in (scope, *scope.callers) if s.user and s.program is not None}
    if not any(_reads_one(program) for program in programs.values()):
        return None
    rows = [row for file in _files(scope, programs) for row in _entries(file)]
    held = _path_to(owner, scope)
    found = [
        each
        for each, said in rows
        if each.keys.rpartition(".")[2] == keys[-1] and _is_same(said, value)
        and (f".{each.keys}".endswith(f".{held}.{keys[-1]}") if held else _is_read(each, keys, owner, rows))
    ]  # fmt: skip
    if len(found) > 1:
        wanted = ".".join(keys)
        found = [each for each in found if f".{each.keys}".endswith(f".{wanted}")]
    return found[0] if len(found) == 1 else None


def _path_to(owner: object, scope: Scope) -> str:
    """Return the keys under which a dictionary of a frame holds another one; empty if none does."""
    tables = [t for each in (scope, *scope.callers) if each.user for t in (each.local, each.world)]
    todo = [("", value) for table in tables for value in list(table.values())[:200] if type(value) is dict]
    for _ in range(_MOST_TABLES if type(owner) is dict else 0):
        if not todo:
            break
        path, table = todo.pop()
        for key, value in list(table.items())[:200]:
            if type(value) is dict and type(key) is str:
                whole = f"{path}.{key}" if path else key
                if value is owner:
                    return whole
                todo.append((whole, value))
    return ""


def _is_read(entry: Entry, keys: tuple[str, ...], owner: object, rows: Sequence[tuple[Entry, object]]) -> bool:
    """True if an entry can be what the program read by these keys from a mapping."""
    own = entry.keys.split(".")[:-1]
    others = [each.keys.split(".") for each, _ in rows if each.file == entry.file]
    if any(key in other[:-1] and key not in own for key in keys[:-1] for other in others):
        return False
    beside = {other[-1] for other in others if other[:-1] == own}
    return not is_exactly(owner, (dict,)) or beside <= {key for key in owner if type(key) is str}  # type: ignore[attr-defined]


def keys_of(node: ast.expr) -> tuple[str, ...]:
    """Return the keys by which an expression asks for a value: `cfg["optim"].lr` -> optim, lr."""
    match node:
        case ast.Attribute():
            return (*keys_of(node.value), node.attr)
        case ast.Subscript(slice=ast.Constant(value=str() as key)):
            return (*keys_of(node.value), key)
        case ast.Call(func=ast.Attribute(attr="get", value=owner), args=[ast.Constant(value=str() as key), *_]):
            return (*keys_of(owner), key)
    return ()


def _reads_one(program: Program) -> bool:
    return any(_READS.fullmatch(dotted_name(call.func)) for call in program.code.nodes(ast.Call))


def _is_same(said: object, value: object) -> bool:
    """True if a file says a value: text as it is written, and numbers by their value."""
    if type(value) is str:
        return said == value
    try:
        return type(said) is str and value == float(said.replace("_", ""))
    except ValueError:
        return False


def _files(scope: Scope, programs: dict[str, Program]) -> list[str]:
    """Return the configuration files that the program names: in itself, on its command line, or in a frame."""
    words: list[str] = []
    for program in programs.values():
        words += [n.value for n in program.code.nodes(ast.Constant) if type(n.value) is str]
    words += [word.rpartition("=")[2] for word in sys.argv[1:]]
    for each in (scope, *scope.callers):
        for value in list(each.local.values())[:200] if each.user else ():
            known = [value] if is_exactly(value, (str,)) else list(_paths_in(value))
            words += [word for word in known if type(word) is str]
    folders = [os.getcwd(), *(os.path.dirname(file) for file in programs)]  # noqa: PTH109, PTH120 - files of cells
    found: dict[str, None] = {}
    for word in dict.fromkeys(w for w in words if w.endswith(_SUFFIXES) and len(w) < 1000 and "\n" not in w):
        for folder in folders:
            path = os.path.normpath(os.path.join(folder, word))  # noqa: PTH118
            if _is_given(path):
                found[path] = None
                break
    return list(found)[:_MOST_FILES]


def _is_given(path: str) -> bool:
    """True for a file that was there before the program began: it did not write that itself."""
    try:
        known = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(known.st_mode) and known.st_size <= _MOST_BYTES and known.st_mtime < process_start()


def _paths_in(value: object) -> Iterator[object]:
    kind = f"{type(value).__module__}.{type(value).__name__}" if type(type(value)) is type else ""
    if kind in ("argparse.Namespace", "types.SimpleNamespace"):
        yield from list(stored(value).values())[:200]
    elif kind.startswith("pathlib."):
        yield str(value)


def _entries(file: str) -> Iterator[tuple[Entry, object]]:
    """Yield the entries of a file with a scalar value, and what is written there."""
    try:
        text = Text(named_files.read_file(file, _MOST_BYTES).decode())
    except (OSError, ValueError):
        return
    for keys, offset, said in _toml(text) if file.endswith(".toml") else _tree(text, file):
        line = text.place(offset).line
        yield Entry(file, line, text.line(line).strip(), keys), said


def _tree(text: Text, file: str) -> Iterator[tuple[str, int, object]]:
    if file.endswith(".json"):
        from dtdebug_taxonomy.source.config.json_reader import JsonReader

        root = JsonReader(text).read()
        roots = [root] if root is not None else []
    else:
        from dtdebug_taxonomy.source.config.yaml_reader import read_yaml

        roots = read_yaml(text)[0]
    for each in roots:
        for keys, row in each.walk():
            if not row.node.entries and not row.node.items:
                yield keys, row.key_span.start, str(text)[row.node.inner.start : row.node.inner.end]


def _toml(text: Text) -> Iterator[tuple[str, int, object]]:
    table, offset = "", 0
    for row in str(text).splitlines(keepends=True):
        stripped = row.strip()
        if stripped.startswith("[") and stripped.endswith("]"):
            table = stripped.strip("[] ")
        elif matched := _TOML.match(row):
            keys = f"{table}.{matched['key']}" if table else matched["key"]
            yield keys, offset, matched["value"].strip("'\"")
        offset += len(row)

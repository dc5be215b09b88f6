"""Writes the patch of the user's file that saves a state with the others, and restores it after them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePath

from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.checks.run.proving import format_patch

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Program:
    """Parsed file, with the function around each node."""

    def __init__(self, text: str) -> None:
        self.text, self.tree = text, ast.parse(text)
        self.above = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def scope(self, node: ast.AST) -> ast.AST:
        """Return the function or module around a node."""
        while not isinstance(node, (*_Function.__args__, ast.Module)):
            node = self.above[node]
        return node

    def home(self, node: ast.AST) -> ast.AST | None:
        """Return the class of the method around a node."""
        found = self.above.get(self.scope(node))
        return found if isinstance(found, ast.ClassDef) else None

    def statements(self, line: int) -> Iterator[ast.stmt]:
        """Yield the statements that hold a line, the innermost first."""
        found = [n for n in ast.walk(self.tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)]
        yield from sorted(found, key=lambda n: -n.lineno)

    def sees(self, node: ast.AST, made: ast.Assign) -> bool:
        """True if what an assignment makes has the same name at a node."""
        if isinstance(made.targets[0], ast.Attribute):
            return self.home(node) is not None and self.home(node) is self.home(made)
        scope = self.scope(made)
        return scope in (self.scope(node), self.tree) and (scope is self.tree or made.lineno < node.lineno)  # type: ignore[attr-defined]


def patch(file: str, saved: int, loaded: int, kinds: tuple[str, ...]) -> str:
    """Return the patch with which the state of an object is saved on one line and restored after it is read on another.

    `kinds`: ends of the names of the functions that make the object. Returns "" if it is not clear how the object, the
    dictionary that is saved or the one that is read are called on both lines.
    """
    raw = named_files.read_source(file)
    if raw is None:
        return ""
    try:
        program = _Program(raw.decode())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    made = [node for node in ast.walk(program.tree) if isinstance(node, ast.Assign) and _makes(node, kinds)]
    held = _dictionary(program, saved)
    put = _restored_after(program, loaded)
    if (
        len(made) != 1
        or held is None
        or put is None
        or not (program.sees(held, made[0]) and program.sees(put[1], made[0]))
    ):
        return ""
    name, last = ast.unparse(made[0].targets[0]), put[1]
    entries = _entries(held)
    known = next((key for key, value in entries.items() if value == f"{name}.state_dict()"), None)
    key = known or _key([*entries], name.rpartition(".")[2])
    lines = program.text.splitlines(keepends=True)
    if "\r" in program.text or key is None:
        return ""
    restore = f'{" " * last.col_offset}{name}.load_state_dict({put[0]}["{key}"])\n'
    edits = [((last.end_lineno or last.lineno) + 1, 0, restore)]
    if known is None:
        edits.append(_added(lines, held, key, f"{name}.state_dict()"))
    for line, column, text in sorted(edits, reverse=True):
        if column:
            row = lines[line - 1].encode()
            lines[line - 1] = (row[:column] + text.encode() + row[column:]).decode()
        else:
            lines.insert(line - 1, text)
    after = "".join(lines)
    try:
        ast.parse(after)
    except SyntaxError:
        return ""
    return format_patch(PurePath(file).name, program.text, after)


def _makes(node: ast.Assign, kinds: tuple[str, ...]) -> bool:
    target = node.targets[0]
    named = isinstance(target, ast.Name) or (
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    )
    return (
        len(node.targets) == 1
        and named
        and isinstance(node.value, ast.Call)
        and any(f".{ast.unparse(node.value.func)}".endswith(f".{kind}") for kind in kinds)
    )


def _dictionary(program: _Program, line: int) -> ast.Dict | ast.Call | None:
    """Return the dictionary that is saved on a line: written there, in a variable, or by a method of the class."""
    statement = next(program.statements(line), None)
    if statement is None:
        return None
    found = _written(statement)
    if found is not None:
        return found
    scope = program.scope(statement)
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    rows: list[ast.AST] = [
        node.value for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in names
        and node.lineno < line and _written(node.value) is node.value
    ]  # fmt: skip
    methods = {
        node.func.attr for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "self"
    }  # fmt: skip
    home = program.home(statement)
    for method in home.body if isinstance(home, ast.ClassDef) else ():
        if isinstance(method, ast.FunctionDef) and method.name in methods:
            rows += [n.value for n in ast.walk(method) if isinstance(n, ast.Return) and n.value is not None]
    written = [one for one in rows if _written(one) is one]
    return _written(written[0]) if len(written) == 1 else None


def _written(node: ast.AST) -> ast.Dict | ast.Call | None:
    """Return the outermost dictionary with names for keys that is written in a node."""
    for one in ast.walk(node):
        if isinstance(one, ast.Dict) and one.keys and all(isinstance(k, ast.Constant) for k in one.keys):
            return one
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "dict" and one.keywords and not one.args:
            return one
    return None


def _restored_after(program: _Program, line: int) -> tuple[str, ast.stmt] | None:
    """Return the variable that a line reads into, and the last statement that restores something from it."""
    read = next(program.statements(line), None)
    if not isinstance(read, ast.Assign) or not isinstance(read.targets[0], ast.Name):
        return None
    name = read.targets[0].id
    last: ast.stmt = read
    for node in ast.walk(program.scope(read)):
        if isinstance(node, ast.Expr) and node.lineno > read.lineno and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            if (
                called.endswith(".load_state_dict")
                and f"{name}[" in ast.unparse(node.value)
                and node.lineno > last.lineno
            ):
                last = node
    return name, last


def _entries(held: ast.Dict | ast.Call) -> dict[str, str]:
    """Return the keys of a dictionary that is written out, and the source of its values."""
    if isinstance(held, ast.Call):
        return {k.arg: ast.unparse(k.value) for k in held.keywords if k.arg}
    rows = zip(held.keys, held.values, strict=True)
    return {str(k.value): ast.unparse(v) for k, v in rows if isinstance(k, ast.Constant)}


def _key(taken: list[str], name: str) -> str | None:
    """Return a new key that is named as the others are; None if it is taken."""
    end = "_state_dict" if any(key.endswith("_state_dict") for key in taken) else ""
    key = name if name.endswith(end) else name + end
    return key if key not in taken and key.isidentifier() else None


def _added(lines: list[str], held: ast.Dict | ast.Call, key: str, value: str) -> tuple[int, int, str]:
    """Return where an entry is put into a dictionary, and its text."""
    entries = [k.value for k in held.keywords] if isinstance(held, ast.Call) else held.values
    last = entries[-1]
    text = f"{key}={value}" if isinstance(held, ast.Call) else f'"{key}": {value}'
    line, column = last.end_lineno or last.lineno, last.end_col_offset or 0
    if held.lineno == held.end_lineno or not lines[line - 1].encode()[column:].strip().startswith(b","):
        return line, column, f", {text}"
    row = lines[line - 1]
    return line + 1, 0, f"{row[: len(row) - len(row.lstrip())]}{text},\n"

"""Environment variables and commands in a Python program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.values import ValueIndex
from dtdebug_taxonomy.source.shell.commands import Command, Word
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.source import Variable
from dtdebug_taxonomy.source.text import Span

_QUOTE = re.compile(r"[rRuUbB]{0,2}(\"\"\"|'''|\"|')")
_NAME = re.compile(r"[A-Za-z_]\w*")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_CERTAIN = re.compile(r"(NCCL|TORCH_NCCL|TORCH_DISTRIBUTED|GLOO_SOCKET)_[A-Z0-9_]+")
"""Key of a literal that can only be a variable."""
_KEYWORDS = frozenset({"env", "envs", "environment", "env_vars", "extra_env"})
_STARTS = (
    *(f"subprocess.{name}" for name in ("run", "Popen", "call", "check_call", "check_output", "getoutput")),
    *("os.system", "os.popen", "shlex.split"),
)


def program_variables(code: ValueIndex, script: Script) -> tuple[Variable, ...]:
    """Return the variables that a program sets for itself or for its children, and those it reads."""
    found = {v.span: v for v in _all(code)} if "env" in code.text else {}
    found |= {v.span: v for v in script.variables if v.is_set}
    return tuple(sorted(found.values(), key=lambda v: v.span))


def _all(code: ValueIndex) -> Iterator[Variable]:
    environments = _copies(code)
    for node in code.nodes(ast.Subscript):
        where = dotted_name(node.value)
        if where and (code.name(node.value) == "os.environ" or (code.scope(node), where) in environments):
            yield from _one(code, node.slice, *_stored_value(code, node))
    for call in code.calls("os.getenv", "os.environ.get", "os.environ.pop", "os.unsetenv"):
        yield from _one(code, code.argument(call, "key", 0))
    for call in code.calls("os.environ.setdefault", "os.putenv"):
        yield from _one(code, code.argument(call, "key", 0), True, code.argument(call, "value", 1))
    for call in code.methods("setenv"):
        if len(call.args) > 1:
            yield from _one(code, call.args[0], True, call.args[1])
    merges = (*code.calls("os.environ.update"), *(c for c in code.calls("dict") if _on_environment(code, c)))
    for call in merges:
        for keyword in call.keywords:
            if keyword.arg:
                start = code.span(keyword).start
                yield _make_variable(code, keyword.arg, Span(start, start + len(keyword.arg)), keyword.value)
    for literal in code.nodes(ast.Dict):
        if _is_environment(code, literal):
            for key, value in zip(literal.keys, literal.values, strict=True):
                yield from _one(code, key, True, value)


def _on_environment(code: ValueIndex, call: ast.Call) -> bool:
    """True for `dict(os.environ, A="1")`."""
    return bool(call.args) and code.name(call.args[0]) == "os.environ"


def _copies(code: ValueIndex) -> set[tuple[ast.AST, str]]:
    """Return names that hold a copy of the environment, or are passed as one."""
    found: set[tuple[ast.AST, str]] = set()
    for call in (*code.calls("os.environ.copy", "dict", "copy.copy", "copy.deepcopy"),):
        up = code.parent.get(call)
        if isinstance(up, ast.Assign) and (code.name(call.func) == "os.environ.copy" or _on_environment(code, call)):
            found |= {(code.scope(call), dotted_name(t)) for t in up.targets if dotted_name(t)}
    for keyword in code.nodes(ast.keyword):
        if keyword.arg == "env" and isinstance(keyword.value, ast.Name):
            found.add((code.scope(keyword), keyword.value.id))
    return found


def _stored_value(code: ValueIndex, node: ast.Subscript) -> tuple[bool, ast.expr | None]:
    if not isinstance(node.ctx, ast.Store):
        return False, None
    statement = code.parent.get(node)
    return True, statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None


def _is_environment(code: ValueIndex, node: ast.Dict) -> bool:
    """True if a literal is meant as an environment, judged by its context."""
    first = next((k for k in node.keys if k is not None), None)
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str) or not _VARIABLE.fullmatch(first.value):
        return False
    if any(isinstance(k, ast.Constant) and _CERTAIN.fullmatch(str(k.value)) for k in node.keys):
        return True
    if any(k is None and code.name(v) == "os.environ" for k, v in zip(node.keys, node.values, strict=True)):
        return True
    up = code.parent.get(node)
    if isinstance(up, ast.keyword) and up.arg is None:  # dict(os.environ, **{...})
        up = code.parent.get(up)
    if isinstance(up, ast.keyword):
        return up.arg in _KEYWORDS
    if isinstance(up, ast.Call):
        name = code.name(up.func)
        return bool(re.search(r"env\w*\.(update|setdefault)$|env_vars$|\.env$", name)) or _on_environment(code, up)
    if isinstance(up, ast.Dict):
        key = up.keys[up.values.index(node)]
        return isinstance(key, ast.Constant) and str(key.value).lower() in _KEYWORDS
    if isinstance(up, ast.BinOp | ast.AugAssign):
        return any(code.name(x) == "os.environ" for x in (getattr(up, "left", None), getattr(up, "target", None)))
    if isinstance(up, ast.Assign):
        return any(re.search(r"env", dotted_name(t).rpartition(".")[2], re.IGNORECASE) for t in up.targets)
    return False


def _one(
    code: ValueIndex, key: ast.expr | None, is_set: bool = False, value: ast.expr | None = None
) -> Iterator[Variable]:
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and _NAME.fullmatch(key.value):
        span = inner(code, key)
        if is_set:
            yield _make_variable(code, key.value, span, value)
        else:
            yield Variable(key.value, span, is_set=False)


def _make_variable(code: ValueIndex, name: str, span: Span, value: ast.expr | None) -> Variable:
    while isinstance(value, ast.Call) and code.name(value.func) == "str" and len(value.args) == 1:
        value = value.args[0]
    known = code.constant(value)
    if isinstance(known, str | int | float):
        place = inner(code, value) if isinstance(value, ast.Constant) else None
        return Variable(name, span, str(known), place)
    return Variable(name, span)


def inner(code: ValueIndex, node: ast.Constant) -> Span:
    """Return the span of a literal's text without its quotes; the whole span if it is not one piece."""
    span = code.span(node)
    written = code.cut(span)
    quote = _QUOTE.match(written)
    if quote is None or not isinstance(node.value, str):
        return span
    body = Span(span.start + quote.end(), span.end - len(quote[1]))
    return body if code.cut(body) == node.value else span


def started_commands(code: ValueIndex) -> Script:
    """Return the commands that a program starts: texts for a shell, and lists of words."""
    pieces: list[Span] = []
    commands: list[Command] = []
    for call in code.calls(*_STARTS) if re.search(r"subprocess|os\.|system|shlex", code.text) else ():
        first = call.args[0] if call.args else code.argument(call, "args")
        values = [v for v in code.values(first) if v is not None] if first is not None else []
        for value in values[:1]:
            if isinstance(value, ast.List | ast.Tuple):
                commands.append(_command(code, value))
            elif isinstance(value, ast.Constant) and (span := inner(code, value)) != code.span(value):
                pieces.append(span)
    pieces += _exports(code)
    return Script(code.text, path=code.path, pieces=tuple(sorted(set(pieces))), more=tuple(commands))


def _exports(code: ValueIndex) -> Iterator[Span]:
    """Yield texts that are lines of a script for another program: `setup=["export A=1"]`."""
    for text in code.nodes(ast.Constant) if "export " in code.text else ():
        if isinstance(text.value, str) and text.value.startswith("export ") and inner(code, text) != code.span(text):
            yield inner(code, text)


def _command(code: ValueIndex, node: ast.List | ast.Tuple) -> Command:
    words = []
    for element in node.elts:
        span = code.span(element)
        if isinstance(element, ast.Constant):
            words.append(Word(inner(code, element), str(element.value), inner(code, element)))
        else:
            known = code.constant(element)
            text = str(known) if isinstance(known, str | int) else _unknown(code, element)
            words.append(Word(span, text, span))
    return Command(code.span(node), (), tuple(words), is_list=True)


def _unknown(code: ValueIndex, node: ast.expr) -> str:
    """Return a word that is computed: `${x}`, with the constant parts of an f-string."""
    if code.name(node) == "sys.executable":
        return "python"
    if isinstance(node, ast.JoinedStr):
        parts = [str(v.value) if isinstance(v, ast.Constant) else "${x}" for v in node.values]
        return "".join(parts)
    return "${x}"

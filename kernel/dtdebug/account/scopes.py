"""A stack as the way back reads it: of each frame its source, its values if it lives, and what it was calling."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

from dtdebug.account import evaluate
from dtdebug.account.expressions import packed_item
from dtdebug.account.objects import MISSING, is_class, is_exactly
from dtdebug.account.sources import Program, Sources, is_stale
from dtdebug.process.thread_frames import copy_locals
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS
from dtdebug_taxonomy.stacks.frames import is_library, is_made

_COMPREHENSION_NAMES = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(eq=False)
class Scope:
    """One frame, or a function that has returned and is only read."""

    file: str
    line: int
    function: str
    program: Program | None = None
    node: ast.AST | None = None
    """The function, lambda, class or module that the frame ran."""
    call: ast.AST | None = None
    """Expression that the frame was at when the exception passed: the call of the next frame, or one that failed."""
    user: bool = True
    live: bool = False
    local: Mapping[str, Any] = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)
    code: CodeType | None = None
    callers: Sequence[Scope] = ()
    """Frames that called it, the nearest first."""
    bound: tuple[ast.Call, Scope] | None = None
    """The call by which a function that has returned was entered."""
    inner: ast.AST | None = None
    """The comprehension that the frame ran within `node`."""
    reached: int = 0
    """Line that the frame has reached, where `line` is an earlier one."""
    said: str = ""
    """Source line as printed, if its file can't be read."""

    def value(self, node: ast.expr | None) -> Any:
        """Return the value of an expression here, or `MISSING`."""
        return evaluate.value(node, self.local, self.world)

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters, without the object of a method."""
        if not isinstance(self.node, (*FUNCTIONS, ast.Lambda)):
            return []
        a = self.node.args
        names = [each.arg for each in (*a.posonlyargs, *a.args)]
        names = names[1:] if names[:1] in (["self"], ["cls"]) else names
        return [*names, *(each.arg for each in a.kwonlyargs)]

    def source(self, line: int) -> str:
        """Return a line of its file."""
        return self.program.line(line) if self.program is not None else self.said


def of_traceback(trace: TracebackType | None, sources: Sources, before: Sequence[TracebackType] = ()) -> list[Scope]:
    """Return the frames of a living exception, outermost first; `before`: those above the first."""
    rows = list(before)
    while trace is not None:
        rows.append(trace)
        trace = trace.tb_next
    found = [_living(row, sources) for row in rows[-_MOST:]]
    _link(found)
    return found


_MOST = 60
"""Maximum number of innermost frames that are read."""


def _living(row: TracebackType, sources: Sources) -> Scope:
    frame, code = row.tb_frame, row.tb_frame.f_code
    file, line = code.co_filename, row.tb_lineno or code.co_firstlineno
    user = not is_library(file)
    scope = Scope(
        file, line, code.co_name, user=user, live=True, local=copy_locals(frame), world=frame.f_globals, code=code,
        reached=line,
    )  # fmt: skip
    program = sources.of_user(file) if user else sources.of_function(file, line, code.co_firstlineno)
    if program is None:
        return scope
    scope.program = program
    scope.node = _node_of(program, code)
    span = next(islice(code.co_positions(), row.tb_lasti // 2, None), None)
    if span is None or None in span:
        scope.call = guess(program, line, "")
        return scope
    first, last, begin, end = span
    wanted = (first, last, (begin or 0) - program.shift, (end or 0) - program.shift)
    home = scope.node if isinstance(scope.node, ast.AST) else program.tree
    scope.call = _expression_at(home, wanted) or guess(program, line, "")
    if code.co_name in _COMPREHENSION_NAMES:
        scope.inner = _comprehension(program, code)
    return scope


def is_changed(scope: Scope) -> bool:
    """True if the file of a living frame is not what its code was made of."""
    return scope.program is not None and scope.code is not None and is_stale(scope.program, scope.code)


def _link(stack: list[Scope]) -> None:
    for number, scope in enumerate(stack):
        scope.callers = stack[number - 1 :: -1] if number else ()


def _node_of(program: Program, code: CodeType) -> ast.AST:
    """Return the function of a code object; for a comprehension the function around it."""
    name, first = code.co_name, code.co_firstlineno
    tree = program.tree
    if name == "<module>":
        return tree
    if name in _COMPREHENSION_NAMES:
        inner = _comprehension(program, code)
        return program.code.scope(inner) if inner is not None else tree
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and node.name == name:
            begin = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first in (begin, node.lineno):
                return node
        elif isinstance(node, ast.Lambda) and name == "<lambda>" and node.lineno == first:
            return node
        elif isinstance(node, ast.ClassDef) and node.name == name:
            begin = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if begin == first:
                return node
    return tree


def _comprehension(program: Program, code: CodeType) -> Comprehension | None:
    for kind in COMPREHENSIONS:
        for node in program.code.nodes(kind):
            if isinstance(node, COMPREHENSIONS) and node.lineno == code.co_firstlineno:
                return node
    return None


def _expression_at(home: ast.AST, wanted: tuple[object, ...]) -> ast.AST | None:
    """Return the expression at a position; of a loop, what it goes through."""
    for node in ast.walk(home):
        if isinstance(node, (ast.expr, ast.For, ast.AsyncFor)):
            span = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            if span == wanted:
                return node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else node
    return None


def of_printed(frames: Sequence[Frame], sources: Sources) -> tuple[list[Scope], str]:
    """Return the frames of a printed traceback, and why one of the user's is not known, if so."""
    found, why = [], ""
    for number, frame in enumerate(frames[-_MOST:]):
        user = not is_library(frame.file)
        program = sources.of_user(frame.file) if user else sources.of_function(frame.file, frame.line)
        scope = Scope(frame.file, frame.line, frame.function, user=user, said=frame.code.strip())
        found.append(scope)
        if program is None:
            why = f"{frame.file} can't be read here" if user and not is_made(frame.file) else why
            continue
        if frame.code.strip() and not program.line(frame.line).startswith(frame.code.strip()[:100]):
            why = f"{frame.file} has changed since: line {frame.line} reads otherwise" if user else why
            continue
        scope.program = program
        scope.node = _around(program, frame)
        scope.call = guess(program, frame.line, next((f.function for f in frames[-_MOST:][number + 1 :]), ""))
        if frame.function in _COMPREHENSION_NAMES:
            scope.inner = next(
                (n for k in COMPREHENSIONS for n in program.code.nodes(k) if n.lineno <= frame.line), None
            )
    _link(found)
    return found, why


def _around(program: Program, frame: Frame) -> ast.AST:
    around = [
        node
        for node in ast.walk(program.tree)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.lineno <= frame.line <= (node.end_lineno or 0)
    ]
    named = [node for node in around if node.name == frame.function.rpartition(".")[2]]
    if named:
        return named[-1]
    made = frame.function in _COMPREHENSION_NAMES or frame.function == "<lambda>"
    return around[-1] if around and made else program.tree


def guess(program: Program, line: int, following: str) -> ast.AST | None:
    """Return the call at a line that leads to the next frame, by its name; else the largest expression there."""
    statement = _statement(program.tree, line)
    if statement is None:
        return None
    inside = [statement.iter] if isinstance(statement, (ast.For, ast.AsyncFor)) else _heads(statement)
    calls = [
        node
        for part in inside
        for node in ast.walk(part)
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if following in _COMPREHENSION_NAMES:
        made = (node for part in inside for node in ast.walk(part) if isinstance(node, COMPREHENSIONS))
        return next(made, None)
    own = {each.name for each in program.code.nodes(ast.ClassDef)} if following == "__init__" else {following}
    for call in calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if following and name in own:
            return call
    if not following and isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return ast.Tuple([statement.targets[0], statement.value], ast.Load())
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return statement.iter
    plain = [call for call in calls if getattr(call.func, "id", "") not in dir(builtins)] if following else calls
    if plain or calls:
        return (plain or calls)[0]
    return inside[0] if inside else None


def _heads(statement: ast.stmt) -> list[ast.AST]:
    """Return what a statement computes itself, without the statements in it."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [each.context_expr for each in statement.items]
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return list(statement.decorator_list)
    found: list[ast.AST] = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
    return found[::-1]


def _statement(tree: ast.AST, line: int) -> ast.stmt | None:
    """Return the innermost statement that covers a line."""
    best: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            best = node
    return best


def argument(scope: Scope, name: str) -> tuple[ast.expr, Scope] | None:
    """Return the expression that a parameter got, and the frame of the caller; frames that only pass on are skipped."""
    if scope.bound is not None:
        entered, caller = scope.bound
        found = bind(entered, scope).get(name)
        packed = _unpack(entered, scope, name) if found is None else None
        if packed is not None and (default(scope, name) is None or caller.value(packed) is not MISSING):
            found = packed  # else it may not be among them
        return (found, caller) if found is not None else None
    for caller in scope.callers:
        call = caller.call
        if scope.inner is not None and caller.node is scope.node and caller.inner is None:
            return argument(caller, name)  # the function around a comprehension
        if isinstance(call, ast.Subscript) and scope.function == "__getitem__":
            return call.slice, caller
        if isinstance(call, ast.BinOp) and scope.function.startswith("__"):
            return call.right, caller
        if not isinstance(call, ast.Call):
            return None
        if is_forwarding(call) and not caller.user:
            continue
        found = bind(call, scope).get(name) or _unpack(call, scope, name)
        return (found, caller) if found is not None else None
    return None


def _unpack(call: ast.Call, scope: Scope, name: str) -> ast.expr | None:
    """Return what a parameter got from `**options`; for `**named` itself, all that is passed so."""
    packed = next((k.value for k in call.keywords if k.arg is None), None)
    node = scope.node
    if isinstance(node, FUNCTIONS) and node.args.kwarg is not None and node.args.kwarg.arg == name:
        return packed
    return packed_item(call, name) if packed is not None and name in scope.parameters else None


def is_forwarding(call: ast.Call) -> bool:
    """True if a call passes on what it got."""
    return any(isinstance(each, ast.Starred) for each in call.args) or any(k.arg is None for k in call.keywords)


def bind(call: ast.Call, scope: Scope) -> dict[str, ast.expr]:
    """Return the arguments of a call by the parameters of the function called."""
    given: dict[str, ast.expr] = {}
    for name, each in zip(scope.parameters, call.args, strict=False):
        if isinstance(each, ast.Starred):
            if dotted_name(each.value) == "rank":  # a number that the launcher passes
                continue
            break
        given[name] = each
    return given | {k.arg: k.value for k in call.keywords if k.arg}


def default(scope: Scope, name: str) -> ast.expr | None:
    """Return the default of a parameter."""
    if not isinstance(scope.node, (*FUNCTIONS, ast.Lambda)):
        return None
    a = scope.node.args
    positional = [*a.posonlyargs, *a.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=True),
        *zip(a.kwonlyargs, a.kw_defaults, strict=True),
    ]
    return next((given for each, given in pairs if each.arg == name), None)


def parameter(scope: Scope, name: str) -> ast.arg | None:
    """Return the parameter of that name, the object of a method included."""
    if not isinstance(scope.node, (*FUNCTIONS, ast.Lambda)):
        return None
    a = scope.node.args
    every = (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))
    return next((each for each in every if each.arg == name), None)


def is_plain_value(value: object) -> bool:
    """True for a value that the way back can speak of: no module, function or class."""
    kinds = (ModuleType, FunctionType, BuiltinFunctionType, MethodType)
    return value is not MISSING and not is_exactly(value, kinds) and not is_class(value)


def last_without_return(node: ast.AST) -> ast.stmt | None:
    """Return the last statement of a function that returns and yields nothing; None for another one."""
    body = getattr(node, "body", None)
    if not isinstance(body, list) or not body or any(isinstance(s, ast.Return) for s in statements(node)):
        return None
    yields = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(node))
    return None if yields or body[-1].end_lineno != body[-1].lineno else body[-1]


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a function, without those of functions in it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from statements(child)

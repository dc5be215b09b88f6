"""Files that one rank writes and another one reads: the write, the rank's test over it, and the wait between, if any.

The statements before the failing line are gone through backwards, in its function and in those that called it, and
into the functions of the program that they call.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from dtdebug.account.files import own_programs
from dtdebug.account.path_texts import Here, Open, Piece, fits, pass_paths, pieces
from dtdebug.account.per_rank import is_rank
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, Sources
from dtdebug_taxonomy.source.python.file_writes import MAKES_FOLDERS, written_path
from dtdebug_taxonomy.source.python.names import dotted_name, last_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function

_DEEPEST = 4
_MEETS = re.compile(
    r"barrier|wait|gather|broadcast|reduce|all_to_all|synchronize|backward|\A(?:send|recv)\Z|main_process_first"
)
"""Calls in which the ranks may wait for each other; one that is not sure ends the search too."""
_ON_ONE = re.compile(r"(?:rank_zero|main_process|master|rank0|rank_0)\w{0,20}\Z")
"""Decorators that run a function on one rank only."""
_SHOWS = re.compile(
    r"load|read|exists|is_?file|is_?dir|print|log|info|debug|warn|remove|unlink|rmtree|stat|size|glob|listdir|format|join"
)
"""Calls on a path that do not make the file."""
_LEAVES = (ast.Return, ast.Raise, ast.Continue)


class Write(NamedTuple):
    """A call that writes a file of the path that another rank misses."""

    call: ast.Call
    path: ast.expr
    program: Program
    test: ast.expr | None = None
    """Test of the rank over it."""
    tested_in: Program | None = None
    sure: bool = False
    """True if it writes the very path, and whenever the test of the rank holds."""
    caller: Scope | None = None
    """Frame whose statement led to the read, after the write."""
    is_own: bool = False
    """True if each rank reads a path of its own, which no other rank writes."""


class _Guard(NamedTuple):
    test: ast.expr
    program: Program


class _Event(NamedTuple):
    call: ast.Call
    here: Here
    guard: _Guard | None
    sure: bool


def missing_writes(scope: Scope, path: str, read: ast.expr | None, sources: Sources) -> Iterator[Write]:
    """Yield the write that the ranks do not wait for; if there is none, those of the program that write such a path."""
    search = _Search(path, sources)
    if scope.program is None:
        return
    frames = [each for each in (scope, *scope.callers) if each.user and each.program is not None]
    search.wanted = pieces(read, _here_of(frames, 0)) if read is not None else ()
    search.is_own = any(isinstance(each, Open) and _names_rank(each.words) for each in search.wanted)
    if not any(_under_rank_test(each) for each in frames):
        for at, each in enumerate(frames):
            found = search.before(each, _here_of(frames, at))
            if found is not None:
                if isinstance(found, Write):
                    yield found._replace(caller=each, is_own=search.is_own)
                    return
                break
    yield from search.anywhere(scope, frames)


def _here_of(frames: Sequence[Scope], at: int) -> Here:
    """Return the function of a frame with the paths that its callers passed to it."""
    scope = frames[at]
    program = cast("Program", scope.program)
    function = scope.node if isinstance(scope.node, FUNCTIONS) else None
    caller = frames[at + 1] if at + 1 < len(frames) else None
    if function is None or caller is None or not isinstance(caller.call, ast.Call) or caller is not scope.callers[0]:
        return Here(program, function)
    return pass_paths(caller.call, function, _here_of(frames, at + 1), program=program)


def _under_rank_test(scope: Scope) -> bool:
    program, call = scope.program, scope.call
    if program is None or not isinstance(call, ast.expr) or call not in program.code.parent:
        return False
    return any(isinstance(up, ast.If) and _depends_on_rank(up.test) for up in program.code.ancestors(call))


def _depends_on_rank(test: ast.expr) -> bool:
    """True if a test depends on which rank this is."""
    return any(isinstance(node, ast.expr) and is_rank(node) for node in ast.walk(test))


def _names_rank(words: str) -> bool:
    try:
        return _depends_on_rank(ast.parse(words, mode="eval").body)
    except SyntaxError:
        return False


class _Search:
    """Looks for the writes of one path."""

    def __init__(self, path: str, sources: Sources) -> None:
        self.path = path
        self.wanted: tuple[Piece, ...] = ()
        """Path as the line that failed makes it."""
        self.is_own = False
        """True if each rank has a path of its own."""
        self.sources = sources
        self._running: list[Function] = []

    def before(self, scope: Scope, here: Here) -> Write | bool | None:
        """Return the last write before a frame's line, True if the ranks may wait after it, None if there is none."""
        program, call = scope.program, scope.call
        if program is None or not isinstance(call, ast.expr) or call not in program.code.parent:
            return None
        statement: ast.AST = program.code.statement(call)
        while isinstance(statement, ast.stmt):
            block = program.code.block(statement)
            at = next((n for n, each in enumerate(block) if each is statement), 0)
            for event in reversed([*self._events(block[:at], here, None, True, 0)]):
                found = self._judge(event)
                if found is not None:
                    return found
            up = program.code.parent.get(statement)
            while up is not None and not isinstance(up, ast.stmt):
                up = program.code.parent.get(up)
            if up is None or isinstance(up, FUNCTIONS):
                return None
            statement = up
        return None

    def _judge(self, event: _Event) -> Write | bool | None:
        for path in _paths_in(event.call):
            parts = pieces(path, event.here)
            same = bool(self.wanted) and parts == self.wanted
            if same or (written_path(event.call) is not None and self._fits(event.call, parts)):
                if event.guard is None:
                    return True  # this rank ran it too
                return Write(event.call, path, event.here.program, *event.guard, event.sure and same)
        # a rank that waits for the others still has no file of its own
        return True if not self.is_own and _MEETS.search(last_name(event.call)) else None

    def _fits(self, call: ast.Call, parts: Sequence[Piece]) -> bool:
        folder = posixpath.dirname(self.path) if last_name(call) in MAKES_FOLDERS else ""
        return fits(parts, folder or self.path)

    def _events(
        self, body: Sequence[ast.stmt], here: Here, guard: _Guard | None, sure: bool, deep: int
    ) -> Iterator[_Event]:
        """Yield the calls of statements in their order."""
        for statement in body:
            if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
                continue
            if isinstance(statement, ast.If):
                yield from self._calls([statement.test], here, guard, sure, deep)
                by_rank = _depends_on_rank(statement.test)
                own = _Guard(statement.test, here.program)
                yield from self._events(statement.body, here, own if by_rank else guard, sure and by_rank, deep)
                other = _Guard(_negate(statement.test), here.program) if by_rank else guard
                yield from self._events(statement.orelse, here, other, sure and by_rank, deep)
                if isinstance(statement.body[-1], _LEAVES):
                    guard, sure = (other, sure) if by_rank and not statement.orelse else (guard, False)
                continue
            blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
            heads = [each for each in ast.iter_child_nodes(statement) if not isinstance(each, ast.stmt)]
            yield from self._calls(heads, here, guard, sure, deep)
            certain = sure and not isinstance(statement, ast.While | ast.Try)
            for block in blocks:
                yield from self._events(block, here, guard, certain, deep)

    def _calls(
        self, heads: Sequence[ast.AST], here: Here, guard: _Guard | None, sure: bool, deep: int
    ) -> Iterator[_Event]:
        for call in (node for head in heads for node in ast.walk(head) if isinstance(node, ast.Call)):
            found = self._function(call, here.program) if deep < _DEEPEST else None
            if found is None:
                yield _Event(call, here, guard, sure)
                continue
            function, program = found
            if _MEETS.search(function.name):
                yield _Event(call, here, guard, sure)
            if function in self._running:
                continue
            self._running.append(function)
            alone = next((d for d in function.decorator_list if _ON_ONE.search(dotted_name(d))), None)
            inside = _Guard(alone, program) if alone is not None else guard
            yield from self._events(
                function.body, pass_paths(call, function, here, program=program), inside, sure, deep + 1
            )
            self._running.pop()

    def _function(self, call: ast.Call, program: Program) -> tuple[Function, Program] | None:
        """Return the function of the program that a call enters."""
        found = program.code.local_function(call)
        if found is not None:
            return found, program
        name = dotted_name(call.func)
        imported = program.code.imports.get(name, "")
        if imported:
            module, _, last = imported.rpartition(".")
            other = self.sources.of_module(module, program.file) if module else None
            return _only(last, other) if other is not None else None
        owner, _, last = name.rpartition(".")
        if owner in program.code.imports:
            other = self.sources.of_module(program.code.imports[owner], program.file)
            return _only(last, other) if other is not None else None
        only = _only(last, program) if owner and not _MEETS.search(last) else None
        own = only is not None and (written_path(call) is None or _is_object_of(only[0], owner, program))
        return only if own else None

    def anywhere(self, scope: Scope, frames: Sequence[Scope]) -> Iterator[Write]:
        """Yield the calls of the user's files that write such a path."""
        for program in own_programs(scope, self.sources):
            for call in program.code.nodes(ast.Call):
                function = program.code.function(call)
                at = next((n for n, each in enumerate(frames) if each.node is function), None)
                here = Here(program, function) if at is None else _here_of(frames, at)
                is_file = written_path(call) is not None and last_name(call) not in MAKES_FOLDERS
                for path in _paths_in(call) if is_file else ():
                    if self._fits(call, pieces(path, here)):
                        yield Write(call, path, program)
                        break


def _paths_in(call: ast.Call) -> list[ast.expr]:
    """Return the expressions of a call that can be a path it writes to; none of a call that only reads or shows."""
    if _SHOWS.search(last_name(call)):
        return []
    if last_name(call) == "open" and written_path(call) is None:
        return []
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [*(a for a in call.args if not isinstance(a, ast.Starred)), *(k.value for k in call.keywords), *owner]


def _only(name: str, program: Program) -> tuple[Function, Program] | None:
    found = program.code.functions.get(name, [])
    return (found[0], program) if len(found) == 1 else None


def _is_object_of(method: Function, name: str, program: Program) -> bool:
    """True if a name is bound to an object of the class of a method."""
    code = program.code
    defined = code.class_of(method)
    made = code.calls(defined.name) if isinstance(defined, ast.ClassDef) else []
    bound = [up for call in made if isinstance(up := code.parent.get(call), ast.Assign)]
    return any(dotted_name(target) == name for each in bound for target in each.targets)


def _negate(test: ast.expr) -> ast.expr:
    """Return the opposite of a test, at its place."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return inner
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]):
            return ast.copy_location(ast.Compare(left, [ast.Eq()], [right]), test)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Gt()], comparators=[right]):
            return ast.copy_location(ast.Compare(left, [ast.NotEq()], [right]), test)
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)

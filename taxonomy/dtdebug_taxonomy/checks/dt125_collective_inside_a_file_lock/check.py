"""Collectives that each rank calls with a lock that the other ranks want first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.divergence.interpreter import interpreter
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name

_LOCKS = {
    *(f"filelock.{name}" for name in ("FileLock", "SoftFileLock", "UnixFileLock", "WindowsFileLock")),
    *("portalocker.Lock", "portalocker.RLock", "datasets.utils.filelock.FileLock"),
    *("fasteners.InterProcessLock", "fasteners.process_lock.InterProcessLock"),
}
"""Locks that processes share by a file, one of which holds it at a time."""
_FLOCK = ("fcntl.flock", "fcntl.lockf")
_OWN = re.compile(r"(?i)rank|getpid|uuid|temp|hostname|gethost")
"""Words of a path that only one rank has, or may have."""
_DEEPEST = 3


def check(code: Code) -> Iterator[Hit]:
    """Report the collective between the lock and its release."""
    if code.role == "test":
        return
    seen: set[ast.Call] = set()
    for call in _calls_under_lock(code):
        if call in seen or guards(code).around(call):
            continue
        seen.add(call)
        names = interpreter(code).leads(call)
        own = dotted_name(call.func).rpartition(".")[2]
        what = f"{names[0]}() is" if own == names[0] else f"{own}(), which leads to {names[0]}(), is"
        yield Hit(
            code.span(call),
            f"{what} called with the lock held: the rank that has it waits here for the others, "
            "and they wait for the lock.",
        )


def _calls_under_lock(code: Code) -> Iterator[ast.Call]:
    """Yield the calls that wait for all ranks while a lock is held that each rank takes."""
    for block in code.nodes(ast.With):
        if any(_is_lock(code, item.context_expr) for item in block.items) and not guards(code).around(block):
            for statement in block.body:
                yield from _waiting(code, statement)
    taken = [*code.methods("acquire"), *code.calls(*_FLOCK)]
    for call in taken:
        statement = code.statement(call)
        if isinstance(statement, ast.Expr) and statement.value is call and _takes(code, call):
            yield from _until_release(code, statement)


def _until_release(code: Code, statement: ast.stmt) -> Iterator[ast.Call]:
    """Yield the waiting calls after a statement that takes a lock, up to the one that releases it."""
    block = code.block(statement)
    later = block[block.index(statement) + 1 :] if statement in block else []
    end = next((at for at, s in enumerate(later) if _releases(code, s)), None)
    if end is None or guards(code).around(statement):
        return
    inside, last = later[:end], later[end]
    if isinstance(last, ast.Try) and any(_releases(code, s) for s in last.finalbody):
        inside = [*inside, *last.body]
    for each in inside:
        yield from _waiting(code, each)


def _waiting(code: Code, statement: ast.stmt) -> Iterator[ast.Call]:
    for call in code.inside(statement, ast.Call):
        names = interpreter(code).leads(call)
        if names and names[0] != "backward" and code.function(call) is code.function(statement):
            yield call


def _is_lock(code: Code, context: ast.expr) -> bool:
    """True if a context is a lock that processes share and wait for without a limit."""
    if isinstance(context, ast.Call):
        if isinstance(context.func, ast.Attribute) and context.func.attr == "acquire":
            return _takes(code, context)
        function = code.local_function(context)
        if function is not None:
            managed = any(code.name(d).endswith("contextmanager") for d in function.decorator_list)
            inner = [c for c in code.inside(function, ast.Call) if c in set(code.calls(*_FLOCK))]
            return managed and any(_takes(code, c) for c in inner) and not _is_own(code, context)
    made = code.made_by(context) - {""}
    return bool(made) and made <= _LOCKS and not _is_own(code, context) and not _is_limited(code, context)


def _takes(code: Code, call: ast.Call) -> bool:
    """True if a call takes a lock, and waits for it without a limit."""
    if code.name(call.func) in _FLOCK:
        flags = code.source_of(call.args[1]) if len(call.args) > 1 else ""
        return "LOCK_EX" in flags and "LOCK_NB" not in flags and not _is_own(code, call.args[0])
    if call.args or call.keywords or not isinstance(call.func, ast.Attribute):
        return False
    return _is_lock(code, call.func.value)


def _releases(code: Code, statement: ast.stmt) -> bool:
    for call in code.inside(statement, ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "release":
            return True
        if code.name(call.func) in _FLOCK and "LOCK_UN" in code.source_of(call):
            return True
    return False


def _is_limited(code: Code, lock: ast.expr) -> bool:
    """True if a lock was made with a limit, after which the others go on or fail."""
    return any(
        k.arg is None or k.arg in {"timeout", "blocking", "fail_when_locked", "flags"}
        for made in _makers(code, lock)
        for k in made.keywords
    ) or any(len(made.args) > 1 for made in _makers(code, lock))


def _makers(code: Code, lock: ast.expr) -> list[ast.Call]:
    values = [lock] if isinstance(lock, ast.Call) else code.values(lock)
    return [v for v in values if isinstance(v, ast.Call)]


def _is_own(code: Code, node: ast.expr, depth: int = _DEEPEST) -> bool:
    """True if the path of a lock may be one that no other rank has."""
    if _OWN.search(code.source_of(node)):
        return True
    names = [n for n in code.inside(node, ast.Name, ast.Attribute) if dotted_name(n)]
    return depth > 0 and any(
        _is_own(code, value, depth - 1)
        for name in names
        for value in code.values(name)
        if value is not None and value is not name
    )

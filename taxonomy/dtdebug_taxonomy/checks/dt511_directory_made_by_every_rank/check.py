"""Directories that every rank creates after checking whether they exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.arguments import add, keyword
from dtdebug_taxonomy.checks.shared.names import COLLECTIVES, DDP, DIST, FSDP, INIT
from dtdebug_taxonomy.checks.shared.ranks_seen import STARTS, depends_on_rank, is_reached, starts_ranks
from dtdebug_taxonomy.source.python.bindings import leaves
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import several
from dtdebug_taxonomy.source.python.syntax import SCOPES, Function

_LOOKS = re.compile(r"\b(exists|isdir|is_dir|access)\b")
_MAIN = re.compile(r"main_proc|is_main|if_main|master|rank|chief|primary", re.IGNORECASE)
_STARTERS = ("subprocess.Popen", "subprocess.run", "torch.multiprocessing.spawn", "torch.multiprocessing.Process")
_ASKS = ("rank", "size", "local_rank", "DistributedOptimizer", "broadcast_parameters", "allreduce", "allgather")
_OWN = re.compile(r"rank|local|uuid|getpid|tempfile|mkdtemp|hostname|gethostname", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the call that creates the directory."""
    calls = [*code.calls("os.makedirs", "os.mkdir"), *(c for c in code.methods("mkdir") if _of_a_path(code, c))]
    if not calls or code.role == "test" or not (starts_ranks(code) or code.calls(DDP, FSDP)):
        return
    differ: bool | None = None
    for call in calls:
        name = code.name(call.func)
        where = call.args[0] if name in {"os.makedirs", "os.mkdir"} and call.args else call.func
        if code.argument(call, "exist_ok", 2) is not None or code.has_unpacking(call):
            continue
        if not (is_reached(code, call) or _starts_too(code, call)):
            continue
        if not _after_a_look(code, call) or _is_protected(code, call) or _of_this_rank(code, where):
            continue
        if _made_before(code, call, where) or _launches(code, call) or _for_others(code, code.function(call)):
            continue
        differ = _ranks_differ(code) if differ is None else differ
        yield Hit(
            code.span(call),
            "Every rank comes here: two of them can find the directory missing, and the second to make it ends with "
            "FileExistsError.",
            _fix(code, call, name),
            None if differ else "hint",
        )


def _ranks_differ(code: Code) -> bool:
    """True if there are more signs of several ranks than a group, which some libraries need for one process too."""
    asked = (*code.calls(DIST + "get_rank", DIST + "get_world_size", *COLLECTIVES), *horovod.calls(code, *_ASKS))
    if code.calls(DDP, FSDP, *STARTS[1:]) or asked:
        return True
    return re.search(r"(?i)local_?rank|Distributed(Sampler|DataParallel)", code.text) is not None


def _starts_too(code: Code, call: ast.Call) -> bool:
    """True if the function that creates the directory also joins the process group or wraps the model."""
    home = code.function(call)
    return any(code.function(c) is home for c in (*code.calls(INIT, DDP, FSDP), *horovod.calls(code, "init")))


def _of_a_path(code: Code, call: ast.Call) -> bool:
    return code.name(call.func) != "os.mkdir" and len(call.args) == 0


def _after_a_look(code: Code, call: ast.Call) -> bool:
    """True if the directory is created only if it is missing."""
    inner: ast.AST = call
    for up in code.ancestors(call):
        if isinstance(up, SCOPES):
            return False
        if isinstance(up, ast.If) and inner in up.body and _is_missing(code, up.test):
            return True
        if isinstance(up, ast.If) and inner in up.orelse and _is_there(code, up.test):
            return True
        inner = up
    return False


def _is_missing(code: Code, test: ast.expr) -> bool:
    return any(
        isinstance(n.op, ast.Not) and _LOOKS.search(code.source_of(n)) for n in code.inside(test, ast.UnaryOp)
    ) or (isinstance(test, ast.Compare) and bool(_LOOKS.search(code.source_of(test))))


def _is_there(code: Code, test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and bool(_LOOKS.search(code.source_of(test.func)))


def _is_protected(code: Code, call: ast.Call, depth: int = 3) -> bool:
    """True if only one rank gets here or the error is caught, here or in all callers."""
    if guards(code).around(call) or _comes_first(code, call):
        return True
    inner: ast.AST = call
    for up in code.ancestors(call):
        if isinstance(inner, ast.stmt) and any(_refuses_several(code, s) for s in code.block(inner)):
            return True
        if isinstance(up, ast.If) and inner is not up.test and _MAIN.search(code.source_of(up.test)):
            return True
        if isinstance(up, ast.Try) and inner in up.body and up.handlers:
            return True
        inner = up
    function: Function | None = code.function(call)
    if function is None or not depth:
        return False
    callers = code.callers.get(function, [])
    return bool(callers) and all(_is_protected(code, c, depth - 1) for c in callers)


def _refuses_several(code: Code, statement: ast.stmt) -> bool:
    """True for `if args.distributed: raise`: what comes after it is for one process."""
    return isinstance(statement, ast.If) and leaves(statement.body) and several(code, statement.test) is True


def _comes_first(code: Code, call: ast.Call) -> bool:
    """True if the other ranks wait at a separate barrier until rank 0 has passed."""
    barriers = [b for b in code.calls(DIST + "barrier") if code.function(b) is code.function(call)]
    before = [b for b in barriers if code.order[b] < code.order[call] and guards(code).around(b)]
    return bool(before) and any(not g.test.equal for g in guards(code).around(before[-1]))


def _made_before(code: Code, call: ast.Call, where: ast.expr) -> bool:
    """True if the same function has already created the directory, whichever rank was first."""
    return any(
        code.argument(c, "exist_ok", 2) is not None
        and code.order[c] < code.order[call]
        and code.function(c) is code.function(call)
        and bool(c.args)
        and code.source_of(c.args[0]) == code.source_of(where)
        for c in code.calls("os.makedirs")
    )


def _for_others(code: Code, function: Function | None, depth: int = 3) -> bool:
    """True if only other modules determine which ranks get here: a method that no call in this file reaches."""
    if function is None or code.class_of(function) is None or function.name == "__init__" or not depth:
        return False
    return all(_for_others(code, code.function(c), depth - 1) for c in code.callers.get(function, ()))


def _launches(code: Code, call: ast.Call) -> bool:
    """True if the function that creates the directory later starts processes: it is the launcher, which runs once."""
    started = (c for c in code.calls(*_STARTERS) if code.order[c] > code.order[call])
    return any(code.function(c) is code.function(call) for c in started)


def _of_this_rank(code: Code, where: ast.expr) -> bool:
    """True if no other rank uses the path."""
    if depends_on_rank(code, where) or _OWN.search(code.source_of(where)):
        return True
    root = where.value if isinstance(where, ast.Attribute) and not dotted_name(where) else where
    return any(v is not None and _OWN.search(code.source_of(v)) for v in code.values(root))


def _fix(code: Code, call: ast.Call, name: str) -> Fix | None:
    title = "Accept that it is there already"
    if name == "os.mkdir":
        if not isinstance(call.func, ast.Attribute) or keyword(call, "dir_fd"):
            return None
        return Fix(title, (Edit(code.span(call.func), "os.makedirs"), add(code, call, "exist_ok=True")))
    return Fix(title, (add(code, call, "exist_ok=True"),))

"""Files and directories that every rank writes, copies or removes, near code that only rank 0 runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.shared.diverging import last_name
from dtdebug_taxonomy.checks.shared.everyone import (
    all_within,
    for_all_in,
    is_shared,
    main_guard,
    nearby_guard,
    nearby_module_guard,
)
from dtdebug_taxonomy.checks.shared.fixing import conditional, main_process
from dtdebug_taxonomy.checks.shared.names import COLLECTIVES
from dtdebug_taxonomy.checks.shared.ranks_seen import is_started_here, starts_ranks
from dtdebug_taxonomy.checks.shared.writing import all_shared, file_writes, written_by, written_together
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard

_REMOVES = ("shutil.rmtree", "os.remove", "os.unlink", "os.rename", "os.replace", "shutil.move")
_MEETS = COLLECTIVES | {f"torch.distributed.checkpoint.{n}" for n in ("save", "load", "async_save")}
_MOST = 50
"""Maximum number of collectives of a class, and of calls that lead to a write, to inspect."""
_HOOKED = re.compile(r"(pytorch_lightning|lightning|transformers)\.(\w+\.)*(\w*Callback|LightningModule)")
_SO = "they overwrite each other, and what one removes another still needs."
_CALLED = "is called on every process"
_RANKS = re.compile(r"rank|zero|main|master|devices|world")
_HOOK = re.compile(r"on_\w+|(training|validation|test)_epoch_end")


def check(code: Code) -> Iterator[Hit]:
    """Report the call that writes."""
    if code.role == "test":
        return
    yield from _removed_together(code)
    whole = is_started_here(code) and starts_ranks(code)
    yield from islice(_written_elsewhere(code), _MOST)
    for call, path in file_writes(code):
        if (hook := _hook(code, call)) and is_shared(code, path):
            yield Hit(
                code.span(call),
                f"{hook}() {_CALLED}, and each of them does this to the same file: {_SO}",
                _fix(code, call, None),
            )
            continue
        if not is_shared(code, path) or (code.class_of(call) is None and code.function(call) is None and not whole):
            continue
        guard = nearby_guard(code, call) or nearby_module_guard(code, call)
        if guard is None:
            continue
        line = code.text.place(code.span(guard.node).start).line
        yield Hit(
            code.span(call),
            f"Every rank does this to the same file, unlike what line {line} leaves to rank 0: {_SO}",
            _fix(code, call, guard),
        )


def _removed_together(code: Code) -> Iterator[Hit]:
    """Report files removed by methods of a class that every rank instantiates, since another method communicates."""
    meetings: dict[ast.ClassDef, ast.Call | None] = {}
    for call in code.calls(*_REMOVES):
        home, function, path = code.class_of(call), code.function(call), code.argument(call, "path", 0)
        if home is None or function is None or path is None or code.argument(call, "ignore_errors", 1) is not None:
            continue
        if home not in meetings:
            calls = islice((c for c in code.inside(home, ast.Call) if code.name(c.func) in _MEETS), _MOST)
            meetings[home] = next((c for c in calls if for_all_in(code, c)), None)
        meets = meetings[home]
        if meets is None or any(isinstance(up, ast.Try) for up in code.ancestors(call)):
            continue
        shared = for_all_in(code, call) and is_shared(code, path, listed=True)
        if shared and nearby_guard(code, call) is None:
            line = code.text.place(code.span(meets).start).line
            yield Hit(
                code.span(call),
                f"Every rank has such an object (all of them meet at line {line}) and removes the same file here: the "
                "first one does, and the others end with FileNotFoundError.",
            )


def _written_elsewhere(code: Code) -> Iterator[Hit]:
    """Report calls near code for rank 0 of functions that write a file, in any module of the program."""
    aware = [f for f in code.all_functions if _HOOK.fullmatch(f.name) or main_guard(code, f) is not None]
    for call in (c for f in aware for c in code.inside(f, ast.Call) if code.function(c) is f):
        found = written_by(code, call)
        if found is None or not all_shared(code, call):
            continue
        guard, hook = nearby_guard(code, call), _hook(code, call)
        if guard is None and not hook:
            continue
        where = "" if found.code is code else f" (in {found.code.path.rpartition('/')[2]})"
        line = code.text.place(code.span(guard.node).start).line if guard is not None else 0
        why = f"every rank calls it, unlike what line {line} leaves to rank 0" if line else f"{hook}() {_CALLED}"
        yield Hit(
            code.span(call),
            f"{last_name(code, call)}() writes or removes a file{where}, and {why}: {_SO}",
            _fix(code, call, guard),
        )


def _hook(code: Code, call: ast.Call) -> str:
    """Return the hook of Lightning or the Trainer that contains a call and runs on every process; else ""."""
    home, function = code.class_of(call), code.function(call)
    if home is None or function is None or not _HOOK.fullmatch(function.name) or not all_within(code, call, function):
        return ""
    others = (i for i in code.inside(home, ast.If) if code.function(i) is not function)
    asks_there = any(_RANKS.search(code.source_of(i.test)) for i in others)
    hooked = any(_HOOKED.fullmatch(code.name(b)) for b in home.bases)
    return function.name if hooked and not asks_there else ""


def _fix(code: Code, call: ast.Call, guard: Guard | None) -> Fix | None:
    """Return a fix that puts the guard's condition around the statement, if its names are not used elsewhere."""
    statement = code.statement(call)
    test, imports = main_process(code, guard, statement)
    test = test.replace(".is_local_main_process", ".is_main_process")  # machines share their storage
    if not test or not isinstance(statement, ast.Expr | ast.With):
        return None
    bound = {n.id for n in code.inside(statement, ast.Name) if isinstance(n.ctx, ast.Store)}
    inside = set(code.inside(statement, ast.Name))
    used = bool(bound) and any(
        n.id in bound and n not in inside for n in code.nodes(ast.Name) if isinstance(n.ctx, ast.Load)
    )
    edits = () if used else conditional(code, written_together(code, statement), test)
    return Fix("Do it on rank 0 only", (*imports, *edits)) if edits else None

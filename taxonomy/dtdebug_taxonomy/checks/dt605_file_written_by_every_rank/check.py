"""Files and directories that every rank writes, copies or removes, beside code that rank 0 alone runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.everyone import beside_a_guard, for_all, for_all_in, is_shared
from dtdebug_taxonomy.checks.fixing import conditional, main_process
from dtdebug_taxonomy.checks.names import COLLECTIVES
from dtdebug_taxonomy.checks.ranks_seen import is_started_here, starts_ranks
from dtdebug_taxonomy.source.guards import Guard
from dtdebug_taxonomy.source.python import Code

_WRITES = {
    "open": ("file", 0),
    "numpy.save": ("file", 0),
    "numpy.savez": ("file", 0),
    "numpy.savetxt": ("fname", 0),
    "joblib.dump": ("filename", 1),
    "shutil.copytree": ("dst", 1),
    "shutil.copy": ("dst", 1),
    "shutil.copyfile": ("dst", 1),
    "shutil.move": ("dst", 1),
    "shutil.rmtree": ("path", 0),
    "os.remove": ("path", 0),
    "os.unlink": ("path", 0),
    "os.rename": ("dst", 1),
    "os.replace": ("dst", 1),
    "omegaconf.OmegaConf.save": ("f", 1),
    "safetensors.torch.save_file": ("filename", 1),
}
_REMOVES = ("shutil.rmtree", "os.remove", "os.unlink", "os.rename", "os.replace", "shutil.move")
_MEETS = COLLECTIVES | {f"torch.distributed.checkpoint.{n}" for n in ("save", "load", "async_save")}
_MOST = 50
"""So many collectives of a class are looked at."""
_METHODS = {"save_pretrained": ("save_directory", 0), "to_csv": ("path_or_buf", 0), "savefig": ("fname", 0)}


def check(code: Code) -> Iterator[Hit]:
    """Reports the call that writes."""
    if code.role == "test":
        return
    yield from _removed_together(code)
    whole = is_started_here(code) and starts_ranks(code)
    for call, path in _written(code):
        if not isinstance(path, ast.Name | ast.Attribute | ast.JoinedStr | ast.BinOp | ast.Call | ast.Constant):
            continue
        if not is_shared(code, path) or (code.class_of(call) is None and code.function(call) is None and not whole):
            continue
        guard = beside_a_guard(code, call)
        if guard is None or (code.function(call) is None and not for_all(code, call)):
            continue
        line = code.text.place(code.span(guard.node).start).line
        yield Hit(
            code.span(call),
            f"Every rank does this to the same file, unlike what line {line} leaves to rank 0: they overwrite each "
            "other, and what one removes another still needs.",
            _fix(code, call, guard),
        )


def _removed_together(code: Code) -> Iterator[Hit]:
    """Files that a method removes, in a class of which every rank holds an object: another method communicates."""
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
        if shared and beside_a_guard(code, call) is None:
            line = code.text.place(code.span(meets).start).line
            yield Hit(
                code.span(call),
                f"Every rank has such an object (all of them meet at line {line}) and removes the same file here: the "
                "first one does, and the others end with FileNotFoundError.",
            )


def _written(code: Code) -> Iterator[tuple[ast.Call, ast.expr | None]]:
    for call in code.calls(*_WRITES):
        if code.name(call.func) != "open" or _opens_to_write(code, call):
            yield call, code.argument(call, *_WRITES[code.name(call.func)])
    for call in code.methods(*_METHODS):
        if code.argument(call, "is_main_process") is None:
            yield call, code.argument(call, *_METHODS[call.func.attr])  # type: ignore[attr-defined]


def _opens_to_write(code: Code, call: ast.Call) -> bool:
    mode = code.constant(code.argument(call, "mode", 1))
    return isinstance(mode, str) and mode[:1] in {"w", "x"}


def _fix(code: Code, call: ast.Call, guard: Guard) -> Fix | None:
    """The condition of the guard around the statement, where nothing that it binds is used after it."""
    statement = code.statement(call)
    test, imports = main_process(code, guard, statement)
    if not test or not isinstance(statement, ast.Expr | ast.With):
        return None
    bound = {n.id for n in code.inside(statement, ast.Name) if isinstance(n.ctx, ast.Store)}
    inside = set(code.inside(statement, ast.Name))
    used = any(n.id in bound and n not in inside for n in code.nodes(ast.Name) if isinstance(n.ctx, ast.Load))
    edits = () if used else conditional(code, statement, test)
    return Fix("Do it on rank 0 only", (*imports, *edits)) if edits else None

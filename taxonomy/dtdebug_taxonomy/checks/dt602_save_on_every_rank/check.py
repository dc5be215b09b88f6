"""Checkpoints that every rank writes to the same file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.shared.accumulating import ACCELERATOR
from dtdebug_taxonomy.checks.shared.course import Step, courses
from dtdebug_taxonomy.checks.shared.diverging import last_name
from dtdebug_taxonomy.checks.shared.everyone import all_in, all_within, asks, for_all, for_all_in, is_shared
from dtdebug_taxonomy.checks.shared.fixing import conditional, main_process
from dtdebug_taxonomy.checks.shared.names import FULLY_SHARD, INIT
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.checks.shared.writing import written_together
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name

_SAVES = re.compile(r"(^|_)(save|dump|write)")
_SHARDED = ("deepspeed", "torch.distributed.checkpoint", "megatron")


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    if code.calls(*FSDP1, *FULLY_SHARD) or code.imports_any(*_SHARDED):
        return
    several = bool(code.calls(*DDPS, INIT, ACCELERATOR))
    for call in code.calls("torch.save"):
        path = code.argument(call, "f", 1)
        if path is None or not _is_one_file(code, path):
            continue
        if (several and code.role == "program" and for_all(code, call)) or _unlike_its_siblings(code, call):
            yield Hit(
                code.span(call),
                "Every rank writes this file: they overwrite each other, and the file may end up truncated or corrupt.",
                _fix(code, call),
            )
    if several and code.role == "program":
        yield from _by_helpers(code)
    for call, main in _left_out(code) if code.role != "test" else ():
        line = code.text.place(code.span(main).start).line
        yield Hit(
            code.span(call),
            f"Line {line} leaves this to rank 0, and here every rank writes the same file: they overwrite each other.",
            _fix(code, call),
        )


def _by_helpers(code: Code) -> Iterator[Hit]:
    """Report calls on all ranks of what saves in another file: nothing on the way asks the rank."""
    seen: set[ast.AST] = set()
    for steps in courses(code) if code.project is not None and code.project.reaches(code) else ():
        for save in (s for s in steps if s.name == "torch.save" and isinstance(s.node, ast.Call)):
            path = save.code.argument(save.node, "f", 1)  # type: ignore[arg-type]
            if path is None or not save.calls or not _is_one_file(save.code, path):
                continue
            if save.code is code:
                continue  # seen without following
            own = [c.node for c in save.calls if c.code is code]
            if not own or own[-1] in seen or save.code.calls(*FSDP1) or save.code.imports_any(*_SHARDED):
                continue
            way = [(c.code, c.node) for c in save.calls] + [(save.code, save.node)]
            if _names_one_file(save, path) and all(_is_for_all(at, node) for at, node in way):  # type: ignore[arg-type]
                seen.add(own[-1])
                yield Hit(
                    code.span(own[-1]),
                    f"Every rank comes to torch.save() in {_spell_call(save)}: they overwrite each other's file, "
                    "and it may end up truncated or corrupt.",
                )


def _is_for_all(code: Code, call: ast.Call) -> bool:
    """True if nothing in its function keeps any rank from a call."""
    function = code.function(call)
    return not guards(code).around(call) if function is None else all_within(code, call, function)


def _names_one_file(save: Step, path: ast.expr) -> bool:
    """True if what the last call passes for the path of a file is the same on all ranks."""
    at, call = save.calls[-1]
    values = [path, *(v for v in save.code.values(path) if v is not None)]
    names = {n.id for v in values for n in save.code.inside(v, ast.Name)}
    function = save.code.function(save.node)
    parameters = [a.arg for a in function.args.args] if function is not None else []
    own = parameters[1:] if parameters[:1] == ["self"] else parameters
    given = [at.argument(call, name, place) for place, name in enumerate(own) if name in names]
    return all(a is None or is_shared(at, a) for a in given)


def _spell_call(save: Step) -> str:
    function = save.code.function(save.node)
    return f"{function.name}()" if function is not None else save.code.path


def _left_out(code: Code) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Yield calls on all ranks of a function that saves, with a call of it for rank 0 in the same place."""
    for save in code.calls("torch.save"):
        function, path = code.function(save), code.argument(save, "f", 1)
        if function is None or path is None or not _is_one_file(code, path) or _may_be_for_some(code, save):
            continue
        calls = code.callers.get(function, [])
        is_main = (any(g.test.value == "0" and g.test.equal for g in guards(code).around(c)) for c in calls)
        mains = {_home(code, c): c for c, main in zip(calls, is_main, strict=True) if main}
        for call in calls:
            main, inside = mains.get(_home(code, call)), code.function(call)
            if inside is None or inside is function or not (main and for_all_in(code, call)):
                continue
            if not _may_be_for_some(code, call) and all(is_shared(code, a) for a in call.args):
                yield call, main


def _home(code: Code, call: ast.Call) -> ast.AST | None:
    """Return the class, else the function, that contains a call."""
    return code.class_of(call) or code.function(call)


def _may_be_for_some(code: Code, node: ast.AST) -> bool:
    """True if a condition around a place, or before it, is or may be on the rank."""
    around = (up.test for up in code.ancestors(node) if isinstance(up, ast.If | ast.IfExp))
    return bool(guards(code).around(node)) or any(asks(code, test) for test in around)


def _unlike_its_siblings(code: Code, call: ast.Call) -> bool:
    """True if other methods of its class save only on rank 0, but its own method does not."""
    home, function = code.class_of(call), code.function(call)
    if home is None or function is None or code.role == "test" or not all_in(code, call, function, 2):
        return False
    others = (c for c in code.inside(home, ast.Call) if _SAVES.search(last_name(code, c)))
    return any(
        g.test.value == "0" and g.test.equal and not g.early
        for c in others
        if code.function(c) is not function
        for g in guards(code).around(c)
    )


def _is_one_file(code: Code, path: ast.expr) -> bool:
    """True if all ranks definitely write to the same path."""
    for binding in code.bound(path) if isinstance(path, ast.Name) else ():
        if binding.how == "with" and isinstance(binding.value, ast.Call) and binding.value.args:
            path = binding.value.args[0]  # `with open(path) as file`
    known = not isinstance(path, ast.Call) or dotted_name(path.func).endswith(("join", "Path", "format", "str"))
    return known and is_shared(code, path)


def _fix(code: Code, call: ast.Call) -> Fix | None:
    """Return a fix that puts the statement under a condition on the rank."""
    statement = code.statement(call)
    test, imports = main_process(code, None, statement)
    edits = (
        conditional(code, written_together(code, statement), test) if test and isinstance(statement, ast.Expr) else ()
    )
    return Fix("Save on rank 0 only", (*imports, *edits)) if edits else None

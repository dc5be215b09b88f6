"""Edits that several fixes need."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dtdebug_taxonomy.checks import Edit, Fix
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.names import DDP, DIST, FSDP, INIT, TRAINERS
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_MAIN_PROCESS = {
    "accelerate.Accelerator": "is_main_process",
    "accelerate.PartialState": "is_main_process",
    "lightning_fabric.Fabric": "is_global_zero",
    "pytorch_lightning.Trainer": "is_global_zero",
    **dict.fromkeys(TRAINERS, "is_world_process_zero()"),
}
"""Class of a framework -> attribute of its objects that is true on the main process."""
_GIVEN = (
    ("pytorch_lightning", "trainer", "trainer.is_global_zero"),
    ("lightning", "trainer", "trainer.is_global_zero"),
    ("transformers", "state", "state.is_world_process_zero"),
)
"""Package of a callback, argument of its methods, and the test on that argument."""
_PERHAPS = (ast.If, ast.IfExp, ast.Try, ast.While, ast.BoolOp, ast.Lambda)


def written_name(code: Code, qualified: str) -> tuple[str, tuple[Edit, ...]]:
    """Return the program's spelling of a qualified name, with the import edits that it needs."""
    for local, full in code.imports.items():
        if full == qualified:
            return local, ()
    module, _, last = qualified.rpartition(".")
    for local, full in code.imports.items():
        if full == module and _at_module_level(code, local):
            return f"{local}.{last}", ()
    if not module or "." in module:
        by_name = any(
            full.rpartition(".")[0] == module and _at_module_level(code, n) for n, full in code.imports.items()
        )
        if by_name and last not in code.functions:
            return last, _import(code, f"from {module} import {last}")
        written = any(code.source_of(node) == module for node in code.nodes(ast.Attribute))
        return qualified, () if written else _import(code, f"import {module}")
    return last, _import(code, f"from {module} import {last}")


def written_names(code: Code, one: str, other: str) -> tuple[str, str, tuple[Edit, ...]]:
    """Return the program's spellings of two qualified names, with the import edits that they need."""
    (first, edits), (second, more) = written_name(code, one), written_name(code, other)
    texts = "".join(dict.fromkeys(e.text for e in (*edits, *more)))
    return first, second, tuple(e._replace(text=texts) for e in (edits or more))


def environment_number(code: Code, variable: str) -> tuple[str, tuple[Edit, ...]]:
    """Return an expression for an environment variable as a number, with the import edits that it needs."""
    if code.imports.get("os") == "os":
        return f'int(os.environ["{variable}"])', ()
    return f'int(os.environ["{variable}"])', _import(code, "import os")


def choose_device(code: Code, call: ast.Call) -> Fix | None:
    """Return a fix that sets the device before a call that starts the process group, if a launcher tells its number."""
    if not is_launched(code, call):
        return None
    torch = next((local for local, full in code.imports.items() if full == "torch"), "")
    if not isinstance(statement := code.parent[call], ast.Expr) or not torch:
        return None
    rank, imports = environment_number(code, "LOCAL_RANK")
    start = code.span(statement).start
    text = f"{torch}.cuda.set_device({rank})\n{indent_of(code, statement)}"
    return Fix("Choose the device by LOCAL_RANK", (Edit(Span(start, start), text), *imports))


def has_group(code: Code) -> bool:
    """True if every run of the program has a process group: it starts one, or wraps its model, under no condition."""
    return code.in_step or any(
        not any(isinstance(a, _PERHAPS) and not is_main(a) for a in code.ancestors(call))
        for call in code.calls(INIT, DDP, FSDP)
    )


def is_launched(code: Code, start: ast.Call) -> bool:
    """True if a launcher tells the program its rank: it reads that, or leaves it to the call that starts the group."""
    if any(v.name == "LOCAL_RANK" and not v.is_set for v in code.variables):
        return True
    own = {"RANK", "WORLD_SIZE", "MASTER_ADDR"} & {v.name for v in code.variables if v.is_set}
    return not own and not {"rank", "world_size", "store", "init_method"} & {k.arg for k in start.keywords}


def statement_lines(code: Code, statement: ast.stmt) -> Span | None:
    """Return all lines of a statement with their line breaks; None if it shares a line with another."""
    span = code.span(statement)
    first, last = code.text.place(span.start).line, code.text.place(span.end).line
    start = code.text.starts[first - 1]
    rest = code.text[span.end : code.text.end_of_line(last)].strip()
    if code.text[start : span.start].strip() or (rest and not rest.startswith("#")):
        return None
    end = code.text.starts[last] if last < len(code.text.starts) else len(code.text)
    return Span(start, end)


def own_lines(code: Code, statement: ast.stmt) -> range | None:
    """Return a statement's line numbers; None if it shares a line or contains a multi-line string."""
    strings = code.inside(statement, ast.Constant, ast.JoinedStr)
    if statement_lines(code, statement) is None or any(s.end_lineno != s.lineno for s in strings):
        return None
    first, last = (code.text.place(o).line for o in code.span(statement))
    return range(first, last + 1)


def deeper(indent: str) -> str:
    """Return an indentation one level deeper, with the same characters."""
    return indent + ("\t" if "\t" in indent else "    ")


def conditional(code: Code, statements: Sequence[ast.stmt], test: str) -> tuple[Edit, ...]:
    """Put statements that follow each other under `if test:`; return no edits if that would break other lines."""
    found = [own_lines(code, s) for s in statements]
    if None in found:
        return ()
    lines = range(min(r.start for r in found if r), max(r.stop for r in found if r))
    indent = indent_of(code, statements[0])
    step = deeper(indent)[len(indent) :]
    starts = [code.text.starts[n - 1] for n in lines if code.text.line(n).strip()]
    return (
        Edit(Span(starts[0], starts[0]), f"{indent}if {test}:\n{step}"),
        *(Edit(Span(start, start), step) for start in starts[1:]),
    )


def main_process(code: Code, guard: Guard | None, node: ast.AST) -> tuple[str, tuple[Edit, ...]]:
    """Return a condition that is true on rank 0 alone at a node's place, with the import edits that it needs.

    Prefers the guard's condition if its names mean the same there, then the idiom of the program's framework, then
    torch.distributed if the program imports it. Empty if none applies.
    """
    if guard is not None and isinstance(guard.node, ast.If) and _means_the_same(code, guard.node.test, node):
        return code.source_of(guard.node.test), ()
    if asked := _of_framework(code, node):
        return asked, ()
    if "torch.distributed" not in code.imports.values() and not code.calls(INIT):
        return "", ()
    if _group_is_there(code, node):
        get_rank, imports = written_name(code, DIST + "get_rank")
        return f"{get_rank}() == 0", imports
    asked, get_rank, imports = written_names(code, DIST + "is_initialized", DIST + "get_rank")
    return f"not {asked}() or {get_rank}() == 0", imports


def _of_framework(code: Code, node: ast.AST) -> str:
    """Return the main-process test of a framework object that is made in the function or class, or passed in."""
    for call in code.calls(*_MAIN_PROCESS):
        made = code.parent[call]
        name = dotted_name(made.targets[0]) if isinstance(made, ast.Assign) else ""
        own = name.startswith("self.") and code.class_of(call) is code.class_of(node)
        if own or (name and code.function(call) is code.function(node) and code.order[call] < code.order[node]):
            return f"{name}.{_MAIN_PROCESS[code.name(call.func)]}"
    home, function = code.class_of(node), code.function(node)
    bases = [code.name(b) for b in home.bases] if home is not None else []
    given = {a.arg for a in (*function.args.posonlyargs, *function.args.args)} if function is not None else set()
    attached = function is not None and function.name != "__init__"
    if attached and "self" in given and any(b.endswith(".LightningModule") for b in bases):
        return "self.trainer.is_global_zero"
    for base, argument, asked in _GIVEN:
        if argument in given and any(b.startswith(base) and b.endswith("Callback") for b in bases):
            return asked
    before = (horovod.prefix(code, call) for call in horovod.calls(code, "init"))
    return next((f"{hvd}rank() == 0" for hvd in before if _at_module_level(code, hvd.partition(".")[0])), "")


def negate_condition(test: str) -> str:
    """Return the negation of such a condition."""
    asked, _, rank = test.removeprefix("not ").partition(" or ")
    if rank:
        return f"{asked} and {rank.replace(' == ', ' != ')}"
    node = ast.parse(test, mode="eval").body
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        return test.replace(" == ", " != ")
    return f"not {test}" if dotted_name(node) or isinstance(node, ast.Call) else f"not ({test})"


def _group_is_there(code: Code, node: ast.AST) -> bool:
    """True if every run that reaches a place has a process group, according to this file."""
    asked = code.calls(INIT, *(DIST + name for name in ("get_rank", "get_world_size", "barrier")))
    return any(
        code.function(call) in {None, code.function(node)}
        and code.order[call] < code.order[node]
        and not any(isinstance(a, _PERHAPS) and not is_main(a) for a in code.ancestors(call))
        for call in asked
    )


def is_main(node: ast.AST) -> bool:
    """True if a statement is `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and dotted_name(node.test.left) == "__name__"


def _means_the_same(code: Code, test: ast.expr, node: ast.AST) -> bool:
    """True if a condition can be asked at another place of its function, and means the same there."""
    home = code.function(node)
    if isinstance(test, ast.BoolOp) or code.function(test) is not home or "\n" in code.source_of(test):
        return False
    bound = {n: [b for b in code.bound(n) if b.how == "assign"] for n in code.inside(test, ast.Name, ast.Attribute)}
    if not all(
        code.order[b.node] < code.order[node] for bs in bound.values() for b in bs if code.function(b.node) is home
    ):
        return False
    asked = code.statement(test)
    return (code.order[asked] < code.order[node] and surely_before(code, asked, node) is True) or all(
        _is_there(code, n, node) for n in code.inside(test, ast.Name, ast.Attribute, ast.Call)
    )


def _is_there(code: Code, part: ast.expr, node: ast.AST) -> bool:
    """True if a part of a condition exists at an earlier place: it was made before, or a package has it."""
    if isinstance(part, ast.Call):
        return not (part.args or part.keywords)  # what a function does with its arguments may come too early
    home, name = code.function(node), dotted_name(part)
    here = [b for b in code.bound(part) if code.function(b.node) is home]
    made = any(
        b.how != "assign" or (code.order[b.node] < code.order[node] and surely_before(code, b.node, node)) for b in here
    )
    if isinstance(part, ast.Name):
        return made or not here
    owner = name.partition(".")[0]
    if made or owner in code.imports or (owner == "self" and home is not None and home.name != "__init__"):
        return True
    return code.is_made_by(part.value, *_MAIN_PROCESS) if isinstance(part, ast.Attribute) else False


def indent_of(code: Code, node: ast.AST) -> str:
    """Return the white space before the first token of a node's line."""
    line = code.text.line(code.text.place(code.span(node).start).line)
    return line[: len(line) - len(line.lstrip())]


def _at_module_level(code: Code, local: str) -> bool:
    nodes: list[ast.Import | ast.ImportFrom] = [*code.nodes(ast.Import), *code.nodes(ast.ImportFrom)]
    return any(
        (alias.asname or alias.name.split(".", 1)[0]) == local
        for node in nodes
        if code.parent[node] is code.tree
        for alias in node.names
    )


def _import(code: Code, statement: str) -> tuple[Edit, ...]:
    """Insert an import before the program's first one, `__future__` aside."""
    for node in code.tree.body:
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__"):
            start = code.span(node).start
            return (Edit(Span(start, start), statement + "\n"),)
    return ()

"""Moves a call out of a condition that admits only some ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix
from dtdebug_taxonomy.checks.shared.fixing import own_lines
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_HEAD_END = re.compile(r"[\s)\\]*:")
_AND = re.compile(r"[\s\\]+and[\s\\]+")
_PLAIN = {"os.path.join", "os.path.abspath", "pathlib.Path", "str", "int", "len", "round"}
_CHANGES_NOTHING = frozenset({"format", "item", "detach", "clone", "float", "double", "cpu", "mean", "sum", "to"})
"""Methods of strings and tensors that do not modify them."""
_WRITES = ("shutil.", "os.remove", "os.unlink", "os.rename", "os.makedirs", "torch.save", "wandb.")
_NOTHING = re.compile(r"\s*(#.*)?")


def lift_call(code: Code, call: ast.Call, title: str) -> Fix | None:
    """Return a fix that moves a call's statement out of an `if` on the rank; None if that isn't simple.

    If the `if` contains nothing else but names that the call needs, the condition is removed and the rest stays in
    place. Otherwise the call moves before or after the `if`, which the author must confirm.
    """
    around = guards(code).around(call)
    statement = code.statement(call)
    if len(around) != 1 or around[0].early or not isinstance(node := around[0].node, ast.If) or _writes(code, call):
        return None
    if node.orelse or statement not in node.body or not isinstance(statement, ast.Expr | ast.Assign):
        return None
    place = node.body.index(statement)
    begin = code.text.place(code.span(node).start)
    if code.text.line(begin.line)[: begin.column - 1].strip():
        return None
    if not code.source_of(node).startswith("if") or not all(_own_lines(code, s) for s in node.body[: place + 1]):
        return None
    needed = all(_only_names(code, s) for s in node.body[:place])
    if needed and statement is node.body[-1]:
        if edits := _remove_if(code, node, statement) if _is_plain(code, node.test) else ():
            return Fix(title, edits)
        edits = _drop_rank_operand(code, node.test)  # the other operands may differ between ranks too
        return Fix(title, edits, safe=False) if edits else None
    edits = _move_statements(code, node, statement, needed) if _is_plain(code, node.test) else ()
    return Fix(title, edits, safe=False) if edits else None


def _writes(code: Code, call: ast.Call) -> bool:
    """True if the called function of the program also removes, copies or saves files, which is for one rank."""
    function = code.local_function(call)
    if function is None:
        return False
    known: dict[ast.AST, bool] = code.__dict__.setdefault("_writing", {})
    if function not in known:
        known[function] = any(code.name(c.func).startswith(_WRITES) for c in code.inside(function, ast.Call))
    return known[function]


def hoist_call(code: Code, call: ast.Call, name: str, title: str) -> Fix | None:
    """Return a fix that assigns a call's value to a new name before the `if` on the rank that uses it."""
    around = guards(code).around(call)
    if len(around) != 1 or around[0].early or not isinstance(node := around[0].node, ast.If):
        return None
    if (
        code.statement(call) not in node.body
        or not code.source_of(node).startswith("if")
        or not _is_plain(code, node.test)
    ):
        return None
    if any(isinstance(a, ast.Lambda | ast.comprehension | ast.IfExp | ast.BoolOp) for a in _up_to(code, call, node)):
        return None
    if _bound_in(code, node, call) or "\n" in code.source_of(call):
        return None
    while any(n.id == name for n in code.nodes(ast.Name)):
        name += "_"
    start, indent = code.span(node).start, code.text.place(code.span(node).start).column - 1
    before = f"{name} = {code.source_of(call)}\n{code.text[start - indent : start]}"
    return Fix(title, (Edit(Span(start, start), before), Edit(code.span(call), name)), safe=False)


def _up_to(code: Code, node: ast.AST, end: ast.AST) -> Iterator[ast.AST]:
    for up in code.ancestors(node):
        if up is end:
            return
        yield up


def move_call_up(code: Code, call: ast.Call, title: str) -> Fix | None:
    """Return a fix that moves a call's statement before the `if` in which some ranks leave."""
    around = guards(code).around(call)
    statement = code.statement(call)
    if len(around) != 1 or not around[0].early or not isinstance(node := around[0].node, ast.If):
        return None
    block = code.block(statement)
    lines = own_lines(code, statement)
    if lines is None or node not in block or getattr(statement, "value", None) is not call:
        return None
    if not code.source_of(node).startswith("if") or not _is_plain(code, node.test):
        return None
    between = block[block.index(node) + 1 : block.index(statement)]
    used = {n.id for n in code.inside(statement, ast.Name)}
    if any(n.id in used and isinstance(n.ctx, ast.Store) for s in (node, *between) for n in code.inside(s, ast.Name)):
        return None
    if any(not isinstance(s, ast.Assign) and next(code.inside(s, ast.Call), None) for s in between):
        return None  # the calls can change what the collective sends
    start = code.text.starts[code.text.place(code.span(node).start).line - 1]
    whole = Span(code.text.starts[lines[0] - 1], code.text.end_of_line(lines[-1]))
    if code.text[whole.end : whole.end + 1] != "\n":
        return None
    whole = Span(whole.start, whole.end + 1)
    return Fix(title, (Edit(Span(start, start), code.text[whole.start : whole.end]), Edit(whole, "")), safe=False)


def _only_names(code: Code, statement: ast.stmt) -> bool:
    """True if a statement only names a path or a value made from existing ones."""
    if not isinstance(statement, ast.Assign) or not all(isinstance(t, ast.Name) for t in statement.targets):
        return False
    return all(
        code.name(c.func) in _PLAIN or getattr(c.func, "attr", "") in _CHANGES_NOTHING
        for c in code.inside(statement, ast.Call)
    )


def _own_lines(code: Code, statement: ast.stmt) -> bool:
    """True if nothing follows on the line and no string spans several lines, which can't be moved."""
    end = code.span(statement).end
    if not _NOTHING.fullmatch(code.text, end, code.text.end_of_line(code.text.place(end).line)):
        return False
    strings = code.inside(statement, ast.Constant, ast.JoinedStr)
    return all(s.end_lineno == s.lineno for s in strings)


def _is_plain(code: Code, test: ast.expr) -> bool:
    """True if a condition tests the rank and, according to this file, nothing else."""
    while isinstance(test, ast.UnaryOp):
        test = test.operand
    if isinstance(test, ast.BoolOp | ast.IfExp) or guards(code).test(test) is None:
        return False
    return not dotted_name(test) or not any(isinstance(v, ast.BoolOp | ast.IfExp) for v in code.values(test))


def _drop_rank_operand(code: Code, test: ast.expr) -> tuple[Edit, ...]:
    """Remove the operand on the rank from `a and rank == 0`."""
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return ()
    places = [i for i, v in enumerate(test.values) if guards(code).test(v) is not None]
    if len(places) != 1 or not _is_plain(code, test.values[place := places[0]]):
        return ()
    spans = [code.span(v) for v in test.values]
    left, right = (spans[place - 1], spans[place]) if place else (spans[0], spans[1])
    if not _AND.fullmatch(code.text, left.end, right.start):
        return ()
    return (Edit(Span(left.end, right.end) if place else Span(left.start, right.start), ""),)


def _remove_if(code: Code, node: ast.If, statement: ast.stmt) -> tuple[Edit, ...]:
    """Remove the `if` around its only statement."""
    text, start, span = code.text, code.span(node).start, code.span(statement)
    head = _HEAD_END.match(text, code.span(node.test).end)
    if head is None:
        return ()
    begin = code.span(node.body[0]).start
    line = text.place(head.end()).line
    if line == text.place(begin).line:
        return (Edit(Span(start, begin), ""),)
    outer, inner = text.place(start).column - 1, text.place(begin).column - 1
    lines = range(line + 1, text.place(span.end).line + 1)
    if text[head.end() : text.end_of_line(line)].strip() or any(text.line(n)[:inner].strip() for n in lines):
        return ()
    begins = [text.starts[n - 1] for n in lines if text.line(n)]
    return (
        Edit(Span(start - outer, text.starts[line]), ""),
        *(Edit(Span(begin + outer, begin + inner), "") for begin in begins),
    )


def _move_statements(code: Code, node: ast.If, statement: ast.stmt, first: bool) -> tuple[Edit, ...]:
    """Move the first statements of an `if` up to this one before it, or this last one after it.

    Each is one edit over the whole `if`, so that two edits of one `if` exclude each other.
    """
    text, if_start = code.text, code.span(node).start
    begin = text.place(code.span(node.body[0] if first else statement).start)
    last = text.place(code.span(statement).end).line
    outer, inner = text.place(if_start).column - 1, begin.column - 1
    lines = [text.line(n) for n in range(begin.line, last + 1)]
    if any(line[:inner].strip() for line in lines):
        return ()
    moved = "\n".join(line[:outer] + line[inner:] for line in lines)
    start, head = if_start - outer, text[if_start - outer : text.starts[begin.line - 1]]
    if first:
        return (Edit(Span(start, text.starts[last]), f"{moved}\n{head}"),)
    if statement is not node.body[-1] or _bound_in(code, node, statement):
        return ()
    return (Edit(Span(start, text.end_of_line(last)), head + moved),)


def _bound_in(code: Code, node: ast.If, statement: ast.AST) -> bool:
    """True if a statement uses a name that the rest of its `if` assigns."""
    used = {n.id for n in code.inside(statement, ast.Name)}
    others = [s for s in node.body if s is not statement]
    return any(n.id in used and isinstance(n.ctx, ast.Store) for s in others for n in code.inside(s, ast.Name))

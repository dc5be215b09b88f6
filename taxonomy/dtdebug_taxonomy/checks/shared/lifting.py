"""Moves calls out of a condition that admits only some ranks; everything else stays under it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from dtdebug_taxonomy.checks import Edit, Fix
from dtdebug_taxonomy.checks.shared.alike import is_alike, is_bound
from dtdebug_taxonomy.checks.shared.fixing import deeper, indent_of, own_lines
from dtdebug_taxonomy.checks.shared.names import FSDP
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_HEAD_END = re.compile(r"[\s)\\]*:")
_COMPUTES = re.compile(
    r"os\.path\.\w+|pathlib\.Path|str|int|len|round|float|list|tuple|dict|range|sum|min|max|zip|sorted|"
    r"torch\.(?!save|load|manual_seed|set_|cuda\.|distributed\.|multiprocessing\.)\w+|"
    r"torch\.distributed\.(get_rank|get_world_size)|torch\.(no_grad|inference_mode|autocast)"
)
"""Calls that change nothing but their result."""
_CHANGES_NOTHING = frozenset(
    ("format", "item", "detach", "clone", "float", "double", "cpu", "mean", "sum", "to", "numel", "view", "reshape"),
)
"""Methods of strings and tensors that do not modify them."""
_WRITES = (
    "shutil.",
    "os.remove",
    "os.unlink",
    "os.rename",
    "os.replace",
    "os.makedirs",
    "torch.save",
    "wandb.",
    "open",
)
_ROOTED = frozenset(("gather", "scatter", "gather_object"))
"""Collectives whose list must be given on the root only."""
_CONTEXTS = ("torch.no_grad", "torch.inference_mode", "torch.enable_grad", "torch.autocast", f"{FSDP}.state_dict_type")
_NOTHING = re.compile(r"\s*(#.*)?")


def lift_call(code: Code, call: ast.Call, title: str, together: Sequence[ast.Call] = ()) -> Fix | None:
    """Return a fix that moves a call's statement out of an `if` on the rank; None if that can't be shown to be right.

    The other calls of `together` under the same `if` move too: half of them would leave the ranks apart. What is
    left stays under the condition on the rank, and further conditions stay around both. Unless the whole `if` is for
    the call and names that it needs, the author must confirm the fix.
    """
    around = guards(code).around(call)
    if len(around) != 1 or around[0].early or not isinstance(node := around[0].node, ast.If):
        return None
    calls = [call, *(c for c in together if c is not call and [g.node for g in guards(code).around(c)] == [node])]
    if any(_writes(code, c) or _is_rooted(code, c) or _is_one_of_a_pair(code, c, around[0], together) for c in calls):
        return None
    begin = code.text.place(code.span(node).start)
    if node.orelse or code.text.line(begin.line)[: begin.column - 1].strip():
        return None
    if not code.source_of(node).startswith("if"):
        return None
    return _Lift(code, node, [code.statement(c) for c in calls]).fix(title)


class _Lift:
    """One `if` on the rank whose body is parted into what all ranks run and what stays under the condition."""

    def __init__(self, code: Code, node: ast.If, targets: Sequence[ast.stmt]) -> None:
        self.code, self.node, self.targets = code, node, targets
        self.rank, self.rest = _split_condition(code, node.test)
        self.around = {up for t in targets for up in code.ancestors(t)}
        """Nodes around the statements that move."""
        self.everyone: set[ast.stmt] = set(targets)
        """Statements that all ranks run."""

    def fix(self, title: str) -> Fix | None:
        code, node = self.code, self.node
        if not self.rank or not self._admits_all():
            return None
        whole = not self.rest and len(node.body) == len(self.everyone) and self.everyone <= {*node.body}
        lines = self._lines()
        if lines is None:
            return None
        first, last = code.text.place(code.span(node).start).line, code.text.place(code.span(node.body[-1]).end).line
        span = Span(code.text.starts[first - 1], code.text.end_of_line(last))
        return Fix(title, (Edit(span, "\n".join(lines)),), safe=None if whole else False)

    def _admits_all(self) -> bool:
        """True if all ranks can run what moves: names are bound, and further conditions are the same on all."""
        code = self.code
        if not all(is_alike(code, test) for test in self.rest):
            return False
        if not all(isinstance(t, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign) for t in self.targets):
            return False
        used = {n for part in (*self.rest, *self.targets) for n in code.inside(part, ast.Name)}
        for up in (a for a in self.around if a is not self.node and self.node in set(code.ancestors(a))):
            if isinstance(up, ast.If) and not up.orelse and is_alike(code, up.test):
                used |= set(code.inside(up.test, ast.Name))
            elif isinstance(up, ast.With) and all(
                isinstance(i.context_expr, ast.Call) and code.name(i.context_expr.func) in _CONTEXTS for i in up.items
            ):
                pass
            elif isinstance(up, ast.stmt):
                return False
        if not self._promote({n.id for n in used}):
            return False
        names = (n for s in (*self.everyone, *self.rest) for n in code.inside(s, ast.Name))
        return all(is_bound(code, n) for n in names if isinstance(n.ctx, ast.Load))

    def _promote(self, used: set[str]) -> bool:
        """Let all ranks run the statements that bind what moves; False if one of them does more than that."""
        code = self.code
        last = max(code.order[t] for t in self.targets)
        others = [s for s in self._other_statements(self.node.body) if code.order[s] < last]
        more = True
        while more:
            more = False
            for s in others:
                binds = {n.id for n in code.inside(s, ast.Name) if isinstance(n.ctx, ast.Store)} & used
                if s in self.everyone:
                    continue
                if not binds:
                    if isinstance(s, ast.Expr) and self._changes(s, used):
                        return False
                    continue
                if not _computes(code, s):
                    return False
                self.everyone.add(s)
                used |= {n.id for n in code.inside(s, ast.Name)}
                more = True
        return True

    def _other_statements(self, body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        """Yield the statements beside those that move, in every block on the way to them."""
        for s in body:
            if s in self.targets:
                continue
            if s in self.around and isinstance(s, ast.If | ast.With):
                yield from self._other_statements(s.body)
            else:
                yield s

    def _changes(self, statement: ast.Expr, used: set[str]) -> bool:
        """True if a statement calls a method that may change a used object."""
        func = statement.value.func if isinstance(statement.value, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr in _CHANGES_NOTHING:
            return False
        return dotted_name(func).partition(".")[0] in used - set(self.code.imports)

    def _lines(self) -> list[str] | None:
        """Return the lines that replace the `if`; None if they can't be moved as they are."""
        code, node = self.code, self.node
        outer = indent_of(code, node)
        head = _HEAD_END.match(code.text, code.span(node.test).end)
        if head is None:
            return None
        at = code.text.place(head.end()).line
        rest = _join_conditions(code, self.rest)
        begin = code.span(node.body[0]).start
        after = code.text[head.end() : code.text.end_of_line(at)]
        if code.text.place(begin).line == at:  # all on one line
            one = code.text[begin : code.text.end_of_line(code.text.place(code.span(node.body[-1]).end).line)]
            single = len(node.body) == 1 and _own_lines(code, node.body[0])
            return [f"{outer}if {rest}: {one}" if rest else f"{outer}{one}"] if single else None
        if "\n" in rest or (not rest and after.strip()):
            return None
        inner = indent_of(code, node.body[0])
        body = self._block(node.body, at, inner, inner if rest else outer)
        return None if body is None else [f"{outer}if {rest}:{after}", *body] if rest else body

    def _block(self, body: Sequence[ast.stmt], above: int, old: str, new: str) -> list[str] | None:
        """Return the lines of a block whose statements were indented by `old`; `above` is the line before it."""
        code = self.code
        step = deeper(new)[len(new) :]
        lines: list[str] = []
        held: list[str] = []

        def close() -> None:
            if held:
                lines.extend((f"{new}if {self.rank}:", *held))
                held.clear()

        for s in body:
            last = code.text.place(code.span(s).end).line
            if s in self.around and s not in self.everyone:
                close()
                inside: Sequence[ast.stmt] = s.body  # type: ignore[attr-defined]
                head = code.text.place(code.span(inside[0]).start).line
                first = code.text.place(code.span(s).start).line
                end = next(
                    n for n in range(head - 1, first - 1, -1) if code.text.line(n).split("#")[0].rstrip()[-1:] == ":"
                )
                deep = indent_of(code, inside[0])
                top = self._reindent(above, end, old, new, None)
                below = self._block(inside, end, deep, new + deep[len(old) :])
                if top is None or below is None or head == first:
                    return None
                lines += [*top, *below]
            else:
                everyone = s in self.everyone
                moved = self._reindent(above, last, old, new if everyone else new + step, s)
                if moved is None:
                    return None
                if everyone:
                    close()
                    lines += moved
                else:
                    held += moved
            above = last
        close()
        return lines

    def _reindent(self, above: int, last: int, old: str, new: str, statement: ast.stmt | None) -> list[str] | None:
        """Return the lines after one up to another with another indentation."""
        code = self.code
        if statement is not None and not _own_lines(code, statement, moves=old != new):
            return None
        lines = [code.text.line(n) for n in range(above + 1, last + 1)]
        if any(line.strip() and not line.startswith(old) for line in lines):
            return None
        return [new + line[len(old) :] if line.strip() else line for line in lines]


def _computes(code: Code, statement: ast.stmt) -> bool:
    """True if a statement only names a path or a value made from existing ones."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    else:
        return False
    return all(isinstance(t, ast.Name) for t in targets) and all(
        _COMPUTES.fullmatch(code.name(c.func)) or getattr(c.func, "attr", "") in _CHANGES_NOTHING
        for c in code.inside(statement, ast.Call)
    )


def _split_condition(code: Code, test: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the part of a condition that is on the rank, and its further operands; empty if it can't be parted."""
    parts, flat = [test], list[ast.expr]()
    while parts:
        part = parts.pop(0)
        if isinstance(part, ast.BoolOp) and isinstance(part.op, ast.And):
            parts = [*part.values, *parts]
        else:
            flat.append(part)
    ranked = [part for part in flat if guards(code).test(part) is not None]
    if not ranked or not all(_is_plain(code, part) for part in ranked):
        return "", []
    text = _join_conditions(code, ranked)
    return ("" if "\n" in text else text), [part for part in flat if part not in ranked]


def _join_conditions(code: Code, parts: Sequence[ast.expr]) -> str:
    """Return a condition that holds if all parts do."""
    loose = (ast.BoolOp, ast.IfExp, ast.NamedExpr, ast.Lambda)
    texts = (
        f"({code.source_of(part)})" if len(parts) > 1 and isinstance(part, loose) else code.source_of(part)
        for part in parts
    )
    return " and ".join(texts)


def _is_one_of_a_pair(code: Code, call: ast.Call, guard: Guard, together: Sequence[ast.Call]) -> bool:
    """True if other ranks make the same call elsewhere in the class or function, as when leaving a context."""
    home = code.class_of(call) or code.function(call) or code.tree
    name = code.name(call.func)
    same = (c for c in together if c is not call and code.name(c.func) == name)
    within = (c for c in same if (code.class_of(c) or code.function(c) or code.tree) is home)
    tests = (g.test for c in within for g in guards(code).around(c))
    return any(t != guard.test for t in tests)


def _is_rooted(code: Code, call: ast.Call) -> bool:
    return code.name(call.func).rpartition(".")[2] in _ROOTED and "torch.distributed" in code.name(call.func)


def _writes(code: Code, call: ast.Call) -> bool:
    """True if the called function of the program also removes, copies or saves files on the rank that calls it."""
    function = code.local_function(call)
    if function is None:
        return False
    known: dict[ast.AST, bool] = code.__dict__.setdefault("_writing", {})
    if function not in known:
        calls = (c for c in code.inside(function, ast.Call) if code.name(c.func).startswith(_WRITES))
        known[function] = any(not guards(code).around(c) for c in calls)
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
        return _leave_later(code, node, between, statement, title)
    if any(not isinstance(s, ast.Assign) and next(code.inside(s, ast.Call), None) for s in between):
        return None  # the calls can change what the collective sends
    start = code.text.starts[code.text.place(code.span(node).start).line - 1]
    whole = Span(code.text.starts[lines[0] - 1], code.text.end_of_line(lines[-1]))
    if code.text[whole.end : whole.end + 1] != "\n":
        return None
    whole = Span(whole.start, whole.end + 1)
    return Fix(title, (Edit(Span(start, start), code.text[whole.start : whole.end]), Edit(whole, "")), safe=False)


def _leave_later(code: Code, node: ast.If, between: Sequence[ast.stmt], statement: ast.stmt, title: str) -> Fix | None:
    """Return a fix that lets the ranks leave below the call, if all that is between only computes what it sends."""
    leave, last = own_lines(code, node), own_lines(code, statement)
    alone = len(node.body) == 1 and isinstance(node.body[0], ast.Return | ast.Continue | ast.Break) and not node.orelse
    if leave is None or last is None or not alone or not all(_computes(code, s) for s in between):
        return None
    loads = (n for s in (*between, statement) for n in code.inside(s, ast.Name) if isinstance(n.ctx, ast.Load))
    if not all(is_bound(code, n) for n in loads):
        return None
    start, end = code.text.starts[leave[0] - 1], code.text.end_of_line(leave[-1]) + 1
    below = code.text.end_of_line(last[-1])
    return Fix(
        title,
        (
            Edit(Span(start, end), ""),
            Edit(Span(below, below), "\n" + code.text[start : end - 1]),
        ),
        safe=False,
    )


def _own_lines(code: Code, statement: ast.stmt, *, moves: bool = True) -> bool:
    """True if nothing follows on the line and no string spans several lines, whose indentation can't change."""
    end = code.span(statement).end
    if not _NOTHING.fullmatch(code.text, end, code.text.end_of_line(code.text.place(end).line)):
        return False
    strings = code.inside(statement, ast.Constant, ast.JoinedStr)
    return not moves or all(s.end_lineno == s.lineno for s in strings)


def _is_plain(code: Code, test: ast.expr) -> bool:
    """True if a condition tests the rank and, according to this file, nothing else."""
    while isinstance(test, ast.UnaryOp):
        test = test.operand
    if isinstance(test, ast.BoolOp | ast.IfExp) or guards(code).test(test) is None:
        return False
    return not dotted_name(test) or not any(isinstance(v, ast.BoolOp | ast.IfExp) for v in code.values(test))


def _bound_in(code: Code, node: ast.If, statement: ast.AST) -> bool:
    """True if a statement uses a name that the rest of its `if` assigns."""
    used = {n.id for n in code.inside(statement, ast.Name)}
    others = [s for s in node.body if s is not statement]
    return any(n.id in used and isinstance(n.ctx, ast.Store) for s in others for n in code.inside(s, ast.Name))

"""Arguments handed to a function that runs in started processes, which do not fit its parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function
from dtdebug_taxonomy.source.text import Span


class _Start(NamedTuple):
    """Parameters of a call that starts processes: name and position."""

    function: tuple[str, int]
    args: tuple[str, int]
    numbered: bool
    """True if it passes the number of the process before `args`."""


_SPAWN = _Start(("fn", 0), ("args", 1), numbered=True)
_PROCESS = _Start(("target", 1), ("args", 3), numbered=False)
_STARTS = {
    "torch.multiprocessing.spawn": _SPAWN,
    "torch.multiprocessing.start_processes": _SPAWN,
    "accelerate.notebook_launcher": _Start(("function", 0), ("args", 1), numbered=False),
    "torch.multiprocessing.Process": _PROCESS,
    "multiprocessing.Process": _PROCESS,
}


def check(code: Code) -> Iterator[Hit]:
    """Report what is handed over."""
    for name, start in _STARTS.items():
        for call in code.calls(name):
            target = code.argument(call, *start.function)
            if code.has_unpacking(call) or target is None or code.argument(call, "kwargs") is not None:
                continue
            given = code.argument(call, *start.args)
            values = code.values(given)
            value = values[0] if len(values) == 1 else None
            if isinstance(value, ast.Constant) and value.value is not None:
                yield _not_a_tuple(code, value)
            elif given is None or (isinstance(value, ast.Tuple | ast.List) and not _has_star(value)):
                yield from _misfit(code, call, target, value, numbered=start.numbered)


def _has_star(value: ast.Tuple | ast.List) -> bool:
    return any(isinstance(e, ast.Starred) for e in value.elts)


def _not_a_tuple(code: Code, value: ast.Constant) -> Hit:
    span = code.span(value)
    text = code.cut(span)
    letters = len(value.value) if isinstance(value.value, str) else 0
    taken = f"its {letters} letters are passed one by one" if letters else "nothing is in it"
    before, after = code.text[: span.start].rstrip()[-1:], code.text[span.end :].lstrip()[:1]
    in_parentheses = (before, after) == ("(", ")")
    edit = Edit(Span(span.end, span.end), ",") if in_parentheses else Edit(span, f"({text},)")
    return Hit(
        span,
        f"`args` is {text} and no tuple: {taken}. A tuple of one needs a comma: ({text},).",
        Fix("Make it a tuple", (edit,)),
    )


def _misfit(code: Code, call: ast.Call, target: ast.expr, value: ast.expr | None, *, numbered: bool) -> Iterator[Hit]:
    """Yield the arguments if no definition of the function takes them."""
    bound = code.bound(target) if isinstance(target, ast.Name) else []
    functions = [b.node for b in bound if isinstance(b.node, FUNCTIONS) and code.is_plain(b.node)]
    if not functions or len(functions) < len(bound):
        return
    given = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    number = len(given) + numbered
    if any(_takes(f, number) for f in functions):
        if len(functions) == 1:
            yield from _crossed(code, functions[0], given, number - len(given))
        return
    function = functions[-1]
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    handed = f"{'the number of the process and ' if numbered else ''}{len(given)} value{'' if len(given) == 1 else 's'}"
    missing = names[number : len(names) - len(function.args.defaults)]
    need = f"and {', '.join(missing)} missing" if missing else f"and it takes {len(names)}"
    need = need.replace(" missing", " is missing" if len(missing) == 1 else " are missing")
    where = value if value is not None and code.statement(value) is code.statement(call) else call
    fix = None
    if len(functions) == 1:
        fix = _named_rank(code, function, names) if numbered and number == len(names) + 1 else None
        fix = fix or (_missing_values(code, call, value, missing) if missing else None)
    says = f"{function.name}({', '.join(names)}) is handed {handed}, {need}: it raises TypeError."
    yield Hit(code.span(where), says, fix)


def _crossed(code: Code, function: Function, given: Sequence[ast.expr], first: int) -> Iterator[Hit]:
    """Yield two values, each of which is handed over as the parameter of the other's name."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)][first:]
    pairs = [(each.id, name, each) for each, name in zip(given, names, strict=False) if isinstance(each, ast.Name)]
    for own, other, node in pairs:
        back = next((n for o, p, n in pairs if (o, p) == (other, own) and own != other), None)
        if back is not None:
            edits = (Edit(code.span(node), other), Edit(code.span(back), own))
            says = f"{function.name}() takes {own} and {other} in the other order: each is handed over as the other."
            yield Hit(code.span(node), says, Fix("Hand them over in the order of the parameters", edits, safe=False))
            return


def _named_rank(code: Code, function: Function, names: Sequence[str]) -> Fix | None:
    """Return the edit that takes the number of the process as `rank`, instead of asking the environment for it."""
    bound = [b for (scope, name), rows in code.bindings.items() for b in rows if scope is function and name == "rank"]
    asks = [b.node for b in bound if isinstance(b.node, ast.Assign) and "environ" in code.source_of(b.node)]
    uses = any(n.id == "rank" for n in code.inside(function, ast.Name))
    if "rank" in names or len(bound) != len(asks) or not uses or not function.args.args or len(asks) > 1:
        return None
    begin = code.span(function.args.args[0]).start
    edits = [Edit(Span(begin, begin), "rank, ")]
    for node in asks:
        line = code.text.place(code.span(node).start).line
        begin, end = code.text.starts[line - 1], code.text.end_of_line(line) + 1
        if code.text[begin:end].strip() != code.source_of(node):
            return None
        edits.append(Edit(Span(begin, end), ""))
    return Fix("Take the number of the process as `rank`", tuple(edits), safe=False)


def _missing_values(code: Code, call: ast.Call, value: ast.expr | None, missing: Sequence[str]) -> Fix | None:
    """Return the edit that hands over the module's own values of the names which are missing."""
    known = {name for (scope, name), rows in code.bindings.items() if scope is code.tree and rows}
    if not isinstance(value, ast.Tuple) or not value.elts or not {*missing} <= known:
        return None
    if code.statement(value) is not code.statement(call):
        return None
    end = code.span(value.elts[-1]).end
    return Fix(f"Hand over {', '.join(missing)}", (Edit(Span(end, end), f", {', '.join(missing)}"),), safe=False)


def _takes(function: Function, number: int) -> bool:
    a = function.args
    most = len(a.posonlyargs) + len(a.args)
    return most - len(a.defaults) <= number and (a.vararg is not None or number <= most)

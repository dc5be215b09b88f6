"""Rendezvous variables that are set after the ranks have connected."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.environment import RENDEZVOUS, Setting, settings
from dtdebug_taxonomy.checks.shared.fixing import indent_of, statement_lines
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

_READ = RENDEZVOUS | {"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"}


def check(code: Code) -> Iterator[Hit]:
    """Report the place that sets the variable."""
    calls = code.calls(INIT, "deepspeed.init_distributed")
    if not calls:
        return
    found = [s for s in settings(code) if s.variable in _READ]
    first: dict[str, int] = {}
    for setting in found:
        first[setting.variable] = min(code.order[setting.node], first.get(setting.variable, code.order[setting.node]))
    late: dict[ast.Call, list[Setting]] = defaultdict(list)
    for setting in found:
        init = _init_before(code, setting.node, calls)
        if init is None or _is_group_ended(code, init, setting.node):
            continue
        if first[setting.variable] > code.order[init]:
            late[init].append(setting)
    for init, ones in late.items():
        fix, moved = _fix(code, init, ones)
        for setting in ones:
            yield Hit(
                code.span(setting.node),
                f"{setting.variable} is set after init_process_group() has read it: "
                "the ranks have met without it, or the start has already failed.",
                fix if setting.node in moved else None,
            )


def _init_before(code: Code, node: ast.AST, calls: list[ast.Call]) -> ast.Call | None:
    """Return the call that sets up the process group before a node of the same function, directly or not."""
    for call in calls:
        function = code.function(call)
        direct = function is None or code.argument(call, "init_method", 1) is None
        if not direct and code.constant(code.argument(call, "init_method", 1)) != "env://":
            continue
        if code.argument(call, "store") is not None or code.argument(call, "rank") is not None:
            continue
        places = [call, *(code.callers.get(function, []) if function is not None else [])]
        for place in places:
            same = code.scope(place) is code.scope(node) and code.order[place] < code.order[node]
            if same and surely_before(code, place, node):
                return place
    return None


def _is_group_ended(code: Code, init: ast.AST, node: ast.AST) -> bool:
    """True if the process group was destroyed in between, so that the next one reads the variables again."""
    ends = code.calls("torch.distributed.destroy_process_group")
    return any(code.order[init] < code.order[e] < code.order[node] for e in ends)


def _fix(code: Code, init: ast.Call, late: list[Setting]) -> tuple[Fix | None, set[ast.AST]]:
    """Return a fix that moves all constant values above the call, if they are whole lines of its block, and these."""
    first = code.statement(init)
    before = statement_lines(code, first)
    movable = [(s, lines) for s in late if (lines := _movable(code, s, first)) is not None]
    if before is None or not movable:
        return None, set()
    text = "".join(indent_of(code, first) + code.cut(lines).strip() + "\n" for _, lines in movable)
    edits = (Edit(Span(before.start, before.start), text), *(Edit(lines, "") for _, lines in movable))
    return Fix("Set it before", edits), {s.node for s, _ in movable}


def _movable(code: Code, setting: Setting, first: ast.stmt) -> Span | None:
    statement = setting.node
    if not isinstance(statement, ast.stmt) or not isinstance(setting.value, ast.Constant):
        return None
    return statement_lines(code, statement) if code.block(statement) is code.block(first) else None

"""The account of a living exception, with the values that its frames still have.

It runs where a rank ends or a cell has failed: it never raises, and takes a tenth of a second at most.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from dtdebug.account import chain, scopes
from dtdebug.account.beside import holders_beside, keys_unread, names_beside, wrappers_beside
from dtdebug.account.checkpoint_keys import keys_beside
from dtdebug.account.chosen import is_optimizer
from dtdebug.account.objects import loaded
from dtdebug.account.off_stack import lines_off_stack
from dtdebug.account.outdated import outdated_objects
from dtdebug.account.parameters import unused_parameters
from dtdebug.account.parts import leaves
from dtdebug.account.places import place
from dtdebug.account.refusal import refusal_of
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Sources, live_lines
from dtdebug.account.values import masked
from dtdebug.account.way_back import Deadline, WayBack
from dtdebug.process import user_objects
from dtdebug_taxonomy.model.account import MAX_BESIDE, Account, Link, NamedValue
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.stacks.frames import is_made

_SECONDS = 0.1
_SIZES = r"torch\.Size\(\[([\d, ]{0,80})\]\)"
_SHAPES = re.compile(rf"[^,:\n]{{0,60}}{_SIZES}[^:\n]{{1,60}}{_SIZES}")
_MESSAGE = 2_000
"""Maximum number of characters of a message in which numbers and names are looked for."""


def capture(exception: BaseException, rank: int | None = None, seconds: float = _SECONDS) -> Account:
    """Return the account of an exception; one that tells less where something in it can't be read."""
    try:
        text = chain.describe(exception)
    except user_objects.RAISES as error:
        return Account(rank=rank, stopped=f"the exception can't be read ({type(error).__name__})")
    try:
        return _capture(exception, rank, Deadline(seconds))
    except user_objects.RAISES as error:
        return Account(rank=rank, exception=text, stopped=f"the program can't be read ({type(error).__name__})")


def _capture(exception: BaseException, rank: int | None, deadline: Deadline) -> Account:
    found, before = chain.explaining(exception)
    known = facts()
    if rank is None:
        rank = next((int(each.text) for each in known if each.name == "rank" and each.text.isdigit()), None)
    account = Account(rank=rank, exception=chain.describe(found), facts=known)
    rows = chain.traces(found)
    if chain.is_of_signal(rows):
        return _with(account, stopped="a signal arrived at the line where the stack ends")
    sources = Sources(live_lines)
    stack = scopes.of_traceback(rows[0] if rows else None, sources, before)
    return explain(account, stack, sources, deadline, _telling(chain.messages_of(found)[:_MESSAGE]))


def explain(
    account: Account, stack: Sequence[Scope], sources: Sources, deadline: Deadline, message: str = ""
) -> Account:
    """Return the account with what the stack and the sources tell."""
    users = [n for n, scope in enumerate(stack) if scope.user and not is_made(scope.file)]
    users = users or [n for n, scope in enumerate(stack) if scope.user]
    if not users:
        return _with(account, stopped="no line of the program is on the stack")
    own = users[-1]
    scope = stack[own]
    sources.stack = stack
    node = scope.call
    here = isinstance(node, ast.expr) and getattr(node, "lineno", 0) == scope.line
    at = place(scope, node if here and node is not None else ast.Pass(lineno=scope.line))
    account = _with(account, place=at, modules=scope.program.modules if scope.program is not None else ("", ""))
    if scope.program is None:
        return _with(account, stopped=f"{at.file} has no source that can be read")
    if scopes.is_changed(scope):
        return _with(account, stopped=f"{at.file} has changed since it was loaded")
    refusal, refused = refusal_of(stack, own, sources, message or account.exception)
    refusal = msgspec.structs.replace(refusal, values=(*unused_parameters(stack, message), *refusal.values))
    way = WayBack(sources, deadline, message or account.exception, (scope.file, scope.line))
    for off_stack in lines_off_stack(scope, message or account.exception, sources):
        way.add_off_stack(off_stack)
    func = scope.call.func if isinstance(scope.call, ast.Call) else None
    if isinstance(func, ast.Attribute) and is_optimizer(scope.value(func.value)):
        way.follow(func.value, scope)  # what it was made of comes before what it is given
    if account.exception.startswith("StopIteration") and isinstance(scope.call, ast.Call):
        way.follow_rounds(scope.call, scope)
    way.follow_each(refused)
    for each in [own, *(n for n in users[:-1][-1:] if scope.inner is not None)]:
        call = stack[each].call
        if isinstance(call, ast.expr):
            (way.follow_loop if _is_gone_through(call, stack[each]) else way.follow)(call, stack[each])
    call = scope.call
    if way.root < 0 and isinstance(call, ast.Call):
        for name, node in scopes.bind(call, stack[own + 1] if own + 1 < len(stack) else scope).items():
            if isinstance(node, ast.Constant) and way.is_spoken_of(node):
                way.add_literal(name, node, scope)
    stopped = way.stopped or ("" if way.root >= 0 else _stop_line(way, call=scope.call, scope=scope))
    beside = () if deadline.is_over else _beside(stack, scope, message)
    found = _with(account, refusal=refusal, links=way.told(), root=way.root, by_rank=way.by_rank, beside=beside)
    return _with(found, stopped=stopped, outdated=() if deadline.is_over else outdated_objects(stack))


def _beside(stack: Sequence[Scope], scope: Scope, message: str) -> tuple[Link, ...]:
    """Return what stands beside a refused value: what has the attribute or key instead, then other names."""
    having = (*holders_beside(scope, message), *wrappers_beside(scope, message))
    keys = (*keys_beside(stack, scope), *keys_unread(scope, message))
    return (*having, *keys, *names_beside(scope))[:MAX_BESIDE]


def _telling(message: str) -> str:
    """Return a message without the sizes that its two sides share: they explain nothing."""
    return _SHAPES.sub(_unlike, message)


def _unlike(found: re.Match[str]) -> str:
    one, other = (each.split(", ") for each in found.groups())
    if len(one) != len(other):
        return found[0]
    return " ".join(f"{a} {b}" for a, b in zip(one, other, strict=True) if a != b)


def _is_gone_through(node: ast.expr, scope: Scope) -> bool:
    """True if a loop goes through an expression, or `next` takes from it."""
    up = scope.program.code.parent.get(node) if scope.program is not None else None
    return isinstance(up, ast.For | ast.AsyncFor) or dotted_name(getattr(node, "func", None)) == "next"


def _stop_line(way: WayBack, call: ast.AST | None, scope: Scope) -> str:
    if way.links:
        last = way.links[-1]
        return f"the way back ends at {last.value.name}, line {last.place.line}"
    if isinstance(call, ast.expr) and leaves(call, scope):
        return "no line of the program that gives these values was found"
    return "nothing on this line comes from elsewhere in the program"


def facts() -> tuple[NamedValue, ...]:
    """Return what this process knows of the job: the world's size, its rank, the backend."""
    found: list[tuple[str, Any]] = []
    started = loaded("torch.distributed", "is_initialized")
    try:
        if started is not None and started():
            for name, asks in (("world size", "get_world_size"), ("rank", "get_rank"), ("backend", "get_backend")):
                found.append((name, loaded("torch.distributed", asks)()))
    except Exception:
        found = []
    if not found:
        given = (("world size", "WORLD_SIZE"), ("rank", "RANK"))
        found = [(name, os.environ[variable]) for name, variable in given if variable in os.environ]
    return tuple(masked(name, str(value)) for name, value in found)


def _with(account: Account, **parts: Any) -> Account:
    return msgspec.structs.replace(account, **parts)

"""Calls that break a contract by values that the source decides, for every size of the job or for the one started."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

from dtdebug_taxonomy.checks import Edit, Fix
from dtdebug_taxonomy.checks.shared.parsers import options
from dtdebug_taxonomy.knowledge.contracts import Contract, load_contracts
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.config_files import parses
from dtdebug_taxonomy.source.python.known_values import KnownValues, Option, Origin, World, plain_value
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS
from dtdebug_taxonomy.source.text import Span
from dtdebug_taxonomy.text.contract_call import UnknownSlotError, UserCall, fill, short_name
from dtdebug_taxonomy.text.demands import (
    DemandError,
    Scope,
    UnknownTermError,
    asks_the_failure,
    is_met,
    names_in,
    sides,
    value_of,
)
from dtdebug_taxonomy.text.value_texts import Value

SIZES = (*range(2, 34), 48, 64, 96, 128, 256, 384, 512, 1000, 1024)
"""Sizes of a job that stand for any."""
_METHODS_OF = {"torch.Tensor"}
_MAYBE = (ast.While, ast.Match, ast.Try, ast.ExceptHandler, ast.BoolOp, ast.Lambda, ast.IfExp)
_EXPECTED = re.compile(r"raises|suppress|expect|assertRaises", re.IGNORECASE)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_STARTED = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "accelerate.notebook_launcher")
_CALLERS = 3


class BrokenCall(NamedTuple):
    """A call whose values contradict a contract."""

    contract: Contract
    call: ast.Call
    given: UserCall
    origins: tuple[Origin, ...]
    """Lines that decide the values, in the order in which they were asked for."""
    world: World
    """The job and rank by which the sentence speaks; empty if the contract is broken whatever they are."""
    is_started: bool
    """True if the program is known to be started on that many ranks; else the size is an example."""
    fix: Fix | None


class _Asked(NamedTuple):
    """One call, by one of its names."""

    code: Code
    call: ast.Call
    api: str
    option: Option


class _Outcome(NamedTuple):
    broken: bool | None
    given: UserCall
    known: KnownValues


def broken_calls(code: Code, *, size: int | None = None, option: Option | None = None) -> Iterator[BrokenCall]:
    """Yield the calls of a program that break a contract, each with the first contract that it breaks.

    Args:
        code: the program.
        size: number of ranks that it is started on; None for a program that any number may run.
        option: values of its options; by default their defaults, as the program's parser declares them.

    """
    asked = option if option is not None else partial(default_option, code)
    for call in code.nodes(ast.Call):
        for api in _apis(code, call):
            contracts = [c for c in load_contracts().called(api) if c.demand and not asks_the_failure(c.demand)]
            this = _Asked(code, call, api, asked)
            found = next(filter(None, (_find_breach(this, c, size) for c in contracts)), None)
            if found is not None:
                yield found
                break


def started_size(code: Code) -> int | None:
    """Return the number of ranks that a program starts itself; None if a launcher does, or it is not known."""
    starts = [
        code.argument(c, name, 2)
        for start, name in (*((s, "nprocs") for s in _STARTED[:2]), (_STARTED[2], "num_processes"))
        for c in code.calls(start)
    ]
    known = {_whole(KnownValues(code).value(node)) for node in starts}
    size = known.pop() if len(known) == 1 else None
    asked = [code.argument(c, "world_size") for c in code.calls("torch.distributed.init_process_group")]
    told = {_whole(KnownValues(code).value(node)) for node in asked if node is not None}
    return size if told <= {size, None} else None


def _whole(value: Value | None) -> int | None:
    return value.plain if value is not None and value.name == "int" and isinstance(value.plain, int) else None


def default_option(code: Code, node: ast.Attribute) -> tuple[object, Origin] | None:
    """Return the default of the option that `args.name` is, if nothing else sets that attribute."""
    made = code.values(node.value)
    parsed = len(made) == 1 and isinstance(made[0], ast.Call) and parses(code, made[0])
    known = options(code) if parsed else None
    call = known.call(node.attr) if known else None
    if known is None or call is None or is_set(code, node.attr):
        return None
    value = known.default(node.attr)
    return None if value is None else (value, Origin(dotted_name(node), call, known.homes[call], is_default=True))


def is_set(code: Code, attribute: str) -> bool:
    """True if a program assigns to an attribute of that name."""
    return any(isinstance(n.ctx, ast.Store) and n.attr == attribute for n in code.nodes(ast.Attribute))


def _apis(code: Code, call: ast.Call) -> Iterator[str]:
    """Yield the qualified names by which contracts may know a call."""
    name = code.name(call.func)
    root = name.partition(".")[0]
    if root in _packages() and dotted_name(call.func).partition(".")[0] in code.imports:
        yield name
    elif isinstance(call.func, ast.Attribute) and call.func.attr in _methods(of_tensor=True):
        if (owner := KnownValues(code).value(call.func.value)) is not None and owner.kind == "tensor":
            yield f"torch.Tensor.{call.func.attr}"
    elif isinstance(call.func, ast.Attribute) and call.func.attr in _methods(of_tensor=False):
        made = code.made_by(call.func.value)
        if len(made) == 1 and (owner_name := next(iter(made))):
            yield f"{owner_name}.{call.func.attr}"


@cache
def _packages() -> frozenset[str]:
    return frozenset(api.partition(".")[0] for c in load_contracts().all for api in c.api)


@cache
def _methods(*, of_tensor: bool) -> frozenset[str]:
    """Return the names of methods in contracts: of tensors, or of other classes."""
    rows = (api.rpartition(".") for c in load_contracts().all for api in c.api)
    return frozenset(
        last
        for owner, _, last in rows
        if owner.rpartition(".")[2][:1].isupper() and (owner in _METHODS_OF) is of_tensor and last[:1].islower()
    )


def _find_breach(this: _Asked, contract: Contract, size: int | None) -> BrokenCall | None:
    code, call, _, option = this
    first = _outcome(this, contract, World())
    if first.broken is False or (not first.broken and size is None and not first.known.by_world):
        return None  # of an unknown value, some number of ranks may fit
    if _is_guarded(code, call, first.known):
        return None
    if first.broken:
        reached = any(_path(code, call, world, option) is not False for world in _worlds(size))
        return _of(this, contract, first, World(), is_started=False) if reached else None
    example: tuple[World, _Outcome] | None = None
    for each in (size,) if size is not None else SIZES:
        ways = ((World(each, rank), rank) for rank in (range(each) if each <= 8 else (0, 1, each // 2, each - 1)))
        rows = [
            (w, _outcome(this, contract, w), way) for w, _ in ways if (way := _path(code, call, w, option)) is not False
        ]
        broken = [row for row in rows if row[1].broken]
        some = any(way for _, _, way in broken) and _always_runs(code, call)
        unknown = any(outcome.broken is None for _, outcome, _ in rows)
        if rows and (unknown or not (len(broken) == len(rows) or some)):
            return None
        if broken and example is None:
            example = broken[0][:2]
    return _of(this, contract, example[1], example[0], is_started=size is not None) if example is not None else None


def _worlds(size: int | None) -> Iterator[World]:
    yield from (World(n, rank) for n in ((size,) if size is not None else (2, 3)) for rank in range(n))


def _outcome(this: _Asked, contract: Contract, world: World) -> _Outcome:
    known = KnownValues(this.code, world, this.option)
    given = _read(this, contract, known)
    applies = is_met(contract.when, given.scope) if contract.when else True
    met = is_met(contract.demand, given.scope)
    broken = False if applies is False or met else True if applies and met is False else None
    return _Outcome(broken, given, known)


def _read(this: _Asked, contract: Contract, known: KnownValues) -> UserCall:
    """Return a call with the values of the arguments that a contract asks for."""
    code, call, api, _ = this
    nodes = _bind(code, call, api, contract)
    asked = names_in(contract.demand) | (names_in(contract.when) if contract.when else frozenset())
    values: dict[str, Value] = {}
    for name in asked & nodes.keys():
        node = nodes[name]
        value = _several(known, node) if isinstance(node, list) else known.value(node)
        if value is not None:
            values[name] = value
    if not code.has_unpacking(call):
        for parameter in contract.parameters:
            name, equals, default = parameter.partition("=")
            if equals and name not in nodes and name in {*asked, "group"}:
                try:
                    values[name] = plain_value(ast.literal_eval(default))
                except ValueError:
                    continue
        if "group" not in nodes and any(p.startswith("group") for p in contract.parameters):
            _add(values, "members", known.world.size)
    elif asked & {"members"}:
        values.pop("members", None)
    _add(values, "world_size", known.world.size)
    _add(values, "rank", known.world.rank)
    if (backend := _backend(code)) and "backend" in asked:
        values["backend"] = plain_value(backend)
    expressions = {}
    for name, node in nodes.items():
        parts = node if isinstance(node, list) else [node]
        span = (code.span(parts[0]).start, code.span(parts[-1]).end)
        expressions[name] = (" ".join(code.text[span[0] : span[1]].split()), span)
    module = code.source_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    texts = {name: _text(value) for name, value in values.items()}
    return UserCall(short_name(api), module, expressions, texts, Scope(values))


def _add(values: dict[str, Value], name: str, number: int | None) -> None:
    if number is not None:
        values[name] = plain_value(number)


def _bind(code: Code, call: ast.Call, api: str, contract: Contract) -> dict[str, ast.expr | list[ast.expr]]:
    """Return the arguments by the names of the contract's parameters."""
    found: dict[str, ast.expr | list[ast.expr]] = {}
    names = [p.partition("=")[0] for p in contract.parameters]
    if api.startswith("torch.Tensor.") and isinstance(call.func, ast.Attribute):
        if names:
            found[names.pop(0)] = call.func.value
    elif names[:1] == ["self"] and short_name(api) == api.rpartition(".")[2] and isinstance(call.func, ast.Attribute):
        found[names.pop(0)] = call.func.value
    for at, node in enumerate(call.args):
        if isinstance(node, ast.Starred) or at >= len(names):
            break
        if names[at].startswith("*"):
            found[names[at][1:]] = call.args[at:]
            break
        found[names[at]] = node
    found |= {k.arg: k.value for k in call.keywords if k.arg}
    return found


def _several(known: KnownValues, nodes: list[ast.expr]) -> Value | None:
    if any(isinstance(node, ast.Starred) for node in nodes):
        return None
    if len(nodes) == 1 and (row := known.value(nodes[0])) is not None and row.kind == "sequence":
        return row
    return known.value(ast.Tuple(elts=nodes, ctx=ast.Load()))


def _text(value: Value) -> str:
    if value.kind == "tensor":
        sizes = ", ".join(map(str, value.shape or ()))
        return f"Tensor[{sizes}]" + (f" {value.dtype}" if value.dtype else "")
    if value.kind == "sequence":
        each = f" x {_text(value.items[0])}" if len(value.items) == 1 and value.length != 1 else ""
        many = f": {', '.join(map(_text, value.items[:5]))}" if len(value.items) > 1 else ""
        return f"{value.name} of {value.length}{each}{many}"
    return "None" if value.kind == "none" else repr(value.plain)


def _backend(code: Code) -> str:
    """Return the only backend that a program asks for; empty if there may be others."""
    calls = code.calls("torch.distributed.init_process_group")
    found = {code.constant(code.argument(c, "backend", 0)) for c in calls}
    only = found.pop() if len(found) == 1 else None
    return only if isinstance(only, str) and only in {"gloo", "nccl"} else ""


def _path(code: Code, call: ast.Call, world: World, option: Option) -> bool | None:
    """Return whether a rank passes the tests around a call, in its function; None if the source does not decide it."""
    sure: bool | None = True
    inner: ast.AST = call
    for up in code.ancestors(call):
        if isinstance(up, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            break
        if isinstance(up, ast.If | ast.IfExp) and inner is not up.test:
            body = up.body if isinstance(up.body, list) else [up.body]
            truth = KnownValues(code, world, option).truth(up.test)
            if truth is None:
                sure = None if not _is_main(up.test) else sure
            elif truth is not (inner in body):
                return False
        elif isinstance(up, _MAYBE):
            sure = None
        inner = up
    return sure


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and dotted_name(test.left) == "__name__"


def _always_runs(code: Code, call: ast.Call, depth: int = _CALLERS) -> bool:
    """True if all ranks come to a call: nothing leaves its function before it, and all ranks call the function."""
    function = code.function(call)
    home: ast.AST = function or code.tree
    for node in code.inside(home, *_LEAVES):
        if code.function(node) is function and code.order[node] < code.order[call]:
            return False
    if function is None:
        return True
    callers = code.callers.get(function, [])
    started = any(isinstance(a, ast.Name) and a.id == function.name for c in code.calls(*_STARTED) for a in c.args)
    if not callers or not depth:
        return started
    every = World(None, None)
    return all(_path(code, c, every, lambda _: None) is True and _always_runs(code, c, depth - 1) for c in callers)


def _is_guarded(code: Code, call: ast.Call, known: KnownValues) -> bool:
    """True if the program itself tests what a call is given, or expects it to fail."""
    names = {*known.origins} | {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
    names -= {dotted_name(call.func).partition(".")[0], *code.imports}
    function = code.function(call)
    inner: ast.AST = call
    for up in code.ancestors(call):
        if isinstance(up, FUNCTIONS) and up is not function:
            break
        if isinstance(up, ast.With | ast.AsyncWith) and any(
            _EXPECTED.search(code.source_of(item.context_expr)) for item in up.items
        ):
            return True
        if isinstance(up, ast.Try) and up.handlers and inner in up.body:
            return True
        tests = isinstance(up, ast.If | ast.While | ast.IfExp) and inner is not up.test and _mentions(up.test, names)
        if tests and KnownValues(code, World(4, 0), known.option).truth(up.test) is None:  # type: ignore[attr-defined]
            return True
        inner = up
    home: ast.AST = function or code.tree
    asserted: list[ast.stmt] = [*code.inside(home, ast.Assert)]
    asserted += [i for i in code.inside(home, ast.If) if any(isinstance(s, _LEAVES) for s in i.body)]
    return any(
        isinstance(test, ast.Assert | ast.If)
        and code.function(test) is function
        and code.order[test] < code.order[call]
        and _mentions(test.test, names)
        for test in asserted
    )


def _mentions(test: ast.expr, names: set[str]) -> bool:
    return any(dotted_name(n) in names for n in ast.walk(test) if isinstance(n, ast.Name | ast.Attribute))


def _of(this: _Asked, contract: Contract, outcome: _Outcome, world: World, *, is_started: bool) -> BrokenCall:
    statement = this.code.statement(this.call)
    origins = tuple(o for o in outcome.known.origins.values() if o.node is not statement)
    fix = _fix(this.code, contract, this.call, outcome, world)
    return BrokenCall(contract, this.call, outcome.given, origins, world, is_started, fix)


def sentence(code: Code, found: BrokenCall) -> str:
    """Return the demand with the values and where they come from; empty if a value can't be shown."""
    try:
        said = fill(found.contract.says, found.given)
    except UnknownSlotError:
        return ""
    size, rank = found.world
    by_rank = names_in(found.contract.demand) | (names_in(found.contract.when) if found.contract.when else frozenset())
    place = f", on rank {rank} of {size}" if size is not None and "rank" in by_rank else ""
    more = [_decision(code, o) for o in found.origins if _matters(o)][:2]
    more += ["it is so with any number of ranks"] if size is not None and not found.is_started else []
    return f"{'; '.join([said + place, *more])}."


def _matters(origin: Origin) -> bool:
    """True for a line that decides more than the rank or the number of ranks."""
    return origin.name.rpartition(".")[2] not in {"rank", "world_size"} and not isinstance(origin.node, ast.Attribute)


def _decision(code: Code, origin: Origin) -> str:
    line = origin.code.text.place(origin.code.span(origin.node).start).line
    at = f"line {line}" if origin.code is code else f"{origin.code.path.rpartition('/')[2]}:{line}"
    if origin.is_default and isinstance(origin.node, ast.Call):
        flags = [str(a.value) for a in origin.node.args if isinstance(a, ast.Constant)]
        default = origin.code.argument(origin.node, "default")
        known = f" to {origin.code.source_of(default)}" if default is not None else ""
        return f"`{flags[-1] if flags else origin.name}` defaults{known} ({at})"
    words = " ".join(origin.code.source_of(origin.node).split())
    return f"`{words}` ({at})" if len(words) <= 70 else f"`{origin.name}` is made in {at}"


def _fix(code: Code, contract: Contract, call: ast.Call, outcome: _Outcome, world: World) -> Fix | None:
    """Return the edit after which the demand is met: the argument that the contract writes, or the number of ranks."""
    about = outcome.given.expressions.get(contract.about)
    module = outcome.given.module
    if contract.instead and about is not None:
        try:
            text = fill(contract.instead, outcome.given, {"module": module} if module.isidentifier() else None)
        except UnknownSlotError:
            return None
        title = fill(contract.fix, outcome.given, strict=False).rstrip(".")
        return Fix(title, (Edit(Span(*about[1]), text),))
    left, right = _numbers(contract, outcome)
    node = _maker(code, call, about[1]) if about is not None else None
    if not contract.write or left is None or right is None or node is None or not module.isidentifier():
        return None
    counted = fill(contract.write, outcome.given, {"module": module})
    for part in ast.walk(node):
        if not isinstance(part, ast.BinOp | ast.Constant | ast.Name):
            continue
        value = KnownValues(code, world).value(part)
        if value is not None and value.kind == "number" and value.plain == left and _counts(code, part):
            return Fix(f"Make it one for each rank: `{counted}`", (Edit(code.span(part), counted),))
    return None


def _counts(code: Code, node: ast.expr) -> bool:
    """True for the number of a repeat: `range(n)`, `[None] * n`."""
    up = code.parent.get(node)
    if isinstance(up, ast.Call):
        return code.name(up.func) == "range" and len(up.args) == 1
    return isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult) and isinstance(up.left, ast.List)


def _numbers(contract: Contract, outcome: _Outcome) -> tuple[int | None, int | None]:
    left, operator, right = sides(contract.demand)
    if operator not in {"Eq", "GtE"}:
        return None, None
    try:
        pair = value_of(left, outcome.given.scope), value_of(right, outcome.given.scope)
    except (UnknownTermError, DemandError):
        return None, None
    one, other = pair
    return (one, other) if isinstance(one, int) and isinstance(other, int) else (None, None)


def _maker(code: Code, call: ast.Call, span: tuple[int, int]) -> ast.expr | None:
    """Return the expression of an argument, or of the one assignment that made it."""
    given = (*call.args, *(k.value for k in call.keywords))
    node = next((n for n in given if tuple(code.span(n)) == span), None)
    values = code.values(node)
    return values[0] if len(values) == 1 else None

"""Shuffling distributed samplers in programs with an epoch loop that never calls `set_epoch`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.course import Step, courses
from dtdebug_taxonomy.checks.shared.fixing import deeper, indent_of
from dtdebug_taxonomy.checks.shared.names import LOADER, SAMPLER
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import SCOPES, Function
from dtdebug_taxonomy.source.text import Span

_EPOCH = re.compile(r"epoch|\bep\b", re.IGNORECASE)
_REPEATS = re.compile(r"range\(|count\(")
_TEST = re.compile(r"(^|_)(test|val|valid|validation|eval|dev)", re.IGNORECASE)
_TRAIN = re.compile(r"(^|[_ .])train", re.IGNORECASE)
_HARMLESS = {"enumerate", "len", "tqdm", "zip", "iter", "next", "print", "isinstance", "range", "int", "str", "hasattr"}
_KNOWN = {
    *(LOADER, SAMPLER, "torch.utils.data.BatchSampler", "torch.utils.data.sampler.BatchSampler"),
    *(f"torch_xla.distributed.parallel_loader.{name}" for name in ("ParallelLoader", "MpDeviceLoader")),
}
_SET_BY_FRAMEWORK = ("accelerate", "pytorch_lightning", "lightning", "lightning_fabric", "ignite", "composer")


def check(code: Code) -> Iterator[Hit]:
    """Report the sampler."""
    samplers = [c for c in code.calls(SAMPLER) if _shuffles(code, c)]
    if code.role == "test" or _sets_epoch(code) or code.imports_any(*_SET_BY_FRAMEWORK):
        return
    if not samplers:
        yield from _made_elsewhere(code)
        return
    loop = _epoch_loop(code, {_loader_of(code, c) for c in samplers} - {""})
    if loop is None:
        yield from _read_again(code, samplers)
        return
    for call in samplers:
        target, loader = _name_of(code, call), _loader_of(code, call)
        if _TEST.search(target.rsplit(".", 1)[-1]) or _TEST.search(loader.rsplit(".", 1)[-1]):
            continue
        data = dotted_name(code.argument(call, "dataset", 0)).rsplit(".", 1)[-1]
        if _is_given_out(code, call, {target, loader} - {""}, loop):
            continue
        if _TEST.search(data) or _used_once(code, call, loop) or _has_new_data(code, call, loop):
            continue
        if _goes_elsewhere(code, {target, loader} - {""}):
            continue
        yield Hit(
            code.span(call),
            "Nothing calls set_epoch() on this sampler, so each epoch has the same order of the data: "
            "it is shuffled once and never again.",
            _fix(code, call, target, loader, loop),
            "hint" if _may(code, call) else None,
        )


def _read_again(code: Code, samplers: list[ast.Call]) -> Iterator[Hit]:
    """Report samplers whose loader is read in a loop, in functions that lead to each other."""
    for steps in courses(code):
        for sampler in (s for s in steps if s.node in samplers):
            after = [s for s in steps[steps.index(sampler) + 1 :] if s.result is not sampler.result]
            reads = [s for s in after if not isinstance(s.node, ast.Call) and _holds(s, sampler)]
            if not any(_is_repeated(code, s, sampler) for s in reads) or any(
                _may_set_epoch(s, sampler, reads) for s in after
            ):
                continue
            names = (dotted_name(n) for s in reads for n in (getattr(s.node, "iter", None) or s.node.value,))  # type: ignore[attr-defined]
            data = dotted_name(code.argument(sampler.node, "dataset", 0))  # type: ignore[arg-type]
            if not any(_TEST.search(n.rpartition(".")[2]) for n in (*names, data, _name_of(code, sampler.node))):  # type: ignore[arg-type]
                yield Hit(
                    code.span(sampler.node),
                    "Nothing calls set_epoch() on this sampler, so each epoch has the same order of the data: "
                    "it is shuffled once and never again.",
                    None,
                    "hint" if _may(code, sampler.node) else None,  # type: ignore[arg-type]
                )


def _made_elsewhere(code: Code) -> Iterator[Hit]:
    """Report loops over epochs that read a loader whose sampler another module has made."""
    seen: set[ast.AST] = set()
    for steps in courses(code) if code.project is not None and code.project.reaches(code) else ():
        for sampler in steps:
            call, home = sampler.node, sampler.code
            if sampler.name != SAMPLER or home is code or not isinstance(call, ast.Call) or not _shuffles(home, call):
                continue
            if _sets_epoch(home) or home.imports_any(*_SET_BY_FRAMEWORK) or _TEST.search(_name_of(home, call)):
                continue
            after = steps[steps.index(sampler) + 1 :]
            reads = [s for s in after if isinstance(s.node, ast.For) and s.code is code and _holds(s, sampler)]
            read = next((s for s in reads if _is_repeated(code, s, sampler)), None)
            if read is None or read.node in seen or any(_may_set_epoch(s, sampler, reads) for s in after):
                continue
            data: ast.expr = read.node.iter  # type: ignore[attr-defined]
            if not any(_TEST.search(dotted_name(n)) for n in code.inside(data, ast.Name, ast.Attribute)):
                seen.add(read.node)
                line = home.text.place(home.span(call).start).line
                yield Hit(
                    code.span(data),
                    f"Nothing calls set_epoch() on the sampler of this loader ({home.path.rpartition('/')[2]} line "
                    f"{line}), so each epoch has the same order of the data: it is shuffled once and never again.",
                    None,
                    "hint" if _may(home, call) else None,
                )


def _holds(step: Step, sampler: Step) -> bool:
    """True if a step is about a sampler or what was made from it."""
    return any(t is not None and sampler.result in t.lineage() for t in (step.on, *step.given))


def _is_repeated(code: Code, read: Step, sampler: Step) -> bool:
    """True if a loader is read in a loop that was entered with it: `while True`, or over numbers."""
    made = {p.node for p in sampler.places}
    for place in read.places:
        loop = place.node
        if loop in made or loop is read.node:
            continue
        if isinstance(loop, ast.While):
            return True
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call):
            once = len(loop.iter.args) == 1 and code.constant(loop.iter.args[0]) == 1
            if dotted_name(loop.iter.func).rpartition(".")[2] in {"range", "trange", "count"} and not once:
                return True
    return False


def _may_set_epoch(step: Step, sampler: Step, reads: list[Step]) -> bool:
    """True if a step sets the epoch, or is a function of another place that gets the sampler, not its items."""
    if step.attribute == "set_epoch":
        return True
    if not isinstance(step.node, ast.Call) or step.is_followed or step.on is not None:
        return False
    last = dotted_name(step.node.func).rpartition(".")[2]
    if last in _HARMLESS or step.name in _KNOWN:
        return False
    if {p.node for p in step.places} & {r.node for r in reads}:
        return any(t is sampler.result or t is r.on for t in step.given for r in reads)
    return any(sampler.result in t.lineage() for t in step.given)


def _shuffles(code: Code, call: ast.Call) -> bool:
    shuffle = code.argument(call, "shuffle", 3)
    return not code.has_unpacking(call) and (shuffle is None or code.constant(shuffle) is True or _may(code, call))


def _may(code: Code, call: ast.Call) -> bool:
    """True if a setting decides whether a sampler for training shuffles, judging by names."""
    shuffle = code.argument(call, "shuffle", 3)
    is_setting = isinstance(shuffle, ast.Subscript) or (
        isinstance(shuffle, ast.Attribute) and bool(dotted_name(shuffle))
    )
    if isinstance(shuffle, ast.Compare) and isinstance(shuffle.ops[0], ast.Eq):
        return any(_TRAIN.search(str(code.constant(c))) for c in shuffle.comparators)
    return is_setting and bool(
        _TRAIN.search(f"{_name_of(code, call)} {dotted_name(code.argument(call, 'dataset', 0))}")
    )


def _sets_epoch(code: Code) -> bool:
    return any(n.attr == "set_epoch" for n in code.nodes(ast.Attribute)) or any(
        n.value == "set_epoch" for n in code.nodes(ast.Constant)
    )


def _epoch_loop(code: Code, loaders: set[str]) -> ast.For | ast.While | None:
    """Return the outermost loop over epochs, by its names or because it repeatedly iterates a loader."""
    for loop in code.nodes(ast.For):
        values = [v for v in code.values(loop.iter) if v is not None]
        over = " ".join([code.source_of(loop.iter), *map(code.source_of, values)])
        if isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 1 and code.constant(loop.iter.args[0]) == 1:
            continue
        if _REPEATS.search(over) and (
            _EPOCH.search(f"{code.source_of(loop.target)} {over}") or _goes_through(code, loop, loaders)
        ):
            return loop
    if (endless := _endless(code, loaders)) is not None:
        return endless
    return next((w for w in code.nodes(ast.While) if _EPOCH.search(code.source_of(w.test))), None)


def _endless(code: Code, loaders: set[str]) -> ast.While | None:
    """Return the loop of a generator that restarts a loader forever: `while True: for x in loader: yield x`."""
    for function in {f for f in map(code.function, code.nodes(ast.Yield)) if f is not None}:
        given = {dotted_name(a) for c in code.callers.get(function, ()) for a in c.args}
        for loop in code.inside(function, ast.While):
            again = [n.iter for n in code.inside(loop, ast.For)]
            arguments = {a.arg for a in function.args.args}
            if given & loaders and code.constant(loop.test) == 1 and any(dotted_name(i) in arguments for i in again):
                return loop
    return None


def _used_once(code: Code, call: ast.Call, epochs: ast.For | ast.While) -> bool:
    """True if the sampler is made for one loop over the data, outside of the epochs."""
    inner: ast.AST = call
    around = list(code.ancestors(call))
    for up in around:
        if isinstance(up, ast.For) and inner is up.iter:
            return epochs not in around
        inner = up
    return False


def _has_new_data(code: Code, call: ast.Call, epochs: ast.For | ast.While) -> bool:
    """True if each epoch recreates its data, which may be shuffled there, and the sampler for it."""
    data = code.argument(call, "dataset", 0)
    made = code.bound(data) if isinstance(data, ast.Name) else []
    within = {*code.inside(epochs, ast.Assign)}
    return bool(made) and call in set(code.inside(epochs, ast.Call)) and all(b.node in within for b in made)


def _goes_through(code: Code, loop: ast.For, loaders: set[str]) -> bool:
    inner = [n.iter for n in code.inside(loop, ast.For) if n is not loop]
    names = {dotted_name(n) for i in inner for n in (i, *(i.args if isinstance(i, ast.Call) else ()))}
    return bool(names & loaders)


def _name_of(code: Code, call: ast.Call) -> str:
    """Return the name that a call's value is assigned to, as in `a = call` and `a = call if b else None`."""
    up = code.parent[call]
    while isinstance(up, ast.IfExp):
        up = code.parent[up]
    if isinstance(up, ast.Assign) and len(up.targets) == 1:
        return dotted_name(up.targets[0])
    return dotted_name(up.target) if isinstance(up, ast.AnnAssign | ast.NamedExpr) else ""


def _loader_of(code: Code, sampler: ast.Call) -> str:
    """Return the name of the loader that takes a sampler."""
    name = _name_of(code, sampler)
    for call in code.calls(LOADER):
        given = code.argument(call, "sampler", 3)
        if given is sampler or (name and dotted_name(given) == name):
            return _name_of(code, call)
    return ""


def _goes_elsewhere(code: Code, names: set[str]) -> bool:
    """True if a function from another file gets the sampler or the loader and may set the epoch."""
    for node in (*code.nodes(ast.Name), *code.nodes(ast.Attribute)):
        if dotted_name(node) not in names:
            continue
        up = code.parent[node]
        if isinstance(up, ast.keyword):
            up = code.parent[up]
        if not isinstance(up, ast.Call) or up.func is node or code.local_function(up) is not None:
            continue
        called = code.name(up.func)
        if called.rsplit(".", 1)[-1] not in _HARMLESS and called not in _KNOWN and called not in _local_classes(code):
            return True
    return False


def _is_given_out(code: Code, call: ast.Call, names: set[str], loop: ast.AST) -> bool:
    """True if the sampler or the loader is returned, but not to the loop that counts epochs here."""
    function = code.function(call)
    if function is None:
        return False
    returned = [r.value for r in code.inside(function, ast.Return) if r.value is not None]
    if not any(dotted_name(n) in names for value in returned for n in code.inside(value, ast.Name, ast.Attribute)):
        return False
    to: list[Function | None] = [function]
    for home in to:
        to += [f for c in code.callers.get(home, ()) if home and (f := code.function(c)) not in to]
    return code.function(loop) not in to


def _local_classes(code: Code) -> set[str]:
    return {c.name for c in code.nodes(ast.ClassDef)}


def _fix(code: Code, call: ast.Call, target: str, loader: str, loop: ast.For | ast.While) -> Fix | None:
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return None
    epoch = loop.target.id
    if epoch == "_" or code.text.place(code.span(loop.body[0]).start).line == loop.lineno:
        return None
    receiver = next(
        (
            r
            for name, r in ((target, target), (loader, f"{loader}.sampler"))
            if name and _visible(code, name, call, loop)
        ),
        "",
    )
    first = loop.body[0]
    if not receiver:
        return _by_its_loader(code, call, loop, epoch)
    start = code.text.starts[code.text.place(code.span(first).start).line - 1]
    indent = indent_of(code, first)
    line = f"{indent}{receiver}.set_epoch({epoch})\n"
    if receiver == target and _can_be_none(code, call, target):
        line = f"{indent}if {target} is not None:\n{deeper(indent)}{target}.set_epoch({epoch})\n"
    elif receiver != target and _can_be_none(code, call, target):
        return None
    return Fix("Tell the sampler the epoch", (Edit(Span(start, start), line),))


def _by_its_loader(code: Code, call: ast.Call, loop: ast.For, epoch: str) -> Fix | None:
    """Return a fix on the sampler of the loader that the epochs iterate, if the sampler's function returned it."""
    maker, written = code.function(call), code.source_of(call.func)
    if maker is None or ("." not in written and written not in code.imports):
        return None
    for inner in code.inside(loop, ast.For):
        through = inner.iter
        while (
            isinstance(through, ast.Call) and through.args and dotted_name(through.func).rpartition(".")[2] in _HARMLESS
        ):
            through = through.args[0]
        if inner is loop or not isinstance(through, ast.Name):
            continue
        bound = code.bound(through)
        made = [b.node.value for b in bound if isinstance(b.node, ast.Assign) and isinstance(b.node.value, ast.Call)]
        if len(bound) == 1 and made and code.local_function(made[0]) is maker and not guards(code).around(loop):
            sampler = f"{through.id}.sampler"
            start, indent = code.text.starts[loop.body[0].lineno - 1], indent_of(code, loop.body[0])
            line = f"{indent}if isinstance({sampler}, {written}):\n{deeper(indent)}{sampler}.set_epoch({epoch})\n"
            return Fix("Tell the sampler the epoch", (Edit(Span(start, start), line),))
    return None


def _visible(code: Code, name: str, call: ast.Call, loop: ast.AST) -> bool:
    """True if the loop can access a name that is bound where the sampler is made."""
    if name.startswith("self."):
        return code.class_of(call) is not None and code.class_of(call) is code.class_of(loop)
    home = code.scope(call)
    around = [a for a in (*code.ancestors(loop), code.tree) if isinstance(a, SCOPES)]
    return home in around and "." not in name


def _can_be_none(code: Code, call: ast.Call, target: str) -> bool:
    if any(isinstance(a, ast.If | ast.IfExp) for a in code.ancestors(call)):
        return True
    home = code.class_of(call) if target.startswith("self.") else code.scope(call)
    found = code.bindings.get((home or code.tree, target), []) if target else []
    return any(isinstance(b.value, ast.Constant) for b in found)

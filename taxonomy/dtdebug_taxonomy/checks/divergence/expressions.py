"""Values of the expressions of one function, and what its calls exchange."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from dtdebug_taxonomy.checks.divergence.origins import (
    AGREED,
    EQUAL,
    Callee,
    Origin,
    Value,
    as_sequence,
    as_text,
    communicates,
    mix,
    own,
    value_of_attribute,
    value_of_call,
)
from dtdebug_taxonomy.checks.divergence.summaries import (
    Decision,
    Program,
    replace_parameters,
    without_parameters,
)
from dtdebug_taxonomy.checks.shared.names import COLLECTIVES
from dtdebug_taxonomy.checks.shared.wrapping import DDPS, FSDP1
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_main, is_size, may_tell_rank, rank, several
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

MAX_NESTING = 60
"""Maximum depth of an expression or of nested blocks that is followed."""
_OF_MULTIPLES = (ast.Mod, ast.FloorDiv, ast.Mult)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_OF_ARGUMENTS = re.compile(
    r"(?i)(^|_)(module|model|net|network|criterion|loss|loss_fn|forward|encoder|decoder|head|policy)$|stop|converged"
)
"""Attributes that are modules, losses, or ask whether to stop: what they return depends on what they get."""
_BATCH = re.compile(r"(?i)batch|inputs?|images?|samples?|x|data")
"""Parameters of a training step that are batches."""
_PLACES = ("device", "device_ids", "output_device", "map_location", "dst", "src", "group")
_FILLS = {"append", "extend", "add", "appendleft"}
_BARS = {"tqdm", "trange", "track"}
_WAITING = frozenset(name.rpartition(".")[2] for name in COLLECTIVES)
_EXPRESSIONS: dict[type, str] = {
    ast.Name: "value_of_name",
    ast.Attribute: "value_of_name",
    ast.Call: "_call",
    ast.IfExp: "_if_expression",
    ast.Compare: "_compare",
    ast.Subscript: "_subscript",
    ast.Tuple: "_tuple",
    ast.JoinedStr: "_text",
    ast.BinOp: "_operation",
    ast.NamedExpr: "_walrus",
    ast.Lambda: "_lambda",
    ast.Yield: "_yield",
    ast.YieldFrom: "_yield",
    **dict.fromkeys(_COMPREHENSIONS, "_comprehension"),
}


class Evaluation:
    """Values of the expressions of one function, and what its calls exchange."""

    def __init__(self, home: Program, node: ast.AST, *, quiet: bool = False) -> None:
        self.home, self.code, self.node, self.quiet = home, home.code, node, quiet
        self.env: dict[str, Value] = {}
        self.known: dict[ast.expr, Value] = {}
        """Values of expressions since a name was last set."""
        self.returns = EQUAL
        self.exchanged: set[str] = set()
        self.decisions: dict[ast.AST, Decision] = {}
        """Conditions by which a rank alone may decide."""
        self.nested = 0
        """Number of expressions and blocks around the one that is interpreted."""
        self.loops = 0
        """Number of loops around it."""
        self.owner = self.code.class_of(node) if isinstance(node, FUNCTIONS) else None
        self.parameters: list[str] = []
        if not isinstance(node, ast.Module):
            a: ast.arguments = node.args  # type: ignore[attr-defined]
            self.parameters = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
            defaults = [*a.defaults, *a.kw_defaults][::-1]
            optional = {
                n
                for n, d in zip(reversed(self.parameters), defaults, strict=False)
                if isinstance(d, ast.Constant) and d.value is None
            }  # such a rank may be that of another process
            for name in self.parameters:
                if name not in {"self", "cls"}:
                    is_rank = may_tell_rank(name) and not name.startswith(("gpu", "device")) and name not in optional
                    is_batch = _BATCH.fullmatch(name) and self._is_step(node)
                    self.env[name] = own("rank" if is_rank else "batch" if is_batch else "parameter", name)

    def _is_step(self, node: ast.AST) -> bool:
        """True if a function is a step of a training that nothing in this file calls."""
        self.code.results.note("callers", node)
        if node in self.code.callers:
            return False
        return any(c in self.home.waits for c in self.code.methods("backward") if self.code.function(c) is node)

    def value(self, node: ast.expr | None) -> Value:
        """Return the value of an expression, and note what its calls exchange."""
        if node is None or isinstance(node, ast.Constant) or self.nested > MAX_NESTING:
            return EQUAL
        known = self.known
        found = known.get(node)
        if found is not None:
            return found
        self.nested += 1
        name = _EXPRESSIONS.get(type(node))
        if name is not None:
            found = getattr(self, name)(node)
        else:
            found = mix(*(self.value(n) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)))
        self.nested -= 1
        if known is self.known:
            known[node] = found
        return found

    def set_name(self, name: str, value: Value) -> None:
        """Set the value of a name; those of expressions are no longer known."""
        self.env[name] = value
        self.known = {}

    def bind(self, target: ast.expr, value: Value, source: ast.expr | None, control: Value) -> None:
        """Set the names of a target to a value, under conditions of another one."""
        if isinstance(target, ast.Tuple | ast.List):
            parts = source.elts if isinstance(source, ast.Tuple | ast.List) else []
            known = value.parts if len(value.parts) == len(target.elts) else ()
            for place, inner in enumerate(target.elts):
                part = parts[place] if len(parts) == len(target.elts) else None
                each = self.value(part) if part is not None else known[place] if known else value
                self.bind(inner, each, part, control)
            return
        if control.origins and isinstance(source, ast.Constant | ast.UnaryOp | ast.Compare | ast.BoolOp):
            value = mix(value, control)
        name = dotted_name(target)
        if name:
            self.set_name(name, value)
        elif isinstance(target, ast.Subscript) and (name := dotted_name(target.value)):
            self.set_name(name, self.value_of_name(target.value) | value)

    def bind_item(self, target: ast.expr, item: Value, over: ast.expr) -> None:
        """Set the names of a loop's target; of a `zip()`, those from what is equal on all ranks are equal."""
        while isinstance(over, ast.Call) and over.args and self.code.name(over.func) != "zip":
            over = over.args[0]
        parts = target.elts if isinstance(target, ast.Tuple) and isinstance(over, ast.Call) else []
        if not parts or len(parts) != len(over.args):  # type: ignore[attr-defined]
            self.bind(target, item, None, EQUAL)
            return
        for part, argument in zip(parts, over.args, strict=True):  # type: ignore[attr-defined]
            self.bind(part, item if self.value(argument).origins else EQUAL, None, EQUAL)

    def value_of_name(self, node: ast.expr) -> Value:
        """Return the value of a name or attribute."""
        name = dotted_name(node)
        if name in self.env:
            return self.env[name]
        if isinstance(node, ast.Name):
            return self._outer(node)
        if not isinstance(node, ast.Attribute):
            return EQUAL
        which = rank(self.code, node)
        if which in {"global", "local"} and not node.attr.startswith(("gpu", "device")):
            return own("rank")
        if is_main(name):
            return own("rank")
        if dotted_name(node.value) in {"self", "cls"} and self.owner is not None:
            return self._attribute_of(Callee(self.code, self.owner, made=True), node.attr)
        of = self.value(node.value)
        objects = [c for c in of.callees if isinstance(c, Callee) and c.made]
        if objects:
            return mix(*(self._attribute_of(o, node.attr) for o in objects), Value(of.origins))
        called = self.code.name(node)
        if called.startswith("torch.distributed."):
            return self._library(called)
        return value_of_attribute(of, node.attr)

    def _library(self, called: str) -> Value:
        last = called.rpartition(".")[2]
        return Value(callees=frozenset({last})) if last in _WAITING else EQUAL

    def _attribute_of(self, of: Callee, attribute: str) -> Value:
        """Return an attribute of an object of a class of the project."""
        home = self.home.of(of.code)
        if not isinstance(of.node, ast.ClassDef):
            return EQUAL
        method = home.method(of.node, attribute)
        if method is None:
            return without_parameters(home.attribute(of.node, attribute))
        if any(dotted_name(d).rpartition(".")[2] in {"property", "cached_property"} for d in method.decorator_list):
            return without_parameters(home.summary(method).returns)
        return Value(callees=frozenset({Callee(of.code, method, of.node)}))

    def _outer(self, node: ast.Name) -> Value:
        """Return the value of a name of an enclosing scope."""
        code = self.code
        if node.id in _signalled(code):
            return own("signal", node.id)
        which = rank(code, node)
        if (which in {"global", "local"} and not node.id.startswith(("gpu", "device"))) or is_main(node.id):
            return own("rank")
        if node.id in code.imports:
            called = code.name(node)
            if called.startswith("torch.distributed."):
                return self._library(called)
            if code.project is not None and code.project.may_hold(code, node):
                found = code.project.find_definition(code, called)
                if found is not None:
                    return Value(callees=frozenset({Callee(found.code, found.node)}))
            return EQUAL
        code.results.note("at_top", node.id)
        code.results.note("bindings", (code.tree, node.id))
        found_here = code.at_top.get(node.id, ())
        if len(found_here) == 1:
            if isinstance(found_here[0], FUNCTIONS) and not code.is_plain(found_here[0]):
                return EQUAL
            return Value(callees=frozenset({Callee(code, found_here[0])}))
        if self.node is not code.tree and (code.tree, node.id) in code.bindings:
            return without_parameters(self.home.global_value(node.id))
        return EQUAL

    def _if_expression(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        many = several(self.code, node.test)
        if many is not None:
            return self.value(node.body if many else node.orelse)
        body, orelse = self.value(node.body), self.value(node.orelse)
        if (
            body.callees != orelse.callees
            or isinstance(node.body, ast.Constant)
            or isinstance(node.orelse, ast.Constant)
        ):
            return mix(test, body, orelse)
        return body | orelse

    def _compare(self, node: ast.Compare) -> Value:
        return Value(mix(self.value(node.left), *(self.value(c) for c in node.comparators)).origins)

    def _subscript(self, node: ast.Subscript) -> Value:
        which = rank(self.code, node)
        if which in {"global", "local"}:
            return own("rank")
        of, at = self.value(node.value), self.value(node.slice)
        if at.of_kind("rank"):
            if not isinstance(node.slice, ast.Slice):
                return own("batch")
            return own("batch" if self._divides(node.value) else "part")
        if of.parts and isinstance(place := getattr(node.slice, "value", None), int) and place < len(of.parts):
            return of.parts[place]
        return of if isinstance(node.slice, ast.Slice) or _is_fixed(node.slice) else mix(of.items, at)

    def _tuple(self, node: ast.Tuple) -> Value:
        parts = tuple(self.value(e) for e in node.elts)
        whole = mix(*parts)
        if whole is EQUAL or any(isinstance(e, ast.Starred) for e in node.elts):
            return whole
        return whole._replace(parts=tuple(p._replace(parts=()) for p in parts))  # one level: tuples may hold themselves

    def _divides(self, node: ast.expr, depth: int = 3) -> bool:
        """True if a sequence was cut to a multiple of the number of ranks, so that their parts are equally long."""
        operations = (b for b in self.code.inside(node, ast.BinOp) if isinstance(b.op, _OF_MULTIPLES))
        if any(is_size(self.code, b.right) for b in operations):
            return True
        names = self.code.inside(node, ast.Name, ast.Attribute) if depth else ()
        values = (v for n in names for v in self.code.values(n) if v is not None and v is not n)
        return any(self._divides(v, depth - 1) for v in values)

    def _text(self, node: ast.JoinedStr) -> Value:
        return as_text(mix(*(self.value(v.value) for v in node.values if isinstance(v, ast.FormattedValue))))

    def _operation(self, node: ast.BinOp) -> Value:
        found = mix(self.value(node.left), self.value(node.right))
        is_text = isinstance(node.left, ast.JoinedStr) or isinstance(getattr(node.left, "value", None), str)
        return as_text(found) if is_text or found.of_kind("text") else found

    def _walrus(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.bind(node.target, value, node.value, EQUAL)
        return value

    def _lambda(self, node: ast.Lambda) -> Value:
        return Value(callees=frozenset({Callee(self.code, node)}))

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        """Note what a generator gives: its caller loops over it as over a sequence of such values."""
        value = self.value(node.value)
        self.returns |= as_sequence(value) if isinstance(node, ast.Yield) else value
        return EQUAL

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        found = EQUAL
        for part in node.generators:
            over = self.value(part.iter)
            self.bind_item(part.target, over.items, part.iter)
            kept = mix(*(self.value(t) for t in part.ifs))
            found = mix(
                found,
                over,
                Value(frozenset(Origin("part") for o in kept.origins if o.kind in {"rank", "batch", "part"})),
            )
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return mix(found, *(self.value(e) for e in elements))

    def _call(self, node: ast.Call) -> Value:
        """Return the value of a call; a file that is looked for in a loop may change while the ranks work."""
        found = self._called(node)
        if not self.loops or not found.of_kind("file"):
            return found
        return found._replace(origins=frozenset(_again(o) for o in found.origins))

    def _called(self, node: ast.Call) -> Value:
        code = self.code
        which = rank(code, node)
        if which:
            return own("rank") if which in {"global", "local"} else EQUAL
        name = code.name(node.func)
        if is_main(name, called_with=len(node.args) + len(node.keywords)):
            return own("rank")
        if is_bar(name):
            return self.value(node.args[0] if node.args else code.argument(node, "iterable"))
        arguments = [*node.args, *(k.value for k in node.keywords if k.arg not in _PLACES)]
        given = [self.value(a) for a in arguments]
        if isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            self._fill(dotted_name(node.func.value), given)
        if name == "functools.partial" and node.args:
            return Value(callees=given[0].callees)
        callee = self._callee(node)
        known = [c for c in callee.callees if isinstance(c, Callee)]
        if known:
            return self._call_value(node, known)
        if node in self.home.waits or communicates(name or getattr(node.func, "attr", "")):
            self._exchange(arguments)
            return AGREED
        found = value_of_call(self.home, node, name, mix(*given, self._receiver(node)))
        if found is not None:
            return found
        if isinstance(node.func, ast.Attribute):
            of = value_of_attribute(self.value(node.func.value), node.func.attr)
            if _OF_ARGUMENTS.search(node.func.attr) or self._is_model(node.func):
                return Value(mix(of, *given).origins)
            return of
        if isinstance(node.func, ast.Name) and node.func.id not in code.imports:
            return Value(mix(*given).origins) if self._is_object(node.func) else EQUAL
        return EQUAL

    def _fill(self, name: str, given: list[Value]) -> None:
        """Note that a list of this function holds values of the batches; all ranks fill it in the same rounds."""
        held = as_sequence(mix(*given))
        held = Value(frozenset(o for o in held.origins if o.kind in {"loader", "parameter"}))
        if name in self.env and held.origins:
            self.set_name(name, self.env[name] | held)

    def _is_model(self, func: ast.Attribute) -> bool:
        """True if a called attribute of this class is an object that the class wraps for several ranks."""
        return dotted_name(func.value) == "self" and self.code.is_made_by(func, *DDPS, *FSDP1)

    def _is_object(self, func: ast.Name) -> bool:
        """True if a called name is an object, such as a model or a criterion, rather than a function."""
        return func.id in self.env or not any(b.how in {"definition", "import"} for b in self.code.bound(func))

    def _receiver(self, node: ast.Call) -> Value:
        return self.value(node.func.value) if isinstance(node.func, ast.Attribute) else EQUAL

    def _callee(self, node: ast.Call) -> Value:
        """Return the functions that a call refers to."""
        found = frozenset(self.home.callees(node))
        if found:
            return Value(callees=found)
        func = node.func
        if self.code.name(func).startswith("torch.distributed."):
            return EQUAL
        value = self.value(func) if isinstance(func, ast.Name | ast.Attribute | ast.IfExp | ast.Subscript) else EQUAL
        met = {self.home.met(node, Value(callees=frozenset({c}))) for c in value.callees}
        if any(met) and node not in self.home.waits and not self.quiet:
            self.home.note(node, max(met))
            self.decisions.setdefault(node, Decision(self.code, node, value if len(met) > 1 else EQUAL))
        return value

    def _call_value(self, node: ast.Call, callees: list[Callee]) -> Value:
        """Return the value that functions of the project return, with what they do to their arguments."""
        found = EQUAL
        for called in callees:
            callee = called
            if isinstance(called.node, ast.ClassDef):
                method = self.home.of(called.code).method(called.node, "__call__") if called.made else None
                if method is None:
                    found |= EQUAL if called.made else Value(callees=frozenset({called._replace(made=True)}))
                    continue
                callee = Callee(called.code, method, called.node)
            home = self.home.of(callee.code)
            if callee.owner is not None:
                home.prepare(callee.owner)
            summary = home.summary(callee.node)
            passed = self._arguments_of(node, callee)
            values = {name: self.value(argument) for name, argument in passed.items()}
            found |= replace_parameters(summary.returns, values)
            self._exchange(passed[name] for name in summary.exchanged if name in passed)
            kept = replace_parameters(summary.kept, values)
            object_ = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            if kept.origins and callee.owner is not None and (owner := dotted_name(object_)):
                if owner not in {"self", "cls"}:
                    self.set_name(owner, mix(self.value(object_), kept))
                found = mix(found, kept) if summary.returns.origins or found is not EQUAL else found
            for decision in summary.decisions if not self.quiet and callee.code is self.code else ():
                value = replace_parameters(decision.value, values)
                if value != decision.value and value.origins and decision.code is self.code:
                    self.decisions.setdefault(decision.node, decision._replace(value=value))
        return found

    def _arguments_of(self, node: ast.Call, callee: Callee) -> dict[str, ast.expr]:
        """Return the arguments of a call by the names of the parameters."""
        a: ast.arguments = callee.node.args  # type: ignore[union-attr]
        names = [x.arg for x in (*a.posonlyargs, *a.args)]
        if names and names[0] in {"self", "cls"}:
            names = names[1:]
        found = {n: v for n, v in zip(names, node.args, strict=False) if not isinstance(v, ast.Starred)}
        return found | {k.arg: k.value for k in node.keywords if k.arg}

    def _exchange(self, arguments: Iterable[ast.expr]) -> None:
        """Note that ranks have exchanged what some arguments name."""
        for argument in arguments:
            for node in self.code.inside(argument, ast.Name, ast.Attribute):
                name = dotted_name(node)
                if name and (name in self.env or name.startswith("self.")):
                    self.set_name(name, AGREED)
                    if name in self.parameters:
                        self.exchanged.add(name)


def _again(origin: Origin) -> Origin:
    return Origin("file", "again") if origin == Origin("file", "shared") else origin


def _is_fixed(index: ast.expr) -> bool:
    """True for a number, also one from the end: `parts[-1]` is no more an item of data than `parts[0]`."""
    return isinstance(index.operand if isinstance(index, ast.UnaryOp) else index, ast.Constant)


def is_bar(name: str) -> bool:
    """True for a function that shows the progress of what it is given, by its qualified name."""
    return name.rpartition(".")[2] in _BARS


def _signalled(code: Code) -> set[str]:
    """Return the global names that a handler of signals sets."""
    known: set[str] | None = code.__dict__.get("_signalled")
    if known is None:
        handlers = {dotted_name(code.argument(c, "handler", 1)) for c in code.calls("signal.signal")}
        functions = [f for name in handlers for f in code.functions.get(name.rpartition(".")[2], ())]
        known = {n for f in functions for g in code.inside(f, ast.Global) for n in g.names}
        code.__dict__["_signalled"] = known
    code.results.note("calls", "signal.signal")
    if known:
        code.results.note_volatile()
    return known

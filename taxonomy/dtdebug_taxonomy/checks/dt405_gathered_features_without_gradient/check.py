"""Losses over gathered tensors, which have no gradient: `all_gather` without the own part, Accelerate's `gather`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import indent_of, own_lines, written_name
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import Function
from dtdebug_taxonomy.source.text import Span

_GATHERS = {DIST + "all_gather": ("tensor_list", 0), DIST + "all_gather_into_tensor": ("output_tensor", 0)}
_LOSS = re.compile(r"(loss|criterion|cross_entropy|cosine_similarity|mse|nll|kl_div|triplet|^logits$)", re.IGNORECASE)
_CUT = re.compile(r"\.(detach|item|shape|size|argmax|topk)\b")
_NUMBERS = re.compile(r"(?i)label|target|len|size|shape|count|num|ind(ex|ices)|mask|(^|_)ids?$")
_ACCELERATORS = re.compile(r"(?:^|[._])accelerator$")
_JOINS = ("torch.cat", "torch.stack", "torch.concat")
_PRODUCTS = {"matmul", "mm", "bmm", "einsum", "cosine_similarity", "cdist"}
_EVALUATES = re.compile(
    r"eval|valid|test|metric|infer|predict|log|accuracy|queue|retriev|concat_all_gather", re.IGNORECASE
)


def check(code: Code) -> Iterator[Hit]:
    """Report the gather."""
    yield from _before_backward(code)
    if "no_grad" not in code.text and not code.methods("backward") and "oss" not in code.text:
        return
    if "distributed.nn" in code.text:  # gathers that propagate the gradient if needed
        return
    homes: dict[Function, _Home] = {}
    detached: dict[str, bool] = {}
    for add in code.methods("append"):
        if add.args and isinstance(add.func, ast.Attribute) and (name := dotted_name(add.func.value)):
            detached[name] = detached.get(name, True) and bool(_CUT.search(code.source_of(add.args[0])))
    for call in code.calls(*_GATHERS):
        function = code.function(call)
        name = code.name(call.func)
        output = dotted_name(code.argument(call, *_GATHERS[name]))
        if (
            function is None
            or not output
            or _without_gradient(code, call, function)
            or _never_had_one(code, call, detached)
        ):
            continue
        home = homes.setdefault(function, _Home(code, function))
        if output in home.put_back:
            continue
        if home.meets_loss({output}, after=call) or _returned_to_loss(code, home, output, call, homes):
            yield Hit(
                code.span(call),
                f"{name.removeprefix(DIST)}() gives tensors without gradient, and they go into a loss: "
                "no rank learns from its own features there.",
                _fix(code, call, output) if name == DIST + "all_gather" else None,
            )


def _before_backward(code: Code) -> Iterator[Hit]:
    """Yield the calls of Accelerate's `gather` on whose result alone a later backward pass runs."""
    gathers = [
        call
        for call in code.methods("gather", "gather_for_metrics")
        if isinstance(call.func, ast.Attribute) and _ACCELERATORS.search(dotted_name(call.func.value))
    ]
    for backward in code.methods("backward") if gathers else ():
        loss = backward.args[0] if backward.args else getattr(backward.func, "value", None)
        name, call = dotted_name(loss), None
        before = (a for a in code.nodes(ast.Assign) if code.order[a] < code.order[backward])
        for assign in sorted(before, key=code.order.__getitem__):
            if code.function(assign) is code.function(backward) and name in _bound(code, assign):
                call = next((c for c in gathers if c in code.inside(assign.value, ast.Call)), None)
        if call is not None:
            yield Hit(
                code.span(call),
                f"{call.func.attr}() gives a tensor without gradient, and the backward pass runs on it: "
                "no parameter learns. Run it on this rank's own loss, which DDP averages anyway.",
            )


def _fix(code: Code, call: ast.Call, output: str) -> Fix | None:
    """Return a fix that puts the rank's own tensor, which has its gradient, back into the list."""
    own, statement = dotted_name(code.argument(call, "tensor", 1)), code.statement(call)
    grouped = code.argument(call, "group", 2) is not None or code.has_unpacking(call)
    lines = own_lines(code, statement) if isinstance(statement, ast.Expr) else None
    if not own or grouped or lines is None:
        return None
    get_rank, imports = written_name(code, DIST + "get_rank")
    end = code.text.end_of_line(lines[-1])
    text = f"\n{indent_of(code, statement)}{output}[{get_rank}()] = {own}"
    return Fix("Put the own part back, with its gradient", (*imports, Edit(Span(end, end), text)), safe=False)


class _Home:
    """Names and values in one function, collected once for all gathers in it."""

    def __init__(self, code: Code, function: Function) -> None:
        self.code, self.function = code, function

    @cached_property
    def _assigns(self) -> list[tuple[ast.Assign, set[str], set[str]]]:
        """Assignments in program order, with the names that they use and bind."""
        found = sorted(self.code.inside(self.function, ast.Assign), key=self.code.order.__getitem__)
        return [(a, _names(self.code, a.value), _bound(self.code, a)) for a in found]

    @cached_property
    def put_back(self) -> set[str]:
        """Outputs with `out[rank] = x`, or joined from the parts before and after the rank's own."""
        code = self.code
        found = {dotted_name(t.value) for a, _, _ in self._assigns for t in a.targets if isinstance(t, ast.Subscript)}
        for add in code.inside(self.function, ast.BinOp):
            if isinstance(add.op, ast.Add):
                parts = (part for part in (add.left, add.right) if not isinstance(part, ast.BinOp))
                found |= {dotted_name(s.value) for part in parts for s in code.inside(part, ast.Subscript)}
        return found

    @cached_property
    def _meetings(self) -> list[tuple[int, set[str]]]:
        """Positions at which names are multiplied or passed to a loss."""
        code = self.code
        found = [
            (code.order[product], _names(code, product))
            for product in code.inside(self.function, ast.BinOp)
            if isinstance(product.op, ast.MatMult)
        ]
        for call in code.inside(self.function, ast.Call):
            last = call.func.attr if isinstance(call.func, ast.Attribute) else dotted_name(call.func)
            if last in _PRODUCTS or _LOSS.search(last):
                found.append((code.order[call], {n for a in (*call.args, *call.keywords) for n in _names(code, a)}))
        return found

    @cached_property
    def _is_training(self) -> bool:
        """True if the function is a loss by its name, or contains a loss or a backward pass."""
        around = self.code.class_of(self.function)
        named = self.function.name + (around.name if around else "")
        return bool(_LOSS.search(named) or re.search("oss|backward|train|logits", self.code.source_of(self.function)))

    @cached_property
    def _cuts(self) -> set[ast.Assign]:
        """Assignments of values without gradient by intent, or of non-tensors."""
        return {
            assign
            for assign, _, _ in self._assigns
            if isinstance(assign.value, ast.Attribute | ast.Constant)
            or _CUT.search(self.code.source_of(assign.value))
            or self.code.function(assign) is not self.function
        }

    def meets_loss(self, names: set[str], after: ast.AST) -> bool:
        """True if something computed from these names is later multiplied or passed to a loss."""
        start = self.code.order[after]
        found = self._follow_names(names, start, self._cuts)
        return self._is_training and any(o > start and not found.isdisjoint(taken) for o, taken in self._meetings)

    def returns(self, names: set[str], after: ast.AST) -> bool:
        """True if the function returns something computed from these names."""
        found = self._follow_names(names, self.code.order[after], set())
        return any(not found.isdisjoint(taken) for taken in self._returned_names)

    @cached_property
    def _returned_names(self) -> list[set[str]]:
        values = [r.value for r in self.code.inside(self.function, ast.Return)]
        return [_names(self.code, value) for value in values if value is not None]

    def _follow_names(self, names: set[str], start: int, without: set[ast.Assign]) -> set[str]:
        found = set(names)
        for assign, taken, bound in self._assigns:
            if self.code.order[assign] > start and assign not in without and not found.isdisjoint(taken):
                found |= bound
        return found


def _without_gradient(code: Code, call: ast.AST, home: Function) -> bool:
    if _EVALUATES.search(home.name) or any(a.arg == "ctx" for a in home.args.args):
        return True
    if any(isinstance(up, ast.If) and "requires_grad" in code.source_of(up.test) for up in code.ancestors(call)):
        return True
    marks = [*home.decorator_list]
    marks += [i.context_expr for up in code.ancestors(call) if isinstance(up, ast.With) for i in up.items]
    return any(re.search("no_grad|inference_mode", code.source_of(m)) for m in marks)


def _never_had_one(code: Code, call: ast.Call, detached: dict[str, bool]) -> bool:
    """True if the gathered values are labels, lengths or the like, or are joined from detached tensors."""
    own = code.argument(call, "tensor", 1) or code.argument(call, "input_tensor", 1)
    if _NUMBERS.search(dotted_name(own).rsplit(".", 1)[-1]):
        return True
    joined = [v for v in code.values(own) if isinstance(v, ast.Call) and v.args and code.name(v.func) in _JOINS]
    return bool(joined) and all(detached.get(dotted_name(v.args[0]), False) for v in joined)


def _names(code: Code, node: ast.AST) -> set[str]:
    return {dotted_name(n) for n in code.inside(node, ast.Name, ast.Attribute)} - {""}


def _bound(code: Code, assign: ast.Assign) -> set[str]:
    return {n.id for t in assign.targets for n in code.inside(t, ast.Name)}


def _returned_to_loss(code: Code, home: _Home, output: str, gather: ast.Call, homes: dict[Function, _Home]) -> bool:
    if not home.returns({output}, after=gather):
        return False
    for call in code.callers.get(home.function, ()):
        there, up = code.function(call), code.statement(call)
        if there is None or _without_gradient(code, call, there) or not isinstance(up, ast.Assign):
            continue
        if homes.setdefault(there, _Home(code, there)).meets_loss(_bound(code, up), after=call):
            return True
    return False

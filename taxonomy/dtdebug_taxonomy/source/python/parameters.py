"""Names of a module's parameters in the order of `parameters()`, read from its definition without running it.

None wherever that is not certain: a class of another file, a loop of unknown length, a frozen or shared parameter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

Environment = Mapping[str, ast.expr]
"""Name of an argument -> the expression that the constructor got for it."""
_BIASED = {
    **{f"Conv{n}d": ("bias", 7) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": ("bias", 8) for n in (1, 2, 3)},
    "Linear": ("bias", 2),
    "Bilinear": ("bias", 3),
}
"""Layer with a weight and a bias -> the argument that leaves the bias out, and its position."""
_AFFINE = {
    **{f"BatchNorm{n}d": ("affine", 3, True) for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": ("affine", 3, False) for n in (1, 2, 3)},
    "SyncBatchNorm": ("affine", 3, True),
    "GroupNorm": ("affine", 3, True),
    "LayerNorm": ("elementwise_affine", 2, True),
}
"""Normalization -> the argument that leaves weight and bias out, its position and its default."""
_WEIGHT = frozenset(("Embedding", "EmbeddingBag", "PReLU", "RMSNorm"))
_NONE = frozenset(
    (
        *("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Softplus"),
        *("Hardswish", "Hardsigmoid", "Hardtanh", "LogSigmoid", "Softmax", "LogSoftmax", "Identity", "Flatten"),
        *("Unflatten", "Upsample", "PixelShuffle", "CrossEntropyLoss", "MSELoss", "L1Loss", "NLLLoss", "BCELoss"),
        *("BCEWithLogitsLoss", "KLDivLoss", "SmoothL1Loss", "HuberLoss", "Dropout", "AlphaDropout", "CosineSimilarity"),
        *(f"{name}{n}d" for n in (1, 2, 3) for name in ("Dropout", "MaxPool", "AvgPool")),
        *(f"Adaptive{name}Pool{n}d" for n in (1, 2, 3) for name in ("Max", "Avg")),
    )
)
_DEEPEST = 6
_MOST = 10_000
"""Maximum number of names."""


class Parameter(NamedTuple):
    """Parameter of a module."""

    name: str
    """As `named_parameters()` has it: `aux.weight`."""
    attribute: str
    """Attribute of the outermost module that holds it: `aux`."""


def parameters_of(code: Code, module: ast.expr) -> list[Parameter] | None:
    """Return the parameters of the module that an expression makes; None if they are not certain."""
    if "requires_grad" in code.text or "parametrize" in code.text:
        return None
    names = _names(code, module, {}, _DEEPEST)
    return None if names is None else [Parameter(n, n.partition(".")[0]) for n in names]


def made_class(code: Code, module: ast.expr) -> ast.ClassDef | None:
    """Return the class of this file that an expression makes an object of."""
    made = _constructor_call(code, module)
    return _class_of(code, made) if made is not None else None


def _constructor_call(code: Code, node: ast.expr | None, depth: int = _DEEPEST) -> ast.Call | None:
    """Return the constructor's call behind a name, a function that returns it, or `.to(device)`."""
    if node is None or depth == 0:
        return None
    if dotted_name(node):
        values = code.values(node)
        return _constructor_call(code, values[0], depth - 1) if len(values) == 1 and values[0] is not node else None
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in {"to", "cuda", "cpu", "train", "float", "half"}:
        return _constructor_call(code, node.func.value, depth - 1)
    if _class_of(code, node) is not None or _layer(code, node):
        return node
    returned = code.returned_values(node)
    return _constructor_call(code, returned[0], depth - 1) if len(returned) == 1 else None


def _class_of(code: Code, call: ast.Call) -> ast.ClassDef | None:
    name = dotted_name(call.func)
    found = [c for c in code.nodes(ast.ClassDef) if c.name == name]
    return found[0] if len(found) == 1 else None


def _layer(code: Code, call: ast.Call) -> str:
    """Return the name of a layer of `torch.nn`; empty for other calls."""
    owner, _, last = code.name(call.func).rpartition(".")
    return last if owner in {"torch.nn", "torch.nn.modules"} else ""


def _names(code: Code, node: ast.expr, known: Environment, depth: int) -> list[str] | None:
    """Return the names of the parameters of one module."""
    made = _constructor_call(code, _looked_up(node, known))
    if made is None or depth == 0 or code.has_unpacking(made):
        return None
    layer = _layer(code, made)
    if layer in {"Sequential", "ModuleList", "ModuleDict"}:
        return _of_container(code, made, known, depth)
    if layer:
        return _of_layer(code, made, layer, known)
    defined = _class_of(code, made)
    return _of_class(code, defined, made, known, depth) if defined is not None else None


def _of_layer(code: Code, call: ast.Call, layer: str, known: Environment) -> list[str] | None:
    if layer in _NONE:
        return []
    if layer in _WEIGHT:
        return ["weight"]
    if layer in _BIASED:
        biased = _truth(code, code.argument(call, *_BIASED[layer]), known, default=True)
        return None if biased is None else ["weight", "bias"] if biased else ["weight"]
    if layer in _AFFINE:
        name, place, default = _AFFINE[layer]
        affine = _truth(code, code.argument(call, name, place), known, default=default)
        biased = layer != "LayerNorm" or _truth(code, code.argument(call, "bias", 3), known, default=True)
        return None if None in (affine, biased) else (["weight", "bias"][: 1 + bool(biased)] if affine else [])
    return None


def _of_container(code: Code, call: ast.Call, known: Environment, depth: int) -> list[str] | None:
    items: list[ast.expr] = [*call.args]
    if _layer(code, call) != "Sequential":
        if len(items) != 1 or not isinstance(items[0], ast.List | ast.ListComp):
            return None
        items = [*items[0].elts] if isinstance(items[0], ast.List) else [ast.Starred(items[0])]
    names: list[str] = []
    number = 0
    for item in items:
        repeated = 1
        if isinstance(item, ast.Starred):
            if not isinstance(listed := item.value, ast.ListComp) or (times := _times(code, listed, known)) is None:
                return None
            repeated, item = times, listed.elt  # noqa: PLW2901
        inside = _names(code, item, known, depth - 1)
        if inside is None or repeated * len(inside) > _MOST:
            return None
        names += [f"{number + n}.{name}" for n in range(repeated) for name in inside]
        number += repeated
    return names


def _times(code: Code, listed: ast.ListComp, known: Environment) -> int | None:
    """Return the length of `[f() for _ in range(3)]`."""
    (one, *more) = listed.generators
    call = one.iter
    if more or one.ifs or not isinstance(call, ast.Call) or code.name(call.func) != "range" or len(call.args) != 1:
        return None
    number = code.constant(_looked_up(call.args[0], known))
    return number if isinstance(number, int) and 0 <= number <= _MOST else None


def _of_class(code: Code, defined: ast.ClassDef, made: ast.Call, known: Environment, depth: int) -> list[str] | None:
    if [code.name(base) for base in defined.bases] != ["torch.nn.Module"]:
        return None
    start = next((s for s in defined.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    if start is None:
        return []
    passed = _arguments(start, made, known)
    own: list[str] = []
    below: list[str] = []
    seen: set[str] = set()
    for s in _run(code, start.body, passed):
        if s is None:
            return None
        if not isinstance(s, ast.Assign | ast.AnnAssign):
            if any(isinstance(n, ast.Call) and _registers(n) for n in ast.walk(s)):
                return None
            continue
        targets = s.targets if isinstance(s, ast.Assign) else [s.target]
        names = [dotted_name(t) for t in targets]
        if not any(name.startswith("self.") for name in names) or s.value is None:
            continue
        attribute = names[0].removeprefix("self.")
        if len(names) != 1 or "." in attribute or attribute in seen:
            return None
        seen.add(attribute)
        value = _looked_up(s.value, passed)
        if dotted_name(s.value) in seen or dotted_name(s.value).startswith("self."):
            return None  # one module under two names
        seen.add(dotted_name(s.value) or attribute)
        if isinstance(value, ast.Call) and code.name(value.func) == "torch.nn.Parameter":
            own.append(attribute)
        elif not _is_plain(code, value):
            inside = _names(code, value, passed, depth - 1)
            if inside is None:
                return None
            below += [f"{attribute}.{name}" for name in inside]
    return [*own, *below] if len(own) + len(below) <= _MOST else None


def _registers(call: ast.Call) -> bool:
    """True for a call that may add, remove or share parameters."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted_name(call.func)
    return name in {"add_module", "register_module", "register_parameter", "setattr", "append", "extend", "delattr"}


def _run(code: Code, body: list[ast.stmt], known: Environment) -> Iterator[ast.stmt | None]:
    """Yield the statements that the constructor runs; None where that is not certain."""
    for s in body:
        if isinstance(s, ast.If):
            truth = _truth(code, s.test, known, default=None)
            if truth is not None:
                yield from _run(code, s.body if truth else s.orelse, known)
            elif any(isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) for n in ast.walk(s)):
                yield None
        elif isinstance(s, ast.For | ast.While | ast.With | ast.Try | ast.Match):
            if any(isinstance(n, ast.Call) and _registers(n) for n in ast.walk(s)) or any(
                isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) for n in ast.walk(s)
            ):
                yield None
        else:
            yield s


def _arguments(start: ast.FunctionDef, made: ast.Call, known: Environment) -> Environment:
    """Return what the constructor's arguments are at a call, its defaults included."""
    a = start.args
    names = [arg.arg for arg in (*a.posonlyargs, *a.args)][1:]
    passed: dict[str, ast.expr] = dict(zip(reversed(names), reversed(a.defaults), strict=False))
    passed |= {arg.arg: d for arg, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}
    passed |= {name: _looked_up(value, known) for name, value in zip(names, made.args, strict=False)}
    return passed | {k.arg: _looked_up(k.value, known) for k in made.keywords if k.arg}


def _looked_up(node: ast.expr, known: Environment) -> ast.expr:
    return known.get(node.id, node) if isinstance(node, ast.Name) else node


def _truth(code: Code, node: ast.expr | None, known: Environment, *, default: bool | None) -> bool | None:
    if node is None:
        return default
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _truth(code, node.operand, known, default=None)
        return None if inner is None else not inner
    node = _looked_up(node, known)
    value = node.value if isinstance(node, ast.Constant) else code.constant(node)
    return bool(value) if isinstance(value, bool | int | str) or _is_none(node) else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_plain(code: Code, value: ast.expr) -> bool:
    """True for a value that is certainly no module: a number, a text, a tuple of them, arithmetic."""
    if isinstance(value, ast.Constant | ast.BinOp | ast.Compare | ast.JoinedStr | ast.UnaryOp):
        return True
    if isinstance(value, ast.Attribute):
        return dotted_name(value).partition(".")[0] in {"args", "cfg", "config", "opt", "hparams"}
    if isinstance(value, ast.Tuple | ast.List):
        return all(_is_plain(code, v) for v in value.elts)
    return isinstance(value, ast.Call) and code.name(value.func) in {"int", "float", "str", "bool", "len", "max", "min"}

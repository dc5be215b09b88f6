"""Tensors made on the CPU that go into a collective of a group whose backend is NCCL."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import add
from dtdebug_taxonomy.checks.shared.names import DIST, INIT
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_TENSOR = {
    **{DIST + n: (("tensor", 0),) for n in ("all_reduce", "broadcast", "reduce", "send", "recv", "isend", "irecv")},
    **{DIST + n: (("tensor", 0),) for n in ("gather", "scatter")},
    DIST + "all_gather": (("tensor_list", 0), ("tensor", 1)),
    DIST + "all_gather_into_tensor": (("output_tensor", 0), ("input_tensor", 1)),
    DIST + "reduce_scatter_tensor": (("output", 0), ("input", 1)),
    DIST + "all_to_all_single": (("output", 0), ("input", 1)),
}
_FACTORIES = {
    f"torch.{n}"
    for n in (
        *("tensor", "zeros", "ones", "empty", "full", "rand", "randn", "arange", "randint", "randperm", "eye"),
        *("linspace", "Tensor", "FloatTensor", "LongTensor", "IntTensor", "DoubleTensor", "ByteTensor", "from_numpy"),
    )
}
_KEEPS = {"float", "double", "half", "long", "int", "bool", "clone", "detach", "contiguous", "unsqueeze", "squeeze"} | {
    *("view", "reshape", "flatten", "type", "requires_grad_"),
}
_ON_DEVICE = re.compile(r"loss|logit|pred|out|grad|feat|emb|hidden|tensor|batch|^x$|^y$", re.IGNORECASE)
_DEFAULTS = ("torch.set_default_device", "torch.set_default_tensor_type")
_CHOOSES_DEVICE = ("torch.cuda.set_device", "torch.accelerator.set_device_index")


def check(code: Code) -> Iterator[Hit]:
    """Report the argument."""
    backends = _backends(code)
    if not backends or code.calls(*_DEFAULTS):
        return
    sure = None not in backends
    if not sure and _default_backend(code) != "nccl":
        return
    backend = "the group's backend is NCCL" if sure else "the group's backend is NCCL by default"
    for call in code.calls(*_TENSOR):
        if code.argument(call, "group") is not None:
            continue
        name = code.name(call.func)
        for keyword, place in _TENSOR[name]:
            given = code.argument(call, keyword, place)
            if given is not None and _on_cpu(code, given):
                yield Hit(
                    code.span(given),
                    f"This tensor is in host memory and {backend}: {name.removeprefix(DIST)}() "
                    "fails, because NCCL only handles GPU memory.",
                    _fix(code, given),
                    None if sure else "hint",
                )


def _backends(code: Code) -> list[str | None]:
    """Return NCCL for each group that has it and None for an optional backend; empty if a group has another one."""
    given = [code.argument(c, "backend", 0) for c in code.calls(INIT)]
    backends = [code.constant(b) or (None if _is_option(b) else "") for b in given]
    for call in code.calls("deepspeed.init_distributed"):
        given = code.argument(call, "dist_backend", 0)
        backends.append("nccl" if given is None and not code.has_unpacking(call) else code.constant(given))
    known = [b.lower() if isinstance(b, str) else b for b in backends]
    return ["nccl" if b else None for b in known] if all(b in {"nccl", None} for b in known) else []


def _is_option(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Attribute) and dotted_name(node.value).rpartition(".")[2] in {"args", "opt", "opts"}


def _default_backend(code: Code) -> object:
    """Return the default of the option for the backend: `--dist-backend`, `--backend`."""
    for call in code.methods("add_argument"):
        names = {a.value for a in call.args if isinstance(a, ast.Constant)}
        if names & {"--dist-backend", "--dist_backend", "--backend"}:
            return code.constant(code.argument(call, "default"))
    return None


def _on_cpu(code: Code, node: ast.expr | None, depth: int = 5) -> bool:
    """True if all possible values of an expression are in host memory."""
    if node is None or depth == 0:
        return False
    if isinstance(node, ast.Call):
        if code.name(node.func) in _FACTORIES:
            return _made_on_cpu(code, node)
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "cpu" and not node.args:
                return True
            if node.func.attr in _KEEPS:
                return _on_cpu(code, node.func.value, depth - 1)
        return False
    if isinstance(node, ast.ListComp):
        return _on_cpu(code, node.elt, depth - 1)
    if not dotted_name(node):
        return False
    bound = code.bound(node)
    return bool(bound) and all(
        _on_cpu(code, b.node.target, depth - 1)  # x += 1 keeps the device
        if isinstance(b.node, ast.AugAssign)
        else b.how == "assign" and b.value is not node and _on_cpu(code, b.value, depth - 1)
        for b in bound
    )


def _made_on_cpu(code: Code, call: ast.Call) -> bool:
    device = code.argument(call, "device")
    if device is not None:
        return code.constant(device) == "cpu"
    if code.has_unpacking(call) or any(
        isinstance(up, ast.With) and any("device" in code.source_of(i.context_expr) for i in up.items)
        for up in code.ancestors(call)
    ):
        return False
    if code.name(call.func) != "torch.tensor":
        return True
    data = code.argument(call, "data", 0)
    return data is not None and not _ON_DEVICE.search(dotted_name(data).rsplit(".", 1)[-1])


def _fix(code: Code, given: ast.expr) -> Fix | None:
    if not isinstance(given, ast.Call) or code.name(given.func) not in _FACTORIES - {"torch.from_numpy"}:
        return None
    if code.name(given.func)[6].isupper() or code.argument(given, "device") is not None:
        return None
    return Fix("Make it on the GPU", (add(code, given, 'device="cuda"'),), safe=bool(code.calls(*_CHOOSES_DEVICE)))

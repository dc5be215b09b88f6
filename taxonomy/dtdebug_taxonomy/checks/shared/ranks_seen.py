"""Signs that a program runs as several ranks, and that values depend on the rank."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import rank

STARTS = (INIT, "deepspeed.init_distributed", "accelerate.Accelerator")
_SEEDS = re.compile(r"seed", re.IGNORECASE)
_OTHER_SEEDS = {"random.seed", "np.random.seed", "numpy.random.seed", "torch.initial_seed", "torch.seed"}


def starts_ranks(code: Code) -> bool:
    """True if the program itself joins a process group."""
    if code.calls(*STARTS) or horovod.calls(code, "init"):
        return True
    devices = [code.argument(c, "devices", 2) for c in code.calls("lightning_fabric.Fabric")]
    return any(d is not None and code.constant(d) not in {1, "1"} for d in devices)


def is_started_here(code: Code) -> bool:
    """True if the ranks run this file itself, so that code missing in it is unlikely to be elsewhere."""
    return code.role == "program" or (code.role == "library" and starts_ranks(code))


def is_reached(code: Code, node: ast.AST) -> bool:
    """True if code of this file reaches a place; a function that it never uses is for other modules."""
    function = code.function(node)
    if function is None or function.decorator_list or code.callers.get(function) or code.class_of(function):
        return True
    return any(n.id == function.name and isinstance(n.ctx, ast.Load) for n in code.nodes(ast.Name))


def depends_on_rank(code: Code, node: ast.AST | None, depth: int = 3) -> bool:
    """True if an expression contains a rank, following names a few steps back."""
    if node is None:
        return False
    for inner in code.inside(node, ast.Name, ast.Attribute, ast.Call, ast.Subscript):
        if rank(code, inner):
            return True
        if (
            depth
            and isinstance(inner, ast.Name | ast.Attribute)
            and isinstance(inner.ctx, ast.Load)
            and dotted_name(inner)
        ):
            for binding in code.bound(inner):
                value = binding.node.value if isinstance(binding.node, ast.AugAssign) else binding.value
                if (
                    binding.how in {"assign", "other"}
                    and value is not inner
                    and depends_on_rank(code, value, depth - 1)
                ):
                    return True
    return False


def seeded_alike(code: Code) -> bool:
    """True if the program seeds its framework, and neither then nor later in that function by the rank."""
    found = [
        call
        for call in code.nodes(ast.Call)
        if (name := _called_name(code, call)) and _SEEDS.search(name.rsplit(".", 1)[-1]) and name not in _OTHER_SEEDS
    ]
    own = [c for c in found if not _of_a_generator(code, c)]
    later = [c for c in own if _by_rank(code, c)]
    return any(
        not any(code.function(o) is code.function(c) and code.order[o] >= code.order[c] for o in later) for c in own
    )


def _called_name(code: Code, call: ast.Call) -> str:
    return code.name(call.func) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")


def _of_a_generator(code: Code, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    receiver = call.func.value
    return "torch.Generator" in code.made_by(receiver)


def _by_rank(code: Code, call: ast.Call) -> bool:
    if any(depends_on_rank(code, a) for a in call.args):
        return True
    return any(
        depends_on_rank(code, k.value) or (k.arg == "device_specific" and code.constant(k.value) is True)
        for k in call.keywords
    )

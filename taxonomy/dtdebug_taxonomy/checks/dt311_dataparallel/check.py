"""Models that one process spreads over several devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.wrapping import DATA_PARALLEL, DDPS
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import several


def check(code: Code) -> Iterator[Hit]:
    """Report the first wrapper, unless the program also uses DistributedDataParallel."""
    if code.calls(*DDPS) or _is_only_run(code):
        return
    for call in code.calls(*DATA_PARALLEL):
        devices = code.argument(call, "device_ids", 1)
        if isinstance(devices, ast.List) and len(devices.elts) == 1:
            continue
        if _is_unwrapped(code, call) or _is_chosen(code, call):
            continue
        yield Hit(
            code.span(call.func),
            "DataParallel copies the model to all devices in every step and runs them from one Python process: it is "
            "slower than DistributedDataParallel, on one machine too.",
        )
        return  # a program is changed as a whole


def _is_only_run(code: Code) -> bool:
    """True for a program that runs its model without training it: gradients are off, and nothing goes backward."""
    quiet = code.methods("eval") or code.calls("torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled")
    return bool(quiet) and code.role == "program" and not code.methods("backward", "step")


def _is_chosen(code: Code, call: ast.Call) -> bool:
    """True if an option or the number of processes decides: the program has another way, or one process."""
    tests = (a.test for a in code.ancestors(call) if isinstance(a, ast.If))
    return any(several(code, t) is not None or isinstance(t, ast.Attribute) for t in tests)


def _is_unwrapped(code: Code, call: ast.Call) -> bool:
    """True if only the model in it is taken out again, as to load weights whose names begin with `module.`."""
    statement = code.parent.get(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    name, function = dotted_name(targets[0]) if len(targets) == 1 else "", code.function(call)
    if not name or function is None:
        return False
    return any(
        isinstance(s.value, ast.Attribute)
        and s.value.attr == "module"
        and dotted_name(s.value.value) == name
        and [dotted_name(t) for t in s.targets] == [name]
        for s in code.inside(function, ast.Assign)
        if code.parent.get(s) is code.parent.get(statement)  # type: ignore[arg-type]
    )

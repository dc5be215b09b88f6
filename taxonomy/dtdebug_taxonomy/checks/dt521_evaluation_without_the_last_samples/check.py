"""`drop_last=True` for evaluation data in samplers and loaders, in programs of several ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.names import LOADER, SAMPLER
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_MEASURED = re.compile(r"(^|_|\.)(val|valid|validation|test|eval|evaluation|dev)(_|set|$)", re.IGNORECASE)
_TRAINED = re.compile(r"train", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the argument."""
    if code.role == "test" or not code.calls(SAMPLER) or code.calls("torch.utils.data.Subset"):
        return
    for call in code.calls(SAMPLER, LOADER):
        last = code.argument(call, "drop_last", 5 if code.name(call.func) == SAMPLER else None)
        dataset = code.argument(call, "dataset", 0)
        if last is None or not isinstance(last, ast.Constant) or last.value is not True or dataset is None:
            continue
        target = code.parent[call]
        names = [dotted_name(dataset)]
        if isinstance(target, ast.Assign):
            names += [dotted_name(t) for t in target.targets]
        if any(_MEASURED.search(n) for n in names) and not any(_TRAINED.search(n) for n in names):
            yield Hit(
                code.span(last),
                "This leaves out the samples that don't fill a batch on every rank: the metric is "
                "that of fewer samples, "
                "others for each number of ranks.",
                None if _has_fixed_batches(code) else Fix("Keep them", (Edit(code.span(last), "False"),)),
            )


def _has_fixed_batches(code: Code) -> bool:
    """True if the program uses the batch size for more than its loaders, so that a smaller last batch may not fit."""
    loaders = {id(k) for c in code.calls(LOADER, SAMPLER) for k in c.keywords}
    if any(k.arg == "batch_size" and id(k) not in loaders for c in code.nodes(ast.Call) for k in c.keywords):
        return True
    passed = {id(k.value) for c in code.nodes(ast.Call) for k in c.keywords if k.arg == "batch_size"}
    used = (n for n in (*code.nodes(ast.Name), *code.nodes(ast.Attribute)) if isinstance(n.ctx, ast.Load))
    names = (n for n in used if dotted_name(n).rpartition(".")[2] in {"batch_size", "bs", "batchsize"})
    return any(id(n) not in passed for n in names)

"""Batch normalisation in programs that wrap their model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.checks.shared.wrapping import DDPS
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_LAYERS = {f"torch.nn.BatchNorm{n}d" for n in (1, 2, 3)} | {"torch.nn.LazyBatchNorm2d"}

_MODELS = re.compile(
    r"torchvision\.models\.(\w+\.)?(resne|wide_resnet|densenet|mobilenet|efficientnet|shufflenet|regnet|googlenet|incep|vgg\d+_bn)"
)


def check(code: Code) -> Iterator[Hit]:
    """Report the wrap, once."""
    wraps = code.calls(*DDPS)
    if not wraps or not _has_layers(code) or "SyncBatchNorm" in code.text or "sync_b" in code.text:
        return
    if any(code.constant(code.argument(c, "backend", 0)) in {"gloo", "mpi"} for c in code.calls(INIT)):
        return
    yield Hit(
        code.span(wraps[0].func),
        "The model has BatchNorm layers, which under DistributedDataParallel each use the batch of their own rank: "
        "with small batches per device statistics are poor and training converges worse.",
        _fix(code, wraps[0]),
    )


def _has_layers(code: Code) -> bool:
    """True if the program builds such layers, or a torchvision model that has them."""
    return bool(code.calls(*_LAYERS)) or any(_MODELS.match(code.name(c.func)) for c in code.nodes(ast.Call))


def _fix(code: Code, wrap: ast.Call) -> Fix | None:
    model = code.argument(wrap, "module", 0)
    torch = next((local for local, full in code.imports.items() if full == "torch"), "")
    if model is None or not dotted_name(model) or not torch:
        return None
    text = f"{torch}.nn.SyncBatchNorm.convert_sync_batchnorm({code.source_of(model)})"
    return Fix("Synchronise the layers", (Edit(code.span(model), text),))

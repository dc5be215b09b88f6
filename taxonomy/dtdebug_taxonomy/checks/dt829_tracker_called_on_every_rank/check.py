"""`wandb.log` in a Lightning module, where the logger has started the run on rank 0 alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.everyone import asks
from dtdebug_taxonomy.source.guards import guards
from dtdebug_taxonomy.source.python import Code

_MODULES = ("LightningModule", "lightning.pytorch.Callback", "pytorch_lightning.Callback", "lightning.Callback")


def check(code: Code) -> Iterator[Hit]:
    """Reports the call."""
    if code.calls("wandb.init") or code.role == "test":
        return
    for call in code.calls("wandb.log"):
        home = code.class_of(call)
        if home is None or not any(code.name(b).endswith(_MODULES) for b in home.bases):
            continue
        if guards(code).around(call) or any(isinstance(a, ast.If) and asks(code, a.test) for a in code.ancestors(call)):
            continue
        yield Hit(
            code.span(call.func),
            "The logger starts its run on rank 0 alone: on the other ranks this fails with "
            '"You must call wandb.init() before wandb.log()".',
        )

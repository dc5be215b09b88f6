"""Wrappers that search for unused parameters in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.wrapping import DDPS
from dtdebug_taxonomy.source.python.code import Code

_OTHERS = {"accelerate.DistributedDataParallelKwargs", "accelerate.utils.DistributedDataParallelKwargs"}
_ARGUMENTS = {"transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments"}
_NAMES = {"find_unused_parameters", "ddp_find_unused_parameters"}
_LIGHTNING = {"pytorch_lightning.strategies.DDPStrategy", "pytorch_lightning.plugins.DDPPlugin"}


def check(code: Code) -> Iterator[Hit]:
    """Report the argument."""
    for call in code.calls(*DDPS, *_OTHERS, *_LIGHTNING, *_ARGUMENTS):
        for keyword in call.keywords:
            if keyword.arg in _NAMES and _true(keyword.value):
                yield Hit(
                    code.span(keyword),
                    "find_unused_parameters=True walks the whole graph after every forward pass, and slows each step. "
                    "It is needed only where some parameters take no part in some losses.",
                )


def _true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True

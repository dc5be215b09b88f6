"""Reentrant activation checkpoints under a wrapper that searches for unused parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.wrapping import DDPS
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

_CHECKPOINTS = {
    "torch.utils.checkpoint.checkpoint",
    "torch.utils.checkpoint",
    "torch.utils.checkpoint.checkpoint_sequential",
}
_WRAPPERS = {
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper",
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.apply_activation_checkpointing",
}
_ARGUMENTS = {
    "transformers.TrainingArguments",
    "transformers.Seq2SeqTrainingArguments",
    "transformers.training_args.TrainingArguments",
    "trl.SFTConfig",
    "trl.DPOConfig",
}
_MESSAGE = (
    "A reentrant checkpoint runs backward passes of its own, which a wrapper that looks for unused parameters takes "
    "for second ones: the first step fails with 'Expected to mark a variable ready only once'."
)


def check(code: Code) -> Iterator[Hit]:
    """Report the argument that enables the search."""
    for call in code.calls(*DDPS):
        keyword = _true(call, "find_unused_parameters")
        if keyword is None or _true(call, "static_graph") or not _reentrant(code):
            continue
        yield Hit(code.span(keyword), _MESSAGE, _fix(code))
    for call in code.calls(*_ARGUMENTS):
        keyword = _true(call, "ddp_find_unused_parameters")
        if keyword is None or _true(call, "gradient_checkpointing") is None:
            continue
        options = code.argument(call, "gradient_checkpointing_kwargs")
        if options is not None and _says_reentrant(code, options):
            yield Hit(code.span(keyword), _MESSAGE)


def _true(call: ast.Call, name: str) -> ast.keyword | None:
    return next(
        (k for k in call.keywords if k.arg == name and isinstance(k.value, ast.Constant) and k.value.value is True),
        None,
    )


def _says_reentrant(code: Code, options: ast.expr) -> bool:
    for node in [options, *code.values(options)]:
        if isinstance(node, ast.Call) and code.name(node.func) == "dict":
            return code.constant(code.argument(node, "use_reentrant")) is True
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return any(code.constant(k) == "use_reentrant" and code.constant(v) is True for k, v in pairs)
    return False


def _reentrant(code: Code) -> list[ast.Call]:
    """Return the checkpoints that are definitely reentrant: by torch's default, or explicitly."""
    found: list[ast.Call] = []
    for call in code.calls(*_CHECKPOINTS):
        way = code.argument(call, "use_reentrant")
        if (way is None and not any(k.arg is None for k in call.keywords)) or code.constant(way) is True:
            found.append(call)
    for call in code.calls("functools.partial", *_WRAPPERS):
        if code.name(call.func) in _WRAPPERS or (call.args and code.name(call.args[0]) in _WRAPPERS):
            way = code.argument(call, "checkpoint_impl")
            if code.name(way).endswith("CheckpointImpl.REENTRANT"):
                found.append(call)
    for call in code.methods("gradient_checkpointing_enable"):
        options = code.argument(call, "gradient_checkpointing_kwargs", 0)
        if options is not None and _says_reentrant(code, options):
            found.append(call)
    return found


def _fix(code: Code) -> Fix | None:
    """Return a fix that makes the checkpoints non-reentrant; None if one of them can't be."""
    edits: list[Edit] = []
    for call in _reentrant(code):
        if code.name(call.func) not in _CHECKPOINTS:
            return None
        given = code.argument(call, "use_reentrant")
        if isinstance(given, ast.Constant):
            edits.append(Edit(code.span(given), "False"))
        elif given is None and call.args and code.text[code.span(call).end - 2] not in ", \n":
            end = code.span(call).end - 1
            edits.append(Edit(Span(end, end), ", use_reentrant=False"))
        else:
            return None
    return Fix("Use non-reentrant checkpoints", tuple(edits))

"""Models returned by `accelerator.prepare()`: `DistributedDataParallel` if there are several processes."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

PREPARED = "accelerate.Accelerator.prepare"
"""Entry among the callables that wrap a model by which a check includes these models."""
MAKER = "accelerate.Accelerator"
_MAKES = re.compile(r"(^|_)accelerator$")
_OTHERS = {"deepspeed", "torch"}
PREPARES = ("prepare", "prepare_model")
_MODEL = re.compile(
    r"(?i)(^|_)(model|net|network|unet|vae|transformer|encoder|decoder|policy|actor|critic|student|teacher|llm|gpt|ddp)\d?$"
)
_OF_MODULES = ("named_parameters", "requires_grad_", "named_modules", "gradient_checkpointing_enable")
_OTHERWISE = re.compile(r"fsdp|FullySharded|deepspeed|device_placement\s*=\s*\[", re.IGNORECASE)
"""Words of programs that may run under another wrapper."""


def is_accelerator(code: Code, owner: ast.expr) -> bool:
    """True if an object is an `Accelerator`, or is named so and made elsewhere, as by `get_accelerator()`."""
    made = code.made_by(owner) - {""}
    named = dotted_name(owner).rpartition(".")[2] == "accelerator"
    return made == {MAKER} or (named and all(name == MAKER or makes_accelerator(name) for name in made))


def makes_accelerator(name: str) -> bool:
    """True if a function of the program's own modules makes an `Accelerator`, by its name; DeepSpeed's does not."""
    return bool(_MAKES.search(name.rpartition(".")[2])) and name.partition(".")[0] not in _OTHERS


def prepares_model(code: Code, call: ast.Call, place: int) -> bool:
    """True if a call prepares a model as the result at this position."""
    if not prepares(call):
        return False
    known: dict[tuple[ast.Call, int], bool] = code.__dict__.setdefault("_prepared", {})
    if (call, place) not in known:
        known[call, place] = _is_prepared_model(code, call, place)
    return known[call, place]


def _is_prepared_model(code: Code, call: ast.Call, place: int) -> bool:
    if code.has_unpacking(call) or place >= len(call.args) or _OTHERWISE.search(code.text):
        return False
    owner = call.func.value  # type: ignore[attr-defined]
    return is_accelerator(code, owner) and _is_model(code, call.args[place])


def _is_model(code: Code, given: ast.expr) -> bool:
    if _MODEL.search(dotted_name(given).rpartition(".")[2]):
        return True
    made = code.made_by(given)
    return (bool(made) and all(name.startswith("torch.nn.") for name in made)) or is_module(code, dotted_name(given))


def is_module(code: Code, name: str) -> bool:
    """True if the program calls a method on a name that only modules have."""
    return bool(name) and any(
        isinstance(c.func, ast.Attribute) and dotted_name(c.func.value) == name for c in code.methods(*_OF_MODULES)
    )


def prepares(call: ast.Call) -> bool:
    """True if a call is named like a preparing method."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in PREPARES


def owner_of(call: ast.Call) -> str:
    """Return the source text of the accelerator whose `prepare` is called, or ""."""
    return dotted_name(call.func).rpartition(".")[0] if prepares(call) else ""

"""The share of each GPU that an inference engine reserves beside the training. Unit: share of one device.

Rule: vLLM takes `gpu_memory_utilization` of the whole device for weights, activations and cache, and fails if that is
not free (vLLM, "Engine Arguments", https://docs.vllm.ai/en/v0.8.1/serving/engine_args.html).
"""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, explanation_for, reason_of_figures
from dtdebug_taxonomy.text.lazy_re import lazy_re

_SHARE = lazy_re(
    r"(?P<name>(?:--)?(?:[a-z]{2,12}[_.])?gpu[_-]memory[_-]utilization)[`'\"]?(?: ?[=:] ?| (?:is |of |to )?)"
    r"[`'\"]?(?P<share>0?\.\d{1,3}|1\.0)\b"
)
_TRAINS = lazy_re(
    r"(?i)\b(?:grpo|ppo|dapo|rloo|gspo|reinforce|rlhf|colocat\w{1,3}|backward|optimizer|actor|fine-?tun\w{1,4})\b"
)
_MEMORY = frozenset({"D.1.2", "D.1.6", "C.1", "C.2"})
"""Symptoms of memory that runs out, in training and while models are loaded."""
_LARGE = 0.5
"""Share above which little is left for a model with its optimizer."""
_WHOLE = 0.9
"""Share that is not worth raising."""
_GIB = r"-?\d{1,4}(?:\.\d{1,4})? ?GiB"
_NO_ROOM = lazy_re(
    rf"Available KV cache memory: (?P<left>-{_GIB})|No available memory for the cache blocks"
    rf"|(?P<needed>{_GIB}) KV cache is needed, which is larger than the available KV cache memory \((?P<has>{_GIB})\)"
)
_WEIGHTS = lazy_re(rf"Model loading took (?P<weights>{_GIB})")


def explain_no_room(context: Context) -> Iterator[Explanation]:
    """Yield the share in which an engine finds no room for its cache beside the weights that it has loaded."""
    text = context.incident.texts
    refused, found = _NO_ROOM.search(text), _SHARE.search(text)
    if refused is None or found is None or float(found["share"]) >= _WHOLE:
        return
    weights = _WEIGHTS.search(text)
    room = f"{refused['needed']} are needed and {refused['has']} are left" if refused["needed"] else "none is left"
    room = f"{refused['left']} are left" if refused["left"] else room
    held = f" beside {weights['weights']} of weights" if weights is not None else ""
    yield explanation_for(
        context.symptom,
        f"{found['name']} = {found['share']} is too small a share of the GPU for the engine: {room} for its KV cache"
        f"{held}",
        "The engine takes that share of the whole device for weights, activations and cache; what others use counts.",
        f"Raise {found['name']} above {found['share']}, as far as the training beside it leaves room; or a shorter"
        " maximum length, or the engine's weights over more GPUs.",
        0.7,
        reason_of_figures(context.incident, "engine-has-too-little", refused),
    )


def explain(context: Context) -> Iterator[Explanation]:
    """Yield what the engine leaves of each GPU, if memory runs out beside a training that shares it."""
    text = context.incident.texts
    found = _SHARE.search(text)
    if found is None or context.symptom not in _MEMORY or not _TRAINS.search(text) or float(found["share"]) < _LARGE:
        return
    taken = round(100 * float(found["share"]))
    yield explanation_for(
        context.symptom,
        f"The inference engine takes {taken} % of each GPU, and leaves {100 - taken} % to the training beside it",
        "The engine reserves that share of the whole device, however much it needs; weights, gradients and optimizer"
        " have to fit into the rest.",
        f"Lower {found['name']} until both fit (0.3 where model and engine share the GPU), let the engine sleep while"
        " the model is trained, or give it GPUs of its own (server mode).",
        0.5,
        reason_of_figures(context.incident, "engine-leaves-too-little", found),
        pattern="fix behavior logic",
    )

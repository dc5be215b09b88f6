"""A batch that would fit the number of processes that run, where the library counts another. Unit: samples of a step.

Rule: train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x number of processes (DeepSpeed,
"Batch Size Related Parameters", https://www.deepspeed.ai/docs/config-json/).
"""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import WORKED_OUT, Explanation, explanation_for, printed_reason
from dtdebug_taxonomy.text.lazy_re import lazy_re

_PRODUCT = lazy_re(
    r"world_size (?P<batch>\d{1,9}) != (?P<micro>\d{1,6}) ?\* ?(?P<steps>\d{1,6}) ?\* ?(?P<world>\d{1,6})\b"
)
_STARTED = lazy_re(
    r"(?i)(?:--(?:nproc[_-]per[_-]node|num_gpus|num_processes|np|n)[ =]|world[_ ]?size(?:\(\))?[^\d\n]{0,24}?"
    r"|-np )(?P<n>\d{1,5})\b"
)


def explain(context: Context) -> Iterator[Explanation]:
    """Yield that the batch fits the processes that were started, and DeepSpeed counts fewer of them."""
    for error in context.incident.errors:
        text = " ".join("\n".join((error.message, *error.below))[:4_000].split())
        found = _PRODUCT.search(text)
        if found is None:
            continue
        batch, micro, steps, world = (int(found[name]) for name in ("batch", "micro", "steps", "world"))
        counts = {int(m["n"]) for m in _STARTED.finditer(context.incident.texts)} - {world}
        started = next((n for n in counts if micro * steps * n == batch), None)
        if started is None:
            continue
        yield explanation_for(
            context.symptom,
            f"DeepSpeed counts a world size of {world}, and {started} processes are started: with {started} the"
            f" batch fits"
            f" ({micro} x {steps} x {started} = {batch})",
            "Its configuration is read before the process group exists, or by processes that do not know of each"
            " other.",
            "Make the process group first (`deepspeed.init_distributed()`, or the Accelerator, before the"
            " configuration is"
            " read), and start with one launcher: print RANK and WORLD_SIZE in each process.",
            0.6,
            printed_reason(error, "batch-fits-the-started-processes", WORKED_OUT, found[0]),
            pattern="fix batch size/data partition",
        )
        return

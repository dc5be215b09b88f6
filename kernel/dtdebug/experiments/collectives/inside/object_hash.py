"""Fingerprints the inputs of a call. Objects are sent as pickles: a shorter one is followed by arbitrary memory.

A tensor within an object is pickled by `torch.save`, with the address of its storage as its name
(https://github.com/pytorch/pytorch/blob/main/torch/storage.py): it differs in each run and is ignored.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from typing import Any

from dtdebug.experiments.collectives.inside import call_sites, dispatcher_hook
from dtdebug.experiments.collectives.inside.tensor_hash import fingerprint

_OPS = ("allgather_", "gather_", "scatter_", "broadcast_", "send")
_TENSOR = b"_load_from_bytes"
"""Bytes in the pickle of each storage."""
_ADDRESS = re.compile(rb"X[\x06-\x14]\0\0\0[0-9]{6,20}")
"""Digits as a string of pickle's protocol 2, which `torch.save` writes; the program's own use another protocol."""


def fingerprints(call: dispatcher_hook.OwnCall, inputs: list[Any], torch: Any) -> list[int | None]:
    """Return one fingerprint for each tensor that the call sends."""
    if carries_objects(call, inputs, torch):
        sizes = call_sites.object_sizes()
        if sizes is not None:
            return [
                _of_object(tensor[:size], torch) for tensor, size in itertools.zip_longest(inputs, sizes[: len(inputs)])
            ]
    return [fingerprint(tensor) for tensor in inputs]


def carries_objects(call: dispatcher_hook.OwnCall, inputs: list[Any], torch: Any) -> bool:
    """True if the inputs look like pickles."""
    first = inputs[0] if inputs else None
    return first is not None and call.op in _OPS and first.dtype == torch.uint8 and first.dim() == 1


def _of_object(tensor: Any, torch: Any) -> int | None:
    data = tensor.detach().cpu().clone().numpy().tobytes()
    if _TENSOR not in data:
        return fingerprint(tensor)
    seen: defaultdict[bytes, int] = defaultdict(itertools.count().__next__)
    plain = _ADDRESS.sub(lambda found: b"#%d" % seen[found[0]], data)
    return fingerprint(torch.frombuffer(bytearray(plain), dtype=torch.uint8))

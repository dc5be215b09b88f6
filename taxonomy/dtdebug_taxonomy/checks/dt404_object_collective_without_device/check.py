"""Object collectives over NCCL in programs that never choose a GPU per process."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.fixing import choose_device
from dtdebug_taxonomy.checks.shared.names import DIST, INIT
from dtdebug_taxonomy.source.python.code import Code

_OBJECTS = tuple(
    DIST + n for n in ("all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list")
)
_CHOOSE = ("set_device", "set_device_index", "set_device_idx")


def check(code: Code) -> Iterator[Hit]:
    """Report the first such call."""
    calls = [c for c in code.calls(*_OBJECTS) if not code.argument(c, "group") and not code.argument(c, "device")]
    if not calls or code.methods(*_CHOOSE) or code.calls(*_CHOOSE) or "CUDA_VISIBLE_DEVICES" in code.text:
        return
    starts = code.calls(INIT)
    if not starts or code.calls("torch.cuda.device"):
        return
    for start in starts:
        backend = code.constant(code.argument(start, "backend", 0))
        if backend != "nccl" or code.argument(start, "device_id") or code.has_unpacking(start):
            return
    if any("device" in name.lower() or "setup" in name.lower() for name in _outside(code)):
        return
    name = code.name(calls[0].func).removeprefix(DIST)
    yield Hit(
        code.span(calls[0]),
        f"{name}() over NCCL sends through the current GPU, and nothing here sets it: all processes of a machine "
        "take GPU 0, which hangs or fills its memory.",
        choose_device(code, starts[0]) if len(starts) == 1 else None,
    )


def _outside(code: Code) -> Iterator[str]:
    """Yield the names imported from other modules, one of which may choose the device."""
    for written, full in code.imports.items():
        if not full.startswith(("torch", "os", "sys")):
            yield written

"""Devices of this machine, read through NVML in a separate process.

NVML calls can hang on a device that has fallen off the bus, so they never run in the
user's process, and a late reader is killed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from dtdebug_taxonomy.model.snapshot import Gpu

_DRIVER = Path("/proc/driver/nvidia/version")
TIMEOUT = 3.0
"""Seconds after which the reader is killed."""


def gpus(command: Sequence[str] | None = None, timeout: float = TIMEOUT) -> tuple[tuple[Gpu, ...], str]:
    """Return (devices, note): the note explains why there are none, and is "" on a machine without a driver."""
    if command is None:
        if sys.platform.startswith("linux") and not _DRIVER.exists():
            return (), ""
        command = (sys.executable, "-P", "-m", "dtdebug.process.gpus")
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=True, stdin=subprocess.DEVNULL)
        return msgspec.json.decode(done.stdout, type=tuple[Gpu, ...]), ""
    except subprocess.TimeoutExpired:
        return (), f"NVML did not answer within {timeout:g} s: a device may have fallen off the bus (look at `dmesg`)"
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        return (), f"NVML could not be read: {said[-1] if said else f'exit status {error.returncode}'}"
    except (OSError, msgspec.MsgspecError) as error:
        return (), f"NVML could not be read: {error}"


def read_devices(nvml: Any) -> tuple[Gpu, ...]:
    """Return all devices through the module `pynvml` (from nvidia-ml-py).

    Raises:
        NVMLError: no driver, no permission, a lost device.

    """
    nvml.nvmlInit()
    try:
        return tuple(_device(nvml, i) for i in range(nvml.nvmlDeviceGetCount()))
    finally:
        nvml.nvmlShutdown()


def _device(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    try:
        busy = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    except nvml.NVMLError:  # not supported on MIG slices
        busy = None
    try:
        processes = tuple(
            (int(p.pid), int(p.usedGpuMemory or 0)) for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        )
    except nvml.NVMLError:
        processes = ()
    return Gpu(
        index=index,
        name=_text(nvml.nvmlDeviceGetName(handle)),
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        memory_total=int(memory.total),
        memory_used=int(memory.used),
        utilization=busy,
        processes=processes,
    )


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


if __name__ == "__main__":
    import pynvml

    sys.stdout.buffer.write(msgspec.json.encode(read_devices(pynvml)))

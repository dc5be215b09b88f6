"""The devices of this host: asked of NVIDIA's library in a child, which a hung driver can't hold us by."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

_ASKING = 5.0
"""Seconds for the driver to answer."""
_MOST = 64
_ASK = """
import pynvml as n
n.nvmlInit()
for i in range(n.nvmlDeviceGetCount()):
    name = n.nvmlDeviceGetName(n.nvmlDeviceGetHandleByIndex(i))
    print(name.decode() if isinstance(name, bytes) else name)
"""


def has_some() -> bool:
    """A driver of NVIDIA's or AMD's devices is there, so that the job will not use gloo."""
    return any(Path(p).exists() for p in ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/kfd"))


def devices() -> tuple[tuple[str, ...] | None, str]:
    """(models, why not): none of the first if they were not looked at."""
    if not Path("/proc/driver/nvidia").exists() and not Path("/dev/nvidiactl").exists():
        return None, "devices of AMD are not known to doctor" if has_some() else "no driver of devices on this host"
    words = [sys.executable, "-c", _ASK]
    if find_spec("pynvml") is None:
        words = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(words, capture_output=True, timeout=_ASKING, check=False, start_new_session=True)
    except subprocess.TimeoutExpired:
        return None, f"the driver gave no answer in {_ASKING:g} s"
    except OSError as error:
        return None, f"{words[0]}: {error.strerror}"
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        why = (done.stderr.decode(errors="replace") or text).strip().splitlines()
        return None, (why[-1] if why else "the driver refuses")[:200]
    return tuple(line.strip()[:100] for line in text.splitlines() if line.strip())[:_MOST], ""

"""Rank 0 scales its gradient with an extension in C, then the ranks add up."""

import ctypes
import subprocess
from pathlib import Path

import torch
import torch.distributed as dist


class View(ctypes.Structure):
    """A tensor as release 2 of the framework hands it to extensions."""

    _fields_ = (("size", ctypes.c_long), ("data", ctypes.c_void_p))


def build(release: int) -> ctypes.CDLL:
    source = Path(__file__).with_name("scale.c")
    subprocess.run(["cc", "-shared", "-fPIC", f"-DRELEASE={release}", "-o", "scale.so", source], check=True)
    return ctypes.CDLL("./scale.so")


dist.init_process_group("gloo")
gradient = torch.ones(4)
if dist.get_rank() == 0:
    extension = build(release=1)
    extension.scale(ctypes.byref(View(4, gradient.data_ptr())), ctypes.c_float(3))
dist.all_reduce(gradient)
if dist.get_rank() == 0:
    print(f"the sum is {gradient.sum().item():g}", flush=True)
dist.destroy_process_group()

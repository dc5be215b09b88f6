"""Collects versions, code and variables of this host for comparison: hashes of code, never the code itself."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from dtdebug.account.program_files import read_program
from dtdebug.privacy.sanitize import allowed_variables
from dtdebug_taxonomy import named_files

_PACKAGES = (
    "torch",
    "torchvision",
    "numpy",
    "deepspeed",
    "accelerate",
    "lightning",
    "pytorch-lightning",
    "transformers",
    "horovod",
    "mpi4py",
    "ray",
    "jax",
    "tensorflow",
    "megatron-core",
    "flash-attn",
    "transformer-engine",
    "apex",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "triton",
)
_BYTES, _LINES = 4 << 20, 4000
MISSING = " is not there"
_OF_HOST = frozenset(
    (
        "RANK",
        "LOCAL_RANK",
        "NODE_RANK",
        "GROUP_RANK",
        "ROLE_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "GLOO_SOCKET_IFNAME",
        "NCCL_SOCKET_IFNAME",
        "TP_SOCKET_IFNAME",
        "NCCL_IB_HCA",
        "PET_NODE_RANK",
    )
)
_SAME = (
    "NCCL_",
    "TORCH_",
    "GLOO_",
    "OMP_NUM_THREADS",
    "WORLD_SIZE",
    "PYTORCH_CUDA_ALLOC_CONF",
    "FI_",
    "UCX_",
    "ACCELERATE_",
    "DS_",
    "FSDP_",
)
"""Prefixes of variables that must be equal on all hosts."""


def versions() -> dict[str, str]:
    """Return the versions of Python, the C library and relevant packages from metadata, without importing them."""
    found = {"python": platform.python_version(), "libc": " ".join(platform.libc_ver()), "machine": platform.machine()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)[:100]
        except (metadata.PackageNotFoundError, ValueError, TypeError):
            continue
    return {name: value for name, value in found.items() if value}


def variables_to_compare(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the allow-listed variables that must be equal on all hosts."""
    return {k: v for k, v in allowed_variables(environ).items() if k.startswith(_SAME) and k not in _OF_HOST}


def hashed_files(program: str, arguments: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return (path -> hash, error) of the program, the local modules that it imports, and its configurations."""
    start = Path(program)
    if start.suffix != ".py":
        return {}, "the command names no program file"
    if not start.is_file():
        return {}, f"{program}{MISSING}"
    root = start.resolve().parent
    found = {_relative_name(f.path, root): _hash(f.data) for f in read_program(start)}
    configurations = [path.resolve() for word in arguments if (path := _configuration(word)) is not None][:16]
    found |= {_relative_name(p, root): _hash(data) for p in configurations if (data := _data(p)) is not None}
    return found, ""


def lines(program: str, name: str) -> list[str]:
    """Return the hashes of the lines of a file that differs."""
    root = Path(program).resolve().parent
    path = Path(name) if name.startswith("/") else root / name
    data = _data(path) or b""
    return [hashlib.sha256(line.rstrip()).hexdigest()[:8] for line in data.splitlines()[:_LINES]]


def _configuration(word: str) -> Path | None:
    path = Path(word.partition("=")[2] or word)
    return path if path.suffix in (".json", ".yaml", ".yml", ".toml") and len(word) < 1000 and path.is_file() else None


def _relative_name(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _data(path: Path) -> bytes | None:
    try:
        return named_files.read_file(path, _BYTES)
    except OSError:
        return None

"""Collects versions, code and variables of this host for comparison: hashes of code, never the code itself."""

from __future__ import annotations

import ast
import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

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
_FILES, _BYTES, _LINES = 256, 4 << 20, 4000
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
    root, todo, found = start.resolve().parent, [start.resolve()], dict[str, str]()
    todo += [path.resolve() for word in arguments if (path := _configuration(word)) is not None][:16]
    while todo and len(found) < _FILES:
        path = todo.pop(0)
        name = _relative_name(path, root)
        data = _data(path)
        if name in found or data is None:
            continue
        found[name] = hashlib.sha256(data).hexdigest()[:16]
        if path.suffix == ".py":
            todo += [p for p in _local(data, path, root) if _relative_name(p, root) not in found]
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


def _data(path: Path) -> bytes | None:
    try:
        return named_files.read_file(path, _BYTES)
    except OSError:
        return None


def _local(data: bytes, path: Path, root: Path) -> list[Path]:
    """Return the modules next to the program that a file imports."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(root, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if node.level and node.level <= len(path.parents) else root
            module = node.module or ""
            names = [(base, module), *((base, f"{module}.{alias.name}".strip(".")) for alias in node.names)]
        else:
            continue
        for base, name in names:
            place = base.joinpath(*name.split(".")) if name else base
            found += [p for p in (place.with_suffix(".py"), place / "__init__.py") if name and p.is_file()]
    return [p.resolve() for p in found if "site-packages" not in p.parts and sys.prefix not in str(p)]

"""torch_env.json, nn_module.json, torch_distributed.json: what the installed torch reads, and what it has."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType

from sources import class_named, torch_folder, torch_version

_OURS = re.compile(
    r"(TORCH|PYTORCH|GLOO|TP|NCCL|ENABLE_NCCL|MASTER|LOCAL|GROUP|ROLE|CUDA|PET|FR)_[A-Z0-9_]*[A-Z0-9]$|TORCHELASTIC_\w+$|"
    r"(RANK|WORLD_SIZE|OMP_NUM_THREADS|USE_LIBUV|LOGLEVEL)$"
)
_LIBRARY = re.compile(rb"(?<=\0)(?:TORCH|PYTORCH|GLOO)_[A-Z0-9_]*[A-Z0-9](?=\0)")
_SPELLINGS = re.compile(
    r"(?:std::vector<std::string>\s+\w+\s*=|getCvar\w+\(\s*(?:std::vector<std::string>)?)\s*\{([^}]*)\}"
)
_NO_VARIABLE = re.compile(r"TORCH_(LIBRARY|INCLUDE|VEH|CUSTOM_TERMINATE|FUNCTION_MODE)")
_RENAMED_IN = ("2.2", "https://github.com/pytorch/pytorch/pull/114077")
_LIBRARIES = ("libc10.so", "libtorch_cpu.so", "libtorch_python.so")
_GROUP_MAKERS = (
    "init_process_group",
    "init_device_mesh",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "split_group",
)
_POINT_TO_POINT = ("send", "recv", "isend", "irecv", "send_object_list", "recv_object_list", "batch_isend_irecv")


def torch_env() -> dict[str, object]:
    """The table: variable -> where it is read; and those that had another name."""
    folder = torch_folder()
    found: dict[str, str] = {}
    for name, where in _in_sources(folder):
        found[name] = min(found.get(name, where), where, key=lambda w: (not w.startswith("distributed/"), w))
    renamed = {}
    for path in sorted((folder / "include/torch/csrc/distributed/c10d").glob("*.hpp")):
        for body in _SPELLINGS.findall(path.read_text(encoding="utf-8")):
            new, *old = re.findall(r'"([A-Z0-9_]+)"', body) or [""]
            if _OURS.match(new):
                found.setdefault(new, str(path.relative_to(folder)))
                renamed.update((o, {"new": new}) for o in old)
    for old, entry in renamed.items():
        if old.startswith("NCCL_"):
            entry["since"], entry["url"] = _RENAMED_IN
    in_library: dict[str, str] = {}
    for library in _LIBRARIES:
        for name in {m.decode() for m in _LIBRARY.findall((folder / "lib" / library).read_bytes())}:
            if name not in found and name not in renamed and not _NO_VARIABLE.match(name):
                in_library.setdefault(name, f"lib/{library}")
    return {
        "source": f"torch {torch_version()}",
        "variables": {k: {"where": v} for k, v in sorted(found.items()) if k not in renamed},
        "strings": {k: {"where": v} for k, v in sorted(in_library.items())},
        "renamed": dict(sorted(renamed.items())),
    }


def _in_sources(folder: Path) -> Iterator[tuple[str, str]]:
    """Names that Python code takes from the environment, or sets in that of a worker."""
    for path in sorted(folder.rglob("*.py")):
        where = path.relative_to(folder)
        if where.parts[0] in ("testing", "include", "test", "_inductor", "_dynamo"):
            continue
        text = path.read_text(encoding="utf-8")
        if "env" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            for name in _asked(node):
                if _OURS.match(name):
                    yield name, str(where)


def _asked(node: ast.AST) -> Iterator[str]:
    """The name in `environ["X"]`, `getenv("X")`, `"X" in os.environ`, `_get_env("X")`, `worker_env = {"X": ...}`."""
    keys: list[ast.expr | None] = []
    if isinstance(node, ast.Subscript) and "env" in ast.unparse(node.value).lower():
        keys = [node.slice]
    elif isinstance(node, ast.Call) and "env" in ast.unparse(node.func).lower():
        keys = list(node.args)
        keys += [e for a in node.args if isinstance(a, ast.List) for e in a.elts]
    elif isinstance(node, ast.Compare) and "environ" in ast.unparse(node.comparators[0]):
        keys = [node.left]
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and "env" in ast.unparse(node.targets[0]):
        keys = list(node.value.keys)
    yield from (k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str))


def nn_module() -> dict[str, object]:
    """Public attributes of a module and of what wraps it."""
    import torch
    from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
    from torch.nn.parallel import DistributedDataParallel

    plain = set(_public(torch.nn.Module)) | {n for n in vars(torch.nn.Module()) if not n.startswith("_")}
    own = {
        "DataParallel": torch.nn.DataParallel,
        "DistributedDataParallel": DistributedDataParallel,
        "FSDPModule": FSDPModule,
        "FullyShardedDataParallel": FullyShardedDataParallel,
    }
    return {
        "source": f"torch {torch_version()}",
        "module": sorted(plain),
        "wrappers": {n: sorted((set(_public(c)) | set(_assigned(c))) - plain) for n, c in own.items()},
    }


def _public(cls: type) -> Iterator[str]:
    return (n for n in dir(cls) if not n.startswith("_"))


def _assigned(cls: type) -> Iterator[str]:
    """Attributes that the class sets on `self` anywhere."""
    file = next(f.__code__.co_filename for f in vars(cls).values() if inspect.isfunction(f))
    for node in ast.walk(class_named(ast.parse(Path(file).read_bytes()), cls.__name__)):
        stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if stored and ast.unparse(node.value) == "self" and not node.attr.startswith("_"):
            yield node.attr


def torch_distributed() -> dict[str, object]:
    """Functions of torch.distributed that talk to other ranks: kind, parameters, group, whether asynchronous."""
    import torch.distributed as dist

    found = {}
    for name in sorted(dist.__all__ if hasattr(dist, "__all__") else dir(dist)):
        function = getattr(dist, name, None)
        if name.startswith("_") or type(function) is not FunctionType:  # isinstance would wake deprecated names
            continue
        if kind := _kind(name, function):
            parameters = inspect.signature(function).parameters.values()
            entry: dict[str, object] = {"kind": kind, "parameters": [p.name for p in parameters if p.kind < 2]}
            entry["required"] = sum(p.default is p.empty and p.kind < 2 for p in parameters)
            if only := [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]:
                entry["keyword_only"] = only
            if any(p.name == "async_op" for p in parameters):
                entry["async_op"] = True
            found[name] = entry
    return {"source": f"torch {torch_version()}", "functions": found}


def _kind(name: str, function: Callable[..., object]) -> str:
    if name in _POINT_TO_POINT:
        return "point-to-point"
    if name in _GROUP_MAKERS or name == "destroy_process_group":
        return "group"
    takes_group = "group" in inspect.signature(function).parameters
    talks = re.search(r"reduce|gather|scatter|broadcast|barrier|all_to_all", name)
    if talks and takes_group and not name.startswith(("get_", "is_")):
        return "object" if "object" in name else "collective"
    return ""

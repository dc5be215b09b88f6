"""Reads from the source of a program, before it runs, what a comparison with one process will not cover."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from dtdebug.account.program_files import read_program

_PACKAGES = {
    "deepspeed": "DeepSpeed's engine is not compared",
    "megatron": "Megatron-LM is not compared",
    "horovod": "Horovod is not compared",
}
_CLASSES = {"FullyShardedDataParallel": "the first version of FSDP is not compared"}
_CALLS = {
    "compile": "a compiled model is not compared",
    "SyncBatchNorm": "SyncBatchNorm communicates in its forward pass, so that only the reduction is compared",
} | {
    f"BatchNorm{n}d": "batch norm takes its statistics from each rank, one process would from all samples"
    for n in (1, 2, 3)
}


def limits(script: Path) -> list[str]:
    """Return one line for each kind of part that is not compared: place and reason; of the program and its modules."""
    found: dict[str, str] = {}
    for file in read_program(script):
        for line, why in sorted(_limits_of(file.tree)) if file.tree is not None else ():
            found.setdefault(why, f"{file.path.name}:{line}: {why}")
    return list(found.values())


def _limits_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            known = [_PACKAGES.get(name.partition(".")[0]) for name in modules]
            known += [_CLASSES.get(a.name) for a in node.names]
            yield from ((node.lineno, why) for why in known if why)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).removeprefix("torch.").removeprefix("nn.")
            if name in _CALLS and (name != "compile" or isinstance(node.func, ast.Attribute)):
                yield node.lineno, _CALLS[name]

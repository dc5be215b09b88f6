"""Reads from the source of a program, before it runs, what repeating its steps will not cover."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from dtdebug.account.program_files import read_program

_WHOLE = "a sharded model can't be repeated on one rank: step and ranks are named, not where it begins"
_BY_NAME: dict[str, dict[str, str]] = {
    "parity": {
        "deepspeed": "DeepSpeed's engine is not compared",
        "megatron": "Megatron-LM is not compared",
        "horovod": "Horovod is not compared",
        "FullyShardedDataParallel": "the first version of FSDP is not compared",
    },
    "nan": dict.fromkeys(("FullyShardedDataParallel", "fully_shard", "parallelize_module", "deepspeed"), _WHOLE),
}
"""Instrument -> package or name that is imported -> what is not covered."""
_CALLS: dict[str, dict[str, str]] = {
    "parity": {
        "compile": "a compiled model is not compared",
        "SyncBatchNorm": "SyncBatchNorm communicates in its forward pass, so that only the reduction is compared",
    }
    | {
        f"BatchNorm{n}d": "batch norm takes its statistics from each rank, one process would from all samples"
        for n in (1, 2, 3)
    },
    "nan": {},
}


def limits(script: Path, instrument: Literal["parity", "nan"]) -> list[str]:
    """Return one line for each kind of part that an instrument does not cover, of the program and its modules."""
    found: dict[str, str] = {}
    for file in read_program(script):
        for line, why in sorted(_limits_of(file.tree, instrument)) if file.tree is not None else ():
            found.setdefault(why, f"{file.path.name}:{line}: {why}")
    return list(found.values())


def _limits_of(tree: ast.Module, instrument: str) -> Iterator[tuple[int, str]]:
    names, calls = _BY_NAME[instrument], _CALLS[instrument]
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            known = [names.get(name.partition(".")[0]) for name in modules]
            known += [names.get(a.name) for a in node.names]
            yield from ((node.lineno, why) for why in known if why)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).removeprefix("torch.").removeprefix("nn.")
            if name in calls and (name != "compile" or isinstance(node.func, ast.Attribute)):
                yield node.lineno, calls[name]

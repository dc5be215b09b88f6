"""Source that a text shows along with a failure, between fences or without: a program, a cell, a launch script."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.lenient_parser import parse_program
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.text import posted_rows, shown_code

_FENCE = re.compile(r"\s{0,3}(?:`{3,}|~{3,})\s{0,3}(?P<language>\w{0,20})")
_PYTHON, _SHELL = frozenset({"python", "py", "python3"}), frozenset({"bash", "sh", "shell", "slurm", "zsh"})
_DIFFS = frozenset({"diff", "patch"})
_SCRIPT = re.compile(r"#!\s{0,2}/\S{0,60}\b(?:ba|z|k|da)?sh\b|#SBATCH ")
"""Beginning of a script, which people show without fences too."""
_ASSIGNED = re.compile(r"\s{0,8}(?:export )?[A-Z][A-Z0-9_]{1,40}=(?:[^\s=(][^\s]{0,200})?\s{0,4}(?:#.{0,200})?$")
_COMMAND = re.compile(r"\s{0,8}(?:[A-Z][A-Z0-9_]{1,40}=\S{1,80} ){0,8}[a-z][\w./-]{1,80}(?: [^\n]{0,600})?\\$")
"""Rows of a script that shows no other sign of one: an assignment alone, and a command that is continued."""
_USUAL = {
    "torch": "import torch",
    "dist": "import torch.distributed as dist",
    "nn": "import torch.nn as nn",
    "DDP": "from torch.nn.parallel import DistributedDataParallel as DDP",
    "DistributedDataParallel": "from torch.nn.parallel import DistributedDataParallel",
    "DataLoader": "from torch.utils.data import DataLoader",
    "DistributedSampler": "from torch.utils.data import DistributedSampler",
    "FSDP": "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP",
    "F": "import torch.nn.functional as F",
    "os": "import os",
    "Accelerator": "from accelerate import Accelerator",
    "accelerator": "from accelerate import Accelerator",
    "deepspeed": "import deepspeed",
    "hvd": "import horovod.torch as hvd",
    "pl": "import lightning.pytorch as pl",
}
"""Imports for names that a fragment uses without showing them: their meaning in nearly every program."""
_BARE = (
    (
        re.compile(
            r"\bself\.trainer\.|(?<![\w.])(?:pl_)?trainer\.(?:is_global_zero|global_rank|strategy|save_checkpoint)\b"
            r"|\bself\.log(?:_dict)?\(|\bLightning(?:Data)?Module\b|(?<![\w.])fabric\."
        ),
        "import lightning",
    ),
    (re.compile(r"\bself\.accelerator\.|(?<![\w.])(?:Partial|Accelerator)State\("), "import accelerate"),
    (re.compile(r"\b(?:model_)?engine\.(?:save_checkpoint|backward|step)\("), "import deepspeed"),
)
"""Attributes by which the methods of a class show whose they are -> its import."""
_FUNCTIONS = re.compile(
    r"(?<![\w.])(init_process_group|destroy_process_group|barrier|all_reduce|all_gather|all_gather_object|get_rank"
    r"|get_world_size|broadcast|broadcast_object_list|reduce_scatter|new_group)\("
)
"""Functions of torch.distributed that a fragment calls by their bare names."""
_WRAPPERS = re.compile(
    r"(?i)\bddp\b|(?<!\w)DistributedDataParallel|\bfsdp|fully_?shard|\bdeep-?speed|\bhorovod|\btorchrun|torch\.distributed"
    r"|\b(?:all|each|every|other) ranks?\b"
)
"""Words of programs whose gradients are averaged over processes."""
_STEP = re.compile(r"(?<!\w)(?P<owner>[\w.]{0,60})\.backward\(")
_OWNERS = re.compile(r"(?i)(?:^|\.)(?:accelerator|fabric|(?:model_)?engine)$")
"""Objects that run the backward pass of such a program themselves."""
_WRAPPED = "from torch.nn.parallel import DistributedDataParallel"
_MOST, _LONGEST = 4, 60_000
"""Maximum number of blocks read per text, and of characters of one."""
_MOST_ROWS, _STATEMENTS, _UNREAD = 800, 3, 0.4
"""Maximum rows of a block that is repaired, its least number of statements, and the largest share that is not read."""


class SourceBlock(NamedTuple):
    """Block of a text that is source."""

    source: Source
    line: int
    """1-based line of the text that is its first."""
    added: str = ""
    """Imports added in its first line, which the text does not show."""
    verbatim: bool = True
    """True if nothing is left out or replaced: a diff would apply to it."""


def speaks_of_wrapper(text: str) -> bool:
    """True if a text speaks of processes that average their gradients, so that a training loop in it is one of them."""
    return _WRAPPERS.search(text) is not None


def source_blocks(text: str, *, code: bool = False, wrapped: bool = False) -> Iterator[SourceBlock]:
    """Yield the blocks of a text that can be read as Python or shell, in order, then commands in its lines.

    With `code`, for what a person wrote, pieces of Python without fences come as well. With `wrapped`, a training loop
    that does not show what makes its model distributed is one of several processes.
    """
    rows = text.split("\n")
    if len(text) <= _LONGEST:
        rows = posted_rows.unquoted(rows)
    found = 0
    for first, language, block in _blocks(rows):
        body = textwrap.dedent("\n".join([*block, ""]))
        if found == _MOST or len(body) > _LONGEST or not body.strip():
            continue
        if language in _SHELL or _SCRIPT.match(body.lstrip()):
            found += 1
            yield SourceBlock(Script(body), first + 1)
        elif (made := _python_block(block, first, language, wrapped)) is not None:
            found += 1
            yield made
    if len(text) > _LONGEST:
        return
    fenced = {at for first, _, block in _blocks(rows) for at in range(first, first + len(block))}
    for at, command in shown_code.commands("\n".join(rows)):
        if at not in fenced and found < 2 * _MOST:
            found += 1
            yield SourceBlock(Script(f"{command}\n"), at + 1)
    for at, command in shown_code.settings("\n".join(rows)) if code else ():
        if at not in fenced and found < 2 * _MOST:
            found += 1
            yield SourceBlock(Script(f"{command}\n"), at + 1, verbatim=False)
    open_rows = ["" if at in fenced else row for at, row in enumerate(rows)] if code else []
    for piece in _join(shown_code.pieces(open_rows), rows):
        made = _python_block(rows[piece.start : piece.stop], piece.start, wrapped=wrapped)
        if found < 2 * _MOST and made is not None:
            found += 1
            yield made


def _join(pieces: Iterable[range], rows: list[str]) -> Iterator[range]:
    """Yield the pieces, as one where only blank, indented or left-out rows are between them."""
    whole: range | None = None
    for piece in pieces:
        if whole is not None and all(map(posted_rows.is_between, rows[whole.stop : piece.start])):
            whole = range(whole.start, piece.stop)
            continue
        if whole is not None:
            yield whole
        whole = piece
    if whole is not None:
        yield whole


def _python_block(block: list[str], first: int, language: str = "", wrapped: bool = False) -> SourceBlock | None:
    """Return rows of a text as Python, as far as they can be read; None if they are something else."""
    if language and language not in _PYTHON | _DIFFS:
        return None
    rows, left_out = posted_rows.source_rows(block, diff=language in _DIFFS)
    body = textwrap.dedent("\n".join([*rows, ""]))
    parses = _parses(body)
    if not (parses or language in _PYTHON or _reads_as_python(body)):
        return None
    in_step = _is_step(body, wrapped)
    added = _imports(body, (_WRAPPED,) if in_step else ())
    code = Code(added + body)
    code.in_step = in_step
    if left_out or not parses:
        code.__dict__["role"] = "library"  # what is missing may be in the part that is not shown
    return SourceBlock(code, first + (0 if added else 1), added, verbatim=parses and not left_out)


def _is_step(body: str, wrapped: bool) -> bool:
    """True for the loop of a program that averages gradients, if the part that is shown does not import torch."""
    passes = [*_STEP.finditer(body)]
    shown = re.search(r"(?m)^\s{0,40}(?:import|from) torch\b", body) is not None
    return bool(passes) and not shown and (wrapped or any(_OWNERS.search(p["owner"]) for p in passes))


def _reads_as_python(body: str) -> bool:
    """True if most rows of a text can be parsed, and several begin statements as no output does."""
    rows = body.split("\n")
    if len(rows) > _MOST_ROWS or sum(map(shown_code.is_statement, rows)) < _STATEMENTS:
        return False
    gaps = {at for low, high in parse_program(body).gaps for at in range(low - 1, high)}
    full = [at for at, row in enumerate(rows) if row.strip()]
    return len(gaps.intersection(full)) <= _UNREAD * len(full)


def _blocks(rows: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield (index of its first row, its language, rows) of each fenced block, and of each bare script."""
    at = 0
    while at < len(rows):
        fence = _FENCE.match(rows[at])
        if fence is not None:
            end = next((i for i in range(at + 1, len(rows)) if _FENCE.match(rows[i])), len(rows))
            if shown_code.is_statement(code := rows[at].lstrip(" `~")):
                yield at, "", [code, *rows[at + 1 : end]]
            else:
                yield at + 1, fence["language"].lower(), rows[at + 1 : end]
            at = end + 1
        elif _SCRIPT.match(rows[at]):
            end = next((i for i in range(at + 1, len(rows)) if not rows[i].strip() or _FENCE.match(rows[i])), len(rows))
            yield at, "sh", rows[at:end]
            at = end
        elif _ASSIGNED.match(rows[at]) and (end := _end_of_script(rows, at)) > at:
            yield at, "sh", rows[at:end]
            at = end
        else:
            at += 1


def _end_of_script(rows: list[str], start: int) -> int:
    """Return the end of a script of assignments and then commands over several rows; or 0."""
    end = at = start
    while at < len(rows) and at - start < _MOST_ROWS:
        row = rows[at]
        if _COMMAND.match(row):
            while at + 1 < len(rows) and rows[at].rstrip().endswith("\\"):
                at += 1
            end = at + 1
        elif row.strip() and not (_ASSIGNED.match(row) or row.lstrip().startswith("#")):
            break
        at += 1
    return end if end > start else 0


def _imports(body: str, more: tuple[str, ...] = ()) -> str:
    """Return a line that imports what a fragment uses and does not bind, and some more; empty if there are none."""
    rows = [
        row
        for name, row in _USUAL.items()
        if re.search(rf"(?<![\w.]){name}[.(]", body)
        and not re.search(rf"(?m)\bimport\b.{{0,120}}\b{name}\b|^[ \t]{{0,80}}{name} =", body)
    ]
    imported = " ".join(row for row in body.split("\n") if row.lstrip().startswith(("import ", "from ")))
    rows += [row for shape, row in _BARE if row.split()[1] not in imported and shape.search(body)]
    if "init_process_group(" in body or "torch.distributed" in body or re.search(r"(?<![\w.])dist\.", body):
        bare = sorted({found[1] for found in _FUNCTIONS.finditer(body)})
        shown = [name for name in bare if not re.search(rf"(?m)\bimport\b.{{0,200}}\b{name}\b|\bdef {name}\(", body)]
        rows += [f"from torch.distributed import {', '.join(shown)}"] if shown else []
    rows += more
    return f"{'; '.join(dict.fromkeys(rows))}\n" if rows else ""


def _parses(body: str) -> bool:
    try:
        return bool(ast.parse(body).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False

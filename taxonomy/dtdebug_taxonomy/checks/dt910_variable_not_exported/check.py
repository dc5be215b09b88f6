"""Variables for libraries that the shell does not export."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.text import Span

_OTHERS = frozenset(
    {"CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "GLOO_SOCKET_IFNAME", "TORCH_DISTRIBUTED_DEBUG"}
)
_STARTS = re.compile(r"torchrun|deepspeed|accelerate|horovodrun|srun|mpirun|mpiexec|python[\d.]*")


def check(script: Script) -> Iterator[Hit]:
    """Report a plain assignment before a program starts, if the name is never exported or used."""
    bare = [
        (a, c)
        for c in script.commands
        if not c.words and not c.depth
        for a in c.assignments
        if a.name in _OTHERS or a.name in facts.nccl().variables or a.name.startswith("TORCH_NCCL_")
    ]
    if not bare or re.search(r"(^|/)[\w.-]*\.?env[\w.-]*$|rc$", script.path):
        return
    starts = [c.span.start for c in script.commands if _STARTS.fullmatch(c.name)]
    exported: set[str] = set()
    for command in script.commands:
        if command.name in {"export", "declare", "typeset"}:
            exported |= {w.text.partition("=")[0] for w in command.words[1:]}
        if command.name == "set" and any(w.text in {"-a", "allexport"} for w in command.words):
            return
    used = {v.name for v in script.variables if not v.is_set}
    for assignment, _ in bare:
        name = assignment.name
        if name in exported or name in used or not any(s > assignment.span.start for s in starts):
            continue
        at = assignment.span.start
        yield Hit(
            assignment.span,
            f"{name} is a variable of this shell only: without export the programs that it starts don't see it.",
            Fix("Export it", (Edit(Span(at, at), "export "),)),
        )

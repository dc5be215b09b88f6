"""Variables that say how many processes start, and where, if the shell does not export them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.shell.commands import Assignment, Command
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.text import Span

_LAUNCH = frozenset(
    {"CUDA_VISIBLE_DEVICES", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "NNODES"}
    | {"NPROC_PER_NODE"}
)
_OWN = re.compile(r"\$\{?(?P<name>\w+)(:?[-=][^}]*)?\}?")
_EXPORTS = frozenset({"export", "declare", "typeset"})
_HELPERS = frozenset(
    {"echo", "printf", "set", "unset", "cd", "source", ".", "exit", "test", "[", "[[", "mkdir", "module", "ml", "pip"}
    | {"conda", "mamba", "git", "ls", "rm", "cp", "mv", "cat", "tee", "sleep", "shift", "read", "eval", "hostname"}
    | {"docker", "podman", "apptainer", "singularity", "ssh", "pdsh", "rsync", "nvidia-smi", "apt", "apt-get", "sudo"}
    | {
        "getopts",
        "getopt",
        "trap",
        "ulimit",
        "wait",
        "kill",
        "date",
        "pkill",
        "uv",
        "sed",
        "awk",
        "grep",
        "curl",
        "wget",
    }
)
"""Commands that train nothing, or that pass their environment on to no program."""


def check(script: Script) -> Iterator[Hit]:
    """Report the first such assignment on a line of its own, with the others, if nothing exports or uses them."""
    exported = _exported(script)
    if exported is None or re.search(r"(^|/)[\w.-]*\.?env[\w.-]*$|rc$", script.path):
        return
    last = max((c.span.start for c in script.commands if _is_program(c)), default=0)
    kept = exported | {v.name for v in script.variables if not v.is_set}
    if any(d.system == "SBATCH" for d in script.directives):
        kept.add("CUDA_VISIBLE_DEVICES")  # Slurm has exported it
    alone = [c for c in script.commands if not c.words and not c.depth and c.span.start < last]
    found = [a for c in alone for a in c.assignments if a.name in _LAUNCH - kept and not _is_inherited(a)]
    if found:
        names = list(dict.fromkeys(a.name for a in found))
        one = len(names) == 1
        yield Hit(
            found[0].span,
            f"{names[0] if one else ', '.join(names[:-1]) + ' and ' + names[-1]}"
            f" {'is a variable' if one else 'are variables'} of this shell only, for nothing exports"
            f" {'it or joins it' if one else 'them or joins them'} to the command: the program that starts below does"
            f" not see {'it' if one else 'them'}.",
            Fix(
                f"Export {'it' if one else 'them'}",
                tuple(Edit(Span(a.span.start, a.span.start), "export ") for a in found),
            ),
        )


def _exported(script: Script) -> set[str] | None:
    """Return the names that a script exports; None if it exports all."""
    found: set[str] = set()
    for command in script.commands:
        if command.name == "set" and any(w.text in {"-a", "allexport"} for w in command.words):
            return None
        if command.name in _EXPORTS:
            found |= {w.text.partition("=")[0] for w in command.words[1:]}
    return found


def _is_program(command: Command) -> bool:
    """True for what is started with an argument and is no helper."""
    return len(command.words) > 1 and command.name not in _EXPORTS | _HELPERS


def _is_inherited(assignment: Assignment) -> bool:
    """True for `NAME=$NAME` and `NAME=${NAME:-default}`: what the environment has already stays exported."""
    own = _OWN.fullmatch(assignment.value.text)
    return own is not None and own["name"] == assignment.name

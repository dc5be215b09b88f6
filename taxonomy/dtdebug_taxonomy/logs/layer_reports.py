"""Finds errors that a layer reports without an exception: NCCL, UCX, libfabric, Slurm, a C++ runtime, a logger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.text.lazy_re import lazy_re

_SAYS = r"(?P<message>.{8,600})"
_CHECK = r"(?P<message>Check failed: .{4,600})"
_LAYERS = (
    ("NCCL WARN", "NCCL WARN", lazy_re(rf"NCCL WARN {_SAYS}")),
    ("UCX", "UCX ", lazy_re(rf"\bUCX {{1,4}}(?:ERROR|FATAL) {{1,4}}{_SAYS}")),
    ("UCC", " ERROR ", lazy_re(rf"\b(?:UCC|[TC]L_[A-Z0-9]{{2,8}}) {{1,4}}ERROR {{1,4}}{_SAYS}")),
    ("oneCCL", "|CCL_ERROR|", lazy_re(rf"\|CCL_ERROR\| ?{_SAYS}")),
    ("libfabric", "<warn>", lazy_re(rf"\blibfabric:.{{1,200}}<warn> ?{_SAYS}")),
    ("Slurm", ": error: ", lazy_re(rf"(?:srun|salloc|sbatch|slurm\w{{1,12}}): error: (?!\*\*\*){_SAYS}")),
    ("Slurm", ": fatal: ", lazy_re(rf"(?:srun|salloc|sbatch|slurm\w{{1,12}}): fatal: {_SAYS}")),
    ("PMIx", " ERROR: ", lazy_re(rf"\] (?:PMIX|PRTE|ORTE) ERROR: {_SAYS}")),
    ("C++ check", "Check failed: ", lazy_re(rf"(?:^|\] ?|\.\w{{1,4}}:\d{{1,6}}: ){_CHECK}")),
    ("C++ fatal", "] ", lazy_re(rf"^F [\w./-]{{1,200}}\.(?:cc|cpp|cu|h):\d{{1,6}}\] {_SAYS}")),
    ("The kernel", "anic - not syncing", lazy_re(r"(?P<message>Kernel [Pp]anic - not syncing: .{4,600})")),
    ("C++ exception", "what():", lazy_re(rf"^ {{0,4}}what\(\): {{1,4}}{_SAYS}")),
)
"""Reporting layer, substring of its lines, and pattern. Sources:
https://github.com/NVIDIA/nccl/blob/master/src/debug.cc
https://github.com/openucx/ucx/blob/master/src/ucs/debug/log.c
https://github.com/openucx/ucc/blob/master/src/utils/ucc_log.h
https://github.com/oneapi-src/oneCCL/blob/master/src/common/log/log.hpp
https://github.com/bytedance/byteps/blob/master/byteps/common/logging.h
https://github.com/ofiwg/libfabric/blob/main/src/log.c
https://github.com/SchedMD/slurm/blob/master/src/common/log.c"""
_DISLIKED = lazy_re(
    r"(?i)\bcan lead to\b|\bignor(?:ing|ed)\b|\bdefaulting to\b|\bfall(?:ing|s)? back\b|\bdeprecated\b"
    r"|kernel command line"
    r"|NUMA auto|\bperformance\b|\bcould not find: |\bno plugin\b|\bnon-fatal\b|\btable changed\b|\bhas been set to\b"
)
"""Warnings of a layer after which it continues."""
_SERIOUS = frozenset({"ERROR", "CRITICAL", "FATAL", "E", "F", "C"})
_BARE = lazy_re(r"(?:error|fatal): (?=.{8})")
"""Beginning, after the time, of error lines of Slurm's daemons."""
_PASSING = lazy_re(
    r"(?i)\bretry(?:ing)?\b|\btransient\b|\bwill (?:be )?(?:retr|try|continu|skip)\w{0,6}\b|\bskipp(?:ed|ing)\b"
)
"""Words in a logger's error after which the program continues."""


_OF_SEVERAL = lazy_re(
    r"(?i)\b(?:ranks?|world[ _]?size|rendezvous|collectives?|all-?(?:gather|reduce)|nccl|rdma|infiniband"
    r"|process groups?|communicators?)\b|\bnode \S{1,80} is unhealthy\b|\b(?:from|of) pod \S"
)
"""Words of an error that only a job of several processes logs."""


class Report(NamedTuple):
    """One line in which a layer reports a failure."""

    layer: str
    message: str
    line: int
    rank: int | None
    told: Literal["layer", "logger"] = "layer"


def layer_report(lines: Sequence[Line]) -> Report | None:
    """Return the first failure that a layer itself reports; mere warnings do not count."""
    for line in lines:
        for layer, letters, pattern in _LAYERS:
            found = pattern.search(line.body) if letters in line.body else None
            if found is not None and not _DISLIKED.search(found["message"]):
                return Report(layer, found["message"].strip(), line.number, line.rank)
    return None


def logger_report(lines: Sequence[Line]) -> Report | None:
    """Return the last line that a logger itself calls an error, unless it reports that the program continues."""
    for line in reversed(lines):
        bare = _BARE.match(line.body) if line.time else None
        if bare is None and line.level.upper() not in _SERIOUS:
            continue
        message = line.body[bare.end() if bare is not None else 0 :].strip().removeprefix("- ")
        if len(message.split()) > 1 and not (_PASSING.search(message) or _DISLIKED.search(message)):
            told: Literal["layer", "logger"] = "layer" if _OF_SEVERAL.search(message) else "logger"
            return Report("Logged as an error", message[:600], line.number, line.rank, told)
    return None

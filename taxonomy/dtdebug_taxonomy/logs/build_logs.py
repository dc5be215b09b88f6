"""Recognises the output of a build of another kind of program, whose words (step, epoch, train) are only names."""

from __future__ import annotations

from dtdebug_taxonomy.text.lazy_re import lazy_re

_BUILDS = lazy_re(
    r"(?m)^(?:BUILD FAILED\b|> Task :\S|FAILURE: Build failed|\[ERROR\] (?:COMPILATION ERROR|Failed to execute goal)"
    r"|npm ERR! |error: could not compile `|FAILED: \S{1,200}\.(?:o|obj)\b|make(?:\[\d{1,3}\])?: \*\*\* \["
    r"|\S{1,200}\.tsx?\(\d{1,6},\d{1,6}\): error TS\d|##\[error\])"
)
"""Lines of Gradle, Maven, npm, Cargo, Ninja, make, tsc and of services that run them."""
_ERROR = lazy_re(
    r"(?m)^(?:e: \S.{1,300}|error(?:\[E\d{1,5}\])?: .{1,300}|\[ERROR\] /\S.{1,300}"
    r"|\S{1,200}\(\d{1,6},\d{1,6}\): error .{1,300}"
    r"|\S{1,200}:\d{1,6}(?::\d{1,6})?: (?:fatal )?error: .{1,300}|npm ERR! .{1,300})"
)
_TRAINS = lazy_re(
    r"(?i)torch|cuda|nccl|\bgpus?\b|tensorflow|\bjax\b|deepspeed|horovod|megatron|nvcc|\brank ?\d"
    r"|Traceback \(most recent"
)
_MOST, _SHOWN, _WIDTH = 400_000, 2, 160


def errors_of_build(text: str) -> tuple[str, ...] | None:
    """Return the first errors of a failed build that has to do with no training; None if it is none."""
    if len(text) > _MOST or _BUILDS.search(text) is None or _TRAINS.search(text) is not None:
        return None
    return tuple(found[0].strip()[:_WIDTH] for found in _ERROR.finditer(text))[:_SHOWN]

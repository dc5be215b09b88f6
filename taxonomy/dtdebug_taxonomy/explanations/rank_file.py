"""A data file that ends too early, and which file it is where the rank that failed has named it."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for, printed_reason
from dtdebug_taxonomy.text.lazy_re import lazy_re

_ENDS_EARLY = lazy_re(
    r"(?i)ended before the end-of-stream marker|unexpected (?:end of (?:data|file|stream|archive|json)|eof)\b"
    r"|(?:image file|pickle data|file|archive|record|parquet\w*) (?:is|was) truncated|truncated (?:file|record|archive)"
    r"|file is too small to be|unterminated string starting at"
)
_CAUSE = "data-file-ends-early"
_SYMPTOM = "data-loading-failure"
_PROBABILITY = 0.45
_CHECKS = (
    ((".tar.gz", ".tgz"), "tar -tzf"), ((".gz",), "gzip -t"), ((".zst",), "zstd -t"), ((".xz",), "xz -t"),
    ((".bz2",), "bzip2 -t"), ((".tar",), "tar -tf"), ((".zip", ".npz"), "unzip -tq"),
)  # fmt: skip
_WHY = "A download, a copy or a job that writes the file was stopped, or has not finished, when the rank opened it."


def explain(context: Context) -> Iterator[Explanation]:
    """Yield that a data file is cut off or still written, if the error of a rank says that it ends early."""
    first = next(iter(context.ranking.symptoms), "")
    symptom = context.knowledge.symptoms.get(first)
    error = next((e for e in context.incident.errors if _ENDS_EARLY.search(e.message)), None)
    if error is None:
        return
    own = context.incident.files_of_ranks.get(error.rank) if error.rank is not None else None
    if own is None and (symptom is None or symptom.id != _SYMPTOM):
        return
    if own is None:
        reason = printed_reason(error, _CAUSE, "The error says that the file ends too early.", error.message)
        title, fix = "A data file is cut off, or is still being written", _fix("", "gzip -t FILE")
    else:
        reason = Reason(
            evidence=_CAUSE, means=f"Rank {own.rank} alone names this file.", source="printed", weight=1.5,
            line=own.line, words=own.words[:200], rank=own.rank,
        )  # fmt: skip
        title = f"{own.file}, which rank {own.rank} alone names, is cut off or still being written"
        check = next((tool for ends, tool in _CHECKS if own.file.endswith(ends)), "ls -l")
        fix = _fix(own.file, f"{check} {own.file}")
    yield explanation_for(
        context.symptom, title, _WHY, fix, _PROBABILITY, reason, pattern="fix data", effort="restart", named=False,
        specific=own is not None,
    )  # fmt: skip


def _fix(file: str, check: str) -> str:
    what = "it" if file else "the file"
    return (
        f"Check {what}: `{check}`, and its size against the source's; make {what} again if it is cut. Write files "
        "under a temporary name and rename them when they are whole."
    )

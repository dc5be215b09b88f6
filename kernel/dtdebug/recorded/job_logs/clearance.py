"""Decides whether logs in which no failure was found may be called healthy, and says why if not."""

from __future__ import annotations

from dtdebug.recorded.job_logs.job_view import Job
from dtdebug.recorded.log_files.training_share import Share
from dtdebug_taxonomy.logs.log_end import is_stop
from dtdebug_taxonomy.model.status import Status

_EXPECTED = "Expected: what a training job prints, such as steps, losses, ranks, NCCL or a traceback."
_NAMELESS = "that name no failure"
_NOT_TEXT, _OF_LOGS = "is not text", (".log", ".out", ".err")


def status_of(job: Job, *, found: bool) -> Status:
    """Return what the logs of a job allow to be said of it."""
    if found:
        return "not_understood" if is_stop(job.verdict) and not job.tells_more else "failed"
    if left_out(job):
        return "unread"
    if job.exception is not None:
        return "not_understood"
    if not job.share.is_enough and not job.hardware and job.ended is None:
        return "not_understood"
    return "healthy" if job.went_on is not None else "no_failure"


def left_out(job: Job) -> list[str]:
    """Return the notes on what was not read of logs; other files of a job's folder are none."""
    return [
        note
        for note in job.unread
        if not note.endswith(_NAMELESS)
        and not (_NOT_TEXT in note and not note.partition(f": {_NOT_TEXT}")[0].endswith(_OF_LOGS))
    ]


def not_understood(share: Share) -> str:
    """Return the sentences on logs of which too little is understood."""
    return f"Not understood: {share.words}; whether something failed is not known. {_EXPECTED}"

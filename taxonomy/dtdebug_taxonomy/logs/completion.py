"""Finds the line in which a run itself says that its training was completed."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LITERALS = (
    "run_stop", "result,", "training", "train_runtime", "trainer.fit", "avg bus bandwidth", "startup complete",
    "succeeded", "successfully", "signaling trainer to stop",
)  # fmt: skip
"""Lower-case substrings of every line that `_COMPLETED` matches."""
_COMPLETED = re.compile(
    r"(?i)\"key\": ?\"run_stop\".{0,300}\"status\": ?\"success\"|^RESULT,[\w -]{1,60},[\w -]{0,60},\d{1,9},"
    r"|\[after training is done\]|`Trainer\.fit` stopped: `max_(?:epochs|steps|time)"
    r"|\btraining (?:is |has |was )?(?:successfully )?(?:completed?|finished|done)\b(?! in the)|\bfinished training\b"
    r"|^# avg bus bandwidth {0,8}: {0,4}\d|\bapplication startup complete\b|['\"]train_runtime['\"]: \d"
    r"|\bjob (?:\S{1,40} )?(?:has )?succeeded\b|\. Signaling Trainer to stop\b"
    r"|\b(?:job|run|training) (?:\S{1,40} )?(?:finished|completed|ended|exited) successfully\b"
)
"""Messages that trainers, MLPerf's scripts, NCCL's tests and servers print on success. Sources:
https://github.com/mlcommons/logging/blob/master/mlperf_logging/mllog/constants.py
https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/training.py
https://github.com/Lightning-AI/pytorch-lightning/blob/master/src/lightning/pytorch/callbacks/early_stopping.py
https://github.com/huggingface/transformers/blob/main/src/transformers/trainer_utils.py (speed_metrics)"""
_LONGEST = 600


def is_completion(body: str) -> bool:
    """True if a line, without its prefixes, says that the training was completed."""
    head = body[:_LONGEST]
    lower = head.lower()
    return any(word in lower for word in _LITERALS) and _COMPLETED.search(head) is not None


def completed_at(rows: Iterable[tuple[int, str]]) -> int:
    """Return the number of the last line of (number, body) that says so; 0 without one."""
    return max((number for number, body in rows if is_completion(body)), default=0)


def may_complete(text: bytes) -> bool:
    """True if some lines may hold such a message: a cheap test before their prefixes are removed."""
    lower = text.lower()
    return any(word.encode() in lower for word in _LITERALS)

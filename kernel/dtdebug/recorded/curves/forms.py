"""Recognises files that hold nothing but curves, by their beginning."""

from __future__ import annotations

import json
import re

_MLFLOW = re.compile(rb"\A(?:\d{10,13} (?:[-+.\deE]{1,40}|nan|NaN|-?[iI]nf(?:inity)?) -?\d{1,12}\r?\n){1,}", re.ASCII)
"""`timestamp value step`; source: https://github.com/mlflow/mlflow/blob/master/mlflow/store/tracking/file_store.py"""
_HISTORY = re.compile(rb'"log_history"\s*:\s*\[')


_WORD = re.compile(r"(?!.*(?:err|fail|crash|abort|exce|kill))[\w./:+-]{0,64}", re.IGNORECASE)
_ROWS = 8
"""First and last lines that are looked at."""


def holds_metrics(head: bytes, end: bytes) -> bool:
    """True if the first and the last lines of a file are objects of numbers, with a counter and something measured.

    The last ones count too: a program may print such lines, and then a traceback.
    """
    rows = [*head.split(b"\n")[: _ROWS + 1], *end.rstrip(b"\n").split(b"\n")[-_ROWS:]]
    return head[:1] == b"{" and all(map(_is_of_metrics, filter(None, rows)))


def _is_of_metrics(row: bytes) -> bool:
    from dtdebug.recorded.curves.names import meaning

    try:
        found = json.loads(row)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or not all(map(_is_plain, found.values())):
        return False
    kinds = {means.kind for name in list(found)[:256] if (means := meaning(str(name).lstrip("_"))) is not None}
    return bool(kinds & {"step", "epoch"}) and len(kinds) > 1


def _is_plain(value: object) -> bool:
    """True for a number, nothing, and a word such as `train`; other text may be a message."""
    return value is None or isinstance(value, int | float) or (isinstance(value, str) and bool(_WORD.fullmatch(value)))


def form(head: bytes) -> str:
    """Return the form of a file that holds nothing but curves, in words; "" for logs and all else."""
    if len(head) > 12 and head[4:8] == b"\0\0\0\0" and _is_event_file(head):
        return "an event file of TensorBoard"
    if head[:1] == b"{" and _HISTORY.search(head):
        return "the state of a Trainer"
    if head[:1].isdigit() and _MLFLOW.match(head):
        return "a metric of MLflow"
    first, _, rest = head.partition(b"\n")
    if (
        rest
        and b"," in first
        and len(first) < 65536
        and not first.startswith(b"{")
        and _is_table(first.decode("utf-8", "replace").rstrip("\r"))
    ):
        return "a table of metrics"
    return ""


def _is_event_file(head: bytes) -> bool:
    from dtdebug.recorded.curves.event_files import is_event_file

    return is_event_file(head)


def _is_table(line: str) -> bool:
    from dtdebug.recorded.curves.tables import csv_columns

    return csv_columns(line) is not None

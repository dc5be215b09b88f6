"""Reads failed tasks from logs of Dask's workers: exception and traceback, each as a literal on one line.

The rank is known if the task was called with it, as dask-pytorch-ddp does.
Source: https://github.com/dask/distributed/blob/main/distributed/worker.py (execute),
https://github.com/saturncloud/dask-pytorch-ddp/blob/main/dask_pytorch_ddp/dispatch.py
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from dtdebug_taxonomy.logs.prefixes import ParsedLine

MARK = "Compute Failed"
_EXCEPTION, _TRACEBACK = "Exception: ", "Traceback: "
_KEYWORDS = re.compile(r"kwargs: {1,8}\{")
_RANK = re.compile(r"'rank': (\d{1,7})\b")
_RAISED = re.compile(r"([A-Za-z_][\w.]{0,200})\((.*)\)", re.DOTALL)
_QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
"""String literal."""
_LINES = 8
"""Maximum number of lines of a report."""
_LONGEST = 200_000
"""Maximum number of characters read of a literal."""


def unfold_reports(rows: Sequence[tuple[int, ParsedLine]], every: Sequence[str]) -> Iterator[tuple[int, ParsedLine]]:
    """Yield the rows of an output with Dask's reports in the form of Python's tracebacks; `every` are its lines."""
    report: dict[str, tuple[int, int | None]] = {}
    """Host -> (rows until its report must have ended, rank)."""
    last: dict[str, tuple[int, ParsedLine]] = {}
    """Host -> the exception whose traceback comes next."""
    for place, (number, row) in enumerate(rows):
        if row.body.endswith(MARK):
            report[row.host] = place + _LINES, None
        until, rank = report.get(row.host, (-1, None))
        if place > until:
            yield number, row
        elif _KEYWORDS.match(row.body) and (found := _RANK.search(row.body)):
            report[row.host] = until, int(found[1])
            yield number, row
        elif row.body.startswith(_EXCEPTION) and (said := _literal(every[number - 1], _EXCEPTION)):
            raised = row._replace(body=_as_printed(said), rank=rank if row.rank is None else row.rank)
            if _has_traceback_next(rows, place, row.host):
                last[row.host] = number, raised
            else:
                yield number, raised
        elif row.body.startswith(_TRACEBACK) and row.host in last:
            end, raised = last.pop(row.host)
            yield number, raised._replace(body="Traceback (most recent call last):")
            for text in _literal(every[number - 1], _TRACEBACK).rstrip("\n").split("\n"):
                yield number, raised._replace(body=text)
            yield end, raised
        else:
            yield number, row


def _has_traceback_next(rows: Sequence[tuple[int, ParsedLine]], place: int, host: str) -> bool:
    """True if the host's next line is the traceback."""
    following = next((row.body for _, row in rows[place + 1 : place + 1 + _LINES] if row.host == host), "")
    return following.startswith(_TRACEBACK)


def _literal(line: str, head: str) -> str:
    """Return the text of a literal after `head`; without its quotes if it was cut off, "" if there is none."""
    words = line[:_LONGEST].rpartition(head)[2] if head == _TRACEBACK else line[:_LONGEST].partition(head)[2]
    words = words.strip()
    if words[:1] not in ("'", '"') or not words[1:]:
        return ""
    found = _text(words)
    return words[1:].rstrip(words[0]).replace("\\n", "\n") if found is None else found


def _as_printed(said: str) -> str:
    """Return `KeyError: 'labels'` for `KeyError('labels')`."""
    found = _RAISED.fullmatch(said)
    if found is None:
        return said
    name, inside = found.groups()
    value = None if name == "KeyError" else _text(inside)
    words = inside if value is None else value
    return f"{name}: {words}" if words else name


def _text(words: str) -> str | None:
    """Return the value of a string literal; None for anything else, which is never parsed."""
    if _QUOTED.fullmatch(words) is None:
        return None
    try:
        found = ast.literal_eval(words)
    except (ValueError, SyntaxError):
        return None
    return found if isinstance(found, str) else None

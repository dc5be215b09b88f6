"""Finds commands and code that a person shows in running text, without fences."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence

from dtdebug_taxonomy.text.lazy_re import lazy_re

_STARTERS = frozenset({"torchrun", "deepspeed", "horovodrun", "mpirun", "mpiexec", "srun"})
_MODULES = frozenset({"torch.distributed.run", "torch.distributed.launch"})
_SPACE = lazy_re(r"[ \t]")
_SET = lazy_re(r"[A-Z][A-Z0-9_]{1,60}=")
_NO_PROSE = lazy_re(
    r"-{1,2}[A-Za-z]|[^\s]{0,200}[/=$\d:\\]|\S{1,200}\.(?:py|sh|json|ya?ml)\b|(?:python3?|bash|sh|launch)$"
)
"""A token that no word of prose looks like: an option, a path, an assignment, a number; or what starts programs."""
_BEGINS = lazy_re(
    r"\s{0,40}(?:import \w|from [\w.]{1,80} import \w|(?:async )?def \w{1,80}\(|class \w{1,80}[(:]|@\w"
    r"|(?:for .{1,200}|while .{1,200}|with .{1,200}|if .{1,200}|try|else):\s{0,4}(?:#.{0,200})?$"
    r"|[\w.\[\]\"']{1,80}(?:, ?\w{1,60}){0,4} [-+*/]?= \S|[\w.]{1,120}\(.{0,300}\)?\s{0,4}$)"
)
"""A line that begins a statement of Python as prose and messages do not."""
_PLAIN = lazy_re(r"\s{0,40}[\w.]{1,120}\([^()]{0,200}\)\s{0,4}$")
_SETTING = lazy_re(
    r"(?<![\w$.{/])(?:export )?(?P<name>NCCL_[A-Z0-9_-]{2,40}) ?= ?(?P<value>[\"'\w.:,/^-]{1,60})(?![\w=<>$])"
)
"""Variable of NCCL that a sentence sets; none is the name of anything else."""
_PUNCTUATION = ".,:;-^"
"""Characters behind a value that belong to the sentence."""
_FEWEST = 2
"""Least number of lines of a piece of code."""
_LONGEST, _MOST = 2_000, 400
"""Characters of a line, and lines of a piece, that are read."""
_TRIES = 4
"""Times that a piece is shortened to where it parses."""


def commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield (0-based line, command) of each command that starts processes and has an option."""
    if not any(name in text for name in (*_STARTERS, *_MODULES, "accelerate launch")):
        return
    rows = text.split("\n")
    at = 0
    while at < len(rows):
        last = at
        while rows[last].endswith("\\") and last + 1 < len(rows) and last - at < _MOST:
            last += 1
        row = rows[at][:_LONGEST]
        begin, end = _span(row)
        if begin < end:
            more = [part[:_LONGEST] for part in rows[at + 1 : last + 1]]
            whole = "\n".join((row[begin:], *more)) if more else row[begin:end].rstrip("`.,:;)")
            if " -" in whole:
                yield at, whole
        at = last + 1


def settings(text: str) -> Iterator[tuple[int, str]]:
    """Yield (0-based line, command) of each variable of NCCL that running text sets, as the shell would be told."""
    if "NCCL_" not in text:
        return
    for at, row in enumerate(text.split("\n")):
        for found in _SETTING.finditer(row[:_LONGEST]):
            value = found["value"].rstrip(_PUNCTUATION).strip("\"'").rstrip(_PUNCTUATION)
            if value and ("/" not in value or value.startswith("/")):  # else alternatives: INFO/WARN, 1/0
                yield at, f"export {found['name'].replace('-', '_')}={value}"


def _span(row: str) -> tuple[int, int]:
    """Return the first and last character of the command of a line; (0, 0) if it has none."""
    begin = end = at = 0
    ended = False
    started = -1
    before = ""
    for token in _SPACE.split(row):
        word = token.lstrip("`($>")
        place = at + len(token) - len(word)
        at += len(token) + 1
        if started < 0:
            if word.rstrip("`") in _STARTERS or word in _MODULES or (before, word) == ("accelerate", "launch"):
                started = end = place + len(word)
                begin = _before(row, place)
        elif ended or not word:
            pass
        elif _NO_PROSE.match(word) or word in _STARTERS or before.startswith("-"):
            end = place + len(word)
            ended = token.endswith(("`", ",", ";", ")")) and not token.startswith("-")
        else:
            ended = True
        before = word
    return (begin, end) if started >= 0 else (0, 0)


def _before(row: str, place: int) -> int:
    """Return where the assignments, and the `python -m` or `accelerate`, before a launcher begin."""
    begin = place
    for token in reversed(row[:place].split(" ")):
        word = token.lstrip("`($>")
        prose = word.endswith((",", ";"))  # "with MASTER_PORT=29500, torchrun ...": a list in a sentence
        if word and (prose or not (_SET.match(word) or word in {"python", "python3", "-m", "accelerate"})):
            break
        begin -= len(token) + 1
    begin = max(begin, 0)
    return place - len(row[begin:place].lstrip(" `($>"))


def pieces(rows: Sequence[str]) -> Iterator[range]:
    """Yield the lines of each piece of Python: several lines that parse, one of which is more than a call."""
    at = 0
    while at < len(rows):
        if len(rows[at]) > _LONGEST or not _BEGINS.match(rows[at]):
            at += 1
            continue
        end = at + 1
        while end < len(rows) and end - at < _MOST and _goes_on(rows, end):
            end += 1
        good = at + _count_parsing(rows[at:end])
        if good - at >= _FEWEST and any(not _PLAIN.match(row) for row in rows[at:good]):
            yield range(at, good)
        at = end


def is_statement(row: str) -> bool:
    """True if a row begins a statement of Python as prose and messages do not."""
    return len(row) <= _LONGEST and bool(_BEGINS.match(row))


def _goes_on(rows: Sequence[str], at: int) -> bool:
    row = rows[at]
    return bool(row[:1].isspace() and row.strip()) or bool(_BEGINS.match(row)) or row.strip() in {")", "]", "}"}


def _count_parsing(rows: Sequence[str]) -> int:
    """Return how many of the first lines parse together."""
    count = len(rows)
    for _ in range(_TRIES):
        try:
            ast.parse(textwrap.dedent("\n".join(rows[:count])))
        except SyntaxError as error:
            count = min(count, error.lineno or 1) - 1
            if count < _FEWEST:
                return 0
        except (ValueError, RecursionError, MemoryError):
            return 0
        else:
            return count
    return 0

"""The part of an exception's message that says what was wrong: names, shapes and values often stand below its head."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtdebug_taxonomy.text.lazy_re import lazy_re

MOST = 16
"""Maximum number of lines below the first that are read of a message."""
_LONGEST = 4_000
_SENTENCE_END = re.compile(r"[.!?](?= [A-Z`]|$)")
_OPEN = lazy_re(r"(?::|\b\d{1,6} (?:\w{1,40} )?errors? (?:for|in|while|during) .{1,200})$")
"""End of a head that only announces: `Error(s) in loading state_dict for Net:`, `2 validation errors for Config`."""
_ANNOUNCES = lazy_re(r"(?i)^(?:\d{1,6} )?(?:\w{1,40} )?errors?(?:\(s\))? (?:for|in|while|during)\b")
_COPIED = lazy_re(
    r"copying a param with shape (?:torch\.Size\()?(\[[\d, ]{0,80}\])\)? from checkpoint, "
    r"the shape in current model is (?:torch\.Size\()?(\[[\d, ]{0,80}\])\)?"
)
"""Words of torch for a tensor of another shape. Source: https://github.com/pytorch/pytorch/blob/main/torch/nn/modules/module.py"""
_VALUED = lazy_re(
    r" {0,8}[A-Z][a-z]{1,40} [\w ,`()-]{8,160}: {0,2}[\[(]?['\"]?[\w.\[-]{0,60}\d[\w., \[\]()'\"-]{0,160}$"
)
"""A line that states values in words: `Parameter indices which did not receive grad for rank 0: 4 5`."""
_NAMES_VALUE = lazy_re(r"\d|'[^'\s]{1,200}'|\"[^\"\s]{1,200}\"|\[[^\]]{1,200}\]")
"""A sentence that names something of this run: a figure, a quoted name, a list."""
_ITEM = lazy_re(r"(?<=[ (])(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\")(?=[,.) ]|$)")
_MANY = 3
"""Listed names from which only the first is shown."""
_QUOTES = lazy_re(r"['\"\[]")
_BOTH = 160
"""Maximum number of characters of two faults together."""
_PAIR = lazy_re(r"[a-z_]\w{1,40}: \S.{0,160}$")
_BARE_NAME = lazy_re(r"[\w.\[\]]{1,120}(?: -> [\w.\[\]]{1,120}){0,8}$")
"""Name of a field alone on its line, as pydantic prints it above what is wrong with it."""
_TYPED = lazy_re(r" ?\[type=[\w.]{1,80}(?:, input_value=(?P<value>.{1,120}?))?(?:, input_type=[\w.]{1,80})?\]$")
_OF_ANY_ERROR = lazy_re(
    r"(?i)for debugging|for further information|for more (?:info|detail)|to enable traceback|compile with"
    r"|in addition, you can|set the environment variable|please (?:report|see|include|refer)"
    r"|if you (?:already|are|have|want|need)"
    r"|stack ?trace|https?://|^hint\b|^note\b|this error (?:may|might|indicates)|you can "
)
"""Advice that libraries print below every error of a kind."""
_OF_NCCL = lazy_re(
    r"NCCL error in: .{1,300}?, (?P<code>unhandled (?:system|cuda) error|internal error|invalid (?:usage|argument))\b"
)
"""NCCL's result, which is general; what it was stands below `Last error:`."""
_OF_ANOTHER = lazy_re(
    r"Traceback \(most recent|During handling of|The above exception|Exception (?:ignored|in thread)|\S{1,40}: error: "
    r"|\[?rank ?\d|\[[WEIF]\d|[-=*#]{4,}|Process |srun:|slurmstepd|terminate called|Fatal Python|Exception raised from"
    r"|frame #\d|C\+\+ CapturedTraceback|\x1b|ERROR conda|Killed\b|Aborted\b|Segmentation fault"
)
"""Beginning of what is no part of a message."""

_AMOUNT = r"\d{1,9}(?:\.\d{1,6})? ?(?:[kKMGT]i?B|[KMGT]i|[GM])\b"
_USED_OF = lazy_re(
    rf"(?P<used>{_AMOUNT})(?: ?/ ?| of |[^\d\n]{{1,40}}\blimit(?: is|:)? )(?P<limit>{_AMOUNT})"
    r"|(?i:exceeded|exceeds?) (?:\w{2,12} ){0,3}limit \((?P<more>\d{1,12}) > (?P<most>\d{1,12})\)"
)
"""Amount used and its limit, as memory monitors and schedulers print it."""
_ON_NODE = lazy_re(
    r"\bIP:? ?(?P<ip>\d{1,3}(?:\.\d{1,3}){3})|\bip=(?P<ip2>\d{1,3}(?:\.\d{1,3}){3})"
    r"|\b(?:on|of) (?:node|host) (?P<name>[\w.-]{2,60})"
)


def used_of_limit(row: str) -> str:
    """Return what a line says was used of which limit, and on which node; "" if it says no such thing."""
    found = _USED_OF.search(row[:_LONGEST])
    if found is None:
        return ""
    used, limit = found["used"] or found["more"], found["limit"] or found["most"]
    node = _ON_NODE.search(row[:_LONGEST])
    where = f" on {node['ip'] or node['ip2'] or node['name']}" if node is not None else ""
    return f"{used} of {limit} used{where}"


def continues(line: str) -> bool:
    """True if a line that the same printer prints next can belong to a message."""
    return bool(line.strip()) and _OF_ANOTHER.match(line.lstrip()) is None


def add_detail(message: str, below: Sequence[str]) -> str:
    """Return a message with what its first line leaves to those below it, on one line; the same if that is nothing.

    Of several faults of a kind it names the first, and counts the others.
    """
    head = message.strip()
    rows = [row[:_LONGEST] for row in below if row.strip()]
    first = _first_sentence(head)
    if not rows:
        return message
    if (coded := _OF_NCCL.match(head)) is not None and (last := last_error(rows)):
        return f"NCCL {coded['code']}: {last}"
    if _OPEN.search(head):
        announced = _ANNOUNCES.match(head)
        said = _faults(rows, "error" if announced else "")
        if said and announced and not _QUOTES.search(head):
            return said
        return f"{head.removesuffix(':')}: {said}" if said else message
    if not _NAMES_VALUE.search(first):
        told = next((row.strip() for row in rows if _VALUED.match(row) and not _OF_ANY_ERROR.search(row)), "")
        return f"{first.removesuffix('.')}: {told}" if told else message
    pair = rows[0].strip()
    if rows[0][:1].isspace() and _PAIR.match(pair) and head[-1:] not in ".:" and not _OF_ANY_ERROR.search(pair):
        return f"{head} ({pair})"
    return message


def last_error(below: Sequence[str]) -> str:
    """Return what NCCL printed as its last error below an exception; "" without one."""
    rows = iter(below)
    at = next((row for row in rows if row.strip().startswith("Last error:")), "")
    return at.partition(":")[2].strip() or (next(rows, "").strip() if at else "")


def _first_sentence(text: str) -> str:
    end = _SENTENCE_END.search(text)
    return text[: end.end()] if end is not None else text


def _faults(rows: Sequence[str], kind: str) -> str:
    """Return the faults of a list if they are two short ones, else the first with the number of others; "" for none."""
    level = _indent(rows[0])
    first = _COPIED.sub(r"\1 in the checkpoint, \2 in the model", rows[0].strip())
    if not first or _OF_ANY_ERROR.search(first):
        return ""
    alike = [row.strip() for row in rows[1:] if _indent(row) == level and not _OF_ANY_ERROR.search(row)]
    others = [row for row in alike if not (kind and _PAIR.match(row))]
    if len(rows) > 1 and _indent(rows[1]) > level and _BARE_NAME.match(first):
        first = f"{first}: {_without_type(rows[1].strip())}"
    else:
        first = _with_count(_without_type(first)).rstrip(". ")
    if len(others) == 1 and _ITEM.search(others[0]):
        both = f"{first}; {_with_count(others[0]).rstrip('. ')}"
        if len(both) <= _BOTH:
            return both
    more = f" {kind}{'s' * (len(others) > 1)}" if kind else ""
    return f"{first} (and {len(others)} more{more})" if others else first


def _with_count(text: str) -> str:
    """Return a line with the first of its listed names and the number of the others."""
    names = [*_ITEM.finditer(text)]
    if len(names) < _MANY:
        return text
    least = "" if text.rstrip(" .").endswith(("'", '"')) else "at least "  # the line was cut
    return f"{text[: names[0].end()]} and {least}{len(names) - 1} more"


def _without_type(text: str) -> str:
    """Return what pydantic says of a field, with the value that it refused, without its codes."""
    found = _TYPED.search(text)
    if found is None:
        return text
    value = f" (it is {found['value']})" if found["value"] and found["value"] not in text[: found.start()] else ""
    return f"{text[: found.start()]}{value}"


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())

"""Tells a text with stacks from the output of a job in which a few lines are one."""

from __future__ import annotations

from dtdebug.recorded.stack_texts.formats import is_stack_line
from dtdebug.recorded.stack_texts.line_prefixes import by_prefix

_LINES = 2_000
_SHARE = 0.35
"""Least share of a text's lines that are of stacks; prose and headings may surround them."""
_HEADS = (b"Thread ", b"most recent call", b"Process ", b"TID ", b'"frames"', b"#0 ")


def is_stacks(head: bytes) -> bool:
    """True if the beginning of a file is mostly stacks of live processes."""
    if not any(mark in head for mark in _HEADS):
        return False
    text = head.decode(errors="replace")
    if text.lstrip().startswith("[") and '"frames"' in text:
        return '"thread_name"' in text
    lines = [line for _, rows in by_prefix(text, is_stack_line) for line in rows if line.strip()][:_LINES]
    heads = [line for line in lines if is_stack_line(line)]
    alive = [
        line for line in heads
        if line.startswith(("Thread ", "Process ", "Current thread", "TID ", "Traceback for thread", "#0 "))
    ]  # fmt: skip
    return bool(alive) and len(heads) >= _SHARE * len(lines)

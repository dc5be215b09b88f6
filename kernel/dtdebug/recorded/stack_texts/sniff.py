"""Tells a text with stacks from the output of a job in which a few lines are one."""

from __future__ import annotations

import re

from dtdebug.recorded.stack_texts.formats import is_stack_line
from dtdebug.recorded.stack_texts.line_prefixes import by_prefix

_LINES = 2_000
_SHARE = 0.35
"""Least share of a text's lines that are of stacks; prose and headings may surround them."""
_ALIVE = ("Thread ", "Process ", "Current thread", "TID ", "Traceback for thread", "#0 ")
_CRASHED = re.compile(r"Fatal Python error: (?:Segmentation fault|Bus error|Floating|Illegal instruction)")
"""Faulthandler's heading for a process that has ended, unlike one that was asked for its stack."""
_HEADS = (b"Thread ", b"most recent call", b"Process ", b"TID ", b'"frames"', b"#0 ")


def _are_interrupts(text: str) -> bool:
    """True if each traceback is that of a process which Ctrl-C has interrupted, of several of them."""
    ends = sum(line.endswith("KeyboardInterrupt") for line in text.splitlines())
    return ends > 1 and ends == text.count("Traceback (most recent call last)")


def is_stacks(head: bytes) -> bool:
    """True if the beginning of a file is mostly stacks of live processes."""
    if not any(mark in head for mark in _HEADS):
        return False
    text = head.decode(errors="replace")
    if text.lstrip().startswith("[") and '"frames"' in text:
        return '"thread_name"' in text
    if _CRASHED.search(text):
        return False
    counted = of_stacks = 0
    alive = _are_interrupts(text)
    for _, rows in by_prefix(text, is_stack_line):
        follows = False
        for line in rows[:_LINES]:
            if not line.strip():
                continue
            counted += 1
            if is_stack_line(line):
                of_stacks += 1
                alive = alive or line.startswith(_ALIVE)
                follows = True
            elif follows and line[:4] == "    ":  # source, arguments, local variables
                of_stacks += 1
            else:
                follows = False
    return alive and of_stacks >= _SHARE * counted

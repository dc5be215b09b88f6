"""Sentences and edits that are made of an account: the user's names, the values, and the line that decided them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Account, Link, Place
from dtdebug_taxonomy.model.snapshot import Excerpt
from dtdebug_taxonomy.source.joined_lines import edit_lines, joined_as
from dtdebug_taxonomy.stacks.frames import short, spell_place
from dtdebug_taxonomy.text.pattern_matcher import plain

OPTION = re.compile(r"['\"](?P<name>--?[\w-]{1,40})['\"]")
_NUMBER = re.compile(r"-?\d[\d.e+-]{0,30}")
_AROUND = 3
"""Lines of context on each side of a changed line."""
_LONGEST_CODE = 100


def where(place: Place) -> str:
    """Return `train.py:11`, or `cell In[4], line 2`."""
    return spell_place(place.file, place.line)


def decide(link: Link) -> str:
    """Return the clause that says where a value was decided: "`--shards` defaults to 4 (train.py:11)"."""
    name, text, at = link.value.name, link.value.text, where(link.place)
    option = OPTION.search(link.place.code)
    known = f" {text}" if text else ""
    match link.how:
        case "option" if option is not None and text == "False" and "store_true" in link.place.code:
            return f"`{option['name']}` is not given ({at})"
        case "option" if option is not None:
            default = text and _default_of(link.place.code) == text
            verb = "defaults to" if default else "was given as" if text else "is declared"
            return f"`{option['name']}` {verb}{known} ({at})"
        case "default":
            return f"`{name}` defaults to{known} ({at})" if text else f"`{name}` has its default ({at})"
        case "file" if link.place.file.endswith(".py") or not link.place.code:
            return f"`{name}` is read from a file ({at})"
        case "tested":
            return f"`{name}` ({at})"
        case "caught":
            return f"an exception in {name} would be passed over (`{plain(link.place.code, _LONGEST_CODE)}`, {at})"
    code = plain(link.place.code, _LONGEST_CODE)
    return f"`{code}` ({at})" if code else f"`{name}` is{known} ({at})"


def to_change(place: Place, link: Link | None) -> str:
    """Return what a fix says first: the line to edit, or the option that was given on the command line."""
    option = OPTION.search(link.place.code) if link is not None and link.how == "option" else None
    if link is None or option is None or link.place != place or not _NUMBER.fullmatch(link.value.text):
        return f"Edit {where(place)}"
    if _default_of(link.place.code) == link.value.text:
        return f"Edit {where(place)}"
    return f"Change `{option['name']} {link.value.text}` on the command line ({where(place)})"


def _default_of(code: str) -> str:
    """Return the default of an option as Python writes it; empty if the line has none."""
    tree = parse_line(code)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree is not None else []
    return next((ast.unparse(k.value) for call in calls for k in call.keywords if k.arg == "default"), "")


class Edit(NamedTuple):
    """One changed line of the user's file."""

    place: Place
    code: str
    """The line, or the lines for it, as they are to be, without their common indentation."""
    meant: bool = True
    """False if it lets the line run, and the program may have meant another value."""
    moved: Place | None = None
    """A line above it that goes below it."""


def replace_expression(place: Place, span: tuple[int, int], text: str) -> Edit | None:
    """Return the line with one expression replaced, if that and nothing else changes in its tree."""
    begin, end = span
    if not 0 <= begin < end <= len(place.code):
        return None
    before = parse_line(place.code)
    changed = f"{place.code[:begin]}{text}{place.code[end:]}"
    after = parse_line(changed)
    first, last = place.mark
    if before is None and first <= begin < end <= last:  # only the marked part of the line is whole
        before = parse_line(place.code[first:last])
        after = parse_line(changed[first : last + len(changed) - len(place.code)])
    if before is None or after is None or changed == place.code:
        return None
    counted = (sum(isinstance(n, ast.stmt) for n in ast.walk(tree)) for tree in (before, after))
    return Edit(place, changed) if len(set(counted)) == 1 else None


def find_spans(code: str, accepts: Iterable[str]) -> list[tuple[int, int]]:
    """Return the places of the expressions of a line that are written in one of several ways."""
    tree, wanted = parse_line(code), {*accepts}
    if tree is None or not code.isascii() or code.startswith("elif"):
        return []
    return sorted({
        (n.col_offset, n.end_col_offset or 0)
        for n in ast.walk(tree)
        if isinstance(n, ast.expr) and ast.unparse(n) in wanted
    })  # fmt: skip


def diff_of(edit: Edit, excerpts: Iterable[Excerpt]) -> str:
    """Return an edit as a patch of the user's file; empty if the file is not at hand or has changed since."""
    place = edit.place
    for excerpt in excerpts:
        at = place.line - excerpt.first
        if excerpt.file != place.file or not 0 <= at < len(excerpt.lines):
            continue
        if edit.moved is not None:
            first = edit.moved.line - excerpt.first
            found, at = _moved_line(edit.moved, edit, excerpt.lines[max(0, first) : at + 1]), first
        else:
            found = _changed_lines(edit, excerpt.lines[at:])
        if found is None:
            return ""
        old, new = found
        while old[1:] and new and old[0] == new[0]:
            old, new, at = old[1:], new[1:], at + 1
        while old and new and old[-1] == new[-1]:
            old, new = old[:-1], new[:-1]
        begin, end = max(0, at - _AROUND), min(len(excerpt.lines), at + len(old) + _AROUND)
        kept = end - begin - len(old)
        start = excerpt.first + begin
        head = f"@@ -{start},{kept + len(old)} +{start},{kept + len(new)} @@"
        rows = [f" {row}" for row in excerpt.lines[begin:at]]
        rows += [f"-{row}" for row in old] + [f"+{row}" for row in new]
        rows += [f" {row}" for row in excerpt.lines[at + len(old) : end]]
        name = short(place.file)
        return "\n".join((f"--- a/{name}", f"+++ b/{name}", head, *rows, ""))
    return ""


def _moved_line(moved: Place, edit: Edit, lines: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return the lines from one that moves to the one it goes below; None if a line between them needs it."""
    if len(lines) != edit.place.line - moved.line + 1 or (lines[0].strip(), lines[-1].strip()) != (
        moved.code,
        edit.code,
    ):
        return None
    match parse_line(moved.code):
        case ast.Module(body=[ast.Assign(targets=[ast.Name(id=name)])]):
            indents = {len(line) - len(line.lstrip()) for line in (lines[0], lines[-1])}
            if len(indents) == 1 and not any(re.search(rf"\b{name}\b", line) for line in lines[1:]):
                return [*lines], [*lines[1:], lines[0]]
    return None


def _changed_lines(edit: Edit, lines: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return the lines of the file that an edit changes, and what they become; None if the file has other lines."""
    code = edit.place.code
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    if lines[0].strip() == code:
        return [lines[0]], [f"{indent}{row}" for row in edit.code.split("\n")]
    found = joined_as(lines, code)
    if found is None:
        return None
    old = list(lines[: found[0]])
    above, _, last = edit.code.rpartition("\n")
    if last == code:
        return old, [*(f"{indent}{row}" for row in above.split("\n")), *old]
    return (old, edit_lines(old, found[1], edit.code)) if not above else None


def ranks_of(accounts: Iterable[Account]) -> tuple[int, ...]:
    """Return the ranks of accounts, in order."""
    return tuple(sorted({a.rank for a in accounts if a.rank is not None}))

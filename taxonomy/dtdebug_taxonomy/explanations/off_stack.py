"""Faults whose line is not on the stack: no set-up, a file of another rank, a graph of the pass before."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from dtdebug_taxonomy.explanations.account_words import OPTION, Edit, decide, replace_expression, where
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Account, Link, Place

_DEFINES = re.compile(r"(?:async )?def ")
_SECOND_BACKWARD = "backward through the graph a second time"


class Missing(NamedTuple):
    """Statements that did not run before the line that raised."""

    said: str
    """Clause that continues the sentence on what the line needs."""
    fix: str
    link: Link | None = None
    edit: Edit | None = None
    at: Place | None = None
    likely: bool = False
    """The program's text points at it, and does not prove it."""


def missing_set_up(account: Account) -> Missing | None:
    """Return why no process group was set up: under a test, in a function that is never called, or nowhere."""
    first = account.links[0] if account.links else None
    dist = account.modules[1]
    if first is not None and first.how == "tested":
        end = _option_below(account)
        said = f"`init_process_group` runs only if `{first.value.name}` ({where(first.place)})"
        option = OPTION.search(end.place.code) if end is not None else None
        if end is None or option is None or end.value.text != "False":
            return Missing(said, "set the group up on every rank, whatever the test says.", first)
        return Missing(f"{said}, and {decide(end)}", f"pass `{option['name']}`.", end)
    if first is not None and first.how == "destroyed":
        said = f"`{first.value.name}()` has destroyed it ({where(first.place)})"
        return Missing(said, f"call `{first.value.name}` after the last use of the group.", first)
    if first is not None and first.how == "called" and _DEFINES.match(first.place.code):
        said = f"`{first.value.name}`, which sets it up, is never called ({where(first.place)})"
        edit = _insert(account.place, f"{first.value.name}()") if _takes_nothing(first.place.code) else None
        return Missing(said, f"call `{first.value.name}` first, on every rank.", first, edit, account.place)
    launched = any(fact.name == "world size" for fact in account.facts)
    edit = _insert(account.place, f"{dist}.init_process_group()") if dist and launched else None
    return Missing("", "", None, edit, account.place) if edit is not None else None


def setter_never_called(account: Account, words: str) -> Missing | None:
    """Return the method that gives an attribute its value, which the program never calls."""
    first = account.links[0] if account.links else None
    if first is None or first.how != "called" or not _DEFINES.match(first.place.code):
        return None
    said = f"`{first.value.name}`, which sets it, is never called"
    entry = next((link for link in account.links[1:] if link.how == "called" and link.depth == 0), None)
    owner = entry.value.name.rpartition(".")[0] if entry is not None else ""
    alone = owner.replace(".", "").isidentifier() and _takes_nothing(first.place.code, of_method=True)
    edit = _insert(entry.place, f"{owner}.{first.value.name}()") if entry is not None and alone else None
    at = edit.place if edit is not None else first.place
    fix = f"call `{first.value.name}` before `{words}` is used."
    return Missing(said, fix, first, edit, at)


def _option_below(account: Account) -> Link | None:
    """Return the option that the operand of the first test comes from."""
    for link in account.links[1:]:
        if link.depth == 0:
            return None
        if link.how == "option":
            return link
    return None


def _takes_nothing(code: str, *, of_method: bool = False) -> bool:
    match parse_line(code):
        case ast.Module(body=[ast.FunctionDef(args=given)]):
            needed = len(given.posonlyargs) + len(given.args) - len(given.defaults)
            return needed == int(of_method) and all(given.kw_defaults)
    return False


def _insert(place: Place | None, statement: str) -> Edit | None:
    """Return a line with a statement above it; None if it does not begin a statement."""
    if place is None or parse_line(place.code) is None or place.code.startswith(("elif", "else", "except", "finally")):
        return None
    return Edit(place, f"{statement}\n{place.code}")


def file_of_another_rank(account: Account) -> Missing | None:
    """Return the test of the rank under which a missing file is written, where nothing waits for it."""
    first = account.links[0] if account.links else None
    written = _write_link(account)
    if first is None or written is None or first.how != "tested" or first.depth:
        return None
    at = where(first.place) if first.place.line == written.place.line else where(written.place)
    if account.by_rank > 0 and any(link.depth == 0 for link in account.links[1 : account.by_rank + 1]):
        said = f"only ranks with `{first.value.name}` write one ({at}), and each rank reads a file of its own name"
        fix = "let every rank write its file: no test of the rank over that."
        return Missing(said, fix, first, None, first.place, likely=written.how != "written")
    said = f"only ranks with `{first.value.name}` write it ({at}), and nothing waits for them before it is read"
    callers = (link for link in account.links if link.how == "called" and link.depth == 0 and not link.value.text)
    called = next(callers, None)  # a link with a value is one that made the path
    place = called.place if called is not None else account.place
    is_here = place is not None and account.place is not None and place.file == account.place.file
    dist = account.modules[1] if is_here else ""
    edit = _insert(place, f"{dist}.barrier()") if dist else None
    wait = f"`{dist}.barrier()`" if dist else "a barrier"
    fix = f"call {wait} on every rank before {'this' if called is not None else 'it is read'}."
    return Missing(said, fix, first, edit, place, likely=written.how != "written")


def writer_of_missing_file(account: Account) -> Link | None:
    """Return the line of the program that may have written a missing file; whether it ran before is not known."""
    first = account.links[0] if account.links else None
    return first if first is not None and first.how == "may_write" else None


def _write_link(account: Account) -> Link | None:
    return next((link for link in account.links if link.how in {"written", "may_write"}), None)


def graph_of_last_pass(account: Account) -> Missing | None:
    """Return the name that carries the graph of one pass of a loop into the next."""
    first = account.links[0] if account.links else None
    if first is None or first.how != "loop" or first.depth or _SECOND_BACKWARD not in account.exception:
        return None
    name, place = first.value.name, first.place
    match parse_line(place.code):
        case ast.Module(body=[ast.AugAssign(target=ast.Name(id=target), value=ast.Name(id=added))]) if target == name:
            said = f"`{name}` sums up the losses of the passes before, whose graphs are freed"
            edit = _backward_of(account, name, added)
            fix = f"call `backward` on `{added}`; keep `{added}.item()` for the sum."
            return Missing(said, fix, first, edit, account.place)
    said = f"`{name}` carries the graph of the pass before into this one, and `backward` has freed it"
    edit = replace_expression(place, place.mark, f"{name}.detach()") if place.mark != (0, 0) else None
    return Missing(said, f"pass `{name}.detach()` on.", first, edit, place)


def _backward_of(account: Account, name: str, added: str) -> Edit | None:
    place = account.place
    if place is None or not place.code.isascii() or not place.code.startswith(f"{name}.backward("):
        return None
    return replace_expression(place, (0, len(name)), added)

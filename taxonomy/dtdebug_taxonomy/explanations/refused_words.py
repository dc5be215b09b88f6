"""Words of the program that a library does not know: a string among those that it takes, the names in a checkpoint."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.explanations.account_words import Edit, find_spans, replace_expression
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Account
from dtdebug_taxonomy.text.near_names import near_name
from dtdebug_taxonomy.text.value_texts import read_value

_MOST_KEYS = 6
_BEGINNING, _MESSAGE = 60, 4_000
_WRITTEN_DOWN = frozenset({"literal", "default", "option", "file"})
_QUOTED = re.compile(r"['\"]([\w./ -]{1,120})['\"]")
_LISTED = re.compile(r"[\[({](?:['\"][\w./ -]{1,60}['\"],? ?){1,40}[\])}]")
_MISSING = re.compile(r"Missing key\(s\) in state_dict: (?P<names>(?:\"[\w.]{1,200}\",? ?){1,60})")
_UNEXPECTED = re.compile(r"Unexpected key\(s\) in state_dict: (?P<names>(?:\"[\w.]{1,200}\",? ?){1,60})")
_WRAPPERS = frozenset({"DistributedDataParallel", "DataParallel"})


def of_word(account: Account, output: str) -> Fault | None:
    """Return the string of the program that a library refuses, with those that its message says it takes."""
    head = account.exception.partition(": ")[2][:_BEGINNING]
    at = output.rfind(head) if head else -1
    message = output[at : at + _MESSAGE] if at >= 0 else account.exception
    for link in account.links if account.refusal is not None and account.refusal.place is not None else ():
        value = read_value(link.value.text) if link.how in _WRITTEN_DOWN else None
        word = value.plain if value is not None and value.kind == "text" else None
        spoken = re.search(rf"(?<!\w){re.escape(str(word))}(?!\w)", message) if word else None
        begin = spoken.start() if spoken is not None else -1
        listed = _LISTED.search(message, begin + 1) if begin >= 0 else None
        names = _QUOTED.findall(listed[0]) if listed is not None else []
        if not names or word in names or not isinstance(word, str):
            continue
        near = near_name(word, names) or (names[0] if len(names) == 1 else "")
        said = f"`{link.value.name}` is {word!r}, which is none of {', '.join(map(repr, names[:_MOST_KEYS]))}"
        spans = find_spans(link.place.code, (repr(word),)) or [link.place.mark]
        edit = replace_expression(link.place, spans[0], f'"{near}"') if near and len(spans) == 1 else None
        return Fault(said, f"write {near!r}." if near else "write one of these.", link, edit, link.place)
    return None


def of_states(account: Account, output: str) -> Fault | None:
    """Return the prefix that the names of a checkpoint have and those of the model have not, or the other way round."""
    missing, unexpected = _MISSING.search(output), _UNEXPECTED.search(output)
    place = account.place
    if missing is None or unexpected is None or place is None or "loading state_dict" not in account.exception:
        return None
    wanted, held = (_QUOTED.findall(found["names"]) for found in (missing, unexpected))
    prefix = _prefix(wanted, held)
    other = _prefix(held, wanted)
    calls = [n for n in ast.walk(parse_line(place.code) or ast.Module([], [])) if isinstance(n, ast.Call)]
    loads = [n for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "load_state_dict" and n.args]
    if not (prefix or other) or len(loads) != 1 or not place.code.isascii():
        return None
    call, given = loads[0], ast.unparse(loads[0].args[0])
    owner = ast.unparse(call.func.value)  # type: ignore[attr-defined]
    value = next((v for e in account.links if e.value.name == owner and (v := read_value(e.value.text))), None)
    if prefix == "module." and value is not None and value.name in _WRAPPERS:
        said = f"`{owner}` is wrapped in {value.name}, which puts `module.` before each name; the file has them without"
        return Fault(said, f"load into the model inside: `{owner}.module`.", None, _in_model(call, owner, account))
    text = f"{{k.removeprefix({other!r}): v for k, v in {given}.items()}}" if other else ""
    text = text or f"{{{prefix!r} + k: v for k, v in {given}.items()}}"
    span = (call.args[0].col_offset, call.args[0].end_col_offset or 0)
    has, lacks = (f"`{given}`", f"`{owner}`") if other else (f"`{owner}`", f"`{given}`")
    said = f"the names in {has} have the prefix `{other or prefix}`, and those in {lacks} have not"
    fix = f"{'leave the prefix out' if other else 'add the prefix'} when they are loaded."
    return Fault(said, fix, None, replace_expression(place, span, text.replace("'", '"')))


def _in_model(call: ast.Call, owner: str, account: Account) -> Edit | None:
    at = call.func.value  # type: ignore[attr-defined]
    place = account.place
    return replace_expression(place, (at.col_offset, at.end_col_offset or 0), f"{owner}.module") if place else None


def _prefix(longer: list[str], shorter: list[str]) -> str:
    """Return what stands before each name of one list and not before those of another; empty if that is not so."""
    if len(longer) != len(shorter) or not longer or not longer[0].endswith(shorter[0]):
        return ""
    prefix = longer[0].removesuffix(shorter[0])
    return prefix if prefix.endswith(".") and {prefix + name for name in shorter} == {*longer} else ""

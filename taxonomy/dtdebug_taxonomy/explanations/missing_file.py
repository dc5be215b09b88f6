"""Finds what named a file that does not exist, and who should have written it."""

from __future__ import annotations

import ast
import re

from dtdebug_taxonomy.explanations import off_stack
from dtdebug_taxonomy.explanations.account_values import (
    chain_of,
    last_with_value,
    nodes_of_line,
    rank_link_in,
    root_in,
    values_at_failure,
)
from dtdebug_taxonomy.explanations.account_words import Edit, where
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import parse_line, read_call
from dtdebug_taxonomy.model.account import Account
from dtdebug_taxonomy.source.python.file_writes import MAKES_FOLDERS, TAKES_A_FILE, written_path
from dtdebug_taxonomy.source.python.names import last_name
from dtdebug_taxonomy.text.pattern_matcher import plain
from dtdebug_taxonomy.text.value_texts import read_value

_FILE = re.compile(r"(?:FileNotFoundError|NotADirectoryError): .{0,60}?: (?P<path>'[^']{1,400}'|\"[^\"]{1,400}\")\Z")


def of_file(account: Account) -> Fault | None:
    """Return the expression that named the missing file."""
    matched = _FILE.match(account.exception)
    if matched is None:
        return None
    path = ast.literal_eval(matched["path"])
    call = read_call(account)
    given = {words: call.texts.get(name, "") for name, (words, _) in call.expressions.items()}
    named = [name for name, text in {**given, **values_at_failure(account)}.items() if _path(text) == path]
    words = next(iter(named), "")
    late = off_stack.file_of_another_rank(account)
    if late is not None:
        name = path.rstrip("/").rpartition("/")[2]
        return Fault(f"{name} is not there: {late.said}", late.fix, None, late.edit, late.at, likely=late.likely)
    if (folder := _of_folder(account, words, path)) is not None:
        return folder
    writer = off_stack.writer_of_missing_file(account)
    if writer is not None:
        name = f"`{words}` is {path!r}, which does not exist" if words else f"{path!r} does not exist"
        said = (
            f"{name} on this rank; `{plain(writer.place.code, 80)}` ({where(writer.place)}) writes a file of that name"
        )
        fix = (
            "let each rank that reads the file wait until it is written (a barrier after the write), at this very path."
        )
        return Fault(said, fix, None, None, writer.place, likely=True)
    chain = chain_of(account, words)
    root = root_in(account, chain)
    own = rank_link_in(account, chain)
    made = last_with_value(account, words, repr(path))
    link = own or made or (None if _names_file(words, path) else root or (chain[0] if chain else None))
    relative = not path.startswith(("/", "~")) and path[1:2] != ":"
    start = "; a relative path counts from the folder in which the rank was started" if relative else ""
    said = f"`{words}` is {path!r}, which does not exist" if words else f"{path!r} does not exist"
    if path.startswith("~"):
        said, start = f"{said}: `~` is not expanded here", "; use `os.path.expanduser`"
    if own is not None:
        said = f"{said}: the path is made of what each rank has of its own"
        return Fault(
            said, "name a file that some rank has written, such as rank 0's, or let this rank write its.", link
        )
    return Fault(said, f"name a file that exists on this host, or write it before it is read{start}.", link)


def _of_folder(account: Account, words: str, path: str) -> Fault | None:
    """Return the folder that is not there, if the line makes the file: then nothing else can be missing."""
    place = account.place
    if place is None or not any(map(_makes_file, nodes_of_line(account, ast.Call))):
        return None
    folder, own = path.rstrip("/").rpartition("/")[0] or ".", ""
    if words.replace(".", "").isidentifier() and values_at_failure(account).get(words, "").startswith("Path("):
        own = f"{words}.parent.mkdir(parents=True, exist_ok=True)"
    elif words and "os." in place.code:  # the module is there
        own = f"os.makedirs(os.path.dirname({words}), exist_ok=True)"
    said = f"The folder {folder!r} does not exist, and `{plain(place.code, 80)}` makes a file in it"
    chain = chain_of(account, words)
    link = rank_link_in(account, chain) or root_in(account, chain) or (chain[0] if chain else None)
    edit = Edit(place, f"{own}\n{place.code}") if own else None
    return Fault(said, "make that folder first, on each host that writes to it.", link, edit, place)


def _names_file(words: str, path: str) -> bool:
    """True if an expression makes the last part of a path of a text and values: `folder / f"epoch_{epoch}.pt"`."""
    tree = parse_line(words)
    made = (n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr)) if tree is not None else ()
    ends = (n.values[-1].value for n in made if n.values and isinstance(n.values[-1], ast.Constant))
    return any(path.endswith(str(end)) and "/" not in str(end) for end in ends)


def _makes_file(call: ast.expr) -> bool:
    if not isinstance(call, ast.Call) or last_name(call) in MAKES_FOLDERS | TAKES_A_FILE:
        return False
    return written_path(call) is not None


def _path(text: str) -> str:
    value = read_value(text.removeprefix("Path(").removesuffix(")"))
    return value.plain if value is not None and isinstance(value.plain, str) else ""

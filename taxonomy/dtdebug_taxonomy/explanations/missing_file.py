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
from dtdebug_taxonomy.inference.account_call import read_call
from dtdebug_taxonomy.model.account import Account
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
        return Fault(f"{name} is not there yet: {late.said}", late.fix, None, late.edit, late.at, likely=late.likely)
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
    link = own or last_with_value(account, words, repr(path)) or root or (chain[0] if chain else None)
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


_WRITES = frozenset(
    {"write_text", "write_bytes", "touch", "savetxt", "save", "savez", "savefig", "to_csv", "to_parquet"}
)
"""Methods and functions that make the file which they are given."""


def _of_folder(account: Account, words: str, path: str) -> Fault | None:
    """Return the folder that is not there, if the line makes the file: then nothing else can be missing."""
    if not any(_makes_file(call) for call in nodes_of_line(account, ast.Call)):
        return None
    folder = path.rstrip("/").rpartition("/")[0] or "."
    code, own = account.place.code if account.place is not None else "", ""
    if words.replace(".", "").isidentifier() and values_at_failure(account).get(words, "").startswith(
        ("PosixPath(", "Path(")
    ):
        own = f"{words}.parent.mkdir(parents=True, exist_ok=True)"
    elif words and "os." in code:  # the module is there
        own = f"os.makedirs(os.path.dirname({words}), exist_ok=True)"
    edit = Edit(account.place, f"{own}\n{code}") if own and account.place is not None else None
    said = f"The folder {folder!r} does not exist, and `{plain(code, 80)}` makes a file in it"
    chain = chain_of(account, words)
    link = rank_link_in(account, chain) or root_in(account, chain) or (chain[0] if chain else None)
    fix = "make that folder first, on each host that writes to it."
    return Fault(said, fix, link, edit, account.place)


def _makes_file(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open")):
            given = [*node.args, *(k.value for k in node.keywords if k.arg == "mode")]
            modes = [a.value for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            return any(len(mode) < 5 and {*mode} & {*"wax"} for mode in modes)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _WRITES
    return False


def _path(text: str) -> str:
    value = read_value(text.removeprefix("Path(").removesuffix(")"))
    return value.plain if value is not None and isinstance(value.plain, str) else ""

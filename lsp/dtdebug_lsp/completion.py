"""Completes names that are easily misspelt: environment variables, keys of DeepSpeed's and Accelerate's files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from lsprotocol import types

from dtdebug_lsp.documents import Document
from dtdebug_lsp.positions import Positions
from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.source.deepspeed import NAME as DEEPSPEED
from dtdebug_taxonomy.source.text import Span

TRIGGERS = ['"', "'"]
_PYTHON = re.compile(
    r"""(?:environ(?:\.(?:get|setdefault|pop))?\s*[\[(]|getenv\s*\(|putenv\s*\()\s*["'](?P<word>\w*)$"""
)
_SHELL = re.compile(r"(?:^|[;&|]|\b(?:export|env|ENV|ARG|unset|-x|-e|--env)\s)\s*(?P<word>[A-Z][A-Z0-9]*(?:_\w*)?)$")
_YAML = re.compile(r"^\s*(?:-\s+(?:name:\s*)?)?[\"']?(?P<word>[A-Z][A-Z0-9]*(?:_\w*)?)$")
_KEY = re.compile(r'"(?P<word>\w*)$')
_ACCELERATE = re.compile(r"^(compute_environment|distributed_type)\s*:", re.MULTILINE)
"""Keys that identify a YAML text as a configuration of Accelerate."""
_ACCELERATE_KEY = re.compile(r"^(?P<indent>\s*)(?P<word>[a-z_0-9]*)$")
_SECTION = re.compile(r"^(?P<key>\w+)\s*:\s*$", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}\[\],:]|//[^\n]*')
_MANY = 100_000
"""Maximum number of characters before the cursor to parse in a JSON text."""


def completions(document: Document, positions: Positions, position: types.Position) -> list[types.CompletionItem]:
    """Return the names that are valid at a position, filtered by what is typed already."""
    text = document.text
    offset = positions.offset(text, position)
    line = text[text.starts[text.place(offset).line - 1] : offset]
    path = document.path.lower()
    if document.language in {"json", "jsonc"} or path.endswith((".json", ".jsonc")):
        sure = bool(DEEPSPEED.search(path.rpartition("/")[2]))
        found, names = _KEY.search(line), _keys(text[:offset], sure=sure) if offset < _MANY else {}
    else:
        pattern = _SHELL
        if document.language == "python" or path.endswith(".py"):
            pattern = _PYTHON
        elif document.language == "yaml" or path.endswith((".yaml", ".yml")):
            pattern = _YAML
        found, names = pattern.search(line), known_variables()
        if pattern is _YAML and found is None and _ACCELERATE.search(text):
            found, names = _ACCELERATE_KEY.search(line), _accelerate_keys(text[:offset], line)
    if found is None:
        return []
    where = positions.range(text, Span(offset - len(found["word"]), offset))
    word = found["word"].lower()
    return [
        types.CompletionItem(
            label=name,
            kind=types.CompletionItemKind.Constant if name.isupper() else types.CompletionItemKind.Property,
            detail=means or None,
            filter_text=name,
            text_edit=types.TextEdit(where, name),
        )
        for name, means in names.items()
        if word in name.lower()
    ]


@lru_cache(maxsize=1)
def known_variables() -> dict[str, str]:
    """Return environment variables that are still in use -> their meaning, if documented."""
    means = facts.nccl_meanings()
    found = {n: means[n].means if n in means else "" for n, row in facts.nccl().variables.items() if not row.until}
    found |= {n: row.means for n, row in facts.vendor_meanings().items()}
    torch = facts.torch_env()
    others = [*torch.variables, *facts.environment().variables]
    found |= {n: "" for n in others if n not in torch.renamed and n not in found}
    return dict(sorted(found.items()))


def _keys(before: str, *, sure: bool) -> dict[str, str]:
    """Return the DeepSpeed keys that are valid in the object that is open at the end of a text."""
    path, in_key = _path(before)
    known = facts.deepspeed_config().keys
    if not in_key or (path and path not in known) or not (sure or any(f'"{k}"' in before for k in _top())):
        return {}
    prefix = f"{path}." if path else ""
    return {
        key.removeprefix(prefix): f"{row.type}, default {row.default!r}" if row.default is not None else row.type
        for key, row in known.items()
        if key.startswith(prefix) and "." not in key.removeprefix(prefix)
    }


def _accelerate_keys(before: str, line: str) -> dict[str, str]:
    """Return the keys that are valid on a line: of the section above if it is indented, else of the file."""
    sections = [m["key"] for m in _SECTION.finditer(before)] if line[:1].isspace() else []
    prefix = f"{sections[-1]}." if sections else ""
    known = facts.accelerate_config().keys
    return {
        key.removeprefix(prefix): row.type
        for key, row in known.items()
        if key.startswith(prefix) and "." not in key.removeprefix(prefix)
    }


@lru_cache(maxsize=1)
def _top() -> frozenset[str]:
    """Return keys that identify a JSON text as a DeepSpeed configuration."""
    return frozenset(k for k in facts.deepspeed_config().keys if "." not in k and "_" in k)


def _path(before: str) -> tuple[str, bool]:
    """Return the dotted key of the object that is open at the end of a text, and whether a key comes next."""
    path: list[str] = []
    key, expects_key, last = "", False, ""
    for piece in _tokens(before):
        if piece == "{":
            path.append(key)
            expects_key = True
        elif piece == "[":
            path.append(key)
            expects_key = False
        elif piece in "}]":
            path = path[:-1]
            expects_key = False
        elif piece == ",":
            expects_key = True
        elif piece == ":":
            key, expects_key = last, False
        else:
            last = piece
    return ".".join(p for p in path if p), expects_key


def _tokens(text: str) -> Iterator[str]:
    for found in _TOKEN.finditer(text):
        if not found[0].startswith("//"):
            yield found[0].strip('"') if found[0][0] == '"' else found[0]

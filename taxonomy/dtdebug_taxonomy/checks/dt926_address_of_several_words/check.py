"""Addresses from commands that can print several, where a launcher wants one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.shell.commands import Command, Word
from dtdebug_taxonomy.source.shell.launch import LaunchCommand, launches
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.text import Span

_ADDRESS = re.compile(r"--(?:rdzv[-_]endpoint|master[-_]addr|main_process_ip|local[-_]addr)(?:=|\Z)")
_USE = re.compile(r"\$(?:([A-Za-z_]\w{0,60})|\{([A-Za-z_]\w{0,60})\})")
_ALL = frozenset({"-I", "--all-ip-addresses", "-A", "--all-fqdns"})
_OWN = frozenset({"-i", "--ip-address"})


class _Source(NamedTuple):
    """Command that can print several words."""

    words: str
    usual: bool
    """True if it does so on most hosts or jobs of several nodes."""


def check(script: Script) -> Iterator[Hit]:
    """Report where such a value is given to a launcher, or becomes MASTER_ADDR."""
    for launch in launches(script):
        for word in _addresses(launch):
            found = _USE.search(word.text)
            if "$(" in word.text or "`" in word.text:
                source, name = _several(script, word.span), ""
            elif found is not None:
                name = found[1] or found[2]
                source = _of_variable(script, name)
            else:
                continue
            if source is not None:
                yield _hit(script, word, name, source)
    for assignment, _ in script.assignments.get("MASTER_ADDR", ()):
        source = None if assignment.items else _several(script, assignment.value.span)
        if source is not None:
            yield Hit(
                assignment.value.span,
                f"`{source.words}` prints several names or addresses, one for each interface or node: MASTER_ADDR must "
                "be one. Take the first: `| awk '{print $1; exit}'`.",
                severity=None if source.usual else "hint",
            )


def _addresses(launch: LaunchCommand) -> Iterator[Word]:
    """Yield the values of options that name an address."""
    words = launch.command.words
    for at, word in enumerate(words):
        if (found := _ADDRESS.match(word.text)) is None:
            continue
        if found[0].endswith("="):
            yield word
        elif at + 1 < len(words):
            yield words[at + 1]


def _of_variable(script: Script, name: str) -> _Source | None:
    rows = script.assignments.get(name, ())
    if len(rows) != 1 or rows[0][0].items or rows[0][0].adds:
        return None
    return _several(script, rows[0][0].value.span)


def _several(script: Script, span: Span) -> _Source | None:
    """Return the command whose output a value is, if it can be several words."""
    inside = [c for c in script.commands if c.depth and span.start <= c.span.start and c.span.end <= span.end]
    if not inside:
        return None
    last = [c for c in inside if c.depth == min(row.depth for row in inside)][-1]
    return None if last.joined == "|" else _of_command(last)


def _of_command(command: Command) -> _Source | None:
    names = [word.text.rsplit("/", 1)[-1] for word in command.words]
    if "hostname" in names:
        at = names.index("hostname")
        options = set(names[at + 1 :])
        if options & (_ALL | _OWN):
            return _Source(" ".join(names[at : at + 2]), bool(options & _ALL))
    if "scontrol" in names and {"hostnames", "hostname"} & {*names}:
        return _Source("scontrol show hostnames", usual=True)
    return None


def _hit(script: Script, word: Word, name: str, source: _Source) -> Hit:
    text = script.text[word.span.start : word.span.end]
    at = text.find("$" if "$" in text else "`")
    quoted = text[:at].count('"') % 2 == 1
    what = f"`${name}`, the output of `{source.words}`," if name else f"`{source.words}`"
    then = (
        "it is then no address"
        if quoted
        else 'unquoted, the second one then stands where the launcher expects the program ("can\'t open file")'
    )
    return Hit(
        word.span,
        f"{what} can be several names or addresses, one for each interface or node: {then}. Take the first: "
        "`| awk '{print $1; exit}'`.",
        severity=None if source.usual else "hint",
    )

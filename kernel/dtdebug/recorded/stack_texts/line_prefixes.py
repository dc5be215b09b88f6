"""Takes off what pdsh, srun, torchrun, mpirun, Ray or kubectl write before each line, and sorts lines by it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

_PREFIX = re.compile(
    r"\s{0,4}(?:"
    r"\[(?P<default>default)?(?:rank)?[ :]?(?P<rank>\d{1,6})\]:? ?"  # PyTorch, torchrun --tee
    r"|\[(?P<role>[A-Za-z][\w.-]{0,80}):(?P<local>\d{1,4})\]:? ?"  # [host:3] of torchrun --role, [name3]:
    r"|\[\d{1,4},(?P<task>\d{1,6})\]<std(?:out|err)>:? ?"  # mpirun --tag-output
    r"|\((?P<actor>\w[^()]{0,60}) pid=(?P<pid>\d{1,9})(?:, ip=(?P<ip>[\w.:-]{2,45}))?\) ?"  # Ray
    r"|\[pod/(?P<pod>[^/\]]{1,100})/[^\]]{1,100}\] ?"  # kubectl logs --prefix
    r"|(?P<label>\d{1,6}): ?"  # srun --label
    r"|(?P<host>[A-Za-z0-9][\w.-]{0,80})(?:: ?| \| )"  # pdsh, clush, docker compose
    r")"
)
_MOST = 1 << 14
"""Maximum number of prefixes of a text; more are no prefixes."""


class Origin(NamedTuple):
    """Process whose lines a prefix precedes, as far as it says."""

    rank: int | None = None
    local_rank: int | None = None
    label: int | None = None
    """Task of srun: a rank if each task is one process, else a node."""
    host: str = ""
    pid: int | None = None


def by_prefix(text: str, is_stack_line: Callable[[str], bool]) -> list[tuple[Origin, list[str]]]:
    """Return the lines of each prefix, without it, in the order in which the prefixes appear.

    A prefix counts where a line of a stack follows it; from then on it is taken off all lines that begin with it.
    """
    if "<pre>" in text:  # a page of PyTorch's debug server
        text = html.unescape(text.replace("<pre>", "\n").replace("</pre>", "\n"))
    found: dict[Origin, list[str]] = {}
    known: dict[str, Origin] = {}
    plain = Origin()
    for line in text.splitlines():
        origin, rest = plain, line
        if line[:1] not in (" ", "\t") or line.lstrip()[:1] == "[" or line.lstrip()[:1].isdigit():
            origin, rest = _split(line, is_stack_line, known)
        found.setdefault(origin, []).append(rest)
        if len(found) > _MOST:
            return [(plain, text.splitlines())]
    return list(found.items())


def _split(line: str, is_stack_line: Callable[[str], bool], known: dict[str, Origin]) -> tuple[Origin, str]:
    if is_stack_line(line):
        return Origin(), line
    origin, rest, taken = Origin(), line, ""
    for _ in range(3):  # `node1: [rank3]: `
        m = _PREFIX.match(rest)
        if m is None:
            break
        origin, rest = _join(origin, m), rest[m.end() :]
        taken += m[0].strip()
        if taken in known:
            known_origin = known[taken]
            again = _PREFIX.match(rest)
            if again is None or taken + again[0].strip() not in known:
                return known_origin, rest
        if is_stack_line(rest) or (is_stack_line(f"    {rest.lstrip()}") and "(" in rest):
            known[taken] = origin
            return origin, rest
    return Origin(), line


def _join(origin: Origin, m: re.Match[str]) -> Origin:
    """Return the origin with what one more prefix says."""
    if m["rank"] is not None:
        number = int(m["rank"])
        return origin._replace(local_rank=number) if m["default"] else origin._replace(rank=number)
    if m["local"] is not None:
        return origin._replace(host=origin.host or m["role"], local_rank=int(m["local"]))
    if m["task"] is not None:
        return origin._replace(rank=int(m["task"]))
    if m["pid"] is not None:
        return origin._replace(pid=int(m["pid"]), host=m["ip"] or origin.host)
    if m["label"] is not None:
        return origin._replace(label=int(m["label"]))
    return origin._replace(host=m["host"] or m["pod"] or origin.host)


def hosts_of(origins: Iterable[Origin]) -> list[str]:
    """Return the hosts that the prefixes name, each once."""
    return list(dict.fromkeys(o.host for o in origins if o.host))

"""Rendezvous options that are ignored, and addresses that fall back to localhost."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.launching import LOOPBACK
from dtdebug_taxonomy.source.shell.launch import GivenOption, LaunchCommand, launches
from dtdebug_taxonomy.source.shell.script import Script, script_of
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span

_DYNAMIC = re.compile(r"c10d|etcd|etcd-v2")
_RANKS = re.compile(r"torchrun|torch\.distributed|rdzv|MASTER_ADDR|SLURM_|scontrol|deepspeed|accelerate launch")
"""Words without which a text is not about ranks."""
_ASKS = re.compile(r"^(scontrol|hostname|host|nslookup|getent|dig|ip|ifconfig|srun|head|awk|sed|cut|tr|grep)$")


def check(source: Source) -> Iterator[Hit]:
    """Report `--node-rank` with a rendezvous that assigns ranks itself, and `|| echo localhost`."""
    script = script_of(source)
    if script is None:
        return
    for launch in launches(script):
        if launch.launcher == "torchrun":
            yield from _inert(script, launch)
    if _RANKS.search(source.text):
        yield from _hidden(script)


def _inert(script: Script, launch: LaunchCommand) -> Iterator[Hit]:
    backend = launch.options.get("--rdzv-backend")
    name = script.resolve(backend.value.text) if backend and backend.value else ""
    name = "c10d" if "--standalone" in launch.options else name
    rank = launch.options.get("--node-rank")
    if rank is None or not _DYNAMIC.fullmatch(name):
        return
    yield Hit(
        _span(rank),
        f"The rendezvous by {name} gives out the ranks of the nodes itself and ignores --node-rank: "
        "rank 0 need not be on the node that this means.",
        _remove_option(script, launch, rank),
    )


def _span(given: GivenOption) -> Span:
    return Span(given.word.span.start, max(given.word.span.end, given.value.span.end if given.value else 0))


def _remove_option(script: Script, launch: LaunchCommand, given: GivenOption) -> Fix | None:
    start, end = _span(given)
    if launch.command.is_list or not (launch.command.span.start <= start and end <= launch.command.span.end):
        return None
    while end < len(script.text) and script.text[end] in " \t":
        end += 1
    first = script.text[:start].rfind("\n") + 1
    if not script.text[first:start].strip() and script.text[end:].startswith("\\\n"):
        start, end = first, end + 2  # it is alone on the line
    return Fix("Remove it", (Edit(Span(start, end), ""),))


def _hidden(script: Script) -> Iterator[Hit]:
    """Report `$(scontrol show hostnames ...

    echo localhost)`.
    """
    commands = script.commands
    for at, command in enumerate(commands):
        if command.joined != "||" or not command.depth or command.name not in {"echo", "printf"}:
            continue
        said = command.words[-1].text
        before = next((c for c in reversed(commands[:at]) if c.depth == command.depth), None)
        if not LOOPBACK.match(said) or before is None or not _ASKS.match(before.name):
            continue
        yield Hit(
            command.span,
            f"Where the address can't be found out this takes {said} in silence: every node then meets only itself, "
            "and a job of several nodes waits for ever.",
        )

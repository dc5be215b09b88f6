"""Launcher options after the program, which are passed to the program."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.shell.commands import Word
from dtdebug_taxonomy.source.shell.launch import LaunchCommand, launches, option
from dtdebug_taxonomy.source.shell.script import Script, script_of
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span

_OWN = {
    "torchrun": {
        *("--nproc-per-node", "--nnodes", "--standalone"),
        *("--rdzv-backend", "--rdzv-endpoint", "--rdzv-id"),
    },
    "accelerate launch": {
        *("--num_processes", "--num_machines", "--machine_rank", "--multi_gpu"),
        *("--main_process_port", "--main_process_ip"),
    },
    "deepspeed": {"--num_gpus", "--num_nodes", "--hostfile", "--include", "--exclude"},
    "horovodrun": {"--num-proc"},
}
"""Options that programs rarely have themselves."""
_ALONG = {"--node-rank", "--master-addr", "--master-port", "--master_addr", "--master_port", "--max-restarts"}
"""Options that programs have too: they count only together with one of the others."""


def check(source: Source) -> Iterator[Hit]:
    """Report the options if the launcher does not get the same ones before the program."""
    script = script_of(source)
    for launch in launches(script) if script else ():
        found = _misplaced_options(launch)
        fix = _move_options(script, launch, found) if found and script else None
        for name, words in found:
            yield Hit(
                Span(words[0].span.start, words[-1].span.end),
                f"{launch.launcher} passes everything after {_short(launch)} on to the program, so {name} does not "
                "reach the launcher, which starts with its default.",
                fix,
            )


def _misplaced_options(launch: LaunchCommand) -> list[tuple[str, list[Word]]]:
    program = launch.program
    if program is None or not (program.text.endswith((".py", ".py}")) or "--module" in launch.options):
        return []
    found: list[tuple[str, str, list[Word]]] = []
    words = list(launch.arguments)
    for at, word in enumerate(words):
        if word.text == "--":
            break
        known = option(launch.launcher, word.text) if word.text.startswith("-") else None
        if known is None or known[0] in launch.options:
            continue
        name, takes = known
        exact = word.text.partition("=")[0].lstrip("-").replace("_", "-")
        if exact != name.lstrip("-").replace("_", "-") and not (launch.launcher == "horovodrun" and word.text == "-np"):
            continue
        value = words[at + 1 : at + 2] if takes and "=" not in word.text else []
        found.append((name, word.text.partition("=")[0], [word, *value]))
    own = _OWN.get(launch.launcher, set())
    if not any(name in own for name, _, _ in found):
        return []
    return [(written, part) for name, written, part in found if name in own or name in _ALONG]


def _short(launch: LaunchCommand) -> str:
    return launch.program.text.rsplit("/", 1)[-1] if launch.program else "the program"


def _move_options(script: Script, launch: LaunchCommand, found: list[tuple[str, list[Word]]]) -> Fix | None:
    """Return a fix that moves all of them before the program, if they are in the command itself."""
    command, program = launch.command.span, launch.program
    if program is None or launch.command.is_list or not (command.start <= program.span.start < command.end):
        return None
    edits, texts = [], []
    for _, words in found:
        start, end = words[0].span.start, words[-1].span.end
        if not (program.span.end <= start and end <= command.end):
            return None
        texts.append(script.cut(Span(start, end)))
        while start > program.span.end and (script.text[start - 1].isspace() or script.text[start - 1] == "\\"):
            start -= 1
        edits.append(Edit(Span(start, end), ""))
    before = program.span.start
    if "--module" in launch.options:
        before = launch.options["--module"].word.span.start
    return Fix("Move it before the program", (Edit(Span(before, before), " ".join(texts) + " "), *edits))

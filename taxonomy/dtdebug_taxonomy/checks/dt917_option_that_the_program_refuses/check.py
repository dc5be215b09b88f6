"""Arguments of a program, in the command that starts its ranks, that its parser does not know."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.parsers import Options, options
from dtdebug_taxonomy.source.shell.launch import LaunchCommand
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import StartedProgram, long_options, started_programs
from dtdebug_taxonomy.source.text import Span

_OLD = "torch.distributed.launch"


def check(script: Script) -> Iterator[Hit]:
    """Report the option, or the launcher that adds one."""
    for start in started_programs(script):
        known = options(start.code) if start.launch is not None and start.code is not None else None
        if known is None or start.launch is None:
            continue
        name = f"{start.name}, made in {known.made_in}," if known.made_in else start.name
        for word, option, _ in long_options(script, start.arguments):
            if not known.knows(option) and start.command.span.start <= word.span.start < start.command.span.end:
                yield Hit(
                    Span(word.span.start, word.span.start + len(option)),
                    f"The parser of {name} has no option {option}: each rank ends with {known.ends}.",
                    _fix(known, option, Span(word.span.start, word.span.start + len(option))),
                )
        yield from _of_the_launcher(start, start.launch, known, name)


def _of_the_launcher(start: StartedProgram, launch: LaunchCommand, known: Options, name: str) -> Iterator[Hit]:
    added = _added_option(launch)
    if not added or known.knows(added):
        return
    if known.knows("--local_rank"):
        yield Hit(
            launch.place,
            f"This launcher of PyTorch 2 passes {added} to each process, and the parser of {name} has --local_rank "
            f"only: it ends with {known.ends}. Take both, or start by torchrun and read LOCAL_RANK.",
            severity="hint",
        )
        return
    yield Hit(
        launch.place,
        f"This launcher passes {added} to each process, which the parser of {name} does not know: it ends with "
        "'unrecognized arguments'. torchrun passes none.",
    )


def _added_option(launch: LaunchCommand) -> str:
    """Return the option that a launcher passes to each process; "" if it passes none."""
    if launch.launcher == "deepspeed" and not {"--no_local_rank", "--launcher"} & set(launch.options):
        return "--local_rank"  # among multi-host launchers only pdsh does
    old = any(w.text == _OLD for w in launch.command.words)
    return "--local-rank" if old and not {"--use-env", "--use_env"} & set(launch.options) else ""


def _fix(known: Options, option: str, span: Span) -> Fix | None:
    """Return a fix to the only option that differs by hyphens alone."""
    alike = [o for o in known.calls if o.replace("-", "_") == option.replace("-", "_")]
    return Fix(f"Write {alike[0]}", (Edit(span, alike[0]),), safe=False) if len(alike) == 1 else None

"""More processes on one machine than it has visible devices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.configured import accelerate_processes, machines, setting
from dtdebug_taxonomy.checks.shared.launching import gpus_per_node
from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.config.tree import number
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.shell.launch import LaunchCommand, launches
from dtdebug_taxonomy.source.shell.script import Script, script_of
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.started_programs import started_programs
from dtdebug_taxonomy.source.text import Span, whole_number

_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_LIST = re.compile(r"\s*[\w./-]+\s*(,\s*[\w./-]+\s*)*,?\s*")
_KEYED = re.compile(r"(\w+)\[\s*['\"]?$")
_ASKED = re.compile(r"(?:\[\[?|\btest|\bcase)\s[^\n]{0,200}\$\{?#?(?:CUDA|HIP|ROCR)_VISIBLE_DEVICES")
"""Signs that the script tests the number of devices, so that its branches are for other numbers."""
_SPAWNS = {"torch.multiprocessing.spawn": ("nprocs", 2), "accelerate.notebook_launcher": ("num_processes", 2)}


def check(source: Source) -> Iterator[Hit]:
    """Compare the number of processes with the list of devices, or with what Slurm is asked for."""
    script = script_of(source)
    for launch in launches(script) if script else ():
        option = _processes(script, launch) if script else None
        seen = (_devices(script, launch) or _set(source)) if script and option else None
        if option and seen:
            yield from _compare(option[0], option[1], *seen)
        elif script and not option:
            yield from _one_for_several(script, launch)
    if isinstance(source, Script):
        yield from _by_file(source)
    if isinstance(source, Code):
        yield from _spawn_hits(source)
    elif isinstance(source, Config):
        yield from _config_hits(source)


def _compare(processes: int, span: Span, devices: int, where: str, *, by: str = "") -> Iterator[Hit]:
    if processes > devices > 0:
        yield Hit(
            span,
            f"{processes} processes are started{by}, but {where} shows {devices} device{'s' * (devices > 1)}: the "
            f"local ranks from {devices} on find none and end with an invalid device ordinal.",
            Fix(f"Start {devices}", (Edit(span, str(devices)),)),
        )


def _processes(script: Script, launch: LaunchCommand) -> tuple[int, Span] | None:
    """Return the number of processes on each machine, and its span; None if unknown."""
    name = {"torchrun": "--nproc-per-node", "deepspeed": "--num_gpus", "accelerate launch": "--num_processes"}
    given = launch.options.get(name.get(launch.launcher, ""))
    if given is None or given.value is None:
        return None
    if launch.launcher == "accelerate launch" and launch.number(script, "--num_machines") not in {None, 1}:
        return None
    if launch.launcher == "accelerate launch" and "--cpu" in launch.options:
        return None
    text = script.resolve(given.value.text)
    if (number := whole_number(text)) is None:
        return None
    used = given.value
    if used.text != text:  # the number is in the assignment of the variable
        held = re.fullmatch(r"\$\{?(\w+)\}?", used.text)
        value = script.constant(held[1]) if held else None
        if value is not None and value.text == text:
            used = value
    return number, used.inner


def _by_file(script: Script) -> Iterator[Hit]:
    """Report the number in Accelerate's file that the command names."""
    for start in started_programs(script):
        told = accelerate_processes(script, start)
        if told is None or start.launch is None or machines(script, start.launch, told[1].file) != 1:
            continue
        own = setting(told[1].file, "gpu_ids")
        named = start.launch.options["--config_file"].value
        seen = _devices(script, start.launch) if own is None or own.node.value in {None, "all"} else None
        if seen is None or named is None:
            continue
        span, (many, place) = named.inner, told
        for hit in _compare(many, span, *seen, by=f" ({place.where})"):
            add = Edit(Span(named.span.end, named.span.end), f" --num_processes {seen[0]}")
            here = start.command.span.start <= span.start < start.command.span.end
            yield hit._replace(fix=Fix(f"Start {seen[0]}", (add,)) if here else None)


def _one_for_several(script: Script, launch: LaunchCommand) -> Iterator[Hit]:
    """Report `--multi_gpu` with only one visible device."""
    several = launch.options.get("--multi_gpu")
    if (
        several is None
        or "--num_processes" in launch.options
        or launch.number(script, "--num_machines") not in {None, 1}
    ):
        return
    devices, where = _devices(script, launch) or (0, "")
    if devices == 1 and where in _VISIBLE:
        yield Hit(
            several.word.span,
            f"{where} shows one device, and this asks for several: Accelerate refuses to start, or starts the "
            "processes of its configuration, of which all but the first find no device.",
        )


def _devices(script: Script, launch: LaunchCommand) -> tuple[int, str] | None:
    """Return the number of visible devices per machine and the name of the setting; None if unknown."""
    ids = launch.options.get("--gpu_ids")
    if ids is not None and ids.value is not None:
        return (_count(ids.value.text), "--gpu_ids") if ids.value.text != "all" else None
    for assignment in launch.command.assignments:
        if assignment.name in _VISIBLE:
            return _count(assignment.value.text), assignment.name
    for name in _VISIBLE:
        before = [(a, c) for a, c in script.assignments.get(name, ()) if c.span < launch.command.span]
        before = [(a, c) for a, c in before if not c.words or c.words[0].text in {"export", "declare"}]
        if before:
            assignment, command = before[-1]
            fixed = not command.branch and not assignment.adds
            fixed = fixed and not (launch.command.branch and _ASKED.search(script.text))
            return (_count(assignment.value.text), name) if fixed else None
    if "CUDA_VISIBLE_DEVICES" in script.text:
        return None
    asked = gpus_per_node(script)
    return (asked[0], f"{asked[1].name} of the job") if asked else None


def _set(source: Source) -> tuple[int, str] | None:
    """Return the visible devices that a program, image or job sets for everything that it starts; None if unknown."""
    rows = [v for v in source.variables if v.is_set and v.name in _VISIBLE]
    if isinstance(source, Script) or len(rows) != 1 or rows[0].value is None:
        return None
    start = rows[0].span.start
    keyed = _KEYED.search(source.text[max(0, start - 80) : start]) if isinstance(source, Code) else None
    if keyed and keyed[1] != "environ":
        return None  # a copy of the environment for some commands only
    return _count(rows[0].value), rows[0].name


def _count(text: str) -> int:
    """Return the number of devices in a list; 0 if it is unknown or none are meant."""
    if not _LIST.fullmatch(text) or text.strip() in {"all", "none", "void", "NoDevFiles"}:
        return 0
    devices = {d.strip() for d in text.split(",") if d.strip()}
    return 0 if any(d.startswith("-") for d in devices) else len(devices)


def _spawn_hits(code: Code) -> Iterator[Hit]:
    seen = _set(code)
    if seen is None:
        return
    for call in code.calls(*_SPAWNS):
        node = code.argument(call, *_SPAWNS[code.name(call.func)])
        processes = code.constant(node)
        if node is not None and isinstance(processes, int):
            yield from _compare(processes, code.span(node), *seen)


def _config_hits(document: Config) -> Iterator[Hit]:
    """Report Accelerate's own file."""
    for root in document.roots:
        processes, ids = root.get("num_processes"), root.get("gpu_ids")
        many = number(root.get("num_machines"))
        if processes is None or ids is None or many not in {None, 1}:
            continue
        wanted = number(processes)
        devices = _count(str(ids.value)) if isinstance(ids.value, str | int) else 0
        if isinstance(wanted, int):
            yield from _compare(wanted, processes.span, devices, "gpu_ids")

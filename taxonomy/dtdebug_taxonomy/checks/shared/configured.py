"""Reads the files that a launch command names: Accelerate's configuration and DeepSpeed's."""

from __future__ import annotations

from typing import NamedTuple

from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.config.tree import Node, number
from dtdebug_taxonomy.source.shell.launch import LaunchCommand
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import StartedProgram, document, long_options

_KINDS = frozenset({"--multi_gpu", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm", "--tpu", "--cpu"})
"""Options of the command that decide how processes are started, whatever the file contains."""
_SEVERAL = frozenset({"MULTI_GPU", "DEEPSPEED", "FSDP", "MEGATRON_LM"})


class Setting(NamedTuple):
    """Value in a configuration file, with its file."""

    node: Node
    file: Config

    @property
    def where(self) -> str:
        """Location of the value: `accelerate.yaml line 7`."""
        return f"{self.file.path.rpartition('/')[2]} line {self.file.text.place(self.node.span.start).line}"


def accelerate_file(script: Script, start: StartedProgram) -> Config | None:
    """Return the file of `accelerate launch --config_file`."""
    launch = start.launch
    if launch is None or launch.launcher != "accelerate launch" or not launch.certain:
        return None
    named = launch.options.get("--config_file")
    return document(script, start, script.resolve(named.value.text)) if named and named.value else None


def setting(file: Config, key: str) -> Setting | None:
    """Return the value at a dotted key of a file."""
    node = file.roots[0].get(key)
    return Setting(node, file) if node is not None else None


def accelerate_processes(script: Script, start: StartedProgram) -> tuple[int, Setting] | None:
    """Return the total number of processes that Accelerate's file sets for a command; None if unknown."""
    file = accelerate_file(script, start)
    if file is None or start.launch is None or start.runs_under("mpirun", "mpiexec", "orterun"):
        return None
    kind, many = setting(file, "distributed_type"), setting(file, "num_processes")
    value = number(many.node) if many else None
    chosen = _KINDS & set(start.launch.options)
    if many is None or not isinstance(value, int) or value < 1 or "--num_processes" in start.launch.options:
        return None
    if "--cpu" in chosen or (kind is not None and kind.node.value not in _SEVERAL and not chosen):
        return None
    return value, many


def machines(script: Script, launch: LaunchCommand, file: Config | None) -> int | None:
    """Return the number of machines that Accelerate's processes run on; None if unknown."""
    if "--num_machines" in launch.options:
        return launch.number(script, "--num_machines")
    found = setting(file, "num_machines") if file else None
    value = number(found.node) if found else 1
    return value if isinstance(value, int) else None


def deepspeed_file(script: Script, start: StartedProgram) -> Config | None:
    """Return the DeepSpeed configuration that a command passes to its program or to Accelerate."""
    launch = start.launch
    if launch is None:
        return None
    names = [v for _, n, v in long_options(script, start.arguments) if n in {"--deepspeed", "--deepspeed_config"} and v]
    if "--deepspeed_config_file" in launch.options:
        value = launch.options["--deepspeed_config_file"].value
        names += [script.resolve(value.text)] if value else []
    elif (file := accelerate_file(script, start)) is not None:
        held = setting(file, "deepspeed_config.deepspeed_config_file")
        names += [held.node.value] if held and isinstance(held.node.value, str) else []
    names = [n for n in names if n.endswith(".json")]
    return document(script, start, names[0]) if len(names) == 1 else None

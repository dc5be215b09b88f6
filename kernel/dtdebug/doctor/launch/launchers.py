"""Parses each launcher's own options."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.doctor.launch import hostfile, mpi
from dtdebug.doctor.types import Launch
from dtdebug.errors import UsageError
from dtdebug.live.hosts.job_plan import plan
from dtdebug.storage import safe_open

PORT, _DEEPSPEED_PORT = 29500, 29500
_RAY_PORT = 6379
_DEEPSPEED_HOSTS = Path("/job/hostfile")
"""Hostfile that DeepSpeed reads by default."""
_CONFIG = 1 << 20


_TORCHRUN_TAKES = {
    "nnodes": (re.compile(r"\d{1,6}(?::\d{1,6})?"), "a number, or MIN:MAX"),
    "nproc-per-node": (re.compile(r"\d{1,6}|auto|gpu|cpu|[a-z]{2,10}"), "a number, auto, gpu or cpu"),
    "node-rank": (re.compile(r"\d{1,6}"), "a number"),
    "master-port": (re.compile(r"\d{1,5}"), "a number"),
}
"""Options that torchrun itself checks (https://docs.pytorch.org/docs/stable/elastic/run.html)."""


class LaunchedProgram(NamedTuple):
    """Program that the launcher starts, with its arguments."""

    program: str
    arguments: tuple[str, ...]


def parse_ray(words: list[str], variables: Mapping[str, str]) -> Launch | None:
    """Parse `ray start`, where hosts join at the head node, or `ray job submit -- COMMAND`."""
    if words[:2] == ["job", "submit"]:
        after = words[words.index("--") + 1 :] if "--" in words else []
        return of_ray(LaunchedProgram(*mpi.started_program(after))) or Launch(
            launcher="ray", program=after[0] if after else ""
        )
    if words[:1] != ["start"]:
        return None
    options = dict(zip(words, [*words[1:], ""], strict=True)) | dict(w.split("=", 1) for w in words if "=" in w)
    host, _, port = options.get("--address", "").rpartition(":")
    if "--head" in words:
        host, port = options.get("--node-ip-address", "") or socket.gethostname(), options.get("--port", "")
    nodes = to_count(variables.get("SLURM_NNODES", "")) or 1
    return Launch(
        launcher="ray",
        nodes=nodes,
        least=nodes,
        node=0 if "--head" in words else to_count(variables.get("SLURM_NODEID", "")),
        address=host,
        port=to_count(port) or _RAY_PORT,
        backend="ray",
    )


def of_ray(job: LaunchedProgram, *, sure: bool = True) -> Launch | None:
    """Return the launch of a program that starts its ranks on Ray, or None if not `sure` and no counts are given.

    verl and what is made of it: https://verl.readthedocs.io/en/latest/examples/config.html
    """
    said = dict(word.lstrip("+-").split("=", 1) for word in job.arguments if "=" in word)
    nodes, each = (to_count(said.get(name, "")) for name in ("trainer.nnodes", "trainer.n_gpus_per_node"))
    if not job.program or not (sure or (nodes and each)):
        return None
    return Launch(
        launcher="ray",
        nodes=nodes or 1,
        least=nodes or 1,
        per_node=each,
        starts="ray" if (nodes or 1) > 1 else "",
        program=job.program,
        arguments=job.arguments,
    )


def parse_colossalai(words: list[str], variables: Mapping[str, str]) -> Launch:
    """Parse `colossalai run`, which starts torchrun on each host by ssh; raises UsageError.

    Options: https://colossalai.org/docs/basics/launch_colossalai
    """
    options, at = dict[str, str](), 0
    while at < len(words) and words[at].startswith("-"):
        name, equals, value = words[at].lstrip("-").replace("-", "_").partition("=")
        options[name] = value if equals else "".join(words[at + 1 : at + 2])
        at += 1 if equals else 2
        if name == "m":
            at -= 0 if equals else 1
            break
    rows = (
        hostfile.read_hostfile(Path(options["hostfile"]))
        if options.get("hostfile")
        else hostfile.inline(options.get("host", options.get("H", "")))
    )
    rows = rows[: to_count(options.get("num_nodes", "")) or len(rows)]
    given = {
        "MASTER_ADDR": options.get("master_addr", ""),
        "MASTER_PORT": options.get("master_port", ""),
    }
    found = on_hosts("colossalai run", [(n, None) for n, _ in rows], None, LaunchedProgram("", ()), given)
    each = to_count(options.get("nproc_per_node", ""))
    return msgspec.structs.replace(
        found, per_node=each, backend="static", program="".join(words[at : at + 1]), arguments=tuple(words[at + 1 :])
    )


def parse_torchrun(
    command: Sequence[str], options: dict[str, str], job: LaunchedProgram, variables: Mapping[str, str]
) -> Launch:
    """Parse torchrun's options, with a static endpoint or a rendezvous."""
    said = plan(command, variables)
    many = options.get("nproc-per-node", variables.get("PET_NPROC_PER_NODE", "1"))
    refused = {
        name: f"--{name} {options[name][:60]}: torchrun takes {words}"
        for name, (form, words) in _TORCHRUN_TAKES.items()
        if name in options and "$" not in options[name] and not form.fullmatch(options[name])
    }
    most, least = (1, 1) if "nnodes" in refused else (said.most, said.least)
    alone = "standalone" in options
    node = said.node
    if node is None and most > 1 and said.backend == "static":
        node = to_count(variables.get("SLURM_NODEID", ""))
    return Launch(
        launcher="torchrun",
        nodes=most,
        least=least,
        node=node,
        per_node=to_count(many),
        address="" if alone else said.address,
        port=None if alone else said.port,
        backend=said.backend,
        run_id=said.run_id,
        program=job.program,
        arguments=job.arguments,
        problems=() if job.program else ("the command names no program to run",),
        refused=tuple(refused.values()),
    )


def parse_accelerate(options: dict[str, str], job: LaunchedProgram, variables: Mapping[str, str]) -> Launch:
    """Parse the options and configuration file of `accelerate launch`; raises UsageError."""
    config: dict[str, object] = {}
    problems = []
    path = options.get("config-file")
    if path and "$" in path:
        problems.append(f"--config_file {path[:60]} is not known on this host")
        path = ""
    usual = Path(variables.get("HF_HOME", "~/.cache/huggingface")).expanduser() / "accelerate/default_config.yaml"
    if path or (usual.is_file() and not problems):
        config = _yaml(Path(path) if path else usual)
    value = {
        name: options.get(name.replace("_", "-"), config.get(name))
        for name in (
            "num_machines",
            "machine_rank",
            "main_process_ip",
            "main_process_port",
            "num_processes",
            "rdzv_backend",
        )
    }
    nodes = to_count(str(value["num_machines"] or "")) or 1
    world = to_count(str(value["num_processes"] or ""))
    if world and world % nodes:
        problems.append(f"num_processes {world} is not a multiple of num_machines {nodes}")
    address = str(value["main_process_ip"] or "")
    return Launch(
        launcher="accelerate launch",
        nodes=nodes,
        least=nodes,
        node=to_count(str(value["machine_rank"] if value["machine_rank"] is not None else "")),
        per_node=world // nodes if world and not problems else None,
        world=world,
        address=address,
        port=to_count(str(value["main_process_port"] or "")) or (PORT if address else None),
        backend=str(value["rdzv_backend"] or "static"),
        problems=tuple(problems),
        program=job.program,
        arguments=job.arguments,
        configurations=tuple(filter(None, (_deepspeed_file(options, config),))),
    )


def _deepspeed_file(options: Mapping[str, str], config: Mapping[str, object]) -> str:
    """Return the DeepSpeed configuration file that accelerate is given, or ""."""
    below = config.get("deepspeed_config")
    inside = below.get("deepspeed_config_file") if isinstance(below, dict) else None
    return str(options.get("deepspeed-config-file") or inside or "")


def parse_deepspeed(options: dict[str, str], job: LaunchedProgram, variables: Mapping[str, str]) -> Launch:
    """Parse the options and hostfile of the `deepspeed` launcher; raises UsageError."""
    path = options.get("hostfile")
    if path is None and _DEEPSPEED_HOSTS.is_file():
        path = str(_DEEPSPEED_HOSTS)
    rows = hostfile.read_hostfile(Path(path)) if path else []
    if options.get("include"):
        rows = hostfile.apply_include(options["include"], rows)
    nodes = to_count(options.get("num-nodes", "")) or len(rows) or 1
    rows = rows[:nodes]
    per_node = to_count(options.get("num-gpus", "")) or (rows[0][1] if rows else None)
    names = tuple(name for name, _ in rows)
    address = options.get("master-addr", "") or (names[0] if names else "")
    slots = [count for _, count in rows if count]
    world = sum(slots) if slots and len(slots) == len(rows) and "num-gpus" not in options else None
    return Launch(
        launcher="deepspeed",
        nodes=nodes,
        least=nodes,
        node=to_count(options.get("node-rank", "")),
        per_node=per_node,
        world=world,
        address=address if nodes > 1 else "",
        port=to_count(options.get("master-port", "")) or _DEEPSPEED_PORT,
        backend="static",
        hosts=names,
        hosts_from=path or "",
        starts="deepspeed" if nodes > 1 and "no-ssh" not in options and "node-rank" not in options else "",
        program=job.program,
        arguments=job.arguments,
    )


def parse_horovodrun(options: dict[str, str], job: LaunchedProgram, variables: Mapping[str, str]) -> Launch:
    """Parse horovodrun's options; raises UsageError."""
    rows = (
        hostfile.read_hostfile(Path(options["hostfile"]))
        if options.get("hostfile")
        else hostfile.inline(options.get("hosts", ""))
    )
    return on_hosts("horovodrun", rows, to_count(options.get("num-proc", "")), job, variables)


def on_hosts(
    launcher: str,
    rows: list[tuple[str, int | None]],
    count: int | None,
    job: LaunchedProgram,
    variables: Mapping[str, str],
) -> Launch:
    """Return the launch of a launcher that starts ranks on listed hosts; MASTER_ADDR overrides the first host."""
    names = tuple(name for name, _ in rows)
    slots = {n for _, n in rows}
    per_node = next(iter(slots)) if len(slots) == 1 else None
    if per_node is None and count and names and count % len(names) == 0 and slots <= {None}:
        per_node = count // len(names)
    address = variables.get("MASTER_ADDR", "") or (names[0] if len(names) > 1 else "")
    return Launch(
        launcher=launcher,
        nodes=max(1, len(names)),
        least=max(1, len(names)),
        per_node=per_node,
        world=count,
        address=address,
        port=to_count(variables.get("MASTER_PORT", "")) or (PORT if address else None),
        backend="mpi",
        hosts=names,
        hosts_from="the command" if names else "",
        starts=launcher if len(names) > 1 else "",
        program=job.program,
        arguments=job.arguments,
    )


def skip_interpreter(job: LaunchedProgram) -> LaunchedProgram:
    """Skip the interpreter and its options: `python -u train.py` starts `train.py`."""
    return LaunchedProgram(*mpi.started_program((job.program, *job.arguments)))


def _yaml(path: Path) -> dict[str, object]:
    import yaml

    try:
        found = yaml.safe_load(safe_open.read_text(path, _CONFIG))
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UsageError(f"{path}:{mark.line + 1 if mark else 1}: is not valid YAML") from None
    return found if isinstance(found, dict) else {}


def to_count(text: str) -> int | None:
    """Return the count or port that a text states, or None if it is not one."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else None

"""A launch command, read in the dialect of its launcher: how many hosts and ranks, where they meet, what they run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

import yaml

from dtdebug.doctor import hostfile
from dtdebug.doctor.facts import Launch
from dtdebug.errors import UsageError
from dtdebug.hosts.plan import plan
from dtdebug_taxonomy.source import launch as launches
from dtdebug_taxonomy.source.shell import Script

_MPI = frozenset(("mpirun", "mpiexec", "orterun", "mpiexec.hydra", "prun"))
_TORCHRUN_PORT, _DEEPSPEED_PORT = 29500, 29500
_MPI_COUNT = ("-np", "-n", "--np", "-c", "--n")
_MPI_HOSTS, _MPI_FILES = (
    ("-H", "--host", "-host", "-hosts"),
    ("--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f"),
)
_MPI_TWO = frozenset(
    ("-x", "--map-by", "--bind-to", "-genv", "--prefix", "-wdir", "-npernode", "-ppn", "-N", "--npernode")
)
_MPI_THREE = frozenset(("--mca", "-mca", "--prtemca", "--pmixmca"))
_CONFIG = 1 << 20


class _Job(NamedTuple):
    """What the launcher is to run."""

    program: str
    arguments: tuple[str, ...]


def read(command: Sequence[str], variables: Mapping[str, str], *, node: int | None = None) -> Launch:
    """What the command says; variables where it is silent; `node` overrides which of the hosts this one is.

    Raises:
        UsageError: a hostfile or configuration that it names can't be read.

    """
    found = _of_command(command, variables)
    if found is None:
        found = _of_variables(command, variables)
        if command and not found.launcher:
            found = _with(found, problems=(f"`{shlex.join(command)[:120]}`: no launcher is known in it",))
    if not found.hosts and found.nodes > 1 and (names := hostfile.slurm(variables.get("SLURM_JOB_NODELIST", ""))):
        found = _with(found, hosts=names, hosts_from="SLURM_JOB_NODELIST")
    if node is not None:
        found = _with(found, node=node)
    return found


def is_spare(launch: Launch, variables: Mapping[str, str]) -> bool:
    """A batch system or MPI has started this as a further task of a host, whose first task examines it."""
    local = (variables.get(name, "") for name in ("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"))
    return launch.launcher == "variables" and (_number(next(filter(None, local), "")) or 0) > 0


def _with(launch: Launch, **changes: object) -> Launch:
    import msgspec

    return msgspec.structs.replace(launch, **changes)


def _of_command(command: Sequence[str], variables: Mapping[str, str]) -> Launch | None:
    words = list(command)
    for index, word in enumerate(words[:64]):
        if PurePath(word).name in _MPI:
            return _of_mpi(words[index + 1 :], variables)
    text = command[-1] if len(command) == 3 and command[1] in ("-c", "-lc") else shlex.join(command)
    script = Script(text[:100_000])
    given = next(iter(launches.launches(script)), None)
    if given is None:
        return None
    options = {
        name.lstrip("-").replace("_", "-"): row.value.text if row.value else "" for name, row in given.options.items()
    }
    job = _Job(given.program.text if given.program else "", tuple(w.text for w in given.arguments))
    if given.launcher == "torchrun":
        return _of_torchrun(command, options, job, variables)
    reader = {"accelerate launch": _of_accelerate, "deepspeed": _of_deepspeed, "horovodrun": _of_horovod}
    return reader[given.launcher](options, job, variables)


def _of_torchrun(command: Sequence[str], options: dict[str, str], job: _Job, variables: Mapping[str, str]) -> Launch:
    said = plan(command, variables)
    many = options.get("nproc-per-node", variables.get("PET_NPROC_PER_NODE", "1"))
    alone = "standalone" in options
    node = said.node
    if node is None and said.most > 1 and said.backend == "static":
        node = _number(variables.get("SLURM_NODEID", ""))
    return Launch(
        launcher="torchrun",
        nodes=said.most,
        least=said.least,
        node=node,
        per_node=_number(many),
        address="" if alone else said.address,
        port=None if alone else said.port,
        backend=said.backend,
        run_id=said.run_id,
        program=job.program,
        arguments=job.arguments,
    )


def _of_accelerate(options: dict[str, str], job: _Job, variables: Mapping[str, str]) -> Launch:
    config: dict[str, object] = {}
    path = options.get("config-file")
    usual = Path(variables.get("HF_HOME", "~/.cache/huggingface")).expanduser() / "accelerate/default_config.yaml"
    if path or usual.is_file():
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
    nodes = _number(str(value["num_machines"] or "")) or 1
    world = _number(str(value["num_processes"] or ""))
    problems = []
    if world and world % nodes:
        problems.append(f"num_processes {world} is no multiple of num_machines {nodes}")
    address = str(value["main_process_ip"] or "")
    return Launch(
        launcher="accelerate launch",
        nodes=nodes,
        least=nodes,
        node=_number(str(value["machine_rank"] if value["machine_rank"] is not None else "")),
        per_node=world // nodes if world and not problems else None,
        world=world,
        address=address,
        port=_number(str(value["main_process_port"] or "")) or (_TORCHRUN_PORT if address else None),
        backend=str(value["rdzv_backend"] or "static"),
        problems=tuple(problems),
        program=job.program,
        arguments=job.arguments,
    )


def _of_deepspeed(options: dict[str, str], job: _Job, variables: Mapping[str, str]) -> Launch:
    path = options.get("hostfile")
    rows = hostfile.read(Path(path)) if path else []
    nodes = _number(options.get("num-nodes", "")) or len(rows) or 1
    rows = rows[:nodes]
    per_node = _number(options.get("num-gpus", "")) or (rows[0][1] if rows else None)
    names = tuple(name for name, _ in rows)
    address = options.get("master-addr", "") or (names[0] if names else "")
    slots = [count for _, count in rows if count]
    world = sum(slots) if slots and len(slots) == len(rows) and "num-gpus" not in options else None
    return Launch(
        launcher="deepspeed",
        nodes=nodes,
        least=nodes,
        node=_number(options.get("node-rank", "")),
        per_node=per_node,
        world=world,
        address=address if nodes > 1 else "",
        port=_number(options.get("master-port", "")) or _DEEPSPEED_PORT,
        backend="static",
        hosts=names,
        hosts_from=path or "",
        program=job.program,
        arguments=job.arguments,
    )


def _of_horovod(options: dict[str, str], job: _Job, variables: Mapping[str, str]) -> Launch:
    rows = (
        hostfile.read(Path(options["hostfile"]))
        if options.get("hostfile")
        else hostfile.inline(options.get("hosts", ""))
    )
    return _of_hosts("horovodrun", rows, _number(options.get("num-proc", "")), job, variables)


def _of_mpi(words: list[str], variables: Mapping[str, str]) -> Launch:
    rows: list[tuple[str, int | None]] = []
    count, index = None, 0
    while index < len(words) and words[index].startswith("-"):
        name, equals, value = words[index].partition("=")
        if not equals:
            value = words[index + 1] if index + 1 < len(words) else ""
        if name in _MPI_COUNT:
            count = _number(value)
        elif name in _MPI_HOSTS:
            rows = hostfile.inline(value)
        elif name in _MPI_FILES:
            rows = hostfile.read(Path(value))
        takes = name in (*_MPI_COUNT, *_MPI_HOSTS, *_MPI_FILES) or name in _MPI_TWO
        index += 1 if equals else 3 if name in _MPI_THREE else 2 if takes else 1
    after = words[index:]
    if after and PurePath(after[0]).name.startswith("python"):
        after = [word for word in after[1:] if word != "-u"]
    job = _Job(after[0] if after else "", tuple(after[1:]))
    return _of_hosts("mpirun", rows, count, job, variables)


def _of_hosts(
    launcher: str,
    rows: list[tuple[str, int | None]],
    count: int | None,
    job: _Job,
    variables: Mapping[str, str],
) -> Launch:
    """Launchers that start ranks on the hosts of a list: they meet where the launcher or MASTER_ADDR says."""
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
        port=_number(variables.get("MASTER_PORT", "")) or (_TORCHRUN_PORT if address else None),
        backend="mpi",
        hosts=names,
        hosts_from="the command" if names else "",
        program=job.program,
        arguments=job.arguments,
    )


def _of_variables(command: Sequence[str], variables: Mapping[str, str]) -> Launch:
    """Ranks that a batch system or the user's own script starts: MASTER_*, Slurm's, Open MPI's and plain variables."""

    def first(*names: str) -> int | None:
        return next((n for n in (_number(variables.get(name, "")) for name in names) if n is not None), None)

    address, port = variables.get("MASTER_ADDR", ""), first("MASTER_PORT")
    nodes = first("SLURM_NNODES", "SLURM_JOB_NUM_NODES")
    world = first("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")
    local = first("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")
    rank = first("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
    if local is None and world and nodes and world % nodes == 0:
        local = world // nodes
    if nodes is None:
        nodes = world // local if world and local and world % local == 0 else world or 1
        local = local or (1 if world else None)
    node = first("SLURM_NODEID", "GROUP_RANK")
    if node is None and rank is not None and local:
        node = rank // local
    words = [word for word in command if not word.startswith("-")]
    program = next((word for word in words if word.endswith(".py")), "")
    after = list(command)[list(command).index(program) + 1 :] if program else []
    known = bool(address or (world and rank is not None))
    return Launch(
        launcher="variables" if known else "",
        nodes=max(1, nodes),
        least=max(1, nodes),
        node=node,
        per_node=local,
        world=world,
        address=address,
        port=port or (_TORCHRUN_PORT if address else None),
        backend="env" if known else "",
        program=program,
        arguments=tuple(after),
    )


def _yaml(path: Path) -> dict[str, object]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            found = yaml.safe_load(file.read(_CONFIG))
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UsageError(f"{path}:{mark.line + 1 if mark else 1}: is no YAML") from None
    return found if isinstance(found, dict) else {}


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else None

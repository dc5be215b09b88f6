"""Reads a launch command in its launcher's dialect: hosts, ranks, endpoint and program."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from dtdebug.doctor.launch import hostfile, launchers, mpi, script
from dtdebug.doctor.launch.expansion import is_known, reasons
from dtdebug.doctor.types import Launch
from dtdebug_taxonomy.model.launch_variables import LOCAL_WORLD_SIZE, NODE_RANK, NODES, RANK, WORLD_SIZE
from dtdebug_taxonomy.source.shell import launch as launches
from dtdebug_taxonomy.source.shell.script import Script

_ENDPOINT = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")


def read_launch(
    command: Sequence[str], variables: Mapping[str, str], *, node: int | None = None, nodes: int | None = None
) -> Launch:
    """Return the launch that a command, or the script that it starts, describes; variables fill the gaps.

    `node` overrides this host's node rank; `nodes` is the number of hosts if the command does not state it.

    Raises:
        UsageError: a hostfile or configuration that it names can't be read.

    """
    within = script.find_command(command, variables, _kind)
    many, shown = 0, command
    if within is not None:
        command, many = [_from(within.folder, word) for word in within.words], within.many
        variables = {**{n: v for n, v in variables.items() if n not in within.why}, **within.exported}
    found = _of_command(command, variables)
    unknown = _unknown(command, found, within, in_job="SLURM_JOB_NODELIST" in variables)
    if many > 1 and found is not None:
        found = _with(found, problems=(*found.problems, f"the script starts {many} jobs; the first is examined"))
    if found is None:
        found = _of_variables(command, variables)
        if shown and not found.launcher:
            found = _with(found, problems=(f"`{shlex.join(shown)[:120]}`: no launcher is known in it",))
    if unknown:
        found = _with(found, problems=(*found.problems, unknown))
    gone = within is not None and within.folder != "." and found.program in within.words  # missing or unknown
    if gone and within is not None and found.program.endswith(".py"):
        found = _with(found, program=str(PurePath(within.folder, found.program)))
    if not found.hosts and found.nodes > 1 and (names := hostfile.slurm(variables.get("SLURM_JOB_NODELIST", ""))):
        found = _with(found, hosts=names, hosts_from="SLURM_JOB_NODELIST")
    if node is not None:
        found = _with(found, node=node)
    if nodes is not None and found.nodes == 1:
        found = _with(found, nodes=nodes, least=nodes)
    if node is not None or any(variables.get(name) for name in RANK[1:]):
        found = _with(found, starts="")
    return found


def _unknown(command: Sequence[str], found: Launch | None, within: script.ScriptCommand | None, *, in_job: bool) -> str:
    """Say what the launch needs that a script or command leaves unknown, and what to do; "" if nothing."""
    words = [w for w in _before(command, found) if not is_known(w)] if found is not None else []
    if within is None:
        return f"{words[0][:60]} is not known on this host" if words else ""
    names = [f"{n} {within.why[n]}" for n in _ENDPOINT if n in within.why and found is None]
    why = "; ".join((names or reasons(" ".join(words), within.why))[:3])
    more = ", or run inside the job" if not in_job and ("SLURM" in why or "scontrol" in why) else ""
    return f"{why}: not known here; give the launch command after --{more}" if why else ""


def _from(folder: str, word: str) -> str:
    """Resolve a file argument of a script against the folder to which the script changes."""
    name, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    if folder == "." or not value or value.startswith(("/", "$", "-")) or len(value) > 250:
        return word
    return f"{name}{equals}{PurePath(folder, value)}" if Path(folder, value).is_file() else word


def _kind(words: Sequence[str]) -> int:
    """Return the confidence that words start ranks: 3 a launcher, 2 a Ray job, 1 a Ray node, 0 neither."""
    names = [PurePath(word).name for word in words[:64]]
    for index, name in enumerate(names):
        if name in mpi.PROGRAMS:
            after = mpi.started_command(words[index + 1 :])
            python = any(PurePath(w).name.startswith("python") or w.endswith(".py") for w in after[:6])
            return 3 if python or _kind(after) else 0
        if name == "colossalai":
            return 3 if names[index + 1 : index + 2] == ["run"] else 0
        if name == "ray":
            return {"start": 1, "job": 2}.get(words[index + 1] if index + 1 < len(words) else "", 0)
    if _as_torchrun(list(words), {"NPROC_PER_NODE": "1"}) != list(words):
        return 3
    if not any(word in text for text in words[:64] for word in launches.WORDS):
        return 0
    return 3 if next(iter(launches.launches(Script(shlex.join(words)[:100_000]))), None) else 0


def is_spare(launch: Launch, variables: Mapping[str, str]) -> bool:
    """True for further tasks of a host that a batch system or MPI started; the first task examines the host."""
    local = (variables.get(name, "") for name in ("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"))
    return launch.launcher == "variables" and (launchers.to_count(next(filter(None, local), "")) or 0) > 0


def _with(launch: Launch, **changes: object) -> Launch:
    import msgspec

    return msgspec.structs.replace(launch, **changes)


def _before(command: Sequence[str], found: Launch) -> list[str]:
    """Return the words before the program."""
    words = list(command)
    return words[: words.index(found.program)] if found.program in words else words


def _of_command(command: Sequence[str], variables: Mapping[str, str]) -> Launch | None:
    words = list(command)
    for index, word in enumerate(words[:64]):
        if PurePath(word).name in mpi.PROGRAMS:
            return _of_mpi(mpi.parse_mpirun(words[index + 1 :]), variables)
        if PurePath(word).name == "colossalai" and words[index + 1 : index + 2] == ["run"]:
            return launchers.parse_colossalai(words[index + 2 :], variables)
        if PurePath(word).name == "ray" and (of_ray := launchers.parse_ray(words[index + 1 :], variables)) is not None:
            return of_ray
    words = _as_torchrun(words, variables)
    text = words[-1] if len(words) == 3 and words[1] in ("-c", "-lc") else shlex.join(words)
    given = next(iter(launches.launches(Script(text[:100_000]))), None)
    if given is None:
        at = next((i for i, w in enumerate(words[1:8], 1) if PurePath(w).name in launches.PROGRAMS), 0)
        program = any(w.endswith((".py", ".sh")) for w in words[:at])
        return _of_command(words[at:], variables) if at and not program else None  # an unknown wrapper
    options = {
        name.lstrip("-").replace("_", "-"): row.value.text if row.value else "" for name, row in given.options.items()
    }
    job = launchers.LaunchedProgram(given.program.text if given.program else "", tuple(w.text for w in given.arguments))
    if given.launcher == "torchrun":
        found = launchers.parse_torchrun(words, options, job, variables)
    elif given.launcher == "horovodrun":
        found = launchers.parse_horovodrun(options, launchers.skip_interpreter(job), variables)
    else:
        reader = {"accelerate launch": launchers.parse_accelerate, "deepspeed": launchers.parse_deepspeed}
        found = reader[given.launcher](options, job, variables)
    above = next((n for w in given.before if (n := PurePath(w.text).name) in ("srun", "pdsh")), "")
    return _with(found, starts=above) if above and found.nodes > 1 else found


_FABRIC = {
    "--num-nodes": "--nnodes", "--devices": "--nproc-per-node",
    "--main-address": "--master-addr", "--main-port": "--master-port",
}  # fmt: skip
_TORCHRUN_BY = {
    "NNODES": "--nnodes", "NODE_RANK": "--node-rank", "NPROC_PER_NODE": "--nproc-per-node",
    "MASTER_ADDR": "--master-addr", "MASTER_PORT": "--master-port",
}  # fmt: skip
_LIKE_TORCHRUN: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "tune": (("run",), {}),
    "composer": ((), {"-n": "--nproc-per-node", "--nproc": "--nproc-per-node"}),
    "fabric": (("run",), _FABRIC),
    "lightning": (("run", "model"), _FABRIC),
}
"""Program -> its words before the options, and its names for torchrun's options."""
_BY_VARIABLES = {"llamafactory-cli": ("train",), "swift": ("sft", "pt", "rlhf")}
"""Programs that start torchrun on this host with options from variables."""


def _as_torchrun(words: list[str], variables: Mapping[str, str]) -> list[str]:
    """Rewrite the command of a launcher that wraps torchrun as a torchrun command."""
    for index, word in enumerate(words[:8]):
        name = PurePath(word).name
        more, names = _LIKE_TORCHRUN.get(name, ((), {}))
        if name in _LIKE_TORCHRUN and tuple(words[index + 1 : index + 1 + len(more)]) == more:
            rest = words[index + 1 + len(more) :]
            renamed = [
                f"{names.get(name, name)}{sign}{value}" for name, sign, value in (w.partition("=") for w in rest)
            ]
            return [*words[:index], "torchrun", *_without_world(renamed)] if rest else words
        if name in _BY_VARIABLES and words[index + 1 : index + 2] and words[index + 1] in _BY_VARIABLES[name]:
            said = [f"{option}={variables[of]}" for of, option in _TORCHRUN_BY.items() if variables.get(of)]
            if name == "llamafactory-cli" and "NPROC_PER_NODE" not in variables:
                said.append("--nproc-per-node=gpu")  # on all devices
            return [*words[:index], "torchrun", *said, word, *words[index + 1 :]] if said else words
    return words


def _without_world(words: list[str]) -> list[str]:
    """Replace Composer's total number of ranks by torchrun's number of hosts."""
    said = {w: words[i + 1] for i, w in enumerate(words[:-1]) if w in ("--world_size", "--nproc-per-node")}
    world, each = (launchers.to_count(said.get(name, "")) for name in ("--world_size", "--nproc-per-node"))
    if world is None:
        return words
    at = words.index("--world_size")
    hosts = [f"--nnodes={world // each}"] if each and world % each == 0 else []
    return [*words[:at], *hosts, *words[at + 2 :]]


def _of_mpi(given: mpi.MpiCommand, variables: Mapping[str, str]) -> Launch:
    variables = {**variables, **given.exported}
    below = _of_command(given.after, variables) if given.after else None
    if below is not None:  # it starts one launcher per host
        names = tuple(name for name, _ in given.rows)
        return _with(below, hosts=names, hosts_from="the command" if names else "", starts="mpirun")
    found = launchers.on_hosts(
        "mpirun", given.rows, given.ranks, launchers.LaunchedProgram(*mpi.started_program(given.after)), variables
    )
    return _with(found, per_node=found.per_node or given.per_node)


def _of_variables(command: Sequence[str], variables: Mapping[str, str]) -> Launch:
    """Return the launch of ranks started by a batch system or script: MASTER_*, Slurm, Open MPI, plain variables."""

    def first(*names: str) -> int | None:
        return next((n for n in (launchers.to_count(variables.get(name, "")) for name in names) if n is not None), None)

    address, port = variables.get("MASTER_ADDR", ""), first("MASTER_PORT")
    nodes = first(*NODES)
    world = first(*WORLD_SIZE)
    local = first(*LOCAL_WORLD_SIZE)
    rank = first(*RANK)
    if local is None and world and nodes and world % nodes == 0:
        local = world // nodes
    if nodes is None:
        nodes = world // local if world and local and world % local == 0 else world or 1
        local = local or (1 if world else None)
    node = first(*NODE_RANK)
    if node is None and rank is not None and local:
        node = rank // local
    start = next((i for i, word in enumerate(command[:64]) if PurePath(word).name.startswith("python")), len(command))
    program, after = mpi.started_program(command[start:])
    if not program and (at := next((i for i, word in enumerate(command) if word.endswith(".py")), -1)) >= 0:
        program, after = command[at], tuple(command[at + 1 :])  # its own interpreter starts it
    known = bool(address or (world and rank is not None))
    if not known and (by_ray := launchers.of_ray(launchers.LaunchedProgram(program, after), sure=False)) is not None:
        return by_ray
    return Launch(
        launcher="variables" if known else "",
        nodes=max(1, nodes),
        least=max(1, nodes),
        node=node,
        per_node=local,
        world=world,
        address=address,
        port=port or (launchers.PORT if address else None),
        backend="env" if known else "",
        program=program,
        arguments=after,
    )

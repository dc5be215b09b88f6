"""Plan of a job from its launch command and variables: number of hosts, this host's number, and the endpoint."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath

from dtdebug_taxonomy.model.hosts import Plan

_MOST_HOSTS = 1 << 16
FLAGS = frozenset(
    ("standalone", "module", "no-python", "run-path", "use-env", "multi-gpu", "cpu", "debug", "use-deepspeed",
     "use-fsdp", "same-network", "quiet", "dynamo-use-dynamic")
)  # fmt: skip
"""Options of launchers that take no value."""
_TORCHRUN = {
    "nnodes": "nodes", "node-rank": "node", "nproc-per-node": "per_node", "master-addr": "address",
    "master-port": "port", "rdzv-endpoint": "endpoint", "rdzv-backend": "backend", "rdzv-id": "run_id",
}  # fmt: skip
_ACCELERATE = {
    "num-machines": "nodes", "machine-rank": "node", "main-process-ip": "address", "main-process-port": "port",
    "rdzv-backend": "backend",
}  # fmt: skip
_STATIC_PORT, _C10D_PORT = 29500, 29400
"""Default ports, if the command names none."""
_LOOPBACK = "127.0.0.1"


def is_launcher(command: Sequence[str]) -> bool:
    """True if the command is torchrun or `accelerate launch` itself, not a shell around it."""
    return _options(command[:4]) is not None


def ranks_command(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command without the launcher's options, which may differ between the hosts of a job."""
    found = _options(command)
    return tuple(found[1][_past(found[1]) :]) if found is not None else tuple(command)


def plan(command: Sequence[str], variables: Mapping[str, str]) -> Plan:
    """Return the plan of a command, including one within `bash -c`; variables fill the gaps."""
    for words in _commands(command):
        found = _options(words)
        if found is not None:
            return _of_launcher(*found, variables)
    nodes = _number(variables.get("SLURM_NNODES", ""))
    world, local = _number(variables.get("WORLD_SIZE", "")), _number(variables.get("LOCAL_WORLD_SIZE", ""))
    if nodes is None and world and local and world % local == 0:
        nodes = world // local
    nodes = min(nodes or 1, _MOST_HOSTS)
    return Plan(least=nodes, most=nodes, node=_number(variables.get("SLURM_NODEID", "")) if nodes > 1 else None)


def _commands(command: Sequence[str]) -> Iterator[Sequence[str]]:
    yield command
    if len(command) > 2 and PurePath(command[0]).name in ("sh", "bash", "dash", "zsh"):
        text = next((word for word in command[1:4] if " " in word), "")
        with suppress(ValueError):
            yield shlex.split(text[:10_000], comments=True)


def _options(words: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """Return (launcher, words after its name), if a launcher is among the words."""
    for index, word in enumerate(words[:64]):
        name = PurePath(word).name
        if name == "torchrun" or word in ("torch.distributed.run", "torch.distributed.launch"):
            return "torchrun", words[index + 1 :]
        if name == "accelerate" and list(words[index + 1 : index + 2]) == ["launch"]:
            return "accelerate", words[index + 2 :]
        if name == "accelerate-launch" or word == "accelerate.commands.launch":
            return "accelerate", words[index + 1 :]
    return None


def _read(words: Sequence[str]) -> dict[str, str]:
    """Return the options before the program, by name with dashes."""
    found: dict[str, str] = {}
    index, end = 0, _past(words)
    while index < end:
        name, equals, value = _option(words[index])
        index += 1
        if not equals and name not in FLAGS:
            value = words[index] if index < end else ""
            index += 1
        found[name] = value
    return found


def _past(words: Sequence[str]) -> int:
    """Return the index after the options."""
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] not in ("-m", "--"):
        name, equals, _ = _option(words[index])
        index += 1 if equals or name in FLAGS else 2
    return min(index, len(words))


def _option(word: str) -> tuple[str, str, str]:
    name, equals, value = word.lstrip("-").partition("=")
    return name.replace("_", "-"), equals, value


def _of_launcher(launcher: str, words: Sequence[str], variables: Mapping[str, str]) -> Plan:
    given = _read(words)
    if "standalone" in given:
        return Plan(backend="c10d")
    names = _TORCHRUN if launcher == "torchrun" else _ACCELERATE
    said = {field: given[name] for name, field in names.items() if name in given}
    if launcher == "torchrun":
        for name, field in names.items():
            value = variables.get(f"PET_{name.upper().replace('-', '_')}")
            if value and field not in said:
                said[field] = value
    least, _, most = said.get("nodes", "1").partition(":")
    low = _number(least) or 1
    backend = said.get("backend", "static")
    address, port = said.get("address", ""), _number(said.get("port", ""))
    if endpoint := said.get("endpoint", ""):
        host, colon, number = endpoint.rpartition(":")
        address, port = (host, _number(number)) if colon and host else (endpoint, None)
    usual = _STATIC_PORT if backend == "static" else _C10D_PORT
    return Plan(
        least=low,
        most=max(low, _number(most) or low),
        node=_number(said.get("node", "")) if backend == "static" else None,
        per_node=_number(said.get("per_node", "1")) if launcher == "torchrun" else None,
        address=address.strip("[]") or _LOOPBACK,
        port=port or usual,
        backend=backend,
        run_id=said.get("run_id", "")[:200],
    )


def _number(text: str) -> int | None:
    text = text.strip()
    return min(int(text), _MOST_HOSTS) if text.isascii() and text.isdecimal() and len(text) < 10 else None

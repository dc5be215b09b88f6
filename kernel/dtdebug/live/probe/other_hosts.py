"""Finds ranks that did not answer here, builds commands that ask for them on other hosts, and joins the answers.

Agents put their addresses into their job's own store. It uses PyTorch's protocol, and this program imports no torch: a
short script in the job's own Python reads it, without waiting for keys. If the store's host has ended, there is nothing
to read. Nothing else here runs a command or opens a connection.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from dtdebug.live.probe import remote_commands
from dtdebug.live.probe.ask_all_ranks import one_each, world_size
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import MOST_RANKS, RankState, spell

_JOB = "SLURM_JOB_ID"
_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
_OF_JOB = (_JOB, "TORCHELASTIC_RUN_ID", "MASTER_PORT")
"""Variables that are equal on all ranks of a job: another host's answer may come from a different job."""
_WHOLE = 500
"""Length in characters from which a variable in a record may be truncated."""
_LOOPBACK = ("127.", "localhost:", "[::1]:")
TIMEOUT = 30.0
"""Seconds for importing torch and reading."""
_SCRIPT = """
import datetime, json, sys
from torch.distributed import TCPStore
host, port, world, timeout = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
store = TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=datetime.timedelta(seconds=timeout))
names = {}
try:
    names = {key: int(key.rpartition("dtdebug/")[2]) for key in store.list_keys()
             if "dtdebug/" in key and key.rpartition("dtdebug/")[2].isdecimal()}
except Exception:  # before torch 2.9 a store can't list its keys
    for attempt in [None, *range(8)]:
        outer = "" if attempt is None else "/worker/attempt_%d/" % attempt
        for prefix in (outer, outer + "default_pg/", outer + "default_pg/0/"):
            for rank in range(world):
                key = "%sdtdebug/%d" % (prefix, rank)
                if store.check([key]):
                    names[key] = rank
found = {}
for key in sorted(names):  # a later attempt's name sorts after an earlier one's
    found[names[key]] = store.get(key).decode(errors="replace")[:300]
json.dump(found, sys.stdout)
"""


def silent_ranks(states: Sequence[RankState]) -> tuple[int, ...]:
    """Return the ranks of the job that neither answered nor are known to have ended."""
    answered = {state.rank for state in states if state.alive is not None}
    return tuple(rank for rank in range(world_size(states)) if rank not in answered)


def commands(
    states: Sequence[RankState],
    folder: RunFolder | None,
    *,
    via: str | None = None,
    named: Sequence[str] = (),
    program: Sequence[str] = ("dtdebug",),
) -> list[remote_commands.RemoteCommand]:
    """Return commands for the hosts that the user named as `NAME` or `NAME=TARGET`, else for likely ones.

    Raises:
        ValueError: a host name is invalid, or the transport needs an unknown value.

    """
    job = _variable(states, _JOB)
    via = via or ("srun" if job else "ssh")
    if via == "srun" and not job:
        raise ValueError(f"--via srun: no rank that answered has {_JOB}; --via ssh asks the hosts themselves")
    if via == "kubectl" and not named:
        raise ValueError("--via kubectl: name the pods with --host POD")
    seeing = {_short(record.host) for record in folder.records()} if folder else set()

    def build(host: str, target: str = "") -> remote_commands.RemoteCommand:
        shared = str(folder.path.absolute()) if folder and _short(host) in seeing else ""
        words = remote_commands.attach(target or shared, program=program)
        if via == "srun":
            return remote_commands.over_srun(job, host, words)
        return remote_commands.over_kubectl(host, words) if via == "kubectl" else remote_commands.over_ssh(host, words)

    if named:
        return [build(host, target) for host, _, target in (name.partition("=") for name in dict.fromkeys(named))]
    found = []
    for host in _hosts(states):
        with suppress(ValueError):  # a record may hold anything
            found.append(build(host))
    return found


def join_answers(
    states: Sequence[RankState], others: Sequence[RankState]
) -> tuple[tuple[RankState, ...], tuple[str, ...]]:
    """Return (states, notes): the states completed by other hosts' answers for ranks that were silent here."""
    world, ours = world_size(states), {name: _variable(states, name) for name in _OF_JOB}
    answered = {state.rank for state in states if state.alive and state.rank is not None}
    more: list[RankState] = []
    foreign: dict[str, None] = {}
    for other in others:
        if other.alive is None or other.rank in answered:
            continue
        if _is_of_another_job(other, world, ours):
            foreign[other.host] = None
        else:
            more.append(other)
    told = {other.rank for other in more}
    kept = [s for s in states if s.alive is not None or s.rank is None or s.rank not in told]
    notes = [f"{host}: what answered there is of another job; --host {host}=PID names a process" for host in foreign]
    merged = one_each([*kept, *more])
    return tuple(sorted(merged, key=lambda s: (s.rank is None, s.rank or 0, s.pid or 0))), tuple(notes)


def reachable(addresses: Mapping[int, str], host: str) -> tuple[dict[int, str], tuple[str, ...]]:
    """Return (addresses, notes), without loopback addresses of the rank's own host."""
    if f"{host}:".startswith(_LOOPBACK) or host == "::1":
        return dict(addresses), ()
    loopback = [rank for rank, address in addresses.items() if address.startswith(_LOOPBACK)]
    kept = {rank: address for rank, address in addresses.items() if rank not in loopback}
    if not loopback:
        return kept, ()
    return kept, (f"{spell(loopback)} can be asked on its own host only: the job was started without DTDEBUG_BIND",)


def store_of(states: Sequence[RankState]) -> str:
    """Return the store's `HOST:PORT`, if the ranks put addresses there that other hosts can reach."""
    for state in states:
        address, place = state.facts.get("endpoint", ""), store_address(state.environment)
        if state.alive and place and address and not address.startswith(_LOOPBACK):
            return f"{place[0]}:{place[1]}"
    return ""


def _hosts(states: Sequence[RankState]) -> Iterator[str]:
    """Yield the hosts of silent ranks, and the hosts of the Slurm job without an answer."""
    from dtdebug.live.probe.adapters import mpi

    missing = set(silent_ranks(states))
    if not missing:
        return
    lists = {name: text for name in _LISTS if (text := _variable(states, name)) and len(text) < _WHOLE}
    silent = [state.host for state in states if state.rank in missing and state.host]
    heard = {_short(state.host) for state in states if state.alive is not None}
    seen = {_short(socket.gethostname())}
    for host in (*silent, *(listed for listed in mpi.hosts(lists) if _short(listed) not in heard)):
        if _short(host) not in seen:
            seen.add(_short(host))
            yield host


def _variable(states: Sequence[RankState], name: str) -> str:
    return next((value for state in states if (value := state.environment.get(name))), "")


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _is_of_another_job(other: RankState, world: int, ours: Mapping[str, str]) -> bool:
    if world and other.world_size and world != other.world_size:
        return True
    theirs = other.environment
    return any(own and name in theirs and theirs[name] != own for name, own in ours.items())


class StoreError(Exception):
    """The store could not be read; the text gives the reason."""


def addresses(
    host: str, port: int, *, python: str = sys.executable, world: int = 1, timeout: float = TIMEOUT
) -> dict[int, str]:
    """Return each rank's agent address, `host:port`, from the job's store.

    Raises:
        StoreError: the store has gone, does not answer in time, or that Python has no torch.

    """
    try:
        socket.create_connection((host, port), timeout=min(timeout, 2.0)).close()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise StoreError(f"no store at {host}:{port} any more, the process that kept it has ended: {why}") from error
    command = [python, "-c", _SCRIPT, host, str(port), str(world), str(timeout)]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL, cwd="/"
        )
    except subprocess.TimeoutExpired:
        raise StoreError(f"the store at {host}:{port} did not answer within {timeout:g} s") from None
    except OSError as error:
        raise StoreError(f"{python} can't be started: {error.strerror}") from error
    said = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode:
        raise StoreError(f"the store at {host}:{port} can't be read: {said[-1][:200] if said else 'no reason given'}")
    try:
        found = msgspec.json.decode(done.stdout[: 64 << 20], type=dict[int, str])
    except msgspec.MsgspecError as error:
        raise StoreError(f"the store at {host}:{port} holds something else: {error}") from error
    return {rank: text for rank, text in found.items() if 0 <= rank < MOST_RANKS}


def store_address(variables: Mapping[str, str]) -> tuple[str, int] | None:
    """Return host and port of the store from a rank's environment."""
    host, port = variables.get("MASTER_ADDR", ""), variables.get("MASTER_PORT", "")
    return (host, int(port)) if host and port.isdecimal() and int(port) < 65536 else None


def python_of(command: tuple[str, ...], variables: Mapping[str, str]) -> str:
    """Return the Python that a rank runs, whose torch can read the store; else our own."""
    program = command[0] if command else ""
    if Path(program).is_absolute() and "python" in Path(program).name:
        return program
    home = variables.get("VIRTUAL_ENV") or variables.get("CONDA_PREFIX")
    inside = Path(home) / "bin" / "python" if home else None
    return str(inside) if inside is not None and inside.exists() else sys.executable

"""Requests about a kernel, and the kernel's process on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

ELSEWHERE = (
    "this server has no process of that kernel: it is still starting, or runs elsewhere (behind a gateway, on another "
    "machine); there, `dtdebug attach` with its process id looks at it"
)


class LookRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a request to look."""

    kind: Literal["hang", "state", "glance"] = "hang"
    timeout: Annotated[float, msgspec.Meta(gt=0, le=10)] = 3.0
    """Seconds that the ranks have to answer."""


Pids = Annotated[list[Annotated[int, msgspec.Meta(gt=1, lt=1 << 31)]], msgspec.Meta(min_length=1, max_length=4096)]


class EndRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a request to end ranks."""

    pids: Pids


class KernelProcess(msgspec.Struct, frozen=True):
    """Process of a kernel on this machine."""

    pid: int
    file: str
    """Name of the connection file with which it was started."""
    alive: bool


class Kernels(msgspec.Struct, frozen=True):
    """Kernels of this server."""

    files: list[str]
    """Names of their connection files."""
    pids: list[int]
    """Processes of those that run on this machine."""


def decode_request(body: bytes) -> LookRequest:
    """Decode the request in a body; raises ValueError that describes a valid request."""
    try:
        return msgspec.json.decode(body or b"{}", type=LookRequest)
    except ValueError as error:
        form = 'ask with {"kind": "hang", "state" or "glance", "timeout": seconds up to 10}'
        raise ValueError(f"{form}: {error}") from error


def to_end(body: bytes) -> EndRequest:
    """Decode the processes that a body names; raises ValueError that describes a valid request."""
    try:
        return msgspec.json.decode(body, type=EndRequest)
    except ValueError as error:
        raise ValueError(f'ask with {{"pids": [process ids]}}: {error}') from error


def file_of(kernel: Any) -> str:
    """Return the name of the connection file of a kernel manager's kernel."""
    return Path(kernel.connection_file).name


def is_idle(kernel: Any) -> bool:
    """True if the server knows that no cell runs."""
    return getattr(kernel, "execution_state", "") == "idle"


def of_server(manager: Any) -> Kernels:
    """Return the current kernels of a server."""
    found = [manager.get_kernel(each) for each in manager.list_kernel_ids()]
    pids = [getattr(getattr(each, "provisioner", None), "pid", None) for each in found]
    return Kernels([file_of(each) for each in found], [pid for pid in pids if pid is not None])


async def process_of(kernel: Any) -> KernelProcess | None:
    """Return the process of a kernel manager's kernel, or None if it has none on this machine."""
    from jupyter_client.provisioning.local_provisioner import LocalProvisioner
    from jupyter_core.utils import ensure_async

    provisioner = getattr(kernel, "provisioner", None)
    if not isinstance(provisioner, LocalProvisioner) or provisioner.pid is None:
        return None
    alive = bool(await ensure_async(kernel.is_alive()))
    return KernelProcess(provisioner.pid, file_of(kernel), alive)

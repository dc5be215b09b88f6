"""Channels into a living rank besides the folder: our endpoint, c10d's worker server, an address in the job's store.

The endpoint implements a minimum of HTTP: a rank should not have to import a web server. The worker server is C++ and
answers while the interpreter is busy.
"""

from __future__ import annotations

import ctypes
import errno
import hmac
import ipaddress
import os
import secrets
import selectors
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from dtdebug.storage import state_dir, unix_sockets

TOKEN = "DTDEBUG_TOKEN"  # noqa: S105 - the name of the variable
"""Environment variable with the token that the endpoint requires; the file `token` of the run's folder holds it too."""
BIND = "DTDEBUG_BIND"
"""Environment variable with the address that the endpoint listens at, by default 127.0.0.1."""
_REQUEST_LIMIT = 8192
_PATIENCE = 2.0
"""Seconds for a client to send its request, and to receive the answer."""
_CLIENTS = 64
"""Maximum number of clients waited for at once."""
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED, errno.EINTR)
"""Temporary errors of a process that can't accept a client now."""
_PAUSE = 0.5
_PREFIX = "dtdebug-socket-"
_STORE_PATIENCE = 5.0
_ERRORS = 2
"""Level of torch's C++ log that omits warnings."""


def token(folder: Path) -> str:
    """Return the token for readers of this run: from the environment, else from the folder, created if missing.

    Raises:
        OSError: the folder can't be written.

    """
    if given := os.environ.get(TOKEN):
        return given
    path = folder / "token"
    with suppress(OSError):
        return _read_token(path)
    state_dir.write(path, secrets.token_urlsafe(24).encode())
    return _read_token(path)


def _read_token(path: Path) -> str:
    return state_dir.read_start(path, 200).decode("latin-1").strip()


class Endpoint:
    """Answers GET on some paths to clients with the token; silent clients delay no others."""

    def __init__(self, answers: Mapping[str, Callable[[], bytes]], secret: str) -> None:
        self._answers = answers
        self._secret = f"Bearer {secret}".encode()
        host = os.environ.get(BIND) or "127.0.0.1"
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=16)
        port = self._socket.getsockname()[1]
        shown = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host  # noqa: S104
        self.address = f"{shown}:{port}"
        self._thread = threading.Thread(target=self._serve, name="dtdebug-endpoint", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the socket; also in a forked child, which has the socket but not the thread."""
        self._socket.close()

    def shut(self) -> None:
        """Stop the endpoint in the serving process: the thread that waits for clients returns."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(_PAUSE)  # closing a socket at once wakes no thread
        self.close()

    def _serve(self) -> None:
        waiting: dict[socket.socket, _Client] = {}
        try:
            with suppress(OSError, ValueError), selectors.DefaultSelector() as ready:  # closed by another thread
                self._socket.setblocking(False)
                ready.register(self._socket, selectors.EVENT_READ)
                while self._turn(ready, waiting):
                    pass
        finally:
            for client in waiting:
                client.close()

    def _turn(self, ready: selectors.BaseSelector, waiting: dict[socket.socket, _Client]) -> bool:
        """Serve clients that are ready, and dismiss late ones; False when the endpoint has ended."""
        for key, _ in ready.select(_PAUSE if waiting else None):
            if key.fileobj is self._socket:
                if not self._welcome(ready, waiting):
                    return False
                continue
            client = cast("socket.socket", key.fileobj)
            if client not in waiting:
                continue
            who = waiting[client]
            if not who.answer and who.is_heard(client):
                who.answer = self._respond(who.head)
                who.deadline = time.monotonic() + _PATIENCE
                ready.modify(client, selectors.EVENT_WRITE)
            if who.answer and who.is_answered(client):
                _dismiss(ready, waiting, client)
        now = time.monotonic()
        for client in [one for one, who in waiting.items() if who.deadline < now or who.gone]:
            _dismiss(ready, waiting, client)
        return True

    def _welcome(self, ready: selectors.BaseSelector, waiting: dict[socket.socket, _Client]) -> bool:
        """Accept a client; drop the oldest of too many. False when the endpoint has ended."""
        try:
            client, _ = self._socket.accept()
        except BlockingIOError:
            return True
        except OSError as error:
            if error.errno in _PASSING:
                time.sleep(_PAUSE)
            return error.errno in _PASSING
        client.setblocking(False)
        while len(waiting) >= _CLIENTS:
            _dismiss(ready, waiting, next(iter(waiting)))
        waiting[client] = _Client(time.monotonic() + _PATIENCE)
        ready.register(client, selectors.EVENT_READ)
        return True

    def _respond(self, head: bytes) -> memoryview:
        try:
            status, body = self._answer(head.partition(b"\r\n\r\n")[0])
        except Exception:
            status, body = "400 Bad Request", b""
        first = (f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}")
        return memoryview("\r\n".join((*first, "Connection: close", "", "")).encode() + body)

    def _answer(self, head: bytes) -> tuple[str, bytes]:
        first, *lines = head.split(b"\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        method, _, rest = first.partition(b" ")
        if not _is_plain_host(headers.get(b"host", b"")):
            return "421 Misdirected Request", b""
        if b"origin" in headers or headers.get(b"sec-fetch-site", b"none") != b"none":  # a page in a browser
            return "403 Forbidden", b""
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._secret):
            return "401 Unauthorized", b""
        answer = self._answers.get(rest.partition(b" ")[0].decode("latin-1"))
        if method != b"GET" or answer is None:
            return "404 Not Found", b""
        try:
            return "200 OK", answer()
        except Exception:
            return "503 Service Unavailable", b""


def _is_plain_host(header: bytes) -> bool:
    """True for an address, or a name that no foreign name server can give: web pages can't make browsers ask us."""
    host = header.decode("latin-1")
    host = host[1:].partition("]")[0] if host.startswith("[") and "]" in host else host.partition(":")[0]
    if host in ("localhost", "rank", socket.gethostname()):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _Client:
    """A client that is heard or answered; bodies of requests are ignored."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.head = b""
        self.answer = memoryview(b"")
        """Rest of the answer."""
        self.gone = False

    def is_heard(self, client: socket.socket) -> bool:
        """Read more; True if the head of the request is complete."""
        try:
            part = client.recv(_REQUEST_LIMIT)
        except BlockingIOError:
            return False
        except OSError:
            part = b""
        self.head += part
        self.gone = not part or len(self.head) > _REQUEST_LIMIT
        return not self.gone and b"\r\n\r\n" in self.head

    def is_answered(self, client: socket.socket) -> bool:
        """Send as much as the client takes now; True if that was all, or if it has gone."""
        try:
            self.answer = self.answer[client.send(self.answer) :]
        except BlockingIOError:
            return False
        except OSError:
            return True
        return not self.answer


def _dismiss(ready: selectors.BaseSelector, waiting: dict[socket.socket, _Client], client: socket.socket) -> None:
    del waiting[client]
    ready.unregister(client)
    client.close()


class WorkerServer:
    """c10d's own server on a socket in a folder that only the user can enter, which is its authorisation."""

    def __init__(self, path: Path) -> None:
        kind = getattr(sys.modules.get("torch._C._distributed_c10d"), "_WorkerServer", None)
        if kind is None:
            raise NotImplementedError("this torch has no worker server")
        self._level = _log_level()
        self._private: Path | None = None
        try:
            self.path = path
            self._server = self._start(kind)
        except (OSError, RuntimeError, ValueError):  # a file system without sockets
            unix_sockets.sweep(Path(tempfile.gettempdir()), _PREFIX, "s")
            self._private = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self.path = self._private / "s"
            self._server = self._start(kind)

    def _start(self, kind: Any) -> object:
        self.path.unlink(missing_ok=True)
        before = self._level.value
        self._level.value = max(before, _ERRORS)
        with unix_sockets.address(self.path) as place:
            try:
                server = kind(place, -1)
            except TypeError:  # the first versions took a path alone
                server = kind(place)
            finally:
                self._level.value = before
        # It is never destroyed: that waits for its thread, which a forked child does not have, forever.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
        with suppress(OSError):
            self.path.chmod(0o700)
        return server

    def remove(self) -> None:
        """Remove the socket; the server itself ends with the process."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)


def _log_level() -> ctypes.c_int:
    """Return the level of torch's C++ log, lowered while a worker server starts so that a job's output is unchanged.

    Raises:
        OSError, ValueError: this torch has it elsewhere.

    """
    libraries = Path(str(sys.modules["torch"].__file__)).parent / "lib"
    library = next(libraries.glob("libc10.*"), libraries / "libc10.so")
    return ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "FLAGS_caffe2_log_level")


def announce(rank: int, address: str) -> None:
    """Put the address of a rank's endpoint into the job's own store, as `dtdebug/RANK`; may take some seconds.

    Setting a key is not a collective. Uses a separate connection if possible: the store's has a lock, which the main
    thread holds while it waits for a key.
    """
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    with suppress(Exception):
        store = c10d._get_default_store()  # noqa: SLF001 - there is no public way
        with suppress(Exception):
            store = store.clone()
            store.set_timeout(timedelta(seconds=_STORE_PATIENCE))
        store.set(f"dtdebug/{rank}", address)

"""Hosts as network namespaces: each with its own name, address and hosts file, on a bridge that leads nowhere."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

NET = "10.219.37"
"""The first three numbers of the addresses; host I has I + 1 as its last."""


def can_be_made():
    """Why no namespaces can be made here, or an empty text."""
    if os.geteuid():
        return "network namespaces need root"
    if not shutil.which("ip") or not shutil.which("unshare"):
        return "iproute2 or unshare is not installed"
    name = f"dt{os.getpid()}t"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, timeout=20, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20, check=False)
    return "" if made.returncode == 0 else f"no network namespace can be made: {made.stderr.decode().strip()}"


class Hosts:
    """So many hosts h0, h1, ... as long as the `with` block lasts."""

    def __init__(self, count):
        self.count = count
        self._prefix = f"dt{os.getpid()}h"
        self._jobs = []

    def __enter__(self):
        try:
            self._up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for job in self._jobs:
            end(job)
        for name in (*map(self._name, range(self.count)), self._hub):
            for pid in _output("ip", "netns", "pids", name).split():  # of these namespaces: nobody else's
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20, check=False)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)

    def start(self, host, *command, **variables):
        """A command on a host, in a process group of its own; what it prints, both streams in one, can be read."""
        job = subprocess.Popen(
            ["ip", "netns", "exec", self._name(host), "unshare", "--uts", "sh", "-c", f'hostname h{host}; exec "$@"',
             "sh", *map(str, command)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"} | variables,
        )  # fmt: skip
        self._jobs.append(job)
        return job

    def pids(self, host):
        """All processes of a host."""
        return [int(pid) for pid in _output("ip", "netns", "pids", self._name(host)).split()]

    def clear(self):
        """Ends all that still runs on the hosts: ranks outlive a launcher that was killed."""
        for host in range(self.count):
            for pid in self.pids(host):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    @property
    def _hub(self):
        return f"{self._prefix}ub"

    def _name(self, host):
        return f"{self._prefix}{host}"

    def _up(self):
        _ip("netns", "add", self._hub)
        _ip("-n", self._hub, "link", "add", "br0", "type", "bridge")
        _ip("-n", self._hub, "link", "set", "br0", "up")
        for i in range(self.count):
            name = self._name(i)
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{i}", "netns", self._hub)
            _ip("-n", self._hub, "link", "set", f"p{i}", "master", "br0", "up")
            _ip("-n", name, "addr", "add", f"{NET}.{i + 1}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            files = Path(f"/etc/netns/{name}")
            files.mkdir(parents=True, exist_ok=True)
            names = [f"{NET}.{j + 1} h{j}" for j in range(self.count)]
            (files / "hosts").write_text("\n".join(["127.0.0.1 localhost", *names]) + "\n")
            (files / "resolv.conf").write_text("")


def end(job):
    """Ends a job that is left, with its process group."""
    with suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    job.wait(20)
    if job.stdout is not None:
        job.stdout.close()


def said(job, seconds=60):
    """What a job printed until its end."""
    return job.communicate(timeout=seconds)[0]


def torchrun(script, host, nodes, port, *options, static=False, at="h0"):
    """The command of torchrun on a host."""
    where = ["--master-addr", at, "--master-port", port, "--node-rank", host] if static else [
        "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{at}:{port}"]  # fmt: skip
    return [sys.executable, "-m", "torch.distributed.run", "--nnodes", nodes, "--nproc-per-node", 1, *where, *options,
            script]  # fmt: skip


def dtdebug(*options):
    """The beginning of a command under dtdebug."""
    return [sys.executable, "-m", "dtdebug", "run", *options, "--"]


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


def _output(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout

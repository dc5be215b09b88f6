"""Hosts as network namespaces with two cards each, faults to put into them, and doctors to start on all of them."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import hosts_lab

NET = hosts_lab.NET
SECOND = "10.219.36"
PORT = 29500
PROGRAM = """from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=12))
for _ in range(5):
    x = torch.ones(1 << 16)
    dist.all_reduce(x)
print("sum", int(x[0]), flush=True)
dist.destroy_process_group()
"""


class Lab(hosts_lab.Hosts):
    """Four hosts with eth0 and eth1, which nothing uses unless it is told to."""

    def __init__(self, folder, count=4, net=None):
        super().__init__(count)
        self.folder = Path(folder)
        self.net = net or NET
        self.places = [self.folder] * count
        self.variables = [{} for _ in range(count)]
        self.before = [""] * count
        """What a shell does on the host before the command."""
        (self.folder / "train.py").write_text(PROGRAM)

    def _up(self):
        super()._up()
        for i in range(self.count):
            name = self._name(i)
            for card, net, there in (("eth1", SECOND, f"q{i}"),):
                hosts_lab._ip(
                    "-n", name, "link", "add", card, "type", "veth", "peer", "name", there, "netns", self._hub
                )
                hosts_lab._ip("-n", name, "addr", "add", f"{net}.{i + 1}/24", "dev", card)
                hosts_lab._ip("-n", name, "link", "set", card, "up")
            if self.net != NET:
                hosts_lab._ip("-n", name, "addr", "flush", "dev", "eth0")
                hosts_lab._ip("-n", name, "addr", "add", f"{self.net}.{i + 1}/24", "dev", "eth0")
        hosts_lab._ip("-n", self._hub, "link", "add", "br1", "type", "bridge")
        hosts_lab._ip("-n", self._hub, "link", "set", "br1", "up")
        for i in range(self.count):
            hosts_lab._ip("-n", self._hub, "link", "set", f"q{i}", "master", "br1", "up")
            self.names(i)

    def names(self, host, own=None, without=(), other=None):
        """/etc/hosts of a host: its own name may lead elsewhere, names may be missing or lead elsewhere."""
        rows = ["127.0.0.1 localhost"]
        for j in range(self.count):
            address = own if j == host and own is not None else (other or {}).get(j, f"{self.net}.{j + 1}")
            if j not in without and address:
                rows.append(f"{address} h{j}")
        Path(f"/etc/netns/{self._name(host)}/hosts").write_text("\n".join(rows) + "\n")

    def at(self, host, *words):
        """A command of the fault, in the network of a host (or "hub")."""
        name = self._hub if host == "hub" else self._name(host)
        done = subprocess.run(
            ["ip", "netns", "exec", name, *map(str, words)], capture_output=True, text=True, timeout=20, check=False
        )
        assert done.returncode == 0, done.stderr

    def filter(self, host, *rules):
        """nft rules for what comes in at a host."""
        text = "table inet f {\nchain c {\ntype filter hook input priority 0;\n" + "\n".join(rules) + "\n}\n}\n"
        done = subprocess.run(
            ["ip", "netns", "exec", self._name(host), "nft", "-f", "-"],
            input=text,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def copy(self, host):
        """A folder of its own for a host."""
        place = self.folder / f"of-h{host}"
        shutil.copytree(self.folder, place, ignore=shutil.ignore_patterns("of-*"))
        self.places[host] = place
        return place

    def launch(self, host, *, nodes=None, node=None, port=PORT, c10d=False, at="h0", more=(), arguments=()):
        """torchrun's command on a host."""
        where = ["--rdzv-backend", "c10d", "--rdzv-id", "lab", "--rdzv-endpoint", f"{at}:{port}"] if c10d else [
            "--master-addr", at, "--master-port", port, "--node-rank", host if node is None else node]  # fmt: skip
        return list(
            map(
                str,
                [
                    "-m",
                    "torch.distributed.run",
                    "--nnodes",
                    nodes or self.count,
                    "--nproc-per-node",
                    1,
                    *where,
                    *more,
                    "train.py",
                    *arguments,
                ],
            )
        )

    def doctors(self, *options, leave=(), launches=None, seconds=60, **launch):
        """Starts doctor on all hosts; (report, exit status) of each that was started."""
        jobs = {}
        for i in range(self.count):
            if i in leave:
                continue
            own = (launches or {}).get(i, {})
            command = [
                sys.executable,
                "-m",
                "dtdebug",
                "doctor",
                "--format",
                "json",
                *options,
                "--",
                sys.executable,
                *self.launch(i, **(launch | own)),
            ]
            jobs[i] = self.start_in(i, self.places[i], *command, **self.variables[i])
        found = {}
        for i, job in jobs.items():
            out = hosts_lab.said(job, seconds)
            rows = [line for line in out.splitlines() if line.startswith("{")]
            found[i] = (json.loads(rows[-1]) if rows else {"findings": [], "printed": out}, job.returncode)
        return found

    def gloo(self, seconds=60):
        """The job itself without its launcher, as gloo alone is asked; whether all ranks finished."""
        jobs = []
        for i in range(self.count):
            variables = {"RANK": i, "WORLD_SIZE": self.count, "MASTER_ADDR": f"{self.net}.1", "MASTER_PORT": PORT}
            own = self.variables[i] | {name: str(value) for name, value in variables.items()}
            jobs.append(self.start_in(i, self.places[i], sys.executable, "train.py", **own))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and all(job.poll() in (None, 0) for job in jobs):
            if all(job.poll() == 0 for job in jobs):
                break
            time.sleep(0.2)
        done = [job.poll() for job in jobs]
        for job in jobs:
            hosts_lab.end(job)
        self.clear()
        return done == [0] * self.count

    def start_in(self, host, place, *command, **variables):
        words = ["env", f"--chdir={place}", *command]
        if self.before[host]:
            words = ["unshare", "--mount", "sh", "-c", f'{self.before[host]}; exec "$@"', "sh", *words]
        return self.start(host, *words, **variables)


def ids(report, severity="fault"):
    """The ids of a report's findings."""
    return {f["id"] for f in report["findings"] if f["severity"] == severity}


def can_filter():
    """Why nothing can be filtered here, or an empty text."""
    return "" if shutil.which("nft") else "nft is not installed"

"""Runs healthy jobs in which one rank is slow for a while, and judges what `dtdebug run --stop-on-hang` makes of them.

python benchmarks/slow_jobs.py [--seed N] [--jobs 50] [--at-once 3] [--folder FOLDER]

A pause is longer than `--hang-after`, so that each job is examined; where that is above 15 s, a first word comes before
("slow, or hanging: ..."). It is wrong to end the job, to give a verdict that calls itself certain or likely, or to name
in the first word another rank than the slow one.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HEAD = """
import contextlib, fcntl, gc, os, pickle, re, socket, subprocess, sys, tempfile, threading, time, zlib
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SLOW, SECONDS, FOLDER = int(os.environ["SLOW"]), float(os.environ["SECONDS"]), os.environ["FOLDER"]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

def train_step(model, batch=None):
    loss = model(torch.ones(8, 4) if batch is None else batch).sum()
    loss.backward()
    return loss.detach()

def report(step, loss):
    if rank == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)

def train(model, steps=4, before=lambda step: None):
    for step in range(steps):
        before(step)
        loss = train_step(model)
        dist.all_reduce(loss)
        report(step, loss)

def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    run(model)
    dist.destroy_process_group()

"""
KINDS = {
    "compilation in a child": """
def compile_kernels():
    program = f"import time; time.sleep({SECONDS})"
    subprocess.run([sys.executable, "-c", program, "kernels.cpp"], check=True)

def run(model):
    train(model, before=lambda step: compile_kernels() if step == 2 and rank == SLOW else None)
""",
    "build by one, the others poll its lock file": """
def run(model):
    done = os.path.join(FOLDER, "built")
    if rank == SLOW:
        time.sleep(SECONDS)
        open(done, "w").close()
    while not os.path.exists(done):
        time.sleep(0.1)
    train(model)
""",
    "checkpoint by one rank, a barrier": """
def save(model):
    with open(os.path.join(FOLDER, "model.pt"), "wb") as file:
        for part in range(int(SECONDS * 2)):
            torch.save(model.state_dict(), file)
            file.flush()
            os.fsync(file.fileno())
            time.sleep(0.5)

def run(model):
    train(model)
    if rank == SLOW:
        save(model)
    dist.barrier()
    train(model)
""",
    "evaluation by one rank, a barrier": """
def evaluate(model):
    end = time.monotonic() + SECONDS
    with torch.no_grad():
        while time.monotonic() < end:
            model.module(torch.rand(64, 4)).mean().item()

def run(model):
    train(model)
    if rank == SLOW:
        evaluate(model)
    dist.barrier()
    train(model)
""",
    "evaluation by all, no collective": """
def evaluate(model):
    end = time.monotonic() + SECONDS + 5 * (rank == SLOW)
    with torch.no_grad():
        while time.monotonic() < end:
            model.module(torch.rand(64, 4)).mean().item()

def run(model):
    train(model)
    evaluate(model)
    train(model)
""",
    "preparation by one rank first": """
@contextlib.contextmanager
def first_process_first():
    if rank != SLOW:
        dist.barrier()
    yield
    if rank == SLOW:
        dist.barrier()

def tokenize():
    if rank == SLOW:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            re.findall(r"[a-z]+", "some words of a corpus " * 2000)

def run(model):
    with first_process_first():
        tokenize()
    train(model)
""",
    "a worker of the loader stalls": """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        if index == 40 and rank == SLOW:
            time.sleep(SECONDS)
        return torch.ones(4)

def run(model):
    loader = torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=1)
    for step, batch in enumerate(loader):
        loss = train_step(model, batch)
        dist.all_reduce(loss)
        report(step, loss)
""",
    "data from a slow server": """
def serve(server):
    to, _ = server.accept()
    time.sleep(SECONDS)
    to.sendall(b"x" * 4)

def fetch():
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(server,), daemon=True).start()
    with socket.create_connection(server.getsockname()) as link:
        return link.recv(4)

def run(model):
    train(model, before=lambda step: fetch() if step == 2 and rank == SLOW else None)
""",
    "data read by a child that is slow": """
def run(model):
    for step in range(4):
        if step == 2 and rank == SLOW:
            child = subprocess.Popen(["sh", "-c", f"sleep {SECONDS}; echo sample"], stdout=subprocess.PIPE)
            child.stdout.readline()
            child.wait()
        loss = train_step(model)
        dist.all_reduce(loss)
        report(step, loss)
""",
    "uneven inputs with join": """
def run(model):
    from torch.distributed.algorithms.join import Join
    with Join([model]):
        for step in range(12 if rank == SLOW else 4):
            if rank == SLOW and step > 4:
                time.sleep(SECONDS / 7)
            train_step(model)
""",
    "long C call that holds the GIL": """
def run(model):
    def pause(step):
        if step == 2 and rank == SLOW:
            began, size = time.monotonic(), 100_000
            while time.monotonic() < began + SECONDS:
                sorted(range(size), key=None) and [str(i) for i in range(size)].sort()
                size = min(size * 2, 3_000_000)
    train(model, before=pause)
""",
    "garbage collection": """
def run(model):
    def pause(step):
        if step == 2 and rank == SLOW:
            kept = [[i] for i in range(3_000_000)]
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                gc.collect()
    train(model, before=pause)
""",
    "large gathers of objects": """
def run(model):
    end = time.monotonic() + SECONDS
    while True:
        payload = os.urandom(60_000_000 if rank == SLOW else 1000)
        gathered = [None] * world
        dist.all_gather_object(gathered, payload)
        stop = torch.tensor([int(time.monotonic() > end)])
        dist.broadcast(stop, 0)
        if stop.item():
            break
    train(model)
""",
    "one large all_reduce after another": """
def run(model):
    large = torch.ones(150_000_000)
    for part in range(max(3, int(SECONDS / 4))):
        dist.all_reduce(large)
    train(model)
""",
    "long accumulation without communication": """
def run(model):
    end = time.monotonic() + SECONDS
    with model.no_sync():
        while time.monotonic() < end:
            train_step(model)
    train(model)
""",
    "pipeline of which a stage is slow": """
def run(model):
    for batch in range(4):
        x = torch.ones(4)
        if rank > 0:
            dist.recv(x, rank - 1)
        if rank == SLOW and batch == 2:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                torch.rand(200, 200) @ torch.rand(200, 200)
        if rank < world - 1:
            dist.send(x, rank + 1)
    dist.barrier()
    train(model)
""",
    "waiting for a key of the store": """
def run(model):
    store = dist.distributed_c10d._get_default_store()
    if rank == SLOW:
        time.sleep(SECONDS)
        store.set("dataset", "ready")
    store.get("dataset")
    train(model)
""",
    "retries with growing pauses": """
def download():
    end, pause = time.monotonic() + SECONDS, 1.0
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", 9), timeout=1).close()
        except OSError as error:
            print(f"rank {rank}: {error}; trying again in {pause:.0f} s", file=sys.stderr, flush=True)
            time.sleep(pause)
            pause = min(pause * 2, 16)

def run(model):
    if rank == SLOW:
        download()
    dist.barrier()
    train(model)
""",
    "one after another under a file lock": """
def run(model):
    with open(os.path.join(FOLDER, "lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(SECONDS / world)
        fcntl.flock(file, fcntl.LOCK_UN)
    train(model)
""",
    "metrics compressed and sent by one rank": """
def run(model):
    def log(step):
        if step == 2 and rank == SLOW:
            end, data = time.monotonic() + SECONDS, os.urandom(30_000_000)
            while time.monotonic() < end:
                zlib.compress(data, 9)
    train(model, before=log)
""",
    "evaluation in a group of some ranks": """
def run(model):
    some = dist.new_group([SLOW, (SLOW + 1) % world])
    train(model)
    if rank in (SLOW, (SLOW + 1) % world):
        end = time.monotonic() + SECONDS
        while True:
            if rank == SLOW:
                time.sleep(SECONDS / 3)
            stop = torch.tensor([float(time.monotonic() > end)])
            dist.all_reduce(stop, op=dist.ReduceOp.MAX, group=some)
            if stop.item():
                break
    dist.barrier()
    train(model)
""",
    "checkpoint in a thread, waited for": """
def run(model):
    train(model)
    if rank == SLOW:
        saver = threading.Thread(target=time.sleep, args=(SECONDS,), name="async-checkpoint")
        saver.start()
        saver.join()
    dist.barrier()
    train(model)
""",
    "first step compiles for long on all": """
def warm_up():
    end = time.monotonic() + SECONDS + 3 * (rank == SLOW)
    while time.monotonic() < end:
        compile("x = 1\\n" * 20000, "kernel.py", "exec")

def run(model):
    train(model, before=lambda step: warm_up() if step == 0 else None)
""",
    "a monitored barrier within its time-out": """
def run(model):
    from datetime import timedelta
    train(model)
    if rank == SLOW:
        pickle.loads(pickle.dumps(list(range(100))))
        time.sleep(SECONDS)
    dist.monitored_barrier(timeout=timedelta(seconds=300))
    train(model)
""",
}
_LINE = re.compile(r"^dtdebug: (?P<text>.*)$", re.MULTILINE)
_GRADE = re.compile(r"^(?:Certain|Likely|Proven|The cause is certain|Rank and line are certain)\b", re.MULTILINE)
_STOPPED = 124


class Outcome(NamedTuple):
    """A job, and what was said of it."""

    kind: str
    slow: int
    seconds: float
    after: float
    status: int
    text: str
    """All that dtdebug and the job printed to standard error."""

    @property
    def faults(self) -> list[str]:
        """Return what is wrong with it."""
        found = ["job ended"] if self.status == _STOPPED else []
        found += [f"job failed ({self.status})"] if self.status not in (0, _STOPPED) else []
        found += ["sure verdict"] if _GRADE.search(self.text) else []
        for line in self.lines:
            named = re.match(r"slow, or hanging: rank (\d+) has not", line)
            found += ["another rank in the first word"] if named and int(named[1]) != self.slow else []
        return found

    @property
    def lines(self) -> list[str]:
        """Return the first lines of what dtdebug said."""
        return [m["text"] for m in _LINE.finditer(self.text)]


def run_job(kind: str, draw: random.Random) -> Outcome:
    """Run one job to its end."""
    world = draw.randrange(2, 5)
    slow = draw.randrange(world)
    after, seconds = draw.choice(((draw.uniform(5, 10), draw.uniform(18, 40)), (17.0, draw.uniform(30, 45))))
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "train.py"
        program.write_text(f"{HEAD}{KINDS[kind]}\nmain()\n")
        command = [sys.executable, "-m", "dtdebug", "run", "--stop-on-hang", "--hang-after", f"{after:.0f}", "--"]
        command += ["torchrun", "--standalone", f"--nproc-per-node={world}", str(program)]
        given = {"SLOW": str(slow), "SECONDS": f"{seconds:g}", "FOLDER": folder, "OMP_NUM_THREADS": "1"}
        given |= {"DTDEBUG_STATE": str(Path(folder) / "state")}
        done = subprocess.run(
            command, env={**os.environ, **given}, capture_output=True, text=True, timeout=600, check=False
        )
    return Outcome(kind, slow, seconds, after, done.returncode, done.stderr)


def main() -> None:
    """Print one line for each job, and the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keep what was printed there")
    parser.add_argument("--kind", default="", help="only kinds with these words")
    options = parser.parse_args()
    kinds = [kind for kind in KINDS if options.kind in kind]
    counts, begin = Counter[str](), time.perf_counter()
    with ThreadPoolExecutor(options.at_once) as pool:
        drawn = [
            (kinds[number % len(kinds)], random.Random(f"{options.seed}/{number}")) for number in range(options.jobs)
        ]
        for number, outcome in enumerate(pool.map(lambda row: run_job(*row), drawn)):
            counts["jobs"] += 1
            counts["first words"] += any(line.startswith("slow, or hanging") for line in outcome.lines)
            counts["wrong"] += bool(outcome.faults)
            counts.update(outcome.faults)
            if options.folder:
                options.folder.mkdir(parents=True, exist_ok=True)
                (options.folder / f"{number:02d}.txt").write_text(f"{outcome[:5]}\n{outcome.text}")
            mark = f"WRONG {outcome.faults}" if outcome.faults else "right"
            print(
                f"{number} {mark}: {outcome.kind}, rank {outcome.slow} for {outcome.seconds:.0f} s: {outcome.lines}",
                flush=True,
            )
    print(dict(counts), f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()

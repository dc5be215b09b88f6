"""Measures the cost of an answer from flight-recorder dumps, next to PyTorch's own analyzer on the same files.

    python benchmarks/flight.py [--ranks 8 64 512] [--entries 2000] [--ours] [--linear]

Each rank's dump has 8 frames an entry; one rank skips a collective ten entries before the end. Both programs run as
whole processes, start-up included; in brackets seconds of all processors; memory is the largest sum over a process and
its children. The dumps have the form
of NCCL's dumps, so `torchfrtrace` reads them as they are (it can't read gloo's dumps).
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

VERSION, FRAMES, AHEAD = "2.10", 8, 10
BEGIN, PACE = 1_760_000_000_000_000_000, 5_000_000
OPS = ("all_reduce", "broadcast", "reduce", "_broadcast_oop")
TP = 8
PEER = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace"]
OURS = [sys.executable, "-m", "dtdebug", "flight", "--format", "json"]
PATIENCE = 600.0


class Cost(NamedTuple):
    """Cost of one run, and the ranks that it named first."""

    seconds: float
    processor: float
    """CPU seconds of all processors, which are independent of a busy machine."""
    mebibytes: float
    named: str

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s ({self.processor:.2f}), {self.mebibytes:.0f} MiB: {self.named}"


def frames(line: int) -> list[dict[str, Any]]:
    """Return a stack, innermost frame first."""
    inner = [{"name": "wrapper", "filename": "/venv/torch/distributed/c10d_logger.py", "line": 83}]
    user = [{"name": f"level_{i}", "filename": "/job/train.py", "line": line + i} for i in range(FRAMES - 1)]
    return inner + user


def entries(count: int, groups: int) -> list[dict[str, Any]]:
    """Return the entries of a correct rank, alternating between its groups."""
    stacks = [frames(100 * i) for i in range(len(OPS) * groups)]
    found = []
    for index in range(count):
        group, kind = index % groups, index // groups % len(OPS)
        sizes = [[1024 + kind]]
        done = index < count - AHEAD
        created = BEGIN + index * PACE
        found.append(
            {
                "frames": stacks[group * len(OPS) + kind],
                "record_id": index,
                "pg_id": group,
                "process_group": (),
                "thread_name": "python3",
                "thread_id": "139899661376384",
                "collective_seq_id": index // groups + 1,
                "p2p_seq_id": 0,
                "op_id": index // groups + 1,
                "profiling_name": f"nccl:{OPS[kind]}",
                "time_created_ns": created,
                "input_sizes": sizes,
                "input_dtypes": ["Float"],
                "output_sizes": sizes,
                "output_dtypes": ["Float"],
                "state": "completed" if done else "scheduled",
                "time_discovered_started_ns": None,
                "time_discovered_completed_ns": created + 900_000 if done else None,
                "retired": done,
                "timeout_ms": 600_000,
                "is_p2p": False,
            }
        )
    return found


def skipping(healthy: list[dict[str, Any]], groups: int) -> list[dict[str, Any]]:
    """Return the entries of a rank that skips the first collective which the others have not finished."""
    place = len(healthy) - AHEAD
    kept = [dict(entry) for entry in healthy if entry is not healthy[place]]
    for index, entry in enumerate(kept[place:], place):
        entry["record_id"] = index
        if entry["pg_id"] == place % groups:
            entry["collective_seq_id"] -= 1
            entry["op_id"] -= 1
    return kept


def layout(ranks: int, rank: int, groups: int) -> list[tuple[str, str, range]]:
    """Return the groups of a rank: uid, description, members."""
    found = [("0", "default_pg", range(ranks))]
    if groups > 1:
        first, nth = rank // TP, rank % TP
        found.append((str(1 + first), "mesh_tp", range(first * TP, first * TP + TP)))
        found.append((str(1 + ranks // TP + nth), "mesh_dp", range(nth, ranks, TP)))
    return found


def generate(folder: Path, ranks: int, count: int, groups: int) -> int:
    """Write the dumps; return the rank that skips."""
    culprit = ranks - 3
    healthy = entries(count, groups)
    programs = {False: healthy, True: skipping(healthy, groups)}
    written: dict[Any, bytes] = {}
    for rank in range(ranks):
        mine, program = layout(ranks, rank, groups), programs[rank == culprit]
        key = (rank == culprit, *(uid for uid, _, _ in mine))
        if key not in written:
            for entry in program:
                entry["process_group"] = mine[entry["pg_id"]][:2]
            counts = [sum(entry["pg_id"] == group for entry in program) for group in range(groups)]
            content = {
                "version": VERSION,
                "comm_lib_version": "2.27.5",
                "pg_config": {
                    uid: {"name": uid, "desc": desc, "ranks": str(list(members))} for uid, desc, members in mine
                },
                "pg_status": {
                    str(group): {
                        "last_enqueued_collective": counts[group],
                        "last_started_collective": -1,
                        "last_completed_collective": counts[group] - AHEAD // groups,
                    }
                    for group in range(groups)
                },
                "entries": program,
            }
            written = {key: pickle.dumps(content, 2)}
        (folder / f"rank_{rank}").write_bytes(written[key])
    return culprit


def resident(process: psutil.Process) -> float:
    """Return the MiB of a process and its children."""
    total = 0
    for one in (process, *process.children(recursive=True)):
        try:
            total += one.memory_info().rss
        except psutil.Error:  # it has just ended
            continue
    return total / 2**20


def used() -> float:
    """Return the CPU seconds of ended children and of their descendants."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(command: list[str], folder: Path) -> Cost:
    """Run a program to its end on a folder."""
    peak, before, begin = 0.0, used(), time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        job = subprocess.Popen([*command, str(folder)], stdout=output, stderr=subprocess.STDOUT)
        watched = psutil.Process(job.pid)
        while job.poll() is None and time.perf_counter() - begin < PATIENCE:
            try:
                peak = max(peak, resident(watched))
            except psutil.Error:
                break
            time.sleep(0.01)
        job.kill() if job.poll() is None and time.perf_counter() - begin >= PATIENCE else job.wait()
        seconds = time.perf_counter() - begin
        output.seek(0)
        return Cost(seconds, used() - before, peak, named(output.read(), job.returncode))


def named(output: str, status: int | None) -> str:
    """Return the ranks in the first report of either program."""
    if output.lstrip().startswith("{"):
        verdict = json.loads(output)["verdict"]
        return f"{verdict['kind']} {','.join(map(str, verdict['culprits']))}"
    found = re.search(r"missing ranks: \{([\d, ]+)\}|error msg: (.*)", output)
    if found is None:
        return f"nothing (exit {status})"
    ranks = re.findall(r"\d+", found[1]) if found[1] else re.findall(r"Culprit rank (\d+)", found[2])
    listed = ",".join(ranks[:3])
    return listed if len(ranks) <= len(listed.split(",")) else f"{listed} and {len(ranks) - 3} more"


def compare(ranks: int, count: int, groups: int, *, ours: bool) -> None:
    """Print one line of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        culprit = generate(folder, ranks, count, groups)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        mine = measure(OURS, folder)
        what = f"{ranks} ranks, {count} entries, {'world + tp + dp' if groups > 1 else 'one group'}"
        line = f"| {what} | {size:.0f} MB | {culprit} | {mine} |"
        if ours:
            line += " | |"
        else:
            peer = measure(PEER, folder)
            line += f" {peer} | {peer.seconds / mine.seconds:.1f} |"
        print(line, flush=True)


def main() -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64, 512])
    parser.add_argument("--entries", type=int, default=2000)
    parser.add_argument("--groups", type=int, nargs="+", choices=[1, 3], default=[1, 3])
    parser.add_argument("--ours", action="store_true", help="without torchfrtrace, which takes minutes on many ranks")
    parser.add_argument("--linear", action="store_true", help="64 ranks with 500, 1000, 2000 and 4000 entries instead")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors\n\n| dumps | files | skips | dtdebug | torchfrtrace | ratio |\n|{' --- |' * 6}")
    if options.linear:
        for count in (500, 1000, 2000, 4000):
            compare(64, count, 3, ours=options.ours)
        return
    for ranks in options.ranks:
        for groups in options.groups:
            compare(ranks, options.entries, groups, ours=options.ours)


if __name__ == "__main__":
    main()

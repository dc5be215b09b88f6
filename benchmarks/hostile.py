"""Measures how time grows with hostile input: seconds for n and for 4n characters of each construction.

    python benchmarks/hostile.py [CHARACTERS]

Cleaning, matching, wording and a whole diagnosis have to stay linear: a ratio far above 4 is a defect.
"""

from __future__ import annotations

import io
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from dtdebug.capture import from_traceback
from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.log_files import excerpt
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text.pattern_matcher import literals

GROWTH = 4
LINEAR = 2 * GROWTH
"""Ratio from which a row is marked; rows below these seconds of a function, of a command are not judged."""
_SHORT, _LONG = 0.05, 3.0


def repeated(piece: str, size: int) -> str:
    """Repeat a piece up to this number of characters."""
    return (piece * (size // len(piece) + 1))[:size]


def constructions() -> Iterator[tuple[str, Callable[[int], str]]]:
    """Return name and maker of each hostile text."""
    knowledge = load()
    patterns = [p for e in knowledge.evidence.values() for p in (*e.text, *e.says)]
    needed = list(dict.fromkeys(literal for p in patterns for literal in literals(p)))
    pieces = {
        "Traceback": "Traceback (most recent call last):\n",
        "frames": '  File "/a.py", line 1, in f\n',
        "key=": "key=",
        "token=": "token=",
        "token names": "token_",
        "CSI without end": "\x1b[",
        "OSC without end": "\x1b]0;",
        "half surrogates": "\ud800",
        "carriage returns": "50%|##|\r",
        "private key begins": "-----BEGIN PRIVATE KEY-----",
        "web token begins": "-eyJ",
        "addresses": "://a:",
        "bearer and spaces": "bearer" + " " * 5_000,
        "spaces": " ",
        "spaces and line ends": " \n",
        "dots": ".",
        "dashes": " -",
        "words without a clause": "hang or crash or not ",
        "clauses": "hangs. ",
        "one letter": "x",
        "one letter, lines of 1,999": "x" * 1_999 + "\n",
        "empty lines": "\n",
        "many ranks": "".join(f"[rank{n}]: RuntimeError: NCCL error {n}\n" for n in range(20_000)),
        "unlike errors": "".join(f"{n:x} error {n * 7919:b}\n" for n in range(20_000)),
        "all literals, one line": " ".join(needed).replace("\n", " "),
        "all literals, own lines": "\n".join(needed),
        "each literal over a line": "\n".join(repeated(literal, 1_990) for literal in needed if literal),
        "broadcast, repeated": repeated("broadcast", 1_990) + "\n",
    }
    for name, piece in pieces.items():
        yield name, partial(repeated, piece)


def files() -> Iterator[tuple[str, str, str, Callable[[int], str]]]:
    """Return what a reader reads, its command, the name of the file, and the maker of a hostile one of about a size."""
    event = '{"ph":"X","cat":"kernel","name":"nccl","pid":1,"tid":1,"ts":%d,"dur":9}'
    cell = '{"cell_type":"code","metadata":{},"outputs":[],"source":"if dist.get_rank() == %d: f()"}'
    entry = (
        '{"record_id":%d,"pg_id":0,"process_group":["0","d"],"collective_seq_id":%d,"profiling_name":"nccl:all_reduce",'
    )
    entry += '"state":"started","frames":[],"input_sizes":[[1]],"output_sizes":[[1]]}'
    thread = "    wait (threading.py:1)\n"
    process = 'Process %d: python t.py\nPython v3.11\n\nThread 1 (idle): "M"\n    f (a.py:1)\n\n'
    inspected = '{"header":{"id":"0x1","rank":%d,"n_ranks":9,"nnodes":1},"coll_perf":{"coll":"AllReduce","coll_sn":1,'
    inspected += '"coll_msg_size_bytes":8,"coll_exec_time_us":1}}\n'
    notebook = '{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":['
    pieces = {
        "log of many ranks": ("triage", "train.log", "", "[rank%d]: RuntimeError: NCCL error\n", ""),
        "log of many processes": ("triage", "train.log", "", "(Actor pid=%d, ip=10.0.0.1) ValueError: x\n", ""),
        "log of one rank": ("diagnose", "train.log", "", "step %d loss 1.0\n", ""),
        "dump": ("diagnose", "nccl_trace_rank_0", '{"version":"2.4","pg_config":{},"entries":[', entry + ",", "{}]}"),
        "stacks of threads": ("diagnose", "s.txt", process % 1, 'Thread %d (idle): "T"\n' + thread, ""),
        "stacks of processes": ("diagnose", "s.txt", "", process, ""),
        "trace": ("slow", "rank0.pt.trace.json", '{"schemaVersion":1,"traceEvents":[', event + ",", event % 0 + "]}"),
        "Inspector": ("slow", "nccl-inspector-h-pid1.log", "", inspected, ""),
        "RAS": ("diagnose", "ras.json", '{"nccl_version":"2.28.3","communicators":[', '{"hash":"%d"},', "{}]}"),
        "curves in columns": ("diagnose", "m.csv", "step,loss\n", "%d,1.0\n", ""),
        "curves in lines": ("diagnose", "m.jsonl", "", '{"step": %d, "loss": 1.0}\n', ""),
        "notebook": ("check", "a.ipynb", notebook, cell + ",", cell % 0 + "]}"),
        "program": ("check", "train.py", "import torch.distributed as dist\n", "if dist.get_rank() == %d: f()\n", ""),
        "launch script": ("check", "job.sh", "#!/bin/bash\n", "torchrun --nproc-per-node=%d train.py\n", ""),
        "configuration": ("check", "ds_config.json", '{"train_batch_size":1', ',"zero_optimizatio%d":1', "}"),
        "saved answer": ("diagnose", "a.json", '{"verdict":{"kind":"not_understood","summary":"x"},"ranks":[',
                         '{"rank":%d},', '{"rank":0}]}'),
        "summary of logs": ("triage", "part-0.json", '{"files":1,"unread":[', '"%d",', '""]}'),
    }  # fmt: skip
    for name, (command, file, begin, piece, end) in pieces.items():

        def make(size: int, begin: str = begin, piece: str = piece, end: str = end) -> str:
            values = piece.count("%d")
            return begin + "".join(piece % ((n,) * values) for n in range(size // len(piece))) + end

        yield name, command, file, make


def read_files(size: int) -> int:
    """Print processor seconds of the command that reads each kind of file; return how many rows are marked."""
    marked = 0
    for name, command, file, make in files():
        cost = []
        with tempfile.TemporaryDirectory() as folder:
            for many in (size, GROWTH * size):
                path = Path(folder, file)
                path.write_text(make(many))
                begin = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run([sys.executable, "-m", "dtdebug", command, str(path)], capture_output=True, check=False)
                end = resource.getrusage(resource.RUSAGE_CHILDREN)
                cost.append(end.ru_utime - begin.ru_utime)
        bad = cost[1] > _LONG and cost[1] > LINEAR * cost[0]
        marked += bad
        print(f"{name:<28}{cost[0]:>8.3f} {cost[1]:>8.3f}{' !!!' if bad else ''}", flush=True)
    return marked


def seconds(action: Callable[[str], object], text: str) -> float:
    """Return the better time of two runs."""
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        action(text)
        times.append(time.perf_counter() - begin)
    return min(times)


def read(text: str) -> object:
    """Return the excerpt of a log."""
    return excerpt.read_excerpt(io.BytesIO(text.encode("utf-8", "replace")), "log")


def main() -> int:
    """Print seconds and ratios; the exit status shows whether a row is marked."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    knowledge = load()
    actions: dict[str, Callable[[str], object]] = {
        "read": read,
        "clean": clean,
        "printed": lambda text: diagnose(knowledge, Snapshot(output=text)),
        "said": lambda text: diagnose(knowledge, Snapshot(situation=text)),
        "traceback": lambda text: from_traceback(text, None),
    }
    print(f"seconds for {size:,} and {GROWTH * size:,} characters\n{'':<28}" + "".join(f"{a:>21}" for a in actions))
    marked = 0
    for name, make in constructions():
        cells = []
        for action in actions.values():
            short, long = seconds(action, make(size)), seconds(action, make(GROWTH * size))
            bad = long > _SHORT and long > LINEAR * short
            marked += bad
            cells.append(f"{short:>8.3f} {long:>8.3f}{' !!!' if bad else '    '}")
        print(f"{name:<28}" + "".join(cells), flush=True)
    marked += read_files(10 * size)
    print(f"{marked} grow faster than linear")
    return 1 if marked else 0


if __name__ == "__main__":
    sys.exit(main())

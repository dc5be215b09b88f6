"""Measures if the right component is named: runs `dtdebug isolate` on programs with one planted fault each.

    .venv/bin/python benchmarks/isolate/measure.py [NAME ...]

A program is right if exactly the planted factors are named, and distributed faults are classified as such. Next to it
is a checkpoint `last.pt`, which no run may change. Minutes on two cores: a run is the start of two to four ranks.
"""

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(os.environ.get("PROGRAMS") or Path(__file__).parent)
BUDGET = os.environ.get("BUDGET", "10m")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


def digests(folder: Path) -> dict[str, str]:
    """Return the content of each file."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def processor() -> float:
    """Return the CPU seconds of all processes that were started and have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def measured(name: str, truth: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Return the answer of isolate on one program, compared with the truth."""
    home = scratch / name
    home.mkdir()
    shutil.copy(HERE / "programs" / f"{name}.py", home)
    (home / "last.pt").write_bytes(b"an old checkpoint")
    before, begun, used = digests(home), time.monotonic(), processor()
    launcher = [*TORCHRUN, str(truth["ranks"])] if truth["ranks"] else [sys.executable]
    if truth.get("hosts"):
        launcher[3:4] = ["--nnodes", str(truth["hosts"])]
    isolate = [sys.executable, "-m", "dtdebug", "isolate", "--format", "json", "--budget", BUDGET]
    done = subprocess.run(
        [*isolate, *truth.get("options", []), "--", *launcher, f"{name}.py"],
        cwd=home,
        env=os.environ | {"DTDEBUG_STATE": str(scratch / f"state-{name}")} | truth.get("environment", {}),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return {"name": name, "right": False, "said": done.stderr[-600:]}
    of, wanted = said["distributed"], sorted(truth["responsible"])
    named = sorted(r["factor"] for r in said["responsible"] if r["factor"] != "ranks" or "ranks" in wanted)
    right = named == wanted and ("distributed" not in truth or of == truth["distributed"])
    if truth.get("flaky"):
        right = right and said["reliable"] is not None
    return {
        "name": name,
        "right": right and digests(home) == before,
        "said": " x ".join(f"{r['factor']} {r['value']}" for r in said["responsible"]),
        "distributed": of,
        "reliable": said["reliable"],
        "runs": len(said["runs"]),
        "seconds": round(time.monotonic() - begun),
        "processor": round(processor() - used),
        "untouched": digests(home) == before,
        "unfinished": said["unfinished"],
    }


def main() -> None:
    """Measure the named programs, or all."""
    truths = tomllib.loads((HERE / "programs.toml").read_text())
    chosen = sys.argv[1:] or list(truths)
    with tempfile.TemporaryDirectory() as scratch:
        rows = []
        for name in chosen:
            rows.append(measured(name, truths[name], Path(scratch)))
            print(json.dumps(rows[-1]), flush=True)
    print(f"right: {sum(row['right'] for row in rows)} of {len(rows)}")


if __name__ == "__main__":
    main()

"""The demo: two real runs fail, dtdebug explains them, its fix is applied, and they work.

python docs/demo.py
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import dtdebug_taxonomy
from dtdebug.presentation.diagnosis_card import MIME

LABS = Path(dtdebug_taxonomy.__file__).parent / "labs"
QUIET = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
JOB_SECONDS = 120
CELL_SECONDS = 60


def say(text: str) -> None:
    """A step of the demo."""
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


def shorter(text: str, most: int = 12) -> str:
    """The last lines of an output."""
    lines = [line[:150] for line in text.splitlines()]
    return "\n".join((["  ..."] if len(lines) > most else []) + [f"  | {line}" for line in lines[-most:]])


def run(command: list[str], folder: Path) -> tuple[int, str]:
    """Runs a command in a process group of its own and waits for a bounded time."""
    say("$ " + " ".join(command))
    program = [sys.executable, "-m", *command] if command[0] in ("torch.distributed.run", "dtdebug") else command
    environment = {**os.environ, **QUIET, "DTDEBUG_STATE": str(folder / "state")}
    with subprocess.Popen(
        program, cwd=folder, env=environment, text=True, errors="replace", start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as job:  # fmt: skip
        try:
            printed, _ = job.communicate(timeout=JOB_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            printed, _ = job.communicate()
    return job.returncode, printed


def apply(diff: str, folder: Path) -> None:
    """Applies a unified diff to the files of a folder."""
    subprocess.run(["git", "apply", "-p1", "-"], input=diff, text=True, cwd=folder, check=True)


def terminal(folder: Path) -> bool:
    """A 4-rank gloo job under torchrun."""
    say("1. A real job: 4 ranks train with DistributedDataParallel (torchrun, gloo, CPU)")
    shutil.copy(LABS / "method-behind-the-wrapper" / "before.py", folder / "train.py")
    job = ["torch.distributed.run", "--standalone", "--nproc-per-node", "4", "train.py"]
    status, printed = run(job, folder)
    (folder / "train.log").write_text(printed, encoding="utf-8")
    print(shorter(printed), f"\n  exit status {status}")
    _, text = run(["dtdebug", "diagnose", "train.log"], folder)
    print(text)
    _, answer = run(["dtdebug", "diagnose", "train.log", "--format", "json"], folder)
    advice = json.loads(answer)["diagnosis"]["advice"]
    print(f"  {len(answer)} bytes, first advice: {advice[0]['title']}")
    say("The diff that was shown is applied to train.py, and the same job runs again")
    apply(advice[0]["diff"], folder)
    again, printed = run(job, folder)
    if again != 0 and "encoded 4 samples" in printed:
        say("The training finished, and PyTorch aborted a process at its exit, which it does now and then: once more")
        again, printed = run(job, folder)
    print(shorter(printed, 3), f"\n  exit status {again}")
    return status != 0 and again == 0


class Kernel:
    """A real Jupyter kernel, driven as a front end drives it."""

    def __init__(self, folder: Path) -> None:
        from jupyter_client.manager import start_new_kernel

        environment = {
            **os.environ,
            **QUIET,
            "DTDEBUG_STATE": str(folder / "state"),
            "IPYTHONDIR": str(folder / "ipython"),
        }
        self.manager, self.client = start_new_kernel(kernel_name="python3", cwd=str(folder), env=environment)

    def cell(self, source: str) -> tuple[str, list[dict[str, Any]]]:
        """Runs a cell; (status, outputs)."""
        outputs: list[dict[str, Any]] = []
        reply = self.client.execute_interactive(
            source, timeout=CELL_SECONDS, allow_stdin=False, output_hook=outputs.append
        )
        return str(reply["content"]["status"]), outputs

    def stop(self) -> None:
        """Ends the kernel."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def notebook(folder: Path) -> bool:
    """A cell that starts two ranks."""
    say("2. A real notebook kernel: a cell starts two ranks with torch.multiprocessing")
    source = (LABS / "function-defined-in-notebook" / "before.py").read_text(encoding="utf-8").rstrip()
    print(shorter(source, 3))
    kernel = Kernel(folder)
    try:
        kernel.cell("%load_ext dtdebug")
        status, outputs = kernel.cell(source)
        errors = [m["content"] for m in outputs if m["msg_type"] == "error"]
        shown = [m["content"]["data"] for m in outputs if MIME in m["content"].get("data", {})]
        print(f"  the cell ends with {status}: {errors[0]['ename'] if errors else ''}, and under its traceback stands:")
        print(shown[0]["text/plain"] if shown else "  (nothing)")
        diffs = [a["diff"] for data in shown for a in data[MIME]["advice"] if a["diff"]]
        if not diffs:
            return False
        say("The diff that was shown is applied to the cell, and the cell runs again")
        (folder / "train.py").write_text(f"{source}\n", encoding="utf-8")
        hunks = diffs[0][diffs[0].index("@@") :]  # its header names the cell
        apply(f"--- a/train.py\n+++ b/train.py\n{hunks}", folder)
        again, outputs = kernel.cell((folder / "train.py").read_text(encoding="utf-8"))
        time.sleep(0.5)
        print(
            shorter("".join(m["content"]["text"] for m in outputs if m["msg_type"] == "stream")),
            f"\n  the cell ends with {again}",
        )
        return status == "error" and again == "ok"
    finally:
        kernel.stop()


def main() -> int:
    """Both parts; status 0 if each failed first and worked after its fix."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dtdebug-demo-") as folder:
        good = [terminal(Path(folder)), notebook(Path(folder))]
    say(f"{sum(good)} of 2 runs failed, were explained, and work after the fix ({time.monotonic() - begin:.0f} s)")
    print("Now yours: `dtdebug diagnose YOUR.log`, `dtdebug wizard`, or `%load_ext dtdebug` in a notebook.")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

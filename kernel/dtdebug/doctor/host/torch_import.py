"""Imports torch and NCCL as the ranks would (`--torch`), and forms a gloo group of two processes.

Runs the command's interpreter in child processes with a time limit: this process does not import torch.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import killpg
from pathlib import Path, PurePath

from dtdebug.doctor.types import HostProblem
from dtdebug.privacy.sanitize import one_line
from dtdebug_taxonomy import named_files

_IMPORTING, _GROUP = 90.0, 60.0
"""Seconds to wait; a first import from a network folder takes a minute."""
_IMPORT = """
import json, torch
found = {'torch (imported)': torch.__version__, 'cuda of torch': str(torch.version.cuda or torch.version.hip or 'none')}
if torch.cuda.is_available() and torch.distributed.is_nccl_available():
    found['nccl (loaded)'] = '.'.join(map(str, torch.cuda.nccl.version()))
found['devices of torch'] = str(torch.cuda.device_count())
print('dtdebug-torch ' + json.dumps(found))
"""
_TWO = """
import sys
from datetime import timedelta
import torch
import torch.distributed as dist
store = dist.FileStore(sys.argv[1], 2)
dist.init_process_group('gloo', store=store, rank=int(sys.argv[2]), world_size=2, timeout=timedelta(seconds=20))
x = torch.full((1 << 14,), float(sys.argv[2]) + 1)
dist.all_reduce(x)
assert x.sum().item() == 3 * (1 << 14)
dist.destroy_process_group()
print('dtdebug-gloo ok')
"""
_MARK, _DONE = "dtdebug-torch ", "dtdebug-gloo ok"


def torch(command: Sequence[str], variables: Mapping[str, str]) -> tuple[list[HostProblem], dict[str, str]]:
    """Return (problems, versions as loaded); at most two children run at a time."""
    python = interpreter(command)
    said, error = _collect_outputs([_start_child([python, "-c", _IMPORT], variables)], _IMPORTING)[0]
    line = next((row for row in said.splitlines() if row.startswith(_MARK)), "")
    if not line:
        problem = HostProblem(
            id="DR408",
            text=f"the ranks' Python ({python}) can't import torch: {error}",
            measured=error,
            expected="import torch",
        )
        return [problem], {}
    versions = {k: str(v) for k, v in json.loads(line.removeprefix(_MARK)).items()}
    with tempfile.TemporaryDirectory(prefix="dtdebug-doctor-") as folder:
        words = [python, "-c", _TWO, str(Path(folder) / "store")]
        done = _collect_outputs([_start_child([*words, str(rank)], variables) for rank in (0, 1)], _GROUP)
    bad = [error for said, error in done if _DONE not in said]
    if bad:
        problem = HostProblem(
            id="DR117",
            text=f"two processes on this host can't form a gloo group: {bad[0]}",
            measured=bad[0],
            expected="an all_reduce of two processes",
        )
        return [problem], versions
    return [], versions


def interpreter(command: Sequence[str]) -> str:
    """Return the Python of the ranks: the one in the command, else the launcher's shebang, else `sys.executable`."""
    for word in command[:16]:
        path = shutil.which(word) if "=" not in word else None
        if path is None:
            continue
        if PurePath(word).name.startswith("python"):
            return path
        with suppress(OSError), named_files.open_file(path) as file:
            first = file.read(200).split(b"\n", 1)[0].decode(errors="replace")
            named = first.removeprefix("#!").split()
            if first.startswith("#!") and named and PurePath(named[0]).name.startswith("python"):
                return named[0]
    return sys.executable


def _start_child(words: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes] | str:
    left = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    environment = {k: v for k, v in variables.items() if k not in left}
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return error.strerror or "can't be started"


def _collect_outputs(children: list[subprocess.Popen[bytes] | str], limit: float) -> list[tuple[str, str]]:
    """Return (output, last line of standard error) of each child; all children have ended."""
    found = []
    for child in children:
        if isinstance(child, str):
            found.append(("", child))
            continue
        try:
            out, error = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                killpg(child.pid, signal.SIGKILL)
            child.communicate()
            found.append(("", f"no answer in {limit:g} s"))
            continue
        rows = error.decode(errors="replace").strip().splitlines()
        why = one_line(rows[-1], 200) if rows else f"exit status {child.returncode}"
        found.append((out.decode(errors="replace"), why))
    return found

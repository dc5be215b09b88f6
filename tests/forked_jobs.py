"""Starts the ranks of a job as forks of a process that has imported torch: importing it takes most of a short run.

    with forked_jobs.instead_of(runs): ...

in place of `torchrun --nproc-per-node N script ...` or `python script ...`; everything else is real.
"""

import contextlib
import os
import runpy
import signal
import socket
import subprocess
import sys
import time


class ForkedJob:
    """A process whose children are the ranks; it looks like `subprocess.Popen`."""

    def __init__(self, words, *, cwd, env, stdout, **_):
        self.args, self.returncode = words, None
        ranks, script = _parse(list(words))
        self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                os.setsid()
                status = _lead(ranks, script, str(cwd), env, stdout.fileno())
            finally:
                os._exit(status)

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout=None):
        until = time.monotonic() + (timeout or 1e9)
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.01)
        return self.returncode


def _parse(words):
    at = next(i for i, word in enumerate(words) if word.endswith(".py"))
    ranks = int(words[at - 1]) if words[0].endswith("torchrun") else 0
    return ranks, words[at:]


def _lead(ranks, script, cwd, env, out):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    children = []
    for rank in range(max(1, ranks)):
        pid = os.fork()
        if not pid:
            named = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks,
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port} if ranks else {}  # fmt: skip
            os._exit(_become(script, cwd, {**env, **{k: str(v) for k, v in named.items()}}, out))
        children.append(pid)
    failed = 0
    while children and not failed:
        pid, status = os.wait()
        children.remove(pid)
        failed = os.waitstatus_to_exitcode(status)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    return 1 if failed else 0


def _become(script, cwd, env, out):
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    from dtdebug.experiments.collectives.inside import install

    install.ready(sys.modules["torch"])
    sys.argv, sys.path[0] = script, cwd
    try:
        runpy.run_path(script[0], run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


@contextlib.contextmanager
def instead_of(module):
    """Let the module start jobs as forks of this process."""

    class Subprocess:
        Popen, STDOUT, DEVNULL = ForkedJob, subprocess.STDOUT, subprocess.DEVNULL
        TimeoutExpired = subprocess.TimeoutExpired

    original, module.subprocess = module.subprocess, Subprocess
    try:
        yield
    finally:
        module.subprocess = original


def check(folder, words):
    """Return what `dtdebug run --resume-check` finds about the program in a folder, as data."""
    import tempfile
    from pathlib import Path

    import msgspec

    from dtdebug.errors import UsageError
    from dtdebug.experiments.resume import answer, compare, runs
    from dtdebug.presentation.terminal import code_at
    from dtdebug_taxonomy.presentation.answer_text import to_short_text

    os.chdir(folder)
    with tempfile.TemporaryDirectory() as place, instead_of(runs):
        try:
            made = runs.RunFolder(words, Path(folder), Path(place).resolve(), runs.Plan(timeout=120)).check(str)
        except UsageError as error:
            return {"refused": str(error)}
    found = compare.compare(made)
    short = answer.Wording(made, found, folder, code_at).answer()
    return {"text": to_short_text(short), "kinds": [d.kind for d in found.differences], **msgspec.to_builtins(short)}


def main():
    """Check each program that standard input names, as JSON: name -> [folder, words]; print name -> result."""
    import importlib
    import json

    for name in ("torch", "torch.distributed", "torch.nn.parallel", "torch.utils.data", "torch._dynamo"):
        importlib.import_module(name)
    print(json.dumps({name: check(*job) for name, job in json.load(sys.stdin).items()}))


if __name__ == "__main__":
    main()

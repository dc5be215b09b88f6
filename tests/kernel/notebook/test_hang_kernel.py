"""A cell hangs in a real Jupyter kernel: which rank, and where, told while it hangs.

Each test prints how long the answer took (`pytest -s`); none asserts more than that it came.
"""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from queue import Empty

import msgspec
import psutil
import pytest

pytest.importorskip("ipykernel")
manager = pytest.importorskip("jupyter_client.manager")
pytestmark = pytest.mark.kernel

from dtdebug.live.probe.processes import liveness  # noqa: E402
from dtdebug.notebook.attach_client import ask_kernel  # noqa: E402
from dtdebug.presentation.diagnosis_card import MIME as DIAGNOSIS  # noqa: E402


def ranks(test):
    """Marks a test that starts ranks."""
    return pytest.mark.ranks(pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")(test))


SECONDS, BOUND = 60, 10
LONG = 180
"""Seconds of a run whose ranks wait for each other until a time-out."""
NCCL = "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error, NCCL version 2.19.3"
JOB = """
import os, sys, time
import datetime
import torch
import torch.distributed as dist

def train(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=60))
    steps(rank)

def steps(rank):
    x = torch.ones(4)
    dist.all_reduce(x)
    print(f"begun {rank}", flush=True)
    if rank != 1:
        dist.all_reduce(x)
    dist.barrier()
    dist.broadcast(x, 0)

def stalls(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=60))
    print(f"begun {rank}", flush=True)
    if rank == 1:
        time.sleep(60)
    dist.barrier()

def pauses(rank, store, pause, many):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=12))
    for step in range(many):
        if rank == 1:
            time.sleep(pause)
        dist.all_reduce(torch.ones(4))
        if step == 2:
            print(f"begun {rank}", flush=True)
    print(f"stops {rank}", flush=True)
    if rank == 1:
        time.sleep(60)
    dist.all_reduce(torch.ones(4))

if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    steps(dist.get_rank())
"""


class Kernel:
    """A kernel with everything that it may write below one folder, and the extension loaded."""

    def __init__(self, home, **variables):
        self.home = home
        (home / "job.py").write_text(JOB)
        environment = {
            **{k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DTDEBUG_STATE": str(home / "state"),
            "IPYTHONDIR": str(home / "ipython"),
            **variables,
        }
        self.manager, self.client = manager.start_new_kernel(
            startup_timeout=SECONDS, kernel_name="python3", cwd=str(home), env=environment
        )
        self.run("%load_ext dtdebug")

    @property
    def store(self):
        return str(self.home / "store")

    @property
    def pid(self):
        return self.manager.provisioner.pid

    def run(self, source, seconds=SECONDS):
        """Runs a cell; (status, printed text, bundles, execution count)."""
        messages = []
        content = self.client.execute_interactive(
            source, timeout=seconds, allow_stdin=False, output_hook=messages.append
        )["content"]
        printed, bundles = self._shown(messages)
        return content["status"], printed, bundles

    @staticmethod
    def _shown(messages):
        printed = "".join(m["content"]["text"] for m in messages if m["msg_type"] == "stream")
        return printed, [m["content"]["data"] for m in messages if m["msg_type"] == "display_data"]

    def hang(self, source, signs=("begun",)):
        """Sends a cell that hangs and waits until it has printed the signs; its request."""
        request = self.client.execute(source, allow_stdin=False)
        printed, end = "", time.monotonic() + SECONDS
        while not all(sign in printed for sign in signs):
            assert time.monotonic() < end, printed
            with suppress(Empty):
                message = self.client.get_iopub_msg(timeout=1)
                printed += message["content"].get("text", "")
        time.sleep(0.5)  # the ranks go on from their sign into what they hang in
        return request

    def ask(self, kind="hang", **more):
        """The reply to our message on the control channel."""
        request = self.client.session.msg("dtdebug_request", {"kind": kind, **more})
        begin = time.monotonic()
        self.client.control_channel.send(request)
        reply = self.reply(request["header"]["msg_id"])
        print(f"\nanswer after {time.monotonic() - begin:.2f} s:\n{reply.get('text')}")
        return reply

    def verdict(self, *, recorded=False):
        """The reply once it names who hangs: on a busy machine ranks take a moment to get there.

        With records, if asked for: before the ranks have any, they are looked at from outside.
        """
        end = time.monotonic() + SECONDS
        while True:
            reply = self.ask()
            named = reply["verdict"] and reply["verdict"]["kind"] != "none"
            timeline = reply["view"].get("timeline") or {"lanes": []}
            complete = "parted" in timeline and all(lane.get("calls") for lane in timeline["lanes"])
            if named and (complete or not recorded):
                return reply
            assert time.monotonic() < end, reply

    def reply(self, request, seconds=BOUND):
        end = time.monotonic() + seconds
        while True:
            message = self.client.control_channel.get_msg(timeout=max(0.01, end - time.monotonic()))
            if message["parent_header"].get("msg_id") == request:
                return message["content"]

    def in_subshell(self, source):
        """The text that a cell shows which is run beside the one that hangs."""
        _, bundles = self._shown(self.beside(source))
        return bundles[0]["text/plain"]

    def beside(self, source):
        """The messages of a cell that is run beside the one that hangs."""
        made = self.client.session.msg("create_subshell_request", {})
        self.client.control_channel.send(made)
        subshell = self.reply(made["header"]["msg_id"])["subshell_id"]
        content = {"code": source, "silent": False, "store_history": False, "user_expressions": {}}
        request = self.client.session.msg("execute_request", {**content, "allow_stdin": False, "stop_on_error": True})
        request["header"]["subshell_id"] = subshell
        begin = time.monotonic()
        self.client.shell_channel.send(request)
        messages = self.until_idle(request["header"]["msg_id"])
        print(f"\nsubshell after {time.monotonic() - begin:.2f} s")
        return messages

    def touch(self, widget, **data):
        """The states that widgets take when one is touched, as by a front end that knows of no subshells."""
        request = self.client.session.msg("comm_msg", {"comm_id": widget, "data": data})
        begin = time.monotonic()
        self.client.shell_channel.send(request)
        messages = self.until_idle(request["header"]["msg_id"])
        print(f"\ntouched for {time.monotonic() - begin:.2f} s")
        return {m["content"]["comm_id"]: m["content"]["data"]["state"] for m in messages if m["msg_type"] == "comm_msg"}

    def until_idle(self, request, seconds=BOUND):
        messages, end = [], time.monotonic() + seconds
        while not messages or messages[-1]["content"].get("execution_state") != "idle":
            message = self.client.get_iopub_msg(timeout=max(0.01, end - time.monotonic()))
            if message["parent_header"].get("msg_id") == request:
                messages.append(message)
        return messages

    def stop(self):
        family = []
        with suppress(psutil.Error):
            family = psutil.Process(self.pid).children(recursive=True)
        group = self.manager.provisioner.pgid
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        for process in family:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(family, timeout=BOUND)


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel that is ended with all its ranks."""
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.stop()


FREE = {
    "sleep": "import time\ndef wait():\n    time.sleep(40)\nprint('begun', flush=True)\nwait()",
    "loop": "import time\ndef wait():\n    while True: pass\nprint('begun', flush=True)\nwait()",
    "store": (
        "import torch.distributed as dist, datetime\ndef wait():\n"
        "    dist.TCPStore('127.0.0.1', 0, 2, True, datetime.timedelta(seconds=20), False).get('nobody')\n"
        "print('begun', flush=True)\nwait()"
    ),
}


@pytest.mark.parametrize("how", ["sleep", "loop", pytest.param("store", marks=pytest.mark.ranks)])
def test_the_line_of_the_cell_is_told_while_it_hangs(kernel, how):
    """By our message and in a subshell; a cell that waits is told from one that computes."""
    if how == "store":
        pytest.importorskip("torch")
    kernel.hang(FREE[how])
    reply = kernel.ask()
    beside = kernel.in_subshell("%dtdebug hang")

    assert reply["status"] == "ok"
    assert "cell In[2], line 3, in wait" in reply["text"]
    assert "cell In[2], line 5" in reply["text"]
    assert ("computes" if how == "loop" else "waits") in reply["text"]
    assert "cell In[2], line 3, in wait" in beside


def test_a_kernel_that_is_asked_while_a_cell_runs_stays_busy_for_its_server(kernel):
    """A server believes the last status that follows a message which counts; from idle kernels it may cull."""
    from jupyter_server.services.kernels.kernelmanager import MappingKernelManager

    uncounted = MappingKernelManager.untracked_message_types.default()
    request = kernel.hang("import time\nprint('begun', flush=True)\ntime.sleep(6)")
    kernel.in_subshell("%dtdebug state")
    kernel.ask()
    time.sleep(1)
    states = []
    with suppress(Empty):
        while True:
            message = kernel.client.get_iopub_msg(timeout=0.2)
            if message["msg_type"] == "status" and message["parent_header"].get("msg_type") not in uncounted:
                states.append(message["content"]["execution_state"])
    ended = kernel.until_idle(request)

    assert ["busy"] == states[-1:]
    assert "idle" == ended[-1]["content"]["execution_state"]


def test_a_kernel_that_holds_the_interpreter_lock_is_looked_at_from_outside(kernel):
    """Nothing inside it can answer; the numbers of its cells are known from the journal."""
    kernel.run("import ctypes, time\ndef stuck():\n    time.sleep(.3)\n    ctypes.PyDLL(None).sleep(30)")
    kernel.hang("1\n2\nprint('begun', flush=True)\nstuck()")
    begin = time.monotonic()
    answer = ask_kernel(str(kernel.pid), timeout=3.0)
    print(f"\nanswer after {time.monotonic() - begin:.2f} s:\n{answer.text}")

    assert answer.road == "outside"
    assert "cell In[3], line 4" in answer.text
    assert "cell In[2], line 4, in stuck" in answer.text
    assert "GIL" in answer.text


def test_a_terminal_asks_by_any_name_of_the_kernel(kernel):
    """A connection file, the id in its name, or the process id; `dtdebug attach` does the same."""
    file = Path(kernel.manager.connection_file)
    runtime = Path(os.environ["JUPYTER_RUNTIME_DIR"])
    runtime.mkdir()
    (runtime / "kernel-4f2a.json").write_text(file.read_text())
    kernel.hang(FREE["sleep"])
    answers = [ask_kernel(name) for name in (str(file), "4f2a", str(kernel.pid))]
    command = [sys.executable, "-m", "dtdebug", "attach", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)

    assert ["control channel"] * 3 == [answer.road for answer in answers]
    assert all("cell In[2], line 5" in text for text in (done.stdout, *(answer.text for answer in answers)))


@pytest.mark.parametrize("how", ["sleep", "loop"])
def test_the_wizard_answers_while_a_cell_hangs(kernel, how):
    """Opened beside a cell that hangs it works beside the next one, too, and after the panel has told something."""
    pytest.importorskip("ipywidgets")
    kernel.run(f"raise RuntimeError({NCCL!r})")
    kernel.hang("import time\nprint('begun', flush=True)\ntime.sleep(3)")
    opened = {
        m["content"]["comm_id"]: m["content"]["data"]["state"]
        for m in kernel.beside("%dtdebug")
        if m["msg_type"] == "comm_open"
    }
    named = {state.get("description"): comm for comm, state in opened.items()}
    press = {"method": "custom", "content": {"event": "click"}}
    first = kernel.touch(named["Don't know"], **press)
    kernel.run("pass")
    kernel.hang(FREE[how])
    question = kernel.ask("diagnose", asked={})["diagnosis"]["question"]
    told = kernel.ask("diagnose", asked={"answers": {question["key"]: question["values"][0][0]}})
    kernel.touch(named["Answer"], method="update", state={"index": 0}, buffer_paths=[])
    second = kernel.touch(named["Next"], **press)
    after = kernel.ask("diagnose", asked={"answers": {question["key"]: question["values"][0][0]}})
    asked = told["diagnosis"]["question"]

    assert any("<h4>" in state.get("value", "") for state in first.values())
    assert any("<h4>" in state.get("value", "") for state in second.values())
    assert [asked["values"][0][0]] == next(k["values"] for k in after["diagnosis"]["known"] if k["key"] == asked["key"])


def test_a_failure_is_diagnosed_while_a_cell_hangs(kernel):
    """The panel's answers are kept for `%dtdebug resume`; what can't be answered is an error."""
    kernel.run(f"raise RuntimeError({NCCL!r})")
    kernel.hang(FREE["sleep"])
    first = kernel.ask("diagnose", asked={})["diagnosis"]["question"]
    answers = {first["key"]: "installing"}
    for _ in range(2):
        reply = kernel.ask("diagnose", asked={"answers": answers, "unknown": []})
    kept = msgspec.json.decode((kernel.home / "state" / "wizard.json").read_bytes())
    wrong = [kernel.ask("diagnose", **more) for more in ({}, {"asked": 1}, {"asked": {"answers": {"nothing": "x"}}})]

    assert (reply["status"], reply["loaded"], reply["told"]) == ("ok", True, True)
    assert first["key"] != (reply["diagnosis"]["question"] or {}).get("key")
    assert [("answered", *next(iter(answers.items())))] == [(s["kind"], s["key"], s["value"]) for s in kept["steps"]]
    assert ["error"] * 3 == [each["status"] for each in wrong]
    assert "diagnose" in kernel.ask("boo")["evalue"]


def test_what_is_no_kernel_is_none(tmp_path):
    """The caller goes on with other meanings of the target."""
    assert ask_kernel(str(os.getpid())) is None
    assert ask_kernel(str(tmp_path / "nothing.json")) is None


def test_the_kernel_goes_on_as_before(kernel):
    """A request of any form is answered, and a child that is no rank prints what it would have printed."""
    for content in (b"[]", b'"x"', b'{"kind": "boo"}', b'{"kind": ["hang"]}', b'{"timeout": "x"}'):
        request = kernel.client.session.msg("dtdebug_request", content)
        kernel.client.control_channel.send(request)
        assert kernel.reply(request["header"]["msg_id"])["status"] in ("ok", "error")
    status, printed, _ = kernel.run("!python -c \"import sys; print('torch' in sys.modules, 6 * 7)\"")

    assert (status, printed.strip()) == ("ok", "False 42")


@ranks
def test_spawned_ranks_that_hang_are_told_with_the_culprit(kernel):
    """Rank 1 leaves out a collective: who waits, where, and the line of the cell."""
    kernel.hang(
        f"import job, torch.multiprocessing as mp\n\nmp.spawn(job.train, args=({kernel.store!r},), nprocs=2)",
        ("begun 0", "begun 1"),
    )
    reply = kernel.verdict()

    assert [r["rank"] for r in reply["ranks"]] == [0, 1]
    assert reply["verdict"]["culprits"] == [1]
    assert "job.py" in reply["text"]
    assert "cell In[2], line 3" in reply["text"]
    first, *rows = kernel.in_subshell("%dtdebug hang").splitlines()
    assert "Only rank 0 passes `rank != 1` (job.py:16)" in first
    assert [row for row in rows if row.startswith("  rank 1  ") and "job.py:18" in row]


@ranks
def test_the_first_answer_after_ranks_have_stopped_tells_so_and_the_card_of_the_time_out_too(kernel):
    """Asked at once, and once; when the time is up, the card below the cell goes on from what was found."""
    cell = kernel.hang(
        f"import job, torch.multiprocessing as mp\nmp.spawn(job.pauses, args=({kernel.store!r}, 0.05, 40), nprocs=2)",
        ("stops 0", "stops 1"),
    )
    first = kernel.ask()
    _, bundles = kernel._shown(kernel.until_idle(cell, SECONDS))
    card = next(b for b in bundles if DIAGNOSIS in b)
    told = first["text"].splitlines()[0].removeprefix("dtdebug: ")

    shown = {kind: re.sub(r"/[^\s<>\"]*/job\.py", "job.py", card[kind]) for kind in ("text/plain", "text/html")}

    assert told.startswith("Slow, or hanging: rank 1 ")
    assert [("not_arrived", [1])] == [(first["verdict"]["kind"], first["verdict"]["culprits"])]
    assert first["view"]["hangs"] is True
    assert "job.py:40" in told
    first = "Rank 1 has not arrived at all_reduce #41 of world; it is in pauses."
    assert shown["text/plain"].startswith(f"dtdebug: {first}\n  rank 1  job.py:40\n")
    assert f"<b>{first}</b>" in shown["text/html"]
    assert "job.py:40" in shown["text/html"]
    assert [1] == card[DIAGNOSIS]["culprits"]
    assert "an echo" not in card["text/plain"]


@ranks
@pytest.mark.parametrize("pause", [0.05, 1.2])
def test_a_job_that_moves_is_never_called_a_hang(kernel, pause):
    """Asked again and again while its ranks wait for the slowest of them in each step."""
    arguments = (kernel.store, pause, 9_999)
    kernel.hang(
        f"import job, torch.multiprocessing as mp\nmp.spawn(job.pauses, args={arguments!r}, nprocs=2)",
        ("begun 0", "begun 1"),
    )
    replies = [kernel.ask() for _ in range(4)]

    assert ["none"] * 4 == [reply["verdict"]["kind"] for reply in replies]
    assert True not in [reply["view"].get("hangs") for reply in replies]


@ranks
def test_ranks_of_torchrun_are_found(kernel):
    """The command's children were armed through the environment."""
    kernel.hang("!torchrun --standalone --nproc-per-node 2 job.py", ("begun 0", "begun 1"))
    reply = kernel.verdict()

    assert [r["rank"] for r in reply["ranks"]] == [0, 1]
    assert reply["verdict"]["culprits"] == [1]
    assert "cell In[2], line 1" in reply["text"]


@ranks
def test_where_the_notebook_started_a_rank_is_not_where_the_rank_was(kernel):
    """The launcher's exception names the rank, and its frames are those of the notebook's own process."""
    kernel.run("def work(rank):\n    import os\n    os.abort()\n")
    cell = "import torch.multiprocessing as mp\nmp.start_processes(work, nprocs=2, start_method='fork')"
    card = next(b for b in kernel.run(cell)[2] if DIAGNOSIS in b)["text/plain"]

    assert "SIGABRT" in card
    assert "is at cell In[3], line 2" not in card


@ranks
def test_forked_ranks_of_a_function_of_the_notebook_are_found(kernel):
    """As notebook launchers start them: the line is the line of a cell on every rank."""
    store = kernel.store
    kernel.run(f"def train(rank):\n    import job\n    job.stalls(rank, {store!r})\n")
    kernel.hang(
        "import torch.multiprocessing as mp\nmp.start_processes(train, nprocs=2, start_method='fork')",
        ("begun 0", "begun 1"),
    )
    reply = kernel.verdict()
    frames = [frame["file"] for rank in reply["ranks"] for frame in rank["stack"]]

    assert [r["rank"] for r in reply["ranks"]] == [0, 1]
    assert frames.count("cell In[2]") == 2
    assert reply["verdict"]["culprits"] == [1]
    assert reply["verdict"]["kind"] == "not_arrived"


@ranks
def test_a_hang_is_drawn_and_its_ranks_are_ended(kernel):
    """The culprit with its line of a cell, where the calls part; the cell ends, the kernel keeps its variables."""
    kernel.run(
        "import time, torch, torch.distributed as dist, torch.multiprocessing as mp\nkept = 41\n"
        "def train(rank):\n"
        f"    dist.init_process_group('gloo', init_method='file://{kernel.store}', rank=rank, world_size=2)\n"
        "    x = torch.ones(4)\n"
        "    dist.all_reduce(x)\n"
        "    print(f'begun {rank}', flush=True)\n"
        "    if rank == 1:\n"
        "        time.sleep(60)\n"
        "    dist.all_reduce(x)\n"
    )
    cell = kernel.hang("mp.start_processes(train, nprocs=2, start_method='fork')", ("begun 0", "begun 1"))
    seen = kernel.verdict(recorded=True)["view"]
    pids = [row["pid"] for row in seen["rows"]]
    ending = kernel.ask("end_ranks", pids=[kernel.pid, os.getpid(), *pids])
    ended = kernel.client.get_shell_msg(timeout=SECONDS)
    _, printed, _ = kernel.run("print(kept)")

    assert seen["hangs"] is True
    assert seen["line"].startswith("rank 0 waits ")
    assert seen["line"].endswith(" s in all_reduce #2 for rank 1")
    assert [("waits", "all_reduce", 2), ("culprit", None, None)] == [
        (row["state"], row.get("op"), row.get("seq")) for row in seen["rows"]
    ]
    assert ["cell In[2], line 10, in train", "cell In[2], line 9, in train"] == [row["at"] for row in seen["rows"]]
    assert (3, 1) == (seen["cell"]["number"], seen["cell"]["line"])
    assert seen["cell"]["seconds"] >= 0
    assert [True] == [branch["culprit"] for branch in seen["tree"]["branches"] if branch["ranks"] == "1"]
    lanes = seen["timeline"]["lanes"]
    assert (2, ["1", "0"]) == (seen["timeline"]["parted"], [lane["ranks"] for lane in lanes])
    assert [1] == [call["seq"] for call in lanes[0]["calls"]]
    assert (2, True, "cell In[2], line 10, in train") == tuple(lanes[1]["calls"][1][k] for k in ("seq", "open", "at"))
    assert ("ok", sorted(pids)) == (ending["status"], sorted(ending["ended"]))
    assert f"left processes {min(kernel.pid, os.getpid())}" in ending["text"]
    assert (cell, "error") == (ended["parent_header"]["msg_id"], ended["content"]["status"])
    assert "41" == printed.strip()


@ranks
def test_a_kernel_that_is_a_rank_counts_itself(kernel):
    """Rank 0 is the kernel, rank 1 a process that it has started."""
    kernel.run("import subprocess, sys, job, torch.distributed as dist")
    other = f"import job; job.stalls(1, {kernel.store!r})"
    kernel.hang(
        f"rank = {other!r}\np = subprocess.Popen([sys.executable, '-c', rank])\njob.stalls(0, {kernel.store!r})",
        ("begun 0", "begun 1"),
    )
    reply = kernel.ask("state")

    assert {r["rank"]: r["pid"] == kernel.pid for r in reply["ranks"]} == {0: True, 1: False}
    assert "cell In[3], line 3" in reply["text"]


@ranks
def test_kernels_that_are_ranks_of_one_group_know_of_each_other(tmp_path):
    """As tools make them that run each cell on several kernels: the environment names the rank."""
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + os.getpid() % 10000)}
    kernels = []
    try:
        for rank in range(2):
            kernels.append(Kernel(tmp_path, RANK=str(rank), **group))
            kernels[rank].run("import job")
        store = kernels[0].store
        kernels[0].client.execute(f"job.stalls(0, {store!r})", allow_stdin=False)
        kernels[1].hang(f"job.stalls(1, {store!r})", ("begun 1",))  # the group is complete: both run their cells
        reply = kernels[0].verdict()
    finally:
        for kernel in kernels:
            kernel.stop()

    assert [r["rank"] for r in reply["ranks"]] == [0, 1]
    assert reply["verdict"]["culprits"] == [1]
    assert "cell In[3], line 1" in reply["text"]


@ranks
def test_an_interrupted_cell_says_which_rank_the_others_wait_for(kernel):
    """Below the KeyboardInterrupt, unasked, once."""
    request = kernel.hang(
        f"import job, torch.multiprocessing as mp\nmp.spawn(job.train, args=({kernel.store!r},), nprocs=2)",
        ("begun 0", "begun 1"),
    )
    kernel.manager.interrupt_kernel()
    _, bundles = kernel._shown(kernel.until_idle(request, SECONDS))
    texts = [b["text/plain"] for b in bundles]
    print(*texts, sep="\n")

    first, *rows = next(text for text in texts if "rank 1" in text.lower()).splitlines()
    assert first.startswith("dtdebug: Only rank 0 passes `rank != 1` (job.py:16)")
    assert [row for row in rows if row.startswith("  rank 1  ") and "job.py:18" in row]


GUARDED = """
def count(rank):
    import torch
    total = torch.ones(2)
    dist.all_reduce(total)

def fit(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    print(f"begun {rank}", flush=True)
    if rank == 0:
        count(rank)
    dist.barrier()
"""
STARTS = """
ranks = [mp.get_context("fork").Process(target=fit, args=(rank, %r)) for rank in range(2)]
for rank in ranks:
    rank.start()
"""


@ranks
def test_the_test_that_parts_the_ranks_of_a_cell_is_the_answer_with_its_edit(kernel):
    """The values at the test are measured, and the check of that line knows the edit."""
    kernel.run("import torch.distributed as dist, torch.multiprocessing as mp")
    kernel.run(GUARDED)
    kernel.hang(STARTS % kernel.store + "for rank in ranks:\n    rank.join()", ("begun 0", "begun 1"))
    kernel.verdict()
    card = kernel.in_subshell("%dtdebug hang")

    assert "Only rank 0 passes `rank == 0`" in card.splitlines()[0]
    assert "Call count() on every rank." in card
    assert "+ count(rank)" in card


@ranks
def test_an_interrupt_that_ended_the_ranks_first_tells_where_they_stood(kernel):
    """torch's elastic agent ends its ranks and then raises an exception of its own; their records are left."""
    kernel.run("import torch.distributed as dist, torch.multiprocessing as mp, time")
    kernel.run(GUARDED)
    ends = """
time.sleep(12)
for rank in ranks:
    rank.kill()
    rank.join()
from torch.distributed.elastic.multiprocessing.api import SignalException
raise SignalException(f"Process {1} got signal: {2}", 2)
"""
    _, _, bundles = kernel.run(STARTS % kernel.store + ends)
    card = next(b for b in bundles if DIAGNOSIS in b)["text/plain"]

    assert "runs only on rank 0" in card
    assert "+ count(rank)" in card


@ranks
def test_the_job_at_hand_is_not_mixed_with_an_earlier_one(kernel):
    """A job of three ranks has ended before one of two hangs."""
    store = str(kernel.home / "first")
    kernel.run(
        "import torch.multiprocessing as mp, job\n(__import__('pathlib').Path('ok.py')).write_text("
        f'\'import torch.distributed as dist, time\\ndef f(r):\\n    dist.init_process_group("gloo", '
        f'init_method="file://{store}", rank=r, world_size=3)\\n    dist.barrier()\\n    time.sleep(1.5)\')\n'
        "import ok; mp.spawn(ok.f, nprocs=3)"
    )
    for path in (kernel.home / "state").rglob("*"):
        os.utime(path, (0, 0))
    kernel.hang(f"mp.spawn(job.train, args=({kernel.store!r},), nprocs=2)", ("begun 0", "begun 1"))

    assert [r["rank"] for r in kernel.ask("state")["ranks"]] == [0, 1]


def test_after_a_death_the_wizard_knows_the_cell(kernel):
    """The journal outlives the kernel."""
    kernel.hang("print('begun', flush=True)\nimport time; time.sleep(40)")
    os.kill(kernel.pid, signal.SIGKILL)
    kernel.manager.restart_kernel(now=True)
    kernel.client.wait_for_ready(timeout=SECONDS)
    kernel.run("%load_ext dtdebug")

    assert "died while cell In[2] ran" in kernel.run("%dtdebug why")[1]


ORPHANS = """
import os, subprocess, sys
rank = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); time.sleep(120)"
for number in "01":
    subprocess.Popen([sys.executable, "-c", rank], start_new_session=True,
                     env={**os.environ, "RANK": number, "WORLD_SIZE": "2"})
"""


@pytest.mark.parametrize(
    ("death", "how"),
    [
        ("import os; os._exit(3)", "leaves no crash report"),
        ("import ctypes; ctypes.string_at(0)", "Segmentation fault"),
    ],
    ids=["exit", "crash"],
)
def test_after_a_death_loading_names_the_cell_the_ranks_and_the_command_that_ends_them(kernel, death, how):
    """Nothing is ended before it is asked for; how the kernel died is said only where a record says it."""
    kernel.run(ORPHANS)
    begun = {child.pid for child in psutil.Process(kernel.pid).children()}
    time.sleep(0.2)  # what starts within a tick of the next cell may be taken for its own
    try:
        kernel.client.execute(death)
        psutil.wait_procs([psutil.Process(kernel.pid)], timeout=SECONDS)
        kernel.manager.restart_kernel(now=True)
        kernel.client.wait_for_ready(timeout=SECONDS)
        _, loaded, _ = kernel.run("%load_ext dtdebug")
        alive = {pid for pid in begun if liveness(pid) != "ended"}
        _, ended, _ = kernel.run("%dtdebug end")

        assert re.search(rf"died while cell In\[3\] ran.*{how}", loaded), loaded
        assert re.search(r"ranks 0-1 of cell \[2\] are still running .*\(processes [\d,-]+\)", loaded), loaded
        assert "%dtdebug end ends them" in loaded
        assert begun == alive
        assert "ended processes" in ended
        assert {"ended"} == {liveness(pid) for pid in begun}
    finally:
        for pid in begun:
            with suppress(psutil.Error):
                psutil.Process(pid).kill()


STORE = """
import sys, time, datetime, socket
import torch.distributed as dist
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, rdzv_backend="static", start_method="fork",
                      rdzv_endpoint=f"127.0.0.1:{port}", rdzv_configs={"rank": 0, "timeout": 60}, max_restarts=0,
                      monitor_interval=0.1)

def train(late, fails):
    import os
    if os.environ["RANK"] == "1":
        time.sleep(late)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=10))
    if fails:
        raise ValueError("bad label")
"""


@ranks
def test_a_store_that_a_failed_run_left_open_is_named_and_closed(kernel):
    """torch gives a launcher in the same kernel the same store: a rank that is quick finds where an ended one was.

    Of two gloo ranks the one of the higher address connects: that it is the quick one takes a few runs.
    """
    kernel.run(STORE)
    first, _, told = kernel.run("elastic_launch(config, train)(0, True)", LONG)
    for _ in range(10):
        again, _, answers = kernel.run("elastic_launch(config, train)(4, False)", LONG)
        if again == "error":
            break
    _, ended, _ = kernel.run("%dtdebug end\nprint(port)")
    port = int(ended.split()[-1])
    listens = {c.laddr.port for c in psutil.Process(kernel.pid).net_connections("tcp") if c.status == "LISTEN"}
    last, *_ = kernel.run("elastic_launch(config, train)(0, False)", LONG)

    assert ("error", "error", "ok") == (first, again, last)
    assert f"serves the store of cell [3] at port {port}" in told[-1]["text/plain"]
    assert "The ranks met the keys of an earlier run" in answers[0]["text/plain"]
    assert f"closed the store at port {port}" in ended
    assert port not in listens


def test_unloading_leaves_nothing_behind(kernel):
    """No variable, no folder, no signal handler, no message."""
    look = (
        "import os, pathlib\n"
        "print({k: v for k, v in os.environ.items() if 'DTDEBUG_RUN' in k or 'TORCH_FR' in k or k == 'PYTHONPATH'})\n"
        "print(len(list(pathlib.Path(os.environ['DTDEBUG_STATE'], 'kernels').iterdir())))\n"
        "print('dtdebug_request' in get_ipython().kernel.control_handlers)\n"
        "print(int([l for l in open('/proc/self/status') if l.startswith('SigCgt')][0].split()[1], 16) >> 9 & 1)"
    )
    _, loaded, _ = kernel.run(look)
    kernel.run("%unload_ext dtdebug")
    _, unloaded, _ = kernel.run(look)

    assert "DTDEBUG_RUN" in loaded
    assert loaded.splitlines()[1:] == ["1", "True", "1"]
    assert "DTDEBUG_RUN" not in unloaded
    assert unloaded.splitlines()[1:] == ["0", "False", "0"]

"""The extension in a real Jupyter kernel, driven over the wire as a front end drives it."""

import html
import json
import os
import re
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from queue import Empty

import pytest

pytest.importorskip("ipykernel")
manager = pytest.importorskip("jupyter_client.manager")
pytestmark = pytest.mark.kernel

from dtdebug.presentation.diagnosis_card import MIME  # noqa: E402


def ranks(test):
    """Marks a test that starts ranks."""
    return pytest.mark.ranks(pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")(test))


SECONDS = 60
MESSAGE = "NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system error, NCCL version 2.19.3"
NCCL = f"raise RuntimeError('{MESSAGE}')"
SHAPES = "mat1 and mat2 shapes cannot be multiplied"
RANKS = """
import os, signal, sys, time
import torch
import torch.distributed as dist

def train(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    step(rank)

def step(rank):
    if rank == 1:
        torch.ones(2, 3) @ torch.ones(2, 3)
    dist.barrier()

def dies(rank):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(30)

def misses(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    if rank == 1:
        {}["absent"]
    dist.barrier()

def well(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    dist.barrier()

def elastic():
    dist.init_process_group("gloo")
    step(dist.get_rank())

if __name__ == "__main__":
    elastic()
"""


LOADED = "import sys; print([n for n in ('torch', 'dtdebug_taxonomy.knowledge.loader') if n in sys.modules])"


@dataclass
class Ran:
    """What a front end gets of one cell."""

    status: str
    messages: list

    def of(self, kind):
        return [m["content"] for m in self.messages if m["msg_type"] == kind]

    @property
    def bundles(self):
        return [c["data"] for c in self.of("display_data") if MIME in c["data"]]

    @property
    def printed(self):
        return "".join(c["text"] for c in self.of("stream"))

    @property
    def order(self):
        """The messages that show something, in their order, neighbours of one kind as one."""
        kinds = ["bundle" if MIME in m["content"].get("data", {}) else m["msg_type"] for m in self.messages]
        shown = [k for k in kinds if k not in ("status", "execute_input")]
        return [k for i, k in enumerate(shown) if i == 0 or k != shown[i - 1]]


class Kernel:
    """A kernel with everything that it may write below one folder."""

    def __init__(self, home):
        self.home = home
        (home / "ranks.py").write_text(RANKS)
        environment = {
            **{k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},  # ipykernel is another one below it
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DTDEBUG_STATE": str(home / "state"),
            "IPYTHONDIR": str(home / "ipython"),
        }
        self.manager, self.client = manager.start_new_kernel(
            startup_timeout=SECONDS, kernel_name="python3", cwd=str(home), env=environment
        )
        self.group = self.manager.provisioner.pgid

    def cell(self, source):
        messages = []
        reply = self.client.execute_interactive(source, timeout=SECONDS, allow_stdin=False, output_hook=messages.append)
        return Ran(reply["content"]["status"], messages)

    def until_idle(self, request, seen=lambda message: None):
        """The messages that a request brings; `seen` may act on each."""
        messages = []
        while not messages or messages[-1]["content"].get("execution_state") != "idle":
            with suppress(Empty):
                message = self.client.get_iopub_msg(timeout=SECONDS)
                if message["parent_header"].get("msg_id") == request:
                    messages.append(message)
                    seen(message)
        return messages

    def to_widget(self, comm, data):
        """Sends what a front end sends for a widget and returns the updates that come back."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        self.client.shell_channel.send(message)
        answers = self.until_idle(message["header"]["msg_id"])
        return [m["content"]["data"].get("state", {}) for m in answers if m["msg_type"] == "comm_msg"]

    def restart(self):
        self.manager.restart_kernel(now=True)
        self.client.wait_for_ready(timeout=SECONDS)
        self.group = self.manager.provisioner.pgid

    def stop(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        with suppress(ProcessLookupError):
            os.killpg(self.group, signal.SIGKILL)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts kernels; all are ended with the module."""
    started = []

    def start(*cells):
        started.append(Kernel(tmp_path_factory.mktemp("kernel")))
        for cell in cells:
            assert started[-1].cell(cell).status == "ok"
        return started[-1]

    with pytest.MonkeyPatch.context() as patch:
        for name in ("CONFIG", "DATA", "RUNTIME"):
            patch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path_factory.mktemp(name.lower())))
        yield start
        for kernel in started:
            kernel.stop()


@pytest.fixture(scope="module")
def kernel(start):
    """The kernel that most tests share, with the extension."""
    return start("%load_ext dtdebug")


@pytest.fixture(scope="module")
def bare(start):
    """A kernel without the extension."""
    return start()


def plain(text):
    """A traceback without what differs from run to run: numbers of cells and names of their files."""
    return re.sub(r"ipykernel_\d+/\d+", "CELL", re.sub(r"In\[\d+\]", "In[]", text))


def the_answer(ran):
    """The one diagnosis of a cell, checked for its form."""
    (bundle,) = ran.bundles
    assert {MIME, "text/html", "text/plain"} == set(bundle)
    assert len(json.dumps(bundle[MIME], separators=(",", ":"), ensure_ascii=False).encode()) < 4_000
    assert bundle[MIME]["v"] == 1
    assert "<script" not in bundle["text/html"].lower()
    assert bundle["text/plain"].startswith("dtdebug: ")
    return bundle


def flat(text):
    """The text without its line breaks."""
    return " ".join(text.split())


def test_loading_imports_no_framework_and_a_plain_error_loads_no_knowledge(start):
    """A ZeroDivisionError of a notebook without a framework stays undecorated and costs next to nothing."""
    kernel = start("%load_ext dtdebug")
    ran = kernel.cell("1/0")

    assert ran.status == "error"
    assert ran.order == ["error"]
    assert kernel.cell(f"import time; time.sleep(1)\n{LOADED}").printed == "[]\n"


def test_what_a_diagnosis_needs_is_loaded_while_the_kernel_is_idle(start):
    """Not before a framework is imported, and never while cells follow each other."""
    kernel = start("%load_ext dtdebug", "import sys, types; sys.modules['horovod'] = types.ModuleType('horovod')")
    at_once = kernel.cell(LOADED).printed
    deadline = time.monotonic() + SECONDS
    while "knowledge.loader" not in kernel.cell(LOADED).printed and time.monotonic() < deadline:
        time.sleep(2)

    assert at_once == "[]\n"
    assert kernel.cell(LOADED).printed == "['dtdebug_taxonomy.knowledge.loader']\n"
    assert not kernel.cell("1/0").bundles


@pytest.mark.parametrize(
    "source",
    [
        NCCL,
        f"try:\n    1/0\nexcept ZeroDivisionError as e:\n    {NCCL} from e",
        f"async def f():\n    {NCCL}\nawait f()",
        f"raise ExceptionGroup('ranks', [ValueError('x'), {NCCL[6:]}])",
        f"print('begun')\n{NCCL}",
    ],
    ids=["plain", "chained", "async", "group", "after output"],
)
def test_the_answer_comes_after_the_error_which_is_as_without_the_extension(kernel, bare, source):
    """Same name, same text, same traceback, same order; then one bundle."""
    without, ran = bare.cell(source), kernel.cell(source)

    assert (without.status, *without.order, "bundle") == (ran.status, *ran.order)
    for expected, got in zip(without.of("error"), ran.of("error"), strict=True):
        assert (expected["ename"], expected["evalue"]) == (got["ename"], got["evalue"])
        assert plain("\n".join(expected["traceback"])) == plain("\n".join(got["traceback"]))
    assert plain(without.printed) == plain(ran.printed)
    assert "unhandled system error" in html.unescape(the_answer(ran)["text/html"])  # its cause may be the headline


MODULE = f"def f():\n    {NCCL}\n"
CHANGED = f"# another first line\n{MODULE}"
MODES = {
    **{name: f"%xmode {name}" for name in ("Context", "Plain", "Minimal", "Verbose", "Docs")},
    "custom handler": (
        "get_ipython().set_custom_exc((RuntimeError, ExceptionGroup), "
        "lambda shell, kind, error, trace, tb_offset=None: print('mine:', kind.__name__))"
    ),
    "showtraceback": (
        "shell = get_ipython(); shell.set_custom_exc((), None); theirs = shell.showtraceback\n"
        "def mine(*args, **words):\n    print('before'); theirs(*args, **words); print('after')\n"
        "shell.showtraceback = mine"
    ),
    "autoreload": (
        "%load_ext autoreload\n%autoreload 2\nfrom pathlib import Path; import os\n"
        f"_ = Path('changing.py').write_text({CHANGED!r}); os.utime('changing.py', (2e9, 2e9))"
    ),
    "rich": "from rich.traceback import install; _ = install(width=100)",
    "ultratb": (
        "from IPython.core.ultratb import VerboseTB; _draw = VerboseTB(theme_name='nocolor')\n"
        "get_ipython().set_custom_exc((Exception,), lambda shell, *raised, tb_offset=None: print(_draw.text(*raised)))"
    ),
}
if find_spec("friendly") and find_spec("colorama"):  # it needs that, too, and does not say so
    MODES["friendly"] = "get_ipython().set_custom_exc((), None)\nfrom friendly.ipython import *"
"""How a notebook shows errors, each on top of those before it."""
RAISED = {
    "plain": NCCL,
    "chain": f"try:\n    1/0\nexcept ZeroDivisionError as e:\n    {NCCL} from e",
    "circle": f"a, b = ValueError('NCCL a'), RuntimeError('{MESSAGE}')\na.__cause__, b.__cause__ = b, a\nraise a",
    "group": f"raise ExceptionGroup('ranks', [ValueError('x'), ExceptionGroup('more', [{NCCL[6:]}])])",
    "str": "class S(RuntimeError):\n    def __str__(self):\n        raise SystemExit(3)\nraise S('NCCL')",
    "repr": "class R(RuntimeError):\n    def __repr__(self):\n        raise KeyboardInterrupt\nraise R('NCCL')",
    "attribute": (
        "class A(RuntimeError):\n    def __getattribute__(self, _):\n        raise KeyboardInterrupt\nraise A('NCCL')"
    ),
    "both": (
        "class B(RuntimeError):\n    def __str__(self):\n        raise KeyboardInterrupt\n    __repr__ = __str__\n"
        f"try:\n    raise B('NCCL')\nexcept B as e:\n    {NCCL} from e"
    ),
    "deep": (
        "def down(n):\n    return down(n + 1) if n < 400 else 1 / 0\n"
        f"try:\n    down(0)\nexcept Exception as e:\n    {NCCL} from e"
    ),
    "nested": f"_ = get_ipython().run_cell({NCCL!r})",
    "embedded": (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        f"_ = InteractiveShell(colors='nocolor').run_cell({NCCL!r})"
    ),
    "run": "%run script.py",
    "module": "import changing; changing.f()",
    "syntax": "def :",
    "exit": "import sys; sys.exit(3)",
}


def test_tracebacks_are_byte_for_byte_as_without_the_extension(start):
    """All kinds of errors in all modes; both kernels have counted the same cells."""
    without, ours = start("pass"), start("%load_ext dtdebug")
    for kernel in (without, ours):
        (kernel.home / "script.py").write_text(NCCL)
        (kernel.home / "changing.py").write_text(MODULE)
    differ = []
    for mode, setting in MODES.items():
        few = ("plain", "group", "both", "nested", *(["module"] if mode == "autoreload" else []))
        kinds = RAISED if setting.startswith("%xmode") else {kind: RAISED[kind] for kind in few}
        for kind, source in {"set": setting, **kinds}.items():
            expected, got = (_as_drawn(kernel, source) for kernel in (without, ours))
            assert "ok" == expected[0] or kind != "set", expected
            if expected != got:
                differ.append((mode, kind, expected, got))

    assert [] == differ


def _as_drawn(kernel, source):
    """Status, messages and streams of a cell, without what is ours and what names the process."""
    ran = kernel.cell(source)
    told = [(m["msg_type"], m["content"]) for m in ran.messages if MIME not in m["content"].get("data", {})]
    drawn = [f"{kind}: {content}" for kind, content in told if kind not in ("status", "execute_input", "stream")]
    streams = ("stdout", "stderr")  # in how many pieces one comes, and which comes first, is chance
    drawn += ("".join(c["text"] for c in ran.of("stream") if c["name"] == stream) for stream in streams)
    return ran.status, re.sub(r"ipykernel_\d+/", "", "\n".join(drawn).replace(str(kernel.home), "HOME"))


@pytest.mark.parametrize("source", ["def :", "%no_such_magic", "import sys; sys.exit(3)", "{}['x']"])
def test_what_is_no_fault_of_distributed_training_looks_as_without_the_extension(kernel, bare, source):
    """A syntax error, an unknown magic, an exit and a KeyError get nothing of ours."""
    without, ran = bare.cell(source), kernel.cell(source)

    assert (without.status, without.order) == (ran.status, ran.order)
    assert plain(str(without.of("error"))) == plain(str(ran.of("error")))
    assert plain(without.printed) == plain(ran.printed)


AFTER_WORK = f"sum(range(3_000_000))\n{NCCL}"
"""A rank works for longer than a tick of the clock that counts what children have used."""
FAILING = f"import sys; print('[rank1]: {MESSAGE}'); sys.exit(1)"


@pytest.mark.parametrize(
    "source",
    [
        "%run script.py",
        f"%%capture\n{NCCL}",
        f'!python -c "{FAILING}"',
        f"import subprocess, sys\n_ = subprocess.run([sys.executable, '-c', {AFTER_WORK!r}])",
    ],
    ids=["%run", "%%capture", "!command", "subprocess"],
)
def test_failures_of_cells_that_reply_ok_are_noticed(kernel, source):
    """The reply says ok; the last exception, the exit status and the printed traceback tell otherwise."""
    (kernel.home / "script.py").write_text(NCCL)
    ran = kernel.cell(source)

    assert ran.status == "ok"
    assert ran.order[-1] == "bundle"
    assert "unhandled system error" in flat(the_answer(ran)["text/plain"])


def test_a_failing_command_names_the_rank_that_its_output_names(kernel):
    """`[rank1]:` before a line."""
    assert the_answer(kernel.cell(f'!python -c "{FAILING}"'))[MIME]["culprits"] == [1]


def test_a_failing_repr_is_noticed(kernel):
    """The error message has no name, and the result has no error."""
    ran = kernel.cell(f"class R:\n    def __repr__(self):\n        {NCCL}\nR()")

    assert ran.order == ["error", "bundle"]
    assert "unhandled system error" in flat(the_answer(ran)["text/plain"])


def test_a_passing_cell_after_a_failing_one_says_nothing(kernel):
    """Each failure is answered once."""
    kernel.cell(NCCL)

    assert kernel.cell("x = 1").order == []
    assert kernel.cell("!true").order == []


def test_an_interrupted_cell_of_plain_code_is_left_alone(kernel):
    """The stop button works as before, and so does the next cell."""

    def stop(message):
        if message["msg_type"] == "stream":
            kernel.manager.interrupt_kernel()

    request = kernel.client.execute("import time\nprint('begun', flush=True)\ntime.sleep(50)", allow_stdin=False)
    ran = Ran("", kernel.until_idle(request, stop))
    kernel.client.get_shell_msg(timeout=SECONDS)

    assert ran.order == ["stream", "error"]
    assert ran.of("error")[0]["ename"] == "KeyboardInterrupt"
    assert ran.printed == "begun\n"
    assert kernel.cell("print(6 * 7)").printed == "42\n"


def widgets(ran):
    """Comm id -> first state of each widget that a cell has opened."""
    return {c["comm_id"]: c["data"]["state"] for c in ran.of("comm_open")}


def one(found, **wanted):
    """The id of the widget whose state has these values."""
    (comm,) = [comm for comm, state in found.items() if all(state.get(k) == v for k, v in wanted.items())]
    return comm


def test_a_click_in_the_wizard_is_answered_by_updates(kernel):
    """Choosing an answer and pressing Next changes the session, and the front end is told."""
    kernel.cell(NCCL)
    found = widgets(kernel.cell("%dtdebug"))
    choices, button = one(found, _model_name="RadioButtonsModel"), one(found, description="Next")
    kernel.to_widget(choices, {"method": "update", "state": {"index": 0}, "buffer_paths": []})
    updates = kernel.to_widget(button, {"method": "custom", "content": {"event": "click"}})

    assert any("answered: " in str(state.get("value")) for state in updates)
    answers = (
        "from dtdebug.notebook import extension_state as loaded; print(len(loaded.extension.wizard.session.answers))"
    )
    assert kernel.cell(answers).printed == "1\n"


def test_the_wizard_goes_on_after_a_restart_of_the_kernel(start):
    """`%dtdebug resume` has the answers and the failure."""
    kernel = start("%load_ext dtdebug")
    kernel.cell(NCCL)
    kernel.cell("%dtdebug answer nodes multiple")
    kernel.restart()
    kernel.cell("%load_ext dtdebug")
    ran = kernel.cell("%dtdebug resume")

    shown = " ".join(str(c["data"].get("state", {}).get("value", "")) for c in ran.of("comm_msg"))
    assert "answered: nodes = multiple" in shown
    assert "unhandled system error" in kernel.cell("%dtdebug report").printed


RICH = "from rich.traceback import install; _ = install()"


@pytest.mark.parametrize("cells", [("%load_ext dtdebug", RICH), (RICH, "%load_ext dtdebug")], ids=["before", "after"])
def test_rich_tracebacks_and_ours_live_side_by_side(start, cells):
    """Whichever is loaded first: rich draws the traceback, then comes the answer."""
    ran = start(*cells).cell(NCCL)

    assert ran.order == ["display_data", "bundle"]
    assert "Traceback" in ran.of("display_data")[0]["data"]["text/plain"]
    assert "unhandled system error" in flat(the_answer(ran)["text/plain"])


@pytest.fixture(scope="module")
def beside_torch(start):
    """A kernel that has imported torch."""
    return start("%load_ext dtdebug", "import ranks, torch.multiprocessing as mp")


@ranks
def test_a_rank_that_raises_is_named(beside_torch):
    """The child's traceback is text in ProcessRaisedException."""
    ran = beside_torch.cell(f"mp.spawn(ranks.train, args=({str(beside_torch.home / 'store')!r},), nprocs=2)")
    answer = the_answer(ran)

    assert ran.of("error")[0]["ename"] == "ProcessRaisedException"
    assert ran.order[-2:] == ["error", "bundle"]
    assert answer[MIME]["culprits"] == [1]
    assert SHAPES in flat(answer["text/plain"])


@ranks
def test_a_rank_that_is_killed_is_measured_as_killed_by_a_signal(beside_torch):
    """ProcessExitedException carries the signal."""
    ran = beside_torch.cell("mp.spawn(ranks.dies, nprocs=2)")
    answer = the_answer(ran)

    assert ran.of("error")[0]["ename"] == "ProcessExitedException"
    assert answer[MIME]["culprits"] == [1]
    assert "SIGKILL" in answer["text/plain"]
    assert "manifestation: killed_by_signal (measured)" in beside_torch.cell("%dtdebug report").printed


@ranks
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_what_a_rank_raised_is_told_with_its_line(start, method):
    """By what the rank has left, or by the launcher's exception if it was too quick; launching is not blamed."""
    kernel = start("%load_ext dtdebug", "import ranks, torch.multiprocessing as mp")
    line = 1 + next(i for i, line in enumerate(RANKS.splitlines()) if "absent" in line)
    ran = kernel.cell(
        f"mp.start_processes(ranks.misses, args=({str(kernel.home / 'store')!r},), nprocs=2, start_method={method!r})"
    )
    answer = the_answer(ran)
    event = "Rank 1 raised KeyError: 'absent'"
    told = f"{event} at {kernel.home / 'ranks.py'}:{line} in misses"
    first, *rows = answer["text/plain"].splitlines()

    assert first.startswith(f"dtdebug: {event}")
    assert [f"  rank 1  ranks.py:{line}", '      {}["absent"]'] == rows[:2]
    assert f"<b>{html.escape(event)}" in answer["text/html"]
    assert [1] == answer[MIME]["culprits"]
    assert "B.1" != answer[MIME]["symptoms"][0]["code"]
    assert told in kernel.cell("%dtdebug report").printed.replace("\\", "")
    assert kernel.cell("1/0").order == ["error"]


@ranks
def test_what_earlier_ranks_left_does_not_count(start):
    """Neither a failure of a cell before, nor ranks that ended well before the notebook's own code failed."""
    kernel = start("%load_ext dtdebug", "import ranks, torch.multiprocessing as mp")
    kernel.cell(f"mp.spawn(ranks.misses, args=({str(kernel.home / 'store')!r},), nprocs=2)")
    own = kernel.cell(f"mp.spawn(ranks.well, args=({str(kernel.home / 'other')!r},), nprocs=2)\n{{}}['mine']")
    later = kernel.cell(NCCL)

    assert own.of("error")[0]["ename"] == "KeyError"
    assert own.order[-1] == "error"
    assert "absent" not in the_answer(later)["text/plain"]
    assert [] == the_answer(later)[MIME].get("culprits", [])


@ranks
def test_a_run_of_ours_in_a_cell_gets_no_second_card(start):
    """It has said what it found; `%dtdebug` goes on from that."""
    kernel = start("%load_ext dtdebug")
    ran = kernel.cell("!dtdebug run -- torchrun --standalone --nproc-per-node 2 ranks.py")

    assert "Rank 1 raised RuntimeError: mat1 and mat2" in ran.printed
    assert ran.bundles == []
    why = kernel.cell("%dtdebug why").printed
    assert why.startswith("dtdebug: Rank 1 raised RuntimeError")
    assert "(D.1.5): likely" in why
    assert "Rank 1 raised RuntimeError" in kernel.cell("%dtdebug report").printed


def test_a_diagnosis_in_a_cell_is_gone_on_from(start):
    """What `dtdebug diagnose` prints is ours, not the program's; other commands of ours leave nothing to go on from."""
    kernel = start("%load_ext dtdebug")
    kernel.cell(NCCL)
    oom = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0"
    (kernel.home / "text").write_text(oom)
    ran = kernel.cell("!dtdebug diagnose text")
    why = kernel.cell("%dtdebug why").printed
    other = kernel.cell(f"!dtdebug explain NCCL; python -c {FAILING!r}".replace("NCCL;", "D.1.2;"))
    named = kernel.cell("!python -c \"import sys; print('torch: no dtdebug run here'); sys.exit(1)\"")

    assert ran.bundles == []
    assert "(D.1.2): likely" in why
    assert "NCCL" not in why
    assert other.bundles == []
    assert "internal error" not in ran.printed + other.printed + named.printed


OUTPUT = "from dtdebug.notebook import extension_state as loaded; print(loaded.extension.snapshot.output)"


@ranks
def test_a_function_of_the_notebook_is_found_through_the_output_of_its_ranks(beside_torch):
    """The exception only tells an exit code; the reason stands on the children's stderr."""
    ran = beside_torch.cell("def local(rank):\n    pass\nmp.spawn(local, nprocs=2)")

    assert "terminated with exit code 1" in ran.of("error")[0]["evalue"]
    assert the_answer(ran)[MIME]["recognised"]
    assert "Can't get attribute 'local'" in ran.printed
    assert "Can't get attribute 'local'" in beside_torch.cell(OUTPUT).printed


@ranks
def test_the_elastic_launcher_names_the_rank(beside_torch):
    """ChildFailedError has a record of each failed rank."""
    ran = beside_torch.cell(
        "from torch.distributed.launcher.api import LaunchConfig, elastic_launch\n"
        "elastic_launch(LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, run_id='x', max_restarts=0,\n"
        "    rdzv_backend='c10d', rdzv_endpoint='127.0.0.1:0', monitor_interval=0.1), ranks.elastic)()"
    )
    answer = the_answer(ran)

    assert ran.of("error")[0]["ename"] == "ChildFailedError"
    assert answer[MIME]["culprits"] == [1]
    assert SHAPES in flat(answer["text/plain"])


@ranks
def test_a_failing_torchrun_command_names_the_rank(beside_torch):
    """Its output tells; the cell replies ok."""
    ran = beside_torch.cell("!torchrun --standalone --nproc-per-node 2 ranks.py")
    answer = the_answer(ran)

    assert ran.status == "ok"
    assert answer[MIME]["culprits"] == [1]
    assert SHAPES in flat(answer["text/plain"])


@ranks
def test_an_error_that_a_tool_prints_for_a_rank_is_noticed_at_once(beside_torch):
    """Tools that run cells on ranks print their errors last and reply ok."""
    beside_torch.cell("import sys, types; sys.modules['nbdistributed'] = types.ModuleType('nbdistributed')")
    ran = beside_torch.cell(f"print('Error on Rank 1: RuntimeError: {MESSAGE}')")

    assert ran.order == ["stream", "bundle"]
    assert "unhandled system error" in flat(the_answer(ran)["text/plain"])


@ranks
def test_a_plain_error_beside_torch_stays_undecorated(beside_torch):
    """The framework is imported, but nothing speaks of ranks."""
    assert beside_torch.cell("1/0").order == ["error"]

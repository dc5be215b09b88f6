"""The extension of the Jupyter server: who may ask it, and what it tells of a kernel that can't answer."""

import asyncio
import http.cookiejar
import json
import os
import re
import shlex
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from queue import Empty
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import psutil
import pytest

pytest.importorskip("jupyter_server")
pytest.importorskip("ipykernel")
client_of = pytest.importorskip("jupyter_client.blocking.client")
import notebooks as nb  # noqa: E402

from dtdebug.notebook.server import kernels  # noqa: E402
from dtdebug.notebook.server.handlers import Turns  # noqa: E402
from dtdebug.notebook.server.report import markdown  # noqa: E402
from dtdebug_taxonomy.model.ranks_view import Branch, Call, FrameRow, Lane, Row, Timeline, View  # noqa: E402

SECONDS = 60
KERNEL = pytest.mark.kernel
TOKEN = {"Authorization": "token t0k"}
JOB = """
import datetime
import torch
import torch.distributed as dist

def train(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=120))
    x = torch.ones(4)
    dist.all_reduce(x)
    print(f"begun {rank}", flush=True)
    if rank != 1:
        dist.all_reduce(x)
    dist.barrier()
    dist.broadcast(x, 0)
"""
LOCKED = """import ctypes
library, lock = ctypes.PyDLL(None), ctypes.create_string_buffer(128)
def stuck():
    library.pthread_mutex_lock(lock)
stuck()
print('begun', flush=True)
import time; time.sleep(.3)
stuck()
"""
"""The second call waits for ever, is holding the GIL, and no signal ends it."""


class Server(nb.Jupyter):
    """A plain Jupyter server with the extension; `config` is Python that it runs as its configuration."""

    def __init__(self, home, config="", **options):
        super().__init__("server", home, extension=False, **options)
        (home / "config" / "jupyter_server_config.py").write_text(config)
        (self.work / "job.py").write_text(JOB)

    def ask(self, path, body=None, headers=TOKEN, opener=None, method=None):
        """(status, JSON) of a request; a body that is no text is sent as JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = Request(self.url + path, data, headers, method=method)
        try:
            with (opener or build_opener()).open(request, timeout=SECONDS) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def look(self, kernel, kind="hang", timeout=5.0, **more):
        """The reply about a kernel."""
        begin = time.monotonic()
        status, reply = self.ask(f"dtdebug/api/kernels/{kernel}/look", {"kind": kind, "timeout": timeout}, **more)
        print(f"\n{kind} after {time.monotonic() - begin:.3f} s: {reply.get('text', reply)}")
        assert status == 200, reply
        return reply

    @contextmanager
    def kernel(self, *cells, name="python3", notebook=""):
        """A kernel of this server, or of a notebook, in which cells have run; its ranks end with it."""
        if notebook:
            about = {"path": notebook, "name": notebook, "type": "notebook", "kernel": {"name": name}}
            model = self.ask("api/sessions", about)[1]["kernel"]
        else:
            _, model = self.ask("api/kernels", {"name": name})
        kernel = Kernel(model["id"], self.home / "runtime" / f"kernel-{model['id']}.json")
        try:
            for source in cells:
                kernel.run(source)
            yield kernel
        finally:
            kernel.end()
            with suppress(HTTPError):
                self._request("DELETE", f"api/kernels/{kernel.id}")


class Kernel:
    """A kernel and a client of it."""

    def __init__(self, name, file):
        self.id = name
        self.client = client_of.BlockingKernelClient(connection_file=str(file))
        self.client.load_connection_file()
        self.client.start_channels(hb=False)
        self._wait()
        self.pid = int(self.run("import os; print(os.getpid())"))

    def _wait(self):
        """Until what the kernel publishes comes here, too: what it printed before is lost."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.client.kernel_info()
            with suppress(Empty):
                self.client.get_iopub_msg(timeout=1)
                self.client.get_shell_msg(timeout=SECONDS)
                return
        self.client.stop_channels()
        raise AssertionError("the kernel does not answer")

    def run(self, source):
        """What a cell prints."""
        printed = []
        self.client.execute_interactive(
            source, timeout=SECONDS, allow_stdin=False, output_hook=lambda m: printed.append(m["content"].get("text"))
        )
        return "".join(filter(None, printed))

    def hang(self, source, *signs):
        """Sends a cell that hangs and waits until it has printed the signs."""
        self.client.execute(source, allow_stdin=False)
        printed, end = "", time.monotonic() + SECONDS
        while not all(sign in printed for sign in signs or ("begun",)):
            assert time.monotonic() < end, printed
            with suppress(Exception):
                printed += self.client.get_iopub_msg(timeout=1)["content"].get("text", "")
        time.sleep(0.6)  # it goes on from its sign into what it hangs in

    def end(self):
        """Ends it and its ranks, whatever they do."""
        self.client.stop_channels()
        family = []
        with suppress(psutil.Error):
            family = [*psutil.Process(self.pid).children(recursive=True), psutil.Process(self.pid)]
        for process in family:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(family[:-1], timeout=10)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server as users have it."""
    with Server(tmp_path_factory.mktemp("server")) as running:
        yield running


def wait_for(what):
    """What comes in the end."""
    end = time.monotonic() + SECONDS
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def lines(reply):
    """All that a reply says."""
    return json.dumps(reply["view"]) + reply["text"] + reply["report"]


# Who may ask


@KERNEL
def test_only_who_has_the_token_may_ask(server):
    """By any of the requests."""
    asked = [
        ("dtdebug/api/status", None),
        ("dtdebug/api/kernels/x/look", {}),
        ("dtdebug/api/abandoned", {"pids": [1 << 30]}),
        ("dtdebug/api/kernels/x/left", {}),
        ("dtdebug/api/kernels/x/end", {"pids": [2]}),
        ("dtdebug/api/diagnosis", {"output": "boo"}),
    ]

    assert [403] * len(asked) == [server.ask(path, body, headers={})[0] for path, body in asked]
    assert [403] * len(asked) == [
        server.ask(path, body, headers={"Authorization": "token wrong"})[0] for path, body in asked
    ]
    status, reply = server.ask("dtdebug/api/status")
    assert (200, 1, bool) == (status, reply["v"], type(reply["pyspy"]))


@KERNEL
def test_a_page_of_another_site_can_not_ask_with_the_users_cookie(server):
    """A cookie alone is not enough: the header with the XSRF token must come with it."""
    jar = http.cookiejar.CookieJar()
    opener = build_opener(HTTPCookieProcessor(jar))
    opener.open(f"{server.url}login", timeout=SECONDS).close()
    xsrf = next(cookie.value for cookie in jar if cookie.name == "_xsrf")
    form = urlencode({"password": "t0k", "_xsrf": xsrf}).encode()
    opener.open(f"{server.url}login?next=%2Fapi", form, timeout=SECONDS).close()
    body = {"output": "RuntimeError: boo"}

    assert 200 == server.ask("api/kernels", headers={}, opener=opener)[0]  # the cookie is good
    assert 403 == server.ask("dtdebug/api/diagnosis", body, headers={}, opener=opener)[0]
    assert 403 == server.ask("dtdebug/api/diagnosis", body, headers={"X-XSRFToken": "wrong"}, opener=opener)[0]
    assert 200 == server.ask("dtdebug/api/diagnosis", body, headers={"X-XSRFToken": xsrf}, opener=opener)[0]
    foreign = {"X-XSRFToken": xsrf, "Origin": "https://example.org"}
    assert 404 == server.ask("dtdebug/api/diagnosis", body, headers=foreign, opener=opener)[0]


@KERNEL
def test_who_may_not_run_code_may_not_look_at_it(tmp_path):
    """The server's own rules are asked, by the names of its resources."""
    config = (
        "from jupyter_server.auth import Authorizer\n"
        "class ReadOnly(Authorizer):\n"
        "    def is_authorized(self, handler, user, action, resource):\n"
        "        return action == 'read'\n"
        "c.ServerApp.authorizer_class = ReadOnly\n"
    )
    with Server(tmp_path, config) as server:
        status, reply = server.ask("dtdebug/api/kernels/x/look", {})

        assert (403, ["message"]) == (status, list(reply))
        assert "execute on resource: kernels" in reply["message"]
        assert 403 == server.ask("dtdebug/api/abandoned", {})[0]
        assert 200 == server.ask("dtdebug/api/status")[0]
        assert 200 == server.ask("dtdebug/api/diagnosis", {})[0]


@KERNEL
def test_a_server_without_the_extension_says_that_there_is_nothing(tmp_path):
    """That is how a front end knows."""
    with Server(tmp_path, server=False) as server, pytest.raises(HTTPError) as caught:
        server._request("GET", "dtdebug/api/status")
    caught.value.close()

    assert 404 == caught.value.code


# What is refused


@KERNEL
@pytest.mark.parametrize("name", ["nobody", "../../etc", "<img src=x onerror=alert(1)>", "%s%n", "\x1b[31m\u202eboo"])
def test_a_kernel_of_another_server_is_refused(server, name):
    """In one clean line."""
    status, reply = server.ask(f"dtdebug/api/kernels/{quote(name, safe='')}/look", {})

    assert (404, ["message"]) == (status, list(reply))
    assert "this server has no kernel" in reply["message"]
    assert not set("\n\x1b\u202e") & set(reply["message"])


@KERNEL
@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "truncated"),
        (b"[]", "Expected `object`"),
        (b"\xff\xfe", "ask with"),
        (b'{"kind": "\xff"}', "ask with"),
        ({"kind": "end_ranks"}, "Invalid enum value"),
        ({"kind": ["hang"]}, "Expected `str`"),
        ({"timeout": "3"}, "Expected `float`"),
        ({"timeout": 11}, "<= 10"),
        ({"timeout": 0}, "> 0"),
        ({"timeout": True}, "Expected `float`"),
        ({"pid": 1}, "unknown field `pid`"),
        ({"kind": "hang", "timeout": 10**400}, "ask with"),
        (b" " * 5000, "longer than 4096 bytes"),
        (b"[" * 4000, "ask with"),
    ],
)
def test_what_is_no_request_is_refused_in_a_line_that_says_what_one_is(server, body, told):
    """Before anything is looked at."""
    status, reply = server.ask("dtdebug/api/kernels/x/look", body)

    assert (400, ["message"]) == (status, list(reply))
    assert told in reply["message"]
    assert "\n" not in reply["message"]


@KERNEL
def test_other_methods_are_refused_in_one_line(server):
    """As JSON, too."""
    assert (405, {"message": "Method Not Allowed"}) == server.ask("dtdebug/api/kernels/x/look")
    assert 405 == server.ask("dtdebug/api/status", {}, method="POST")[0]


@pytest.mark.parametrize("provisioner", [None, object()])
def test_a_kernel_that_runs_elsewhere_is_not_looked_for_here(provisioner):
    """Behind a gateway there is no provisioner; one of another kind has no process here."""
    kernel = SimpleNamespace(provisioner=provisioner, connection_file="kernel-1.json", is_alive=lambda: True)

    assert asyncio.run(kernels.process_of(kernel)) is None
    assert "`dtdebug attach`" in kernels.ELSEWHERE


@KERNEL
def test_a_text_is_diagnosed_without_a_kernel(server):
    """As the button does, from the text alone; what is no such text is refused in one line."""
    text = (
        "[rank1]: RuntimeError: CUDA error: out of memory\n"
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB"
    )
    status, reply = server.ask("dtdebug/api/diagnosis", {"output": text})

    assert (200, False, True) == (status, reply["loaded"], reply["told"])
    assert "settled" == reply["diagnosis"]["verdict"]
    for body, told in [
        (b"{", "truncated"),
        ([], "Expected `object`"),
        ({"output": 3}, "Expected `str`"),
        ({"output": "boo", "answers": {"nothing": "no"}}, "nothing"),
        ({"output": "x" * 256_000}, "longer than 256000 bytes"),
        ({"ouput": "boo"}, "unknown field `ouput`"),
        (b"\xff", "ask with"),
    ]:
        status, reply = server.ask("dtdebug/api/diagnosis", body)
        assert (400, ["message"]) == (status, list(reply))
        assert told in reply["message"]


@KERNEL
def test_a_defect_of_ours_is_one_line_too(tmp_path):
    """The traceback is in the server's log."""
    with Server(tmp_path, "import dtdebug.notebook.front_end_api as api\napi.diagnose = None\n") as server:
        status, reply = server.ask("dtdebug/api/diagnosis", {})

    assert (500, {"message": "dtdebug: TypeError: 'NoneType' object is not callable"}) == (status, reply)
    assert "Traceback" in (tmp_path / "server.log").read_text()


# What is told


@KERNEL
@pytest.mark.ranks
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_a_hang_is_told_with_the_culprit_while_the_cell_runs(server):
    """Rank 1 leaves out a collective; a glance tells of it too, and asks nothing of kernel or ranks."""
    store = server.home / "store"
    source = f"import job, torch.multiprocessing as mp\n\nmp.spawn(job.train, args=({str(store)!r},), nprocs=2)"
    with server.kernel("%load_ext dtdebug") as kernel:
        kernel.hang(source, "begun 0", "begun 1")
        end = time.monotonic() + SECONDS
        while (reply := server.look(kernel.id))["view"].get("verdict", {}).get("culprits") != [1]:
            assert time.monotonic() < end, reply
        server.look(kernel.id, "glance")
        state, glance = server.look(kernel.id, "state"), server.look(kernel.id, "glance")
        view = reply["view"]

        assert psutil.Process(kernel.pid).is_running()
        assert "outside" == view["road"]
        assert True is view["hangs"]
        assert view["line"].startswith("rank 0 waits")
        assert (3, 3) == (view["cell"]["number"], view["cell"]["line"])
        assert [(0, "waits"), (1, "culprit")] == [(row["rank"], row["state"]) for row in view["rows"]]
        assert any("job.py" in site["file"] for site in view["verdict"]["sites"])
        assert [0, 1] == [row["rank"] for row in glance["view"]["rows"]]
        assert [0, 1] == [row["rank"] for row in state["view"]["rows"]]
        for part in (
            "# dtdebug: ranks at",
            "## Ranks",
            "rank 1 culprit",
            "## Stacks",
            "job.py",
            "## Versions",
            "torch",
        ):
            assert part in reply["report"]


@KERNEL
def test_a_kernel_that_keeps_the_interpreter_lock_is_told_of(server):
    """Nothing inside it can answer; two who ask at once share one look."""
    with server.kernel("%load_ext dtdebug") as kernel:
        kernel.hang(LOCKED)
        with ThreadPoolExecutor() as pool:
            both = [pool.submit(server.look, kernel.id) for _ in range(2)]
            first, second = (future.result() for future in both)

        assert first == second
        assert (3, 8) == (first["view"]["cell"]["number"], first["view"]["cell"]["line"])
        assert "stuck()" == first["view"]["cell"]["code"]
        assert "cell In[3], line 4, in stuck" in first["view"]["cell"]["frames"][-1]["at"]
        assert "cell In[3], line 8" in first["text"]
        assert "at cell In[3], line 4 in stuck is holding the GIL" in " ".join(first["view"].get("notes", ()))


@KERNEL
@pytest.mark.ranks
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_a_kernel_without_the_extension_is_looked_at_and_the_line_to_type_is_told(server, tmp_path):
    """By stacks alone, and as two of them may be alike by chance, no hang is told that nobody has asked for."""
    store = str(tmp_path / "store")
    late = JOB.replace("    if rank != 1:\n    ", "    if rank == 1:\n        __import__('time').sleep(100)\n")
    (server.work / "late.py").write_text(late)
    with server.kernel() as kernel:
        kernel.hang(f"import torch.multiprocessing as mp, late\nmp.spawn(late.train, args=({store!r},), nprocs=2)",
                    "begun 0", "begun 1")  # fmt: skip
        hang = wait_for(lambda: (seen := server.look(kernel.id))["view"].get("verdict", {}).get("culprits") and seen)
        glance = server.look(kernel.id, "glance")

    assert [1] == hang["view"]["verdict"]["culprits"]
    assert "cell In[?], line 2" in hang["text"]
    assert "found twice in the same places" in hang["text"]
    assert hang["view"]["verdict"]["confidence"] <= 0.6
    assert "may also wait for its GPU" in " ".join(hang["view"]["notes"])
    assert all("%load_ext dtdebug" in " ".join(reply["view"]["notes"]) for reply in (hang, glance))
    assert (None, None) == (glance["view"].get("hangs"), hang["view"].get("hangs"))


@KERNEL
def test_a_kernel_that_rests_has_no_cell(server):
    """And hangs in nothing."""
    with server.kernel("%load_ext dtdebug") as kernel:
        replies = [server.look(kernel.id, kind) for kind in ("hang", "state", "glance")]

        assert [True] * 3 == [not reply["view"].get("hangs") for reply in replies]
        assert [None] * 3 == [reply["view"].get("cell") for reply in replies]


@KERNEL
def test_a_kernel_that_was_restarted_is_another_one(server):
    """What the one before had armed tells nothing of it."""
    with server.kernel("%load_ext dtdebug") as kernel:
        armed = server.look(kernel.id, "glance")
        status, _ = server.ask(f"api/kernels/{kernel.id}/restart", {})
        restarted = server.look(kernel.id, "glance")

        assert 200 == status
        assert "%load_ext" not in " ".join(armed["view"].get("notes", ()))
        assert "%load_ext" in " ".join(restarted["view"].get("notes", ()))


@KERNEL
def test_ranks_of_an_earlier_cell_are_told_and_ended_whatever_has_become_of_the_kernel(server):
    """While it lives under a failed cell, after its death by the server; what is no rank of it is left alone."""
    job = (
        "import os, subprocess, sys\n"
        "rank = 'import socket, time; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); time.sleep(120)'\n"
        "for number in '01':\n"
        "    subprocess.Popen([sys.executable, '-c', rank], start_new_session=True,\n"
        "                     env={**os.environ, 'RANK': number, 'WORLD_SIZE': '2'})"
    )
    started = []
    try:
        with server.kernel("%load_ext dtdebug", job) as kernel:
            started = [child.pid for child in psutil.Process(kernel.pid).children()]
            ask = f"dtdebug/api/kernels/{kernel.id}/left"
            wait_for(lambda: " ports " in str(server.ask(ask, {})[1]["left"]))
            left = server.ask(ask, {})[1]["left"]
            shown = []
            kernel.client.execute_interactive(
                "1/0", timeout=SECONDS, output_hook=lambda m: shown.append(m["content"].get("data", {}))
            )
            os.kill(kernel.pid, signal.SIGKILL)
            wait_for(lambda: not psutil.pid_exists(kernel.pid))
            after = wait_for(lambda: server.ask(ask, {})[1].get("left"))
            pids = after[0]["pids"]
            first = started[0]
            status, ended = server.ask(f"dtdebug/api/kernels/{kernel.id}/end", {"pids": [os.getpid(), first]})

            line = r"ranks 0-1 of cell \[3\] are still running and hold ports [\d,-]+ and 0.\d GB of memory"
            assert re.fullmatch(line, left[0]["line"])
            assert any(left[0]["line"][:30] in each.get("text/plain", "") for each in shown)
            assert (left[0]["line"][:24], sorted(left[0]["pids"])) == (after[0]["line"][:24], sorted(pids))
            assert (200, [first]) == (status, ended["ended"])
            assert f"left process {os.getpid()} alone" in ended["text"]
            assert [400, 400] == [
                server.ask(f"dtdebug/api/kernels/{kernel.id}/end", body)[0] for body in ({}, {"pids": [0]})
            ]
            assert {"left": []} == server.ask("dtdebug/api/abandoned", {})[1]  # the server still has that kernel

        (gone,) = server.ask("dtdebug/api/abandoned", {})[1]["left"]
        _, ended = server.ask("dtdebug/api/abandoned", {"pids": [os.getpid(), *gone["pids"]]})

        assert gone["line"].startswith("rank 1 of cell [3] of a notebook, whose kernel has ended, is still running and")
        assert f"ended process {started[1]}; left process {os.getpid()} alone: no rank of this kernel" == ended["text"]
        assert {"left": []} == server.ask("dtdebug/api/abandoned", {})[1]
    finally:
        for pid in started:
            with suppress(psutil.Error):
                psutil.Process(pid).kill()


@KERNEL
def test_ranks_of_a_kernel_without_the_extension_are_told_by_what_they_have_inherited(server):
    """Below an idle kernel, after its restart and after its end; no other notebook may end them."""
    job = (
        "import os, subprocess, sys\n"
        "pids = [subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)'], start_new_session=True,\n"
        "                         env={**os.environ, 'RANK': number}).pid for number in '01']\n"
    )
    words = "ranks 0-1 of an earlier cell are still running and hold "
    started = []
    try:
        with server.kernel(notebook="other.ipynb") as other, server.kernel(notebook="train.ipynb") as kernel:
            started = json.loads(kernel.run(f"{job}print(pids)"))
            ask, end = (f"dtdebug/api/kernels/{kernel.id}/{what}" for what in ("left", "end"))
            # a server that subscribes late has missed the states of the first cells
            (idle,) = wait_for(lambda: kernel.run("pass") or server.ask(ask, {})[1]["left"])
            kernel.hang("import time\nprint('begun', flush=True)\ntime.sleep(60)")
            busy = wait_for(lambda: not server.ask(ask, {})[1]["left"])
            server.ask(f"api/kernels/{kernel.id}/restart", {})
            (restarted,) = wait_for(lambda: server.ask(ask, {})[1]["left"])
            elsewhere = server.ask(f"dtdebug/api/kernels/{other.id}/left", {})[1]["left"]
            _, refused = server.ask(f"dtdebug/api/kernels/{other.id}/end", {"pids": started})
            _, ended = server.ask(end, {"pids": started[:1]})
            abandoned = server.ask("dtdebug/api/abandoned", {})[1]["left"]
        (gone,) = wait_for(lambda: server.ask("dtdebug/api/abandoned", {})[1]["left"])
        _, last = server.ask("dtdebug/api/abandoned", {"pids": [os.getpid(), *started]})

        assert [words, words] == [each["line"][: len(words)] for each in (idle, restarted)]
        assert busy  # they may be those of the cell that runs
        assert ([], [], []) == (elsewhere, refused["ended"], abandoned)
        assert started[:1] == ended["ended"]
        assert gone["line"].startswith("rank 1 of an earlier cell of train.ipynb, whose kernel has ended, is still")
        assert started[1:] == last["ended"]
    finally:
        for pid in started:
            with suppress(psutil.Error):
                psutil.Process(pid).kill()


@KERNEL
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_of_a_pool_or_a_loader_are_no_ranks_and_those_who_are_connected_are(server, method):
    """Nobody is told to end what a cell keeps for the next one; what a fork has inherited is not held by a rank."""
    (server.work / "peers.py").write_text(
        "import multiprocessing as mp, socket, time\n"
        "def rest(): time.sleep(100)\n"
        "def meet(rank, port):\n"
        "    end = socket.create_server(('127.0.0.1', port), dualstack_ipv6=False) if rank == 0 else None\n"
        "    while rank:\n"
        "        try: end = socket.create_connection(('127.0.0.1', port)); break\n"
        "        except OSError: time.sleep(.1)\n"
        "    kept = end.accept() if rank == 0 else None\n"
        "    rest()\n"
        "def start(method, act, *given):\n"
        "    mp.get_context(method).Process(target=act, args=given, daemon=True).start()\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with server.kernel(
        "%load_ext dtdebug", f"import peers\nfor _ in '01': peers.start({method!r}, peers.rest)"
    ) as kernel:
        ask = f"dtdebug/api/kernels/{kernel.id}/left"
        wait_for(lambda: len(psutil.Process(kernel.pid).children()) >= 2)
        workers = server.ask(ask, {})[1]["left"]
        kernel.run(f"for rank in range(2): peers.start({method!r}, peers.meet, rank, {port})")
        (left,) = wait_for(lambda: server.ask(ask, {})[1]["left"])

    assert [] == workers
    assert left["line"].startswith(f"2 ranks of cell [4] are still running and hold port {port} and")


ENGINES = """
import ipyparallel, json
cluster = ipyparallel.Cluster(n=2, log_level=40, profile_dir="profile")
client = cluster.start_and_connect_sync()
client.wait_for_engines(2, timeout=60)
def listen():
    import socket
    global end
    end = socket.create_server(("127.0.0.1", 0))
    return end.getsockname()[1]
def accept():
    global kept
    import os
    kept = end.accept()
    return os.getpid()
def meet(port):
    global end
    import os, socket
    end = socket.create_connection(("127.0.0.1", port))
    return os.getpid()
port = client[0].apply_sync(listen)
accepted = client[0].apply_async(accept)
print(json.dumps([client[1].apply_sync(meet, port), accepted.get(60)]))
"""


@KERNEL
@pytest.mark.engines
def test_engines_that_are_ranks_are_told_once_no_client_can_ask_them(server):
    """Not while the kernel that has started their cluster lives; what ends them leaves those of others alone."""
    pytest.importorskip("ipyparallel")
    with server.kernel(notebook="engines.ipynb") as kernel:
        cluster = []
        try:
            engines = json.loads(kernel.run(ENGINES))
            cluster = psutil.Process(kernel.pid).children(recursive=True)
            ask = f"dtdebug/api/kernels/{kernel.id}/left"
            served = server.ask(ask, {})[1]["left"]
            os.kill(kernel.pid, signal.SIGKILL)
            (left,) = wait_for(lambda: server.ask(ask, {})[1]["left"])
            _, ended = server.ask(f"dtdebug/api/kernels/{kernel.id}/end", {"pids": engines})

            assert [] == served
            assert left["line"].startswith("2 ranks of an earlier cell are still running and hold port")
            assert set(engines) == set(left["pids"]) == set(ended["ended"])
        finally:
            for process in cluster:
                with suppress(psutil.Error):
                    process.kill()


@KERNEL
def test_a_kernel_below_a_wrapper_is_found(server):
    """As tools start them that set up an environment first and wait for the kernel's end."""
    command = f'{shlex.quote(sys.executable)} -m ipykernel_launcher -f "$0"; true'
    spec = {"argv": ["sh", "-c", command, "{connection_file}"], "display_name": "Wrapped", "language": "python"}
    folder = server.home / "data" / "kernels" / "wrapped"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(spec))
    with server.kernel("%load_ext dtdebug", name="wrapped") as kernel:
        kernel.hang("import time\nprint('begun', flush=True)\ntime.sleep(60)")
        view = server.look(kernel.id)["view"]

        assert "sh" == psutil.Process(kernel.pid).parent().name()
        assert (3, 3) == (view["cell"]["number"], view["cell"]["line"])


@KERNEL
def test_of_a_dead_kernel_its_death_is_told(tmp_path):
    """Where nobody restarts it; nothing else is done to its process id."""
    with (
        Server(tmp_path, "c.MappingKernelManager.autorestart = False\nc.KernelManager.autorestart = False\n") as server,
        server.kernel("%load_ext dtdebug") as kernel,
    ):
        kernel.hang("import time\nprint('begun', flush=True)\ntime.sleep(60)")
        os.kill(kernel.pid, signal.SIGKILL)
        end = time.monotonic() + SECONDS
        while "has ended" not in " ".join((reply := server.look(kernel.id))["view"].get("notes", ())):
            assert time.monotonic() < end, reply

        assert "%dtdebug" in reply["text"]


@KERNEL
@pytest.mark.parametrize(
    ("program", "told"),
    [
        (None, "py-spy is not installed: pip install"),
        ("echo 'Error: Permission denied (os error 13)' >&2; exit 1", "no permission"),
        ("echo boo; exit 0", "py-spy: JSON is malformed"),
    ],
    ids=["missing", "forbidden", "broken"],
)
def test_without_py_spy_the_announced_file_tells(tmp_path, program, told):
    """And a note says why, and what to do; a kernel that announced none has only the note."""
    stub = tmp_path / "py-spy"
    if program:
        stub.write_text(f"#!/bin/sh\n{program}\n")
        stub.chmod(0o755)
    config = (
        "import shutil\nwhich = shutil.which\n"
        f"shutil.which = lambda name, *a, **k: {str(stub) if program else None!r} if name == 'py-spy'"
        " else which(name, *a, **k)\n"
    )
    with Server(tmp_path / "home", config) as server:
        with server.kernel("%load_ext dtdebug") as kernel:
            kernel.hang(LOCKED)
            armed = server.look(kernel.id)
        with server.kernel() as kernel:
            kernel.hang(LOCKED)
            plain = server.look(kernel.id)

        assert (program is not None) == server.ask("dtdebug/api/status")[1]["pyspy"]
        assert told in " ".join(armed["view"]["notes"])
        assert "cell In[3], line 4, in stuck" in armed["view"]["cell"]["frames"][-1]["at"]
        assert told in " ".join(plain["view"]["notes"])
        assert plain["view"].get("cell") is None


@KERNEL
def test_the_server_answers_others_while_it_looks(tmp_path):
    """A look that waits for a slow py-spy keeps nobody waiting, not even who glances at the same kernel."""
    stub = tmp_path / "py-spy"
    stub.write_text("#!/bin/sh\nexec sleep 30\n")
    stub.chmod(0o755)
    config = (
        "import shutil\nwhich = shutil.which\n"
        f"shutil.which = lambda name, *a, **k: {str(stub)!r} if name == 'py-spy' else which(name, *a, **k)\n"
    )
    with Server(tmp_path / "home", config) as server, server.kernel("%load_ext dtdebug") as kernel:
        with ThreadPoolExecutor() as pool:
            slow = pool.submit(server.look, kernel.id, "hang", 10.0)
            time.sleep(0.5)
            glance, status = server.look(kernel.id, "glance"), server.ask("api/status")[0]
            begun = not slow.done()
            late = slow.result(timeout=SECONDS)

        assert (True, 200, "outside") == (begun, status, glance["view"]["road"])
        assert "py-spy was late" in " ".join(late["view"]["notes"])


@KERNEL
def test_names_that_a_program_gives_itself_do_no_harm(server):
    """Escapes and what turns text around are taken out, secrets are masked; markup is the front end's to escape."""
    key = "hf_" + "a" * 30
    source = (
        f"secret = '{key}'\n"
        "name = '/x/<img src=x onerror=alert(1)>\\x1b[31m\\u202e```.py'\n"
        "code = 'import time\\ndef wait(token):\\n    print(\"begun\", flush=True); time.sleep(60)\\n'\n"
        "exec(compile(code, name, 'exec'))\n"
        f"wait('{key}')"
    )
    with server.kernel("%load_ext dtdebug") as kernel:
        kernel.hang(source)
        for kind in ("hang", "state", "glance"):
            said = lines(server.look(kernel.id, kind))

            assert key not in said
            assert not {"\x1b", "\u202e"} & set(said)
            assert "\\u001b" not in said
            assert "\\u202e" not in said


def test_a_report_holds_all_that_is_shown_and_nothing_breaks_out_of_it():
    """Texts of the program stand in fences that they can't close."""
    view = View(
        rows=(Row(rank=0, state="waits", op="all_reduce", seq=41, group="0", at="train.py:3 step", step=7, pid=5),),
        tree=Branch(
            ranks="0-1",
            count=2,
            frames=(FrameRow(at="train.py:1 main", code="```", own=True),),
            branches=(Branch(ranks="1", count=1, culprit=True, frames=(FrameRow(at="train.py:9 save"),)),),
        ),
        timeline=Timeline(
            group="0", parted=41, lanes=(Lane(ranks="0", count=1, calls=(Call(seq=41, op="all_reduce", open=True),)),)
        ),
    )
    report = markdown(view, "dtdebug: token=abcdefgh ```", [])

    for part in (
        "rank 0 waits: in all_reduce #41 of 0, at train.py:3 step, step 7, process 5",
        "> train.py:1 main: ```",
        "  rank 1 (culprit)\n    train.py:9 save",
        "group 0, which diverge at #41",
        "  #41 all_reduce (open)",
        "token=***",
        "````text",
    ):
        assert part in report


# Turns


def test_work_on_one_subject_is_done_one_after_another_and_shared():
    """Those who ask for the same get the same; others wait; another subject does not."""
    done, gate = [], threading.Event()

    def work(name, wait=False):
        def do():
            assert not wait or gate.wait(SECONDS)
            done.append(name)
            return name.encode()

        return do

    async def main():
        turns = Turns()
        asked = [
            asyncio.ensure_future(turns.take("a", kind, work(name, wait=name == "first")))
            for kind, name in (("hang", "first"), ("hang", "shared"), ("state", "later"))
        ]
        await asyncio.sleep(0)
        other = await turns.take("b", "hang", work("other"))
        gate.set()
        return [other, *await asyncio.gather(*asked)]

    assert [b"other", b"first", b"first", b"later"] == asyncio.run(main())
    assert ["other", "first", "later"] == done


def test_an_error_reaches_all_who_asked_and_the_next_may_try_again():
    """Nothing of a failure is kept."""

    def fail():
        raise ValueError("boo")

    async def main():
        turns = Turns()
        both = await asyncio.gather(*(turns.take("a", "hang", fail) for _ in range(2)), return_exceptions=True)
        return [*map(str, both), await turns.take("a", "hang", lambda: b"ok")]

    assert ["boo", "boo", b"ok"] == asyncio.run(main())

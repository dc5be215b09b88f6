"""Fixtures and settings that several levels of tests share."""

import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
import rotation

# Started by nohup, cron or a script's `&`, we ignore these signals, and what we start would do so, too: a handler that
# does nothing keeps us as we are, but is not inherited.
for _name in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_name) == signal.SIG_IGN:
        signal.signal(_name, lambda *_: None)

# Machines are slow and noisy: no example has a time limit. CI tries the same examples each time, so that it tells of
# the change at hand; new ones are looked for on developers' machines.
if find_spec("hypothesis"):  # tests of knowledge and checks run with the dependency group `rules`, which is without
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "dtdebug", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
    )
    settings.load_profile("dtdebug")

# Nothing is written to the state directory of whoever runs the tests, and what torch leaves among the temporary files,
# as torchrun does with each job, goes with the tests. pytest's own folders stay where they are looked for.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    tempfile.tempdir = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="dtdebug-tests-")
    os.environ.setdefault("DTDEBUG_STATE", f"{tempfile.tempdir}/state")
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of recorded inputs, one sub-folder for each symptom."""
    return Path(__file__).parent / "samples"


def _end(job):
    """Ends a process with its group and all that it has started: torchrun's ranks are in sessions of their own."""
    family = []
    with suppress(psutil.Error):
        family = psutil.Process(job.pid).children(recursive=True)
    with suppress(OSError):
        os.killpg(job.pid, signal.SIGKILL)
    for each in family:
        with suppress(psutil.Error):
            each.kill()


def _outcome(command, folder, environment, limit_s):
    """How a command in its own process group ended, None where the limit ended it, and what it printed."""
    with (folder / "output").open("w+", encoding="utf-8", errors="replace") as output:
        job = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        with suppress(subprocess.TimeoutExpired):
            job.wait(limit_s)
        ended = job.poll()
        _end(job)
        job.wait(10)
        output.seek(0)
        return ended, output.read()


@pytest.fixture
def run_script(tmp_path):
    """Runs an example of a check of scripts by bash, beside its programs, on processors instead of GPUs."""

    def run(check, name, *more):
        for file in (*check.folder.glob("*.sh"), *check.folder.glob("program_*.py")):
            text = file.read_text(encoding="utf-8")
            text = re.sub(r"^\s*torch\.cuda\.set_device.*$", "", text, flags=re.MULTILINE)
            text = text.replace('"nccl"', '"gloo"').replace('"cuda"', '"cpu"')
            (tmp_path / file.name).write_text(text, encoding="utf-8")
        for file, text in more:
            (tmp_path / file).write_text(text, encoding="utf-8")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PATH": path, "PET_MASTER_PORT": port}
        return _outcome(["bash", name], tmp_path, environment, 120)

    return run


@pytest.fixture
def run_oracle(tmp_path):
    """Runs a check's `run.py` in its own process group and compares with what `check.toml` expects."""

    def run(check):
        oracle, script = check.oracle, check.folder / "run.py"
        torchrun = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(oracle.ranks),
        ]
        command = [*(torchrun if oracle.ranks > 1 else [sys.executable]), str(script)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        ended, text = _outcome(command, tmp_path, environment, oracle.limit_s)
        how = "hang" if ended is None else "error" if ended else "output"
        assert oracle.expect == how, text[-3000:]
        assert re.search(oracle.says, text), text[-3000:]

    return run


NOT_OURS = ("Cannot read properties of undefined (reading 'schema')", "Canceled future for create_subshell_request")
"""What they throw without any extension: Notebook 7 at its start, JupyterLab's own comms where a kernel ends.

A module of tests may name more.
"""


@pytest.fixture(scope="module")
def chromium():
    """How Debian's Chromium is started."""
    from browsers import CHROMIUM, FLAGS

    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as p:
        yield p.chromium, {"executable_path": CHROMIUM, "headless": True, "args": FLAGS}


@pytest.fixture(scope="module")
def browser(chromium):
    """Chromium, whose windows know nothing of each other."""
    kind, how = chromium
    return kind.launch(**how)


@pytest.fixture(scope="module")
def profile(chromium, tmp_path_factory):
    """Chromium with one profile, so that JupyterLab is fetched and compiled once and not for each window."""
    kind, how = chromium
    return kind.launch_persistent_context(tmp_path_factory.mktemp("profile"), **how)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """One Jupyter server of each kind, started when it is first needed."""
    import notebooks as nb

    assert nb.LABEXTENSION.is_dir(), "the front-end extension is not built: make lab"
    running = {}
    with ExitStack() as stack:

        def server(app, **settings):
            key = (app, *settings.items())
            if key not in running:
                running[key] = stack.enter_context(nb.Jupyter(app, tmp_path_factory.mktemp(app), **settings))
            return running[key]

        yield server


@pytest.fixture
def opened(servers, profile, request):
    """Opens a notebook in a window that remembers no other test; a second one is another user's. Nothing is thrown."""
    thrown = []
    with ExitStack() as stack:

        def open_(app, text, *, kernel=True, width=1280, **settings):
            server = servers(app, **settings)
            stack.callback(server.end_kernels)
            if profile.pages[1:]:  # the first is blank
                page = request.getfixturevalue("browser").new_page()
            else:
                page = profile.new_page()
                kinds = {"origin": server.url, "storageTypes": "cookies,indexeddb,local_storage"}
                profile.new_cdp_session(page).send("Storage.clearDataForOrigin", kinds)
            stack.callback(page.close)
            page.set_viewport_size({"width": width, "height": 1000})
            page.on("pageerror", lambda error: thrown.append(str(error)))
            name = f"{''.join(c if c.isalnum() else '-' for c in request.node.name)}.ipynb"
            return server.open(page, name, text, kernel=kernel)

        yield open_
    not_ours = (*NOT_OURS, *getattr(request.module, "NOT_OURS", ()))
    assert [] == [error for error in thrown if not any(theirs in error for theirs in not_ours)]


PLUGINS = (
    ("pytest_timeout", "timeout", "timeout"),
    ("pytest_asyncio", "asyncio_default_fixture_loop_scope", "asyncio"),
    ("pytest_rerunfailures", "", "flaky"),
)
"""Plug-ins that the dependency group `rules` is without, with their setting and marker."""


def pytest_addoption(parser):
    """Add `--share`, `--update-goldens`, and the settings of plug-ins that are not installed."""
    rotation.add_option(parser)
    parser.addoption("--update-goldens", action="store_true", help="write the answers of today into tests/goldens")
    for plugin, setting, _ in PLUGINS:
        if setting and find_spec(plugin) is None:
            parser.addini(setting, f"read by {plugin} only")


def pytest_configure(config):
    """Before any worker starts."""
    rotation.configure(config)
    for plugin, _, marker in PLUGINS:
        if find_spec(plugin) is None:
            config.addinivalue_line("markers", f"{marker}: read by {plugin} only")


def pytest_report_header():
    """So that a failure can be repeated."""
    return rotation.header()


_LONG = ("editors", "browser", "labs", "ranks", "engines", "kernel", "terminal")
_RERUN = set(_LONG)
"""Processes that are not ours, on a machine that may be busy: once more, and the summary names what was."""


def pytest_collection_modifyitems(config, items):
    """Files with long tests come first: with several workers a long one that begins last is waited for alone."""
    rotation.choose(config, items)
    weight = {}
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        place = next((i for i, name in enumerate(_LONG) if name in marks), len(_LONG))
        weight[item.path] = min(place, weight.get(item.path, place))
        if marks & _RERUN:
            item.add_marker(pytest.mark.flaky(reruns=2))
    items.sort(key=lambda item: weight[item.path])  # stable: the order within a file stays


@pytest.fixture
def own_group():
    """Runs a script in a process group of its own, which is ended with all that it has started."""
    started = []

    def run(script, timeout=120):
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        )
        started.append(process)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the cluster did not answer within {timeout} s")
        finally:
            _end(process)
        assert 0 == process.returncode, err[-3000:]
        return [line for line in out.splitlines() if line.startswith("* ")]

    yield run
    for process in started:
        process.communicate()

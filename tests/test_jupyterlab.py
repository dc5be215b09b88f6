"""What a user sees in the real JupyterLab, without any front-end extension of ours."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("jupyterlab")
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.ranks,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
]

SECONDS = 60
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
RANKS = """
import torch
import torch.distributed as dist

def train(rank):
    dist.init_process_group("gloo", init_method="file:///{store}", rank=rank, world_size=2)
    if rank == 1:
        torch.ones(2, 3) @ torch.ones(2, 3)
    dist.barrier()
"""
CELLS = (
    "%load_ext dtdebug",
    "import ranks, torch.multiprocessing as mp\nmp.spawn(ranks.train, nprocs=2)",
    "%dtdebug",
)
SETTINGS = {
    "notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "themes": {"theme": "JupyterLab Light"},
}
READY = """async () => {
    const found = () => window.jupyterapp.shell.currentWidget;
    while (!(found() && found().sessionContext && found().context)) await new Promise(r => setTimeout(r, 50));
    await found().context.ready;
    await found().sessionContext.ready;
    await found().sessionContext.session.kernel.info;
}"""
"""Before the kernel has told about itself, JupyterLab loses a request to run cells."""


def notebook():
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{i}",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": source,
        }
        for i, source in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells})


def environment(home):
    """Everything that JupyterLab and the kernel may write is below one folder."""
    folders = {name: str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    for name, values in SETTINGS.items():
        (settings / f"{name}.jupyterlab-settings").write_text(json.dumps(values))
    return {
        **{k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},  # ipykernel is another one below it
        **{f"JUPYTER_{name}_DIR": folder for name, folder in folders.items()},
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "DTDEBUG_STATE": str(home / "state"),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }


@pytest.fixture
def address(tmp_path):
    """Address of a notebook in a JupyterLab that runs in a process group of its own."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "ranks.py").write_text(RANKS.replace("/{store}", str(tmp_path / "store")))
    (work / "train.ipynb").write_text(notebook())
    command = [sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1", "--port=0"]
    options = [f"--ServerApp.root_dir={work}", "--LabApp.extension_manager=readonly"]
    options += ["--LabApp.expose_app_in_browser=True", "--IdentityProvider.token=t0k"]
    log = tmp_path / "lab.log"
    with (
        log.open("wb") as printed,
        subprocess.Popen(
            [*command, *options],
            cwd=work,
            env=environment(tmp_path),
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        ) as server,
    ):
        try:
            yield f"{url(server, tmp_path / 'runtime', log)}lab/tree/train.ipynb?reset&token=t0k"
        finally:
            os.killpg(server.pid, signal.SIGTERM)  # the server ends its kernels
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)


def url(server, runtime, log):
    """Where the server says that it listens."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            if text := file.read_text():
                return json.loads(text)["url"]
        time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start: {log.read_text()[-2_000:]}")


@pytest.fixture
def page(address):
    """The notebook in Chromium, its kernel ready."""
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1100})
        page.set_default_timeout(SECONDS * 1_000)
        page.goto(address)
        page.wait_for_function("() => window.jupyterapp")
        page.evaluate("() => window.jupyterapp.restored")
        page.evaluate(READY)
        yield page
        browser.close()


def run(page, index):
    """Runs one cell and waits until it has ended."""
    page.evaluate(
        """async index => {
            const content = window.jupyterapp.shell.currentWidget.content;
            content.activeCellIndex = index;
            content.deselectAll();
            await window.jupyterapp.commands.execute('notebook:run-cell');
        }""",
        index,
    )
    return page.locator(".jp-Notebook .jp-CodeCell").nth(index)


def shoot(page, name, element=None):
    """A picture of what is seen, where someone wants to look at it."""
    folder = os.environ.get("DTDEBUG_SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        if element is not None:
            element.scroll_into_view_if_needed()
        page.screenshot(path=f"{folder}/{name}.png")


def theme(page, name):
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name)
    page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=name)
    page.locator("#jupyterlab-splash").wait_for(state="detached")


def test_the_answer_stands_under_the_traceback_and_the_wizard_can_be_clicked_through(page):
    """Static HTML below the error; then two questions by mouse, and the result."""
    run(page, 0)
    failed = run(page, 1)
    answer = failed.locator(".dtdebug")
    answer.wait_for()
    outputs = failed.locator(".jp-OutputArea-child")

    assert "ProcessRaisedException" in outputs.nth(-2).inner_text()
    assert outputs.last.locator(".dtdebug").count() == 1
    assert "mat1 and mat2 shapes cannot be multiplied" in answer.inner_text()
    assert "rank 1" in answer.inner_text()
    assert answer.locator("script").count() == 0

    for name in ("JupyterLab Dark", "JupyterLab Light") if os.environ.get("DTDEBUG_SHOTS") else ():
        theme(page, name)
        shoot(page, f"answer-{name[11:].lower()}", answer)

    wizard = run(page, 2).locator(".dtdebug-wizard")
    wizard.wait_for()
    shoot(page, "wizard", wizard)
    for step in (1, 2):
        question = wizard.locator("h4")
        asked = question.inner_text()
        wizard.get_by_role("radio").first.check()
        wizard.get_by_role("button", name="Next").click()
        playwright.expect(question).not_to_have_text(asked)
        playwright.expect(wizard.locator("li", has_text="answered: ")).to_have_count(step)
    shoot(page, "wizard-answered", wizard)
    wizard.get_by_role("button", name="Stop").click()
    wizard.locator(".dtdebug").wait_for()

    assert wizard.get_by_role("button", name="Next").count() == 0
    assert "Fix" in wizard.locator(".dtdebug").inner_text()
    for name in ("JupyterLab Dark", "JupyterLab Light") if os.environ.get("DTDEBUG_SHOTS") else ():
        theme(page, name)
        shoot(page, f"result-{name[11:].lower()}", wizard.locator(".dtdebug"))

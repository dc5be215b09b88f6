"""What users of jupyterlab-lsp see in the real JupyterLab: python-lsp-server with our plugin in it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import entry_points

import pytest

for module in ("jupyterlab", "jupyter_lsp", "pylsp", "pygls"):
    pytest.importorskip(module)
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.editors,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

SECONDS = 90
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
CELLS = (
    "import torch.distributed as dist",
    "%matplotlib inline\nif dist.get_rank() == 0:\n    dist.barrier()",
)
SETTINGS = {"notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}}


def notebook():
    cells = [
        {"cell_type": "code", "id": f"cell-{i}", "metadata": {}, "outputs": [], "execution_count": None, "source": text}
        for i, text in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells})


def environment(home):
    """Everything that JupyterLab may write is below one folder; the plugin is found as if it were installed."""
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    for name, values in SETTINGS.items():
        (settings / f"{name}.jupyterlab-settings").write_text(json.dumps(values))
    if not any(e.name == "dtdebug" for e in entry_points(group="pylsp")):
        plugin = home / "plugins" / "plugin-0.dist-info"
        plugin.mkdir(parents=True)
        (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 0\n")
        (plugin / "entry_points.txt").write_text("[pylsp]\ndtdebug = dtdebug_lsp.pylsp_plugin\n")
    return {
        **{k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},
        **{f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")},
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "DTDEBUG_STATE": str(home / "state"),
        "PYTHONPATH": str(home / "plugins"),
        "PYTHONWARNINGS": "ignore",
    }


@pytest.fixture
def address(tmp_path):
    """Address of a JupyterLab that runs in a process group of its own."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.ipynb").write_text(notebook())
    (work / "train.py").write_text("\n".join(CELLS).replace("%matplotlib inline\n", ""))
    command = [sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1", "--port=0"]
    options = [f"--ServerApp.root_dir={work}", "--LabApp.extension_manager=readonly", "--IdentityProvider.token=t0k"]
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
            yield url(server, tmp_path / "runtime", log)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                server.wait(timeout=20)
            with suppress(ProcessLookupError):  # language servers may outlive JupyterLab
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


def test_a_mistake_is_underlined_in_a_notebook_and_in_a_file(address):
    """The import stands in another cell; pointing at the mistake tells what follows from it."""
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        for name in ("train.ipynb", "train.py"):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(SECONDS * 1_000)
            page.goto(f"{address}lab/tree/{name}?reset&token=t0k")
            line = page.locator(".cm-lintRange", has_text="barrier").first
            line.wait_for()
            line.hover()
            tip = page.locator(".cm-tooltip", has_text="other ranks never call it").first
            tip.wait_for()

            assert "DT101" in tip.inner_text()
            if folder := os.environ.get("DTDEBUG_SHOTS"):
                page.screenshot(path=f"{folder}/{name}.png")
            page.close()
        browser.close()

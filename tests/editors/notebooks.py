"""Drives a real JupyterLab or Notebook 7 in Chromium, with the built front-end extension or without it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

from browsers import CHROMIUM, FLAGS

__all__ = ["CHROMIUM", "FLAGS"]

SECONDS = 60
_EXTENSION = Path(__file__).parents[2] / "extension" / "jupyterlab"
LABEXTENSION = _EXTENSION / "labextension"
_APPS = {
    "lab": ("jupyterlab", "LabApp", "lab/tree/{}?reset"),
    "notebook": ("notebook", "JupyterNotebookApp", "notebooks/{}?factory=Notebook"),
    "server": ("jupyter_server", "ServerApp", "api"),
}
_PARTS = {
    "together": (
        ("@jupyter/collaboration-extension", "@jupyter/docprovider-extension"),
        ("jupyter_server_ydoc", "jupyter_server_fileid"),
    ),
    "lsp": (("@jupyter-lsp/jupyterlab-lsp",), ("jupyter_lsp",)),
    "others": (("ipyparallel-labextension", "jupyterlab-jupytext"), ("ipyparallel", "jupyterlab_jupytext")),
}
"""What this environment has and a test may want: extensions of the front end, and of the server.

With jupyterlab-lsp each notebook that is opened starts a language server.
"""
_SETTINGS = {
    "notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": False},
    "themes": {"theme": "JupyterLab Light"},
}
_READY = """async hasKernel => {
    while (!window.jupyterapp) await new Promise(r => setTimeout(r, 50));
    await window.jupyterapp.restored;
    const found = () => window.jupyterapp.shell.currentWidget;
    while (!(found() && found().sessionContext && found().context)) await new Promise(r => setTimeout(r, 50));
    await found().context.ready;
    await found().revealed;
    if (hasKernel) {
        await found().sessionContext.ready;
        await found().sessionContext.session.kernel.info;
    }
}"""
"""Before the kernel has told about itself, JupyterLab loses a request to run cells."""
_SELECT = """
    const content = window.jupyterapp.shell.currentWidget.content;
    content.activeCellIndex = index;
    content.deselectAll();
"""
_EXECUTE = "window.jupyterapp.commands.execute('notebook:run-cell')"
_LATE = f"new Promise((_, late) => setTimeout(() => late(new Error('the cell has not ended')), {SECONDS} * 2_000))"
_RUN = f"async index => {{ {_SELECT} await Promise.race([{_EXECUTE}, {_LATE}]); }}"
"""JupyterLab may lose a request, and what is evaluated in a page has no limit of its own."""
_START = f"index => {{ {_SELECT} void {_EXECUTE}; }}"


def what_is_missing() -> str | None:
    """Why such tests can't run here."""
    if CHROMIUM is None:
        return "chromium is not installed"
    missing = [name for name in ("playwright", "jupyterlab", "notebook") if find_spec(name) is None]
    return f"{missing[0]} is not installed" if missing else None


def notebook(*cells: str | tuple[str, list[dict[str, Any]]], kernel: bool = True) -> str:
    """A notebook of code cells; a pair is a source with its saved outputs."""
    pairs = [cell if isinstance(cell, tuple) else (cell, []) for cell in cells]
    rows: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"cell-{i}",
            "metadata": {},
            "outputs": outputs,
            "execution_count": 1 if outputs else None,
            "source": source,
        }
        for i, (source, outputs) in enumerate(pairs)
    ]
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}} if kernel else {}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": spec, "cells": rows})


def error(ename: str, evalue: str, *traceback: str) -> dict[str, Any]:
    """A saved error."""
    lines = [*traceback, f"\x1b[31m{ename}\x1b[39m: {evalue}"]
    return {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": lines}


def display(data: dict[str, Any]) -> dict[str, Any]:
    """A saved MIME bundle."""
    return {"output_type": "display_data", "data": data, "metadata": {}}


class Jupyter:
    """A server in a process group of its own; all that it and its kernels write is below one folder."""

    def __init__(
        self,
        app: str,
        home: Path,
        *,
        extension: bool = True,
        server: bool = True,
        beside: str = "",
        **settings: Any,
    ) -> None:
        self.app, self.home, self.work = app, home, home / "work"
        self._module, self._trait, self._path = _APPS[app]
        self.work.mkdir(parents=True)
        if extension:
            shutil.copytree(LABEXTENSION, home / "data" / "labextensions" / "dtdebug")
        disabled = {"dtdebug": not extension}
        enabled = json.loads((_EXTENSION / "server.json").read_text())
        enabled["ServerApp"]["jpserver_extensions"] |= {"dtdebug.notebook.server": server}
        for part, (front, back) in _PARTS.items():
            disabled |= dict.fromkeys(front, part != beside)
            enabled["ServerApp"]["jpserver_extensions"] |= dict.fromkeys(back, part == beside)
        (home / "config" / "labconfig").mkdir(parents=True)
        (home / "config" / "labconfig" / "page_config.json").write_text(json.dumps({"disabledExtensions": disabled}))
        (home / "config" / "jupyter_server_config.d").mkdir(parents=True)
        (home / "config" / "jupyter_server_config.d" / "dtdebug.json").write_text(json.dumps(enabled))
        folder = home / "settings" / "@jupyterlab" / "apputils-extension"
        folder.mkdir(parents=True)
        for name, values in _SETTINGS.items():
            (folder / f"{name}.jupyterlab-settings").write_text(json.dumps(values))
        (home / "settings" / "dtdebug").mkdir()
        (home / "settings" / "dtdebug" / "plugin.jupyterlab-settings").write_text(json.dumps(settings))
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", self._module, "--allow-root", "--no-browser", "--ip=127.0.0.1", "--port=0"]
        options = [f"--ServerApp.root_dir={self.work}", "--IdentityProvider.token=t0k"]
        options += [f"--{self._trait}.expose_app_in_browser=True", "--LabApp.extension_manager=readonly"]
        with (self.home / "server.log").open("wb") as log:
            self._server = subprocess.Popen(
                [*command, *options],
                cwd=self.work,
                env=self._environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.url = self._address()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        os.killpg(self._server.pid, signal.SIGTERM)  # the server ends its kernels
        with suppress(subprocess.TimeoutExpired):
            self._server.wait(timeout=20)
        with suppress(ProcessLookupError):  # language servers may outlive it
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait(timeout=20)

    def open(self, page: Any, name: str, text: str | None, *, kernel: bool = True) -> Any:
        """Writes a notebook, unless it is there, and waits until it is shown and its kernel is ready."""
        if text is not None:
            (self.work / name).write_text(text)
        page.set_default_timeout(SECONDS * 1_000)
        path = self._path.format(name)
        page.goto(f"{self.url}{path}{'&' if '?' in path else '?'}token=t0k")
        page.wait_for_function("() => window.jupyterapp")
        page.evaluate(_READY, kernel)
        return page

    def end_kernels(self) -> None:
        """So that those of earlier windows take no memory."""
        for each in json.loads(self._request("GET", "api/kernels")):
            self._request("DELETE", f"api/kernels/{each['id']}")

    def _request(self, method: str, path: str) -> bytes:
        headers = {"Authorization": "token t0k"}
        with urlopen(Request(f"{self.url}{path}", method=method, headers=headers), timeout=SECONDS) as answer:
            content: bytes = answer.read()
        return content

    def _environment(self) -> dict[str, str]:
        folders = {name: str(self.home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
        return {
            **{k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},  # ipykernel is another one below it
            **{f"JUPYTER_{name}_DIR": folder for name, folder in folders.items()},
            "JUPYTERLAB_SETTINGS_DIR": str(self.home / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(self.home / "workspaces"),
            "JUPYTER_PREFER_ENV_PATH": "0",  # what this environment has installed may be older
            "IPYTHONDIR": str(self.home / "ipython"),
            "DTDEBUG_STATE": str(self.home / "state"),
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
        }

    def _address(self) -> str:
        """Where the server listens: it says so a moment before it does."""
        assert self._server is not None
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self._server.poll() is None:
            for file in (self.home / "runtime").glob("jpserver-*.json"):
                with suppress(ValueError, OSError):
                    about = json.loads(file.read_text())
                    socket.create_connection(("127.0.0.1", about["port"]), timeout=SECONDS).close()
                    return str(about["url"])
            time.sleep(0.1)
        self.__exit__()
        raise AssertionError(f"{self.app} did not start: {(self.home / 'server.log').read_text()[-2_000:]}")


def run(page: Any, index: int) -> Any:
    """Runs one cell, waits until it has ended, and gives it."""
    page.evaluate(_RUN, index)
    return cell(page, index)


def start(page: Any, index: int) -> None:
    """Runs one cell and does not wait for its end."""
    page.evaluate(_START, index)


def cell(page: Any, index: int) -> Any:
    """A cell of the notebook in front."""
    return page.locator(".jp-Notebook .jp-CodeCell").nth(index)


def sources(page: Any) -> list[str]:
    """The source of each cell."""
    found: list[str] = page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets.map(w => w.model.sharedModel.getSource())"
    )
    return found


def theme(page: Any, name: str) -> None:
    """Changes the theme and waits for it."""
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name)
    page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=name)
    page.locator("#jupyterlab-splash").wait_for(state="detached")


def answer(place: Any, words: str) -> Any:
    """The button of an answer; where it is not among the likely ones, the others are opened first."""
    button = place.locator(".dtd-choices button", has_text=words)
    button.wait_for(state="attached")
    more = place.get_by_role("button", name="Why?")
    if more.count() and more.first.get_attribute("aria-expanded") == "false":
        more.first.click()
    if not button.is_visible():
        place.locator(".dtd-choices summary").click()
    return button


def shoot(page: Any, name: str, element: Any = None) -> None:
    """A picture of what is seen, where someone wants to look at it."""
    folder = os.environ.get("DTDEBUG_SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        if element is not None:
            element.scroll_into_view_if_needed()
        page.screenshot(path=f"{folder}/{name}.png")

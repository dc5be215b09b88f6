"""A real VS Code in a real browser: code-server, driven as a user would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import psutil
from browsers import CHROMIUM, FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from playwright.sync_api import BrowserContext, Frame, Locator, Page

__all__ = ["CHROMIUM", "FLAGS"]

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / "build" / "code-server"
NODE = ROOT / "build" / "node" / "bin" / "node"
ENTRY = INSTALLED / "node_modules" / "code-server" / "out" / "node" / "entry.js"
SECONDS = 120
SETTINGS = {
    "chat.disableAIFeatures": True,
    "extensions.autoCheckUpdates": False,
    "files.simpleDialog.enable": True,
    "git.enabled": False,
    "telemetry.telemetryLevel": "off",
    "workbench.startupEditor": "none",
    "security.workspace.trust.startupPrompt": "never",
    "terminal.integrated.gpuAcceleration": "off",
    "workbench.colorTheme": os.environ.get("DTDEBUG_THEME", "Default Light Modern"),
}
"""The theme is asked for by who looks at pictures (DTDEBUG_SHOTS): `DTDEBUG_THEME="Default Dark Modern"`."""


def packaged() -> Path | None:
    """The extension as `npm run package` left it."""
    return next(iter(sorted((ROOT / "extension" / "vscode" / "build").glob("dtdebug-*.vsix"))), None)


def what_is_missing() -> str | None:
    """What must be made before VS Code can be driven."""
    if not ENTRY.exists():
        return "code-server is not installed: make code-server"
    return "chromium is not installed" if CHROMIUM is None else None


class CodeServer:
    """A server with the extension installed, and all that belongs to it below one folder."""

    def __init__(self, home: Path, settings: Mapping[str, Any]) -> None:
        self.home = home
        user = home / "user" / "User"
        user.mkdir(parents=True)
        (user / "settings.json").write_text(json.dumps({**SETTINGS, **settings}))
        (home / "config.yaml").write_text("auth: none\n")
        # VS Code asks the login shell for the PATH
        (home / ".profile").write_text(f'export PATH="{Path(sys.executable).parent}:$PATH"\n')
        self._log = home / "server.log"
        self._server: subprocess.Popen[bytes] | None = None
        self.address = ""

    def _command(self, *options: str) -> list[str]:
        folders = [f"--user-data-dir={self.home / 'user'}", f"--extensions-dir={self.home / 'extensions'}"]
        return [str(NODE), str(ENTRY), *folders, f"--config={self.home / 'config.yaml'}", *options]

    def _environment(self) -> dict[str, str]:
        return {
            **{k: v for k, v in os.environ.items() if k not in ("PYTEST_CURRENT_TEST", "VIRTUAL_ENV")},
            "HOME": str(self.home),
            "DTDEBUG_STATE": str(self.home / "state"),
            "TMPDIR": str(self.home),
            "XDG_RUNTIME_DIR": str(self.home),  # its sockets, which it leaves behind when it is killed
            "OMP_NUM_THREADS": "1",
        }

    def install(self, extension: Path) -> None:
        """Installs a packaged extension as a user does."""
        command = self._command("--install-extension", str(extension))
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS, env=self._environment())

    def __enter__(self) -> Self:
        options = ("--bind-addr=127.0.0.1:0", "--disable-telemetry", "--disable-update-check")
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(
                self._command(*options), env=self._environment(), stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self._server.poll() is None:
            if found := re.search(r"listening on http://([\d.:]+)", self._log.read_text()):
                self.address = found[1]
                return self
            time.sleep(0.1)
        self.__exit__()
        raise TimeoutError(f"code-server did not start: {self._log.read_text()[-2_000:]}")

    def __exit__(self, *_: object) -> None:
        """Ends the server with its extension hosts, which would wait for their windows for minutes."""
        if self._server is None:
            return
        family = psutil.Process(self._server.pid).children(recursive=True) if self._server.poll() is None else []
        self._server.kill()
        for process in family:
            if process.is_running():
                process.kill()
        self._server.wait(timeout=SECONDS)

    def said(self) -> str:
        """What is in the extension's output channel, of all windows so far."""
        logs = (self.home / "user" / "logs").glob("*/exthost*/output_logging_*/*-dtdebug.log")
        return "".join(log.read_text() for log in logs)


class Window:
    """A window of VS Code on a folder."""

    def __init__(self, browser: BrowserContext, server: CodeServer, folder: Path, file: str | None = None) -> None:
        self.page: Page = browser.new_page()
        self._picture = server.home / f"{folder.name}.png"
        self.page.set_default_timeout(SECONDS * 1_000)
        url = f"http://{server.address}/?folder={quote(str(folder))}"
        if file is not None:
            target = f"vscode-remote://{server.address}{quote(str(folder / file))}"
            url += "&payload=" + quote(json.dumps([["openFile", target]]))
        self.page.goto(url)
        self.page.wait_for_selector(".monaco-workbench")

    def line(self, text: str) -> Locator:
        """The line of an editor that has this text."""
        return self.page.locator(".view-line", has_text=text).first

    def squiggle(self, inside: str = "") -> Locator:
        """The first part of a text that is underlined."""
        kinds = ", ".join(f"{inside} .squiggly-{kind}" for kind in ("error", "warning", "info"))
        found = self.page.locator(kinds).first
        found.wait_for()
        return found

    def squiggles(self, count: int) -> None:
        """Waits until so many parts are underlined."""
        self.page.wait_for_function(
            "n => document.querySelectorAll('.squiggly-error, .squiggly-warning, .squiggly-info').length === n",
            arg=count,
        )

    def hover(self, over: Locator, wanted: str) -> str:
        """What is told about a word after the pointer has rested on it, once it has the wanted part."""
        box = over.bounding_box()
        assert box is not None
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
        shown = self.page.locator(".monaco-hover:visible", has_text=wanted).first
        shown.wait_for()
        text = shown.inner_text()
        self.shoot(f"hover-{wanted.split(maxsplit=1)[0].lower()}")
        self.page.keyboard.press("Escape")
        self.page.mouse.move(5, 5)
        return text

    def fixes(self, line: Locator) -> list[str]:
        """The quick fixes for a line, left open."""
        line.click()
        self.page.keyboard.press("Control+.")
        rows = self.page.locator(".action-widget .monaco-list-row.action")
        rows.first.wait_for()
        return rows.all_inner_texts()

    def choose(self, fix: str) -> None:
        """Takes one of the quick fixes that are open, with the keyboard: clicks are ignored until the pointer moves."""
        rows = self.page.locator(".action-widget .monaco-list-row.action").all_inner_texts()
        for _ in range(rows.index(fix)):
            self.page.keyboard.press("ArrowDown")
        self.page.locator(".action-widget .monaco-list-row.focused", has_text=fix).wait_for()
        self.page.keyboard.press("Enter")

    def text(self) -> str:
        """The text of the editor as far as it is seen."""
        lines = self.page.locator(".view-lines").first.locator(".view-line")
        seen = sorted((line["top"], line["text"]) for line in lines.evaluate_all(_LINES))
        return "\n".join(text.replace("\N{NO-BREAK SPACE}", " ") for _, text in seen)

    def problem(self, wanted: str) -> Locator:
        """The row of Problems that has this text, once it is there; a double click leads to the line."""
        self.command("View: Focus Problems")
        row = self.page.locator(".markers-panel .monaco-list-row", has_text=wanted).first
        row.wait_for()
        return row

    def command(self, title: str) -> None:
        """Runs a command of the palette, waiting for it to be there."""
        self.page.keyboard.press("F1")
        self.page.locator(".quick-input-widget input").fill(f">{title}")
        self.page.locator(".quick-input-list .monaco-list-row", has_text=title).first.click()

    def pick(self, ask: str, words: str, row: str) -> None:
        """Takes a row of the list that is asked for with these words."""
        field = self.page.locator(f".quick-input-widget input[placeholder^='{ask}']")
        field.fill(words)
        self.page.locator(".quick-input-list .monaco-list-row", has_text=row).first.click()

    def open(self, file: str) -> None:
        """Opens a file of the folder from the explorer."""
        self.page.locator(".explorer-folders-view .monaco-list-row", has_text=file).first.dblclick()

    def outdent(self, words: str) -> None:
        """Moves a line one step to the left; a key that comes while the focus is still elsewhere is lost."""
        before = self.line(words).inner_text()
        for _ in range(10):
            self.line(words).click()
            self.page.keyboard.press("Shift+Tab")
            self.page.wait_for_timeout(500)
            if len(self.line(words).inner_text()) < len(before):
                return
        raise AssertionError(f"the line stays where it is: {before!r}")

    def button(self, label: str) -> Locator:
        """A button in the page that is open."""
        return self.page.locator(".editor-instance .monaco-button", has_text=label).first

    def ticked(self, step: str) -> None:
        """Waits until a step of a walkthrough is done."""
        shown = self.page.locator(".getting-started-step", has_text=step)
        shown.locator(".codicon-getting-started-step-checked").first.wait_for()

    def notice(self, wanted: str, press: str) -> None:
        """Waits for a notification and presses its button."""
        found = self.page.locator(".notification-list-item", has_text=wanted).first
        found.locator(".monaco-button", has_text=press).click()

    def notices(self) -> list[str]:
        """The notifications that are shown."""
        return self.page.locator(".notification-list-item").all_inner_texts()

    def terminal(self, wanted: str) -> None:
        """Waits until a terminal shows a text, however it is wrapped."""
        self.until(lambda: self.shown(wanted) > 0)

    def shown(self, text: str) -> int:
        """How often the terminals show a text."""
        return "".join(self._screen().split()).count("".join(text.split()))

    def _screen(self) -> str:
        return " ".join(self.page.locator(".xterm-rows").all_inner_texts())

    def until(self, seen: Callable[[], bool]) -> None:
        """Waits for what the page has no selector for."""
        deadline = time.monotonic() + SECONDS
        while not seen():
            if time.monotonic() > deadline:
                raise TimeoutError
            self.page.wait_for_timeout(100)

    def inside(self, wanted: str) -> str:
        """The text of a page within the page (a preview, an output of a notebook) that has the wanted part."""
        return _body(self.frame(wanted))

    def frame(self, wanted: str) -> Frame:
        """The page within the page that has the wanted part."""
        found: list[Frame] = []

        def look() -> bool:
            found[:] = [frame for frame in self.page.frames[1:] if wanted in _body(frame)]
            return bool(found)

        self.until(look)
        return found[0]

    def shoot(self, name: str) -> None:
        """A picture of the window, in the folder that DTDEBUG_SHOTS names, for people to look at."""
        if folder := os.environ.get("DTDEBUG_SHOTS"):
            self.page.screenshot(path=Path(folder) / f"vscode-{name}.png")

    def close(self) -> None:
        """Closes the window without asking about unsaved text; its last picture helps to see why a test failed."""
        if not self.page.is_closed():
            self.page.screenshot(path=self._picture)
        self.page.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _body(frame: Frame) -> str:
    from playwright.sync_api import Error

    try:
        return str(frame.evaluate("document.body ? document.body.innerText : ''"))
    except Error:  # it goes away, or is not there yet
        return ""


_LINES = "rows => rows.map(r => ({top: parseInt(r.style.top), text: r.innerText}))"

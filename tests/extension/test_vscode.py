"""What a user sees in a real VS Code: the packaged extension and the language server of this environment."""

from __future__ import annotations

import json
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import vscode

playwright = pytest.importorskip("playwright.sync_api")
MISSING = vscode.what_is_missing()
pytestmark = [pytest.mark.editors, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]


BAD = """\
import os

import torch.distributed as dist

os.environ["MASTER_PORT"] = 29500
dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.barrier()
"""
CELLS = ("import torch.distributed as dist\nrank = dist.get_rank()", "if rank == 0:\n    dist.barrier()")
CHOOSE = "A lab to fix"
DIFF = """\
--- a/cell
+++ b/cell
@@ -1,2 +1 @@
-if rank == 0:
-    dist.barrier()
+dist.barrier()  # on every rank
"""
FILE_DIFF = """\
--- a/bad.py
+++ b/bad.py
@@ -5,2 +5,2 @@
-os.environ["MASTER_PORT"] = 29500
+os.environ["MASTER_PORT"] = "29500"
 dist.init_process_group("gloo")
"""
MIME = "application/vnd.dtdebug.diagnosis+json"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium with one profile for all windows, for VS Code remembers there what it has told."""
    with playwright.sync_playwright() as p:
        launched = p.chromium.launch(executable_path=vscode.CHROMIUM, headless=True, args=vscode.FLAGS)
        yield launched.new_context(viewport={"width": 1280, "height": 800})


def server(home: Path, **settings: Any) -> vscode.CodeServer:
    """A server with the packaged extension, not started yet."""
    extension = vscode.packaged()
    assert extension is not None, "the extension is not packaged: make vsix"
    made = vscode.CodeServer(home, settings)
    made.install(extension)
    return made


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[vscode.CodeServer]:
    """A server that trusts its folders."""
    settings = {"dtdebug.interpreter": sys.executable, "security.workspace.trust.enabled": False}
    with server(tmp_path_factory.mktemp("code"), **settings) as running:
        yield running


@pytest.fixture
def window(browser: Any, code: vscode.CodeServer) -> Iterator[Callable[..., vscode.Window]]:
    """Opens windows that are closed after the test."""
    with ExitStack() as windows:

        def make(folder: Path, file: str | None = None) -> vscode.Window:
            return windows.enter_context(vscode.Window(browser, code, folder, file))

        yield make


def notebook(*outputs: dict[str, Any]) -> str:
    """The cells, the last one with outputs."""
    cells = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for i, source in enumerate(CELLS)
    ]
    cells[-1]["outputs"] = list(outputs)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells})


def accept(w: vscode.Window, proposed: Path) -> None:
    """Takes the folder that is proposed, once it is; it is then made."""
    field = w.page.locator(".quick-input-widget input")
    w.until(lambda: field.input_value() == str(proposed))
    field.press("Enter")
    w.until(proposed.is_dir)


def test_a_wrong_line_is_underlined_explained_listed_and_fixed(tmp_path, window):
    """Squiggle, hover with the code, entry in Problems, quick fix that changes the text, explanation of the symptom."""
    (tmp_path / "bad.py").write_text(BAD)
    w = window(tmp_path, "bad.py")
    w.squiggles(2)
    assert "Seen as" in w.hover(w.line("init_process_group").get_by_text("init_process_group"), "Often wrong")
    assert "dtdebug" in w.hover(w.line("dist.barrier").get_by_text("barrier"), "DT101")
    assert "Ln 8" in w.problem("DT101").inner_text()
    w.shoot("problems")
    assert "Explain D.2.1: Training hangs without an error" in w.fixes(w.line("dist.barrier"))
    w.page.keyboard.press("Escape")
    w.choose(w.fixes(w.line("MASTER_PORT"))[0])
    w.squiggles(1)
    assert 'os.environ["MASTER_PORT"] = "29500"' in w.text()
    w.line("MASTER_PORT").click()
    w.page.keyboard.press("Control+z")
    w.squiggles(2)
    assert 'os.environ["MASTER_PORT"] = 29500' in w.text()
    w.command("dtdebug: Explain symptom...")
    w.pick("Code or words", "hangs without", "D.2.1")
    assert "D.2.1" in w.inside("Training hangs")
    w.shoot("explained")


def opened(folder: Path, window: Callable[..., vscode.Window], diff: str) -> tuple[vscode.Window, Any]:
    """A notebook beside a program, and the card of a diagnosis whose first advice is this diff of the user's code."""
    sample = vscode.ROOT / "extension" / "shared" / "test" / "samples" / "leaning.json"
    diagnosis = json.loads(sample.read_text())
    yours, example = diagnosis["advice"]
    diagnosis["advice"] = [yours | {"diff": diff, "diff_of": "yours"}, example]
    shown = {MIME: diagnosis, "text/html": "html", "text/plain": "plain"}
    output = {"output_type": "display_data", "metadata": {}, "data": shown}
    (folder / "bad.py").write_text(BAD)
    (folder / "train.ipynb").write_text(notebook(output))
    w = window(folder, "bad.py")
    w.squiggle()  # before extensions have started, a notebook would be opened as text
    w.open("train.ipynb")
    return w, w.frame(diagnosis["symptoms"][0]["title"])


def test_cells_are_checked_together_and_the_buttons_of_a_card_act(tmp_path, window):
    """The name `rank` is bound in one cell and used in another; a fix is an edit of the cell, an answer a new cell."""
    w, card = opened(tmp_path, window, DIFF)
    assert "DT101" in w.hover(w.squiggle(".cell"), "DT101")
    w.shoot("card")
    assert card.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the card is cut off"
    apply = card.get_by_role("button", name="Apply to your code")
    apply.press("Enter")  # the pointer can't reach what the notebook has not scrolled to
    card.get_by_text("Applied to your code: run it again.").wait_for()
    w.line("on every rank").wait_for()
    apply.press("Enter")
    card.get_by_text("The code has changed since: make the change by hand.").wait_for()
    card.get_by_role("button", name="installing or compiling").press("Enter")
    w.line("%dtdebug answer activity installing").wait_for()
    w.shoot("card-applied")


def test_a_card_changes_the_file_that_its_diff_names_and_undo_takes_it_back(tmp_path, window):
    """The file is shown beside the notebook with the change; VS Code in a browser saves it by itself."""
    program = tmp_path / "bad.py"
    w, card = opened(tmp_path, window, FILE_DIFF)
    card.get_by_role("button", name="Apply to your code").press("Enter")
    card.get_by_text("Applied to your code: run it again.").wait_for()
    changed = w.line('"MASTER_PORT"] = "29500"')
    changed.wait_for()
    w.until(lambda: program.read_text() == BAD.replace("29500", '"29500"'))
    w.shoot("card-file")
    changed.click()
    w.page.keyboard.press("Control+z")
    w.line('"MASTER_PORT"] = 29500').wait_for()
    w.until(lambda: program.read_text() == BAD)


@pytest.mark.ranks
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_the_walkthrough_leads_from_a_squiggle_to_a_verdict_and_a_fix(tmp_path, window):
    """Its button opens the example, which hangs in a terminal and is then marked; its steps are ticked off."""
    w = window(tmp_path)
    w.command("Welcome: Open Walkthrough...")
    w.pick("Select a walkthrough", "training fails", "Find out why training fails on many ranks")
    w.shoot("walkthrough")
    w.button("Open the example").click()
    w.squiggle()
    w.command("dtdebug: Run failing example")
    w.terminal("All that was collected")
    failed = w.problem("D.2.1")
    assert "Rank 0 called barrier" in failed.inner_text()
    assert "Ln 30" in failed.inner_text()
    w.shoot("failed-run")
    failed.dblclick()
    w.outdent("dist.barrier")
    for step in ("Open a script", "See what is wrong", "Run it", "Apply the fix"):
        w.ticked(step)
    w.page.locator(".getting-started-step", has_text="Learn by breaking").first.click()
    w.button("Choose a lab or a notebook").click()
    w.ticked("Learn by breaking")  # the notebook is going to cover it
    w.pick(CHOOSE, "your first failure", "Your first failure")
    accept(w, tmp_path / "dtdebug-notebook-first-failure")
    w.page.locator(".tab", has_text="01_first_failure.ipynb").wait_for()


def test_the_wizard_is_typed_once_into_its_terminal(tmp_path, window):
    """Not before the shell is ready, which would show the line once more at its prompt."""
    (tmp_path / "bad.py").write_text(BAD)
    w = window(tmp_path, "bad.py")
    w.squiggle()
    w.command("dtdebug: Open wizard")
    w.terminal("What do you see?")
    assert w.shown("-m dtdebug wizard") == 1
    w.shoot("wizard")


def test_a_lab_is_chosen_and_fails_in_a_terminal_beside_its_script(tmp_path, window):
    """The list has the labs, found by symptom; the copied script is opened, and the terminal says how to go on."""
    (tmp_path / "bad.py").write_text(BAD)
    w = window(tmp_path, "bad.py")
    w.squiggle()  # before the extension is known, the palette has no command of it
    w.command("dtdebug: Learn by breaking")
    w.page.locator(".quick-input-list .monaco-list-row", has_text="A.2").first.wait_for()
    w.shoot("labs")
    w.pick(CHOOSE, "A.2", "The ranks do not find a module that the launcher finds")
    folder = tmp_path / "dtdebug-lab-environment-not-passed-on"
    accept(w, folder)
    w.line("PYTHONPATH").wait_for()
    assert ["launch.py"] == [file.name for file in folder.iterdir()]
    w.terminal("`dtdebug lab hint` gives a hint")


def test_an_interpreter_without_dtdebug_is_named_once(tmp_path, window, code):
    """The message has the command that installs it, which is typed but not run; it does not come again."""
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    bare = tmp_path / "bare" / "bin" / "python"
    work = tmp_path / "work"
    (work / ".vscode").mkdir(parents=True)
    (work / ".vscode" / "settings.json").write_text(json.dumps({"dtdebug.interpreter": str(bare)}))
    (work / "bad.py").write_text(BAD)
    message = f"dtdebug[lsp] is not installed for {bare}"
    first = window(work, "bad.py")
    first.notice(message, press="Show install command")
    first.terminal(f"{bare} -m pip install 'dtdebug[lsp]'")
    first.close()
    again = window(work, "bad.py")
    again.until(lambda: code.said().count(message) == 2)
    assert again.notices() == []


def test_a_folder_that_is_not_trusted_names_no_program(tmp_path, browser):
    """Files are checked with the python3 of the user; no lab, no `.venv` and no setting of the folder is run."""
    work = tmp_path / "work"
    planted = work / ".venv" / "bin" / "python"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path / 'run'}\n")
    planted.chmod(0o755)
    (work / ".vscode").mkdir()
    named = {"dtdebug.interpreter": str(planted), "dtdebug.serverCommand": [str(planted)]}
    (work / ".vscode" / "settings.json").write_text(json.dumps(named))
    (work / "bad.py").write_text(BAD)
    with server(tmp_path / "code") as code, vscode.Window(browser, code, work, "bad.py") as w:
        w.squiggle()
        w.command("dtdebug: Learn by breaking")
        w.until(lambda: "none is run in a workspace that you do not trust" in " ".join(w.notices()))
    assert not (tmp_path / "run").exists()

"""What a user sees in the real JupyterLab, without any front-end extension of ours."""

import os
from importlib.util import find_spec

import notebooks as nb
import pytest

playwright = pytest.importorskip("playwright.sync_api")
MISSING = nb.what_is_missing()
pytestmark = [
    pytest.mark.browser,
    pytest.mark.ranks,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
]

RANKS = """
import torch
import torch.distributed as dist

def work(rank):
    dist.init_process_group("gloo", init_method="file:///{store}", rank=rank, world_size=2)
    if rank == 1:
        torch.ones(2, 3) @ torch.ones(2, 3)
    dist.barrier()
"""
CELLS = (
    "%load_ext dtdebug",
    "import ranks, torch.multiprocessing as mp\nmp.spawn(ranks.work, nprocs=2)",
    "%dtdebug",
)


@pytest.fixture
def page(tmp_path):
    """The notebook in Chromium, its kernel ready."""
    server = nb.Jupyter("lab", tmp_path / "lab", extension=False)
    (server.work / "ranks.py").write_text(RANKS.replace("/{store}", str(tmp_path / "store")))
    with server, playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=nb.CHROMIUM, headless=True, args=nb.FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1100})
        yield server.open(page, "train.ipynb", nb.notebook(*CELLS))
        browser.close()


def test_the_answer_stands_under_the_traceback_and_the_wizard_can_be_clicked_through(page):
    """Static HTML below the error; then two questions by mouse, and the result."""
    nb.run(page, 0)
    failed = nb.run(page, 1)
    answer = failed.locator(".dtdebug")
    answer.wait_for()
    outputs = failed.locator(".jp-OutputArea-child")

    assert "ProcessRaisedException" in outputs.nth(-2).inner_text()
    assert outputs.last.locator(".dtdebug").count() == 1
    assert "mat1 and mat2 shapes cannot be multiplied" in answer.inner_text()
    assert "Rank 1" in answer.inner_text()
    assert answer.locator("script").count() == 0

    for name in ("JupyterLab Dark", "JupyterLab Light") if os.environ.get("DTDEBUG_SHOTS") else ():
        nb.theme(page, name)
        nb.shoot(page, f"answer-{name[11:].lower()}", answer)

    wizard = nb.run(page, 2).locator(".dtdebug-wizard")
    wizard.wait_for()
    nb.shoot(page, "wizard", wizard)
    for step, choice in ((1, wizard.get_by_label("installing or compiling")), (2, wizard.get_by_role("radio").last)):
        question = wizard.locator("h4")
        asked = question.inner_text()
        choice.check()
        wizard.get_by_role("button", name="Next").click()
        playwright.expect(question).not_to_have_text(asked)
        playwright.expect(wizard.locator("li", has_text="answered: ")).to_have_count(step)
    nb.shoot(page, "wizard-answered", wizard)
    wizard.get_by_role("button", name="Stop").click()
    wizard.locator(".dtdebug").wait_for()

    assert wizard.get_by_role("button", name="Next").count() == 0
    assert "Fix" in wizard.locator(".dtdebug").inner_text()
    for name in ("JupyterLab Dark", "JupyterLab Light") if os.environ.get("DTDEBUG_SHOTS") else ():
        nb.theme(page, name)
        nb.shoot(page, f"result-{name[11:].lower()}", wizard.locator(".dtdebug"))

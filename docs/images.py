"""Takes the pictures of docs/images anew, from a real JupyterLab with real ranks that fail and hang.

python docs/images.py [NAME ...]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

DOCS = Path(__file__).parent
TESTS = DOCS.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "editors")]

import notebooks as nb  # noqa: E402 - it lies beside the tests

LOAD = "%load_ext dtdebug"
TRAIN = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(64, 64)
        self.head = torch.nn.Linear(64, 10)
        self.auxiliary = torch.nn.Linear(64, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())


def train(rank, size):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29511", rank=rank, world_size=size)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        optimizer.zero_grad()
        model(torch.randn(32, 64)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()
""".strip()
FAILS = "import torch.multiprocessing as mp\n\nmp.start_processes(train, args=(2,), nprocs=2, start_method='fork')"
FIT = "model = DistributedDataParallel(model, device_ids=[local_rank])"
NCCL = """NCCL error in: torch/csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled system error \
(run with NCCL_DEBUG=INFO for details), NCCL version 2.26.2
ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error."""
TRAIN_HERE = """
import pathlib, time
import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

STORE = pathlib.Path("rendezvous").absolute().as_uri()

def evaluate(model):
    time.sleep(600)

def train(rank, size):
    dist.init_process_group("gloo", init_method=STORE, rank=rank, world_size=size)
    model = DistributedDataParallel(torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        optimizer.zero_grad()
        model(torch.randn(32, 64)).square().mean().backward()
        optimizer.step()
        if rank == 3 and step == 12:
            evaluate(model)
""".strip()
HANGS = "mp.start_processes(train, args=(8,), nprocs=8, start_method='fork')"
SIZE: ViewportSize = {"width": 1360, "height": 940}
COMMAND = "command => window.jupyterapp.commands.execute(command)"
RENAME = """([folder, name]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (text.data.includes(folder)) text.data = text.data.replaceAll(folder, name);
  }
}"""
"""Where this environment is says something of a machine, and nothing to who looks at a picture."""
AT_TOP = "e => e.scrollIntoView({block: 'start'})"


class Studio:
    """A JupyterLab, a browser, and where pictures go."""

    def __init__(self, server: nb.Jupyter, browser: Browser, wanted: set[str]) -> None:
        self.server, self.browser, self.wanted = server, browser, wanted
        self.taken: set[str] = set()

    @contextmanager
    def page(self, name: str, *cells: Any, **size: int) -> Iterator[Page]:
        """A new notebook in a window of its own, without the file browser."""
        page = self.browser.new_page(viewport={**SIZE, **size})
        self.server.open(page, f"{name}.ipynb", nb.notebook(*cells))
        page.evaluate(COMMAND, "application:toggle-left-area")
        yield page
        page.close()
        self.server.end_kernels()

    def shoot(self, page: Page, name: str) -> None:
        """Keeps what is seen."""
        page.mouse.move(5, 5)
        page.wait_for_timeout(700)  # what moves or fades has ended
        if name in self.wanted:
            page.evaluate(RENAME, [sys.prefix, "/opt/venv"])
            page.screenshot(path=DOCS / "images" / f"{name}.png")
            self.taken.add(name)


def failure(studio: Studio) -> None:
    """The card above the red text."""
    with studio.page("first-ddp", LOAD, TRAIN, FAILS) as page:
        nb.run(page, 0)
        nb.run(page, 1)
        cell = nb.run(page, 2)
        cell.locator(".dtd-card").first.wait_for()
        cell.evaluate(AT_TOP)
        studio.shoot(page, "card")


def guided(studio: Studio) -> None:
    """A saved notebook with an error that stands for many causes."""
    saved = (FIT, [nb.error("DistBackendError", NCCL)])
    with studio.page("saved", saved) as page:
        page.evaluate(COMMAND, "dtdebug:open-panel")
        wizard = page.locator(".dtdp-wizard")
        wizard.get_by_role("button", name="Guide me from cell [1]").click()
        wizard.locator(".dtd-ask").wait_for()
        studio.shoot(page, "wizard")


def hang(studio: Studio) -> None:
    """Eight ranks, of which one evaluates while the others train on."""
    with studio.page("fine-tune", LOAD, TRAIN_HERE, HANGS, height=1150) as page:
        nb.run(page, 0)
        nb.run(page, 1)
        nb.start(page, 2)
        item = page.locator(".dtdebug-stands button:visible")
        item.wait_for()
        item.click()
        panel = page.locator("#dtdebug-panel")
        panel.get_by_role("region", name="Verdict").wait_for()
        panel.get_by_text("8 ranks: 1 culprit, 7 wait").wait_for()
        studio.shoot(page, "hang")


SCENES: dict[Callable[[Studio], None], set[str]] = {
    failure: {"card"},
    guided: {"wizard"},
    hang: {"hang"},
}
"""Scene -> the pictures that it gives."""


def main() -> int:
    """Status 1 if a picture could not be taken."""
    every = sorted(set[str]().union(*SCENES.values()))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("name", nargs="*", choices=[*every, []], help="only these")
    wanted = set(parser.parse_args().name or every)
    home = Path(tempfile.mkdtemp(prefix="dtdebug-images-"))
    try:
        with nb.Jupyter("lab", home, hangAfter=20) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=nb.CHROMIUM, args=nb.FLAGS)
            studio = Studio(server, browser, wanted)
            for scene, gives in SCENES.items():
                if gives & wanted:
                    scene(studio)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(*(f"docs/images/{name}.png" for name in sorted(studio.taken)), sep="\n")
    return 0 if studio.taken == wanted else 1


if __name__ == "__main__":
    sys.exit(main())

"""Prints figures of JupyterLab's extension: size, first paint of the card, memory left by closed notebooks.

    python benchmarks/lab.py [NOTEBOOKS]

The same notebooks are opened and closed without the extension too, for JupyterLab keeps some memory itself.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "editors"))
import notebooks as nb

from dtdebug.presentation.diagnosis_card import MIME

NOTEBOOKS = 50
WARM_UP = 10
SAMPLE = Path(__file__).parents[1] / "extension" / "shared" / "test" / "samples" / "settled.json"
CARDS = 20
LOAD = "%load_ext dtdebug"
RAISES = 'raise RuntimeError("NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error")'
PAINT = """async () => {
    const { content, sessionContext } = window.jupyterapp.shell.currentWidget;
    const kernel = sessionContext.session.kernel;
    content.activeCellIndex = 1;
    content.widgets[1].model.clearExecution();
    const painted = new Promise(resolve => {
        const note = (_, { msg }) => {
            if (msg.content.data?.['application/vnd.dtdebug.diagnosis+json']) {
                kernel.anyMessage.disconnect(note);
                const come = performance.now();
                const look = () => content.node.querySelector('.dtd-card .dtd-title')
                    ? requestAnimationFrame(() => resolve(performance.now() - come))
                    : setTimeout(look, 0);
                look();
            }
        };
        kernel.anyMessage.connect(note);
    });
    await window.jupyterapp.commands.execute('notebook:run-cell');
    return painted;
}"""
"""The cell has to end first: its error would abort the next run if that was sent earlier."""
KERNEL = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.model"
OPEN_AND_CLOSE = """async ([path, kernel, outputs]) => {
    const app = window.jupyterapp;
    const widget = await app.commands.execute('docmanager:open', {path, kernel});
    await widget.context.ready;
    await widget.revealed;
    app.shell.activateById(widget.id);
    await widget.sessionContext.ready;
    const shown = () => widget.node.querySelectorAll('.jp-OutputArea-output').length;
    for (let i = 0; i < 200 && shown() < outputs; i++) await new Promise(resolve => setTimeout(resolve, 50));
    widget.context.model.dirty = false;
    const ended = new Promise(resolve => widget.disposed.connect(resolve));
    widget.close();
    await ended;
    await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
}"""


def main(notebooks: int) -> None:
    """Print all figures."""
    size = sum(file.stat().st_size for file in nb.LABEXTENSION.rglob("*") if file.is_file())
    print(f"size of the extension: {size / 1_000:.0f} kB")
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=nb.CHROMIUM, headless=True, args=nb.FLAGS)
        times = cards(browser)
        print(f"message to card: median {statistics.median(times):.0f} ms, most {max(times):.0f} ms")
        for extension in (True, False):
            kept = ", ".join(f"{each:.1f} {name}" for name, each in closed(browser, extension, notebooks).items())
            print(f"{'with' if extension else 'without'} the extension a closed notebook leaves {kept}")


def cards(browser: Any) -> list[float]:
    """Return the milliseconds from the kernel's message to the painted card."""
    with tempfile.TemporaryDirectory() as home, nb.Jupyter("lab", Path(home) / "h") as lab:
        page = lab.open(browser.new_page(), "first.ipynb", nb.notebook(LOAD, RAISES))
        nb.run(page, 0)
        times = [page.evaluate(PAINT) for _ in range(CARDS)]
        lab.end_kernels()
    return times


def closed(browser: Any, extension: bool, notebooks: int) -> dict[str, float]:
    """Measure the memory that a closed notebook leaves; all use one kernel, and the first ones warm up."""
    error = nb.error("RuntimeError", RAISES)
    diagnosis = nb.display({MIME: json.loads(SAMPLE.read_text()), "text/plain": "a diagnosis"})
    printed = {"output_type": "stream", "name": "stdout", "text": "loss 1.0\n" * 20}
    text = nb.notebook(("train()", [printed]), (RAISES, [error]), (RAISES, [error, diagnosis]))
    with tempfile.TemporaryDirectory() as home:
        server = nb.Jupyter("lab", Path(home) / "h", extension=extension)
        alone(server)
        with server as lab:
            page = lab.open(browser.new_page(), "first.ipynb", nb.notebook(LOAD))
            if extension:
                page.evaluate("() => window.jupyterapp.commands.execute('dtdebug:open-panel')")
            kernel = page.evaluate(KERNEL)
            before: dict[str, float] = {}
            for number in range(notebooks):
                if number == WARM_UP:
                    before = held(page)
                (lab.work / f"other-{number}.ipynb").write_text(text)
                page.evaluate(OPEN_AND_CLOSE, [f"other-{number}.ipynb", kernel, 4])
            after = held(page)
            page.close()
            lab.end_kernels()
    return {name: (after[name] - before[name]) / (notebooks - WARM_UP) for name in after}


def alone(server: Any) -> None:
    """Disable other extensions: some keep references to each notebook that was ever open."""
    file = server.home / "config" / "labconfig" / "page_config.json"
    config = json.loads(file.read_text())
    installed = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
    for package in (*installed.glob("*/package.json"), *installed.glob("@*/*/package.json")):
        config["disabledExtensions"].setdefault(json.loads(package.read_text())["name"], True)
    file.write_text(json.dumps(config))


def held(page: Any) -> dict[str, float]:
    """Return the page's memory after garbage collection."""
    session = page.context.new_cdp_session(page)
    for _ in range(3):  # collection in one round may release objects that are freed a moment later
        session.send("HeapProfiler.collectGarbage")
        page.wait_for_timeout(500)
    heap, dom = session.send("Runtime.getHeapUsage"), session.send("Memory.getDOMCounters")
    session.detach()
    return {"kB of heap": heap["usedSize"] / 1_000, "listeners": dom["jsEventListeners"], "DOM nodes": dom["nodes"]}


if __name__ == "__main__":
    main(max(WARM_UP + 1, int(sys.argv[1])) if len(sys.argv) > 1 else NOTEBOOKS)

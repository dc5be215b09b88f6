"""Figures of JupyterLab's extension, printed: size, first paint of the card, heap after notebooks have been closed.

    python benchmarks/lab.py [NOTEBOOKS]

The same notebooks are opened and closed without the extension too, for JupyterLab keeps some memory itself.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "editors"))
import notebooks as nb

NOTEBOOKS = 50
CARDS = 20
LOAD = "%load_ext dtdebug"
RAISES = 'raise RuntimeError("NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error")'
PAINT = """() => new Promise(resolve => {
    const { content, sessionContext } = window.jupyterapp.shell.currentWidget;
    let come = 0;
    const kernel = sessionContext.session.kernel;
    const note = (_, { msg }) => {
        if (msg.content.data?.['application/vnd.dtdebug.diagnosis+json']) {
            kernel.anyMessage.disconnect(note);
            come = performance.now();
            const look = () => content.node.querySelector('.dtd-card .dtd-title')
                ? requestAnimationFrame(() => resolve(performance.now() - come))
                : setTimeout(look, 0);
            look();
        }
    };
    kernel.anyMessage.connect(note);
    content.activeCellIndex = 1;
    content.widgets[1].model.clearExecution();
    window.jupyterapp.commands.execute('notebook:run-cell');
})"""
OPEN_AND_CLOSE = """async ([path, name]) => {
    const app = window.jupyterapp, contents = app.serviceManager.contents;
    await contents.save(name, await contents.get(path));
    const widget = await app.commands.execute('docmanager:open', {path: name, kernel: {shouldStart: false}});
    await widget.context.ready;
    await widget.revealed;
    app.shell.activateById(widget.id);
    await Promise.race([widget.sessionContext.ready, new Promise(resolve => setTimeout(resolve, 2_000))]);
    widget.context.model.dirty = false;
    const ended = new Promise(resolve => widget.disposed.connect(resolve));
    widget.close();
    await ended;
}"""


def main(notebooks: int) -> None:
    """Prints all figures."""
    size = sum(file.stat().st_size for file in nb.LABEXTENSION.rglob("*") if file.is_file())
    print(f"size of the extension: {size / 1_000:.0f} kB")
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=nb.CHROMIUM, headless=True, args=nb.FLAGS)
        for extension in (True, False):
            with tempfile.TemporaryDirectory() as home, nb.Jupyter("lab", Path(home) / "h", extension=extension) as lab:
                page = lab.open(browser.new_page(), "first.ipynb", nb.notebook(LOAD, RAISES))
                nb.run(page, 0)
                if extension:
                    times = [page.evaluate(PAINT) for _ in range(CARDS)]
                    print(f"message to card: median {statistics.median(times):.0f} ms, most {max(times):.0f} ms")
                    page.evaluate("() => window.jupyterapp.commands.execute('dtdebug:open-panel')")
                page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")
                page.evaluate(OPEN_AND_CLOSE, ["first.ipynb", "other.ipynb"])
                before = heap(page)
                for number in range(notebooks):
                    page.evaluate(OPEN_AND_CLOSE, ["first.ipynb", f"other-{number}.ipynb"])
                grown = (heap(page) - before) / notebooks / 1_000
                print(f"{'with' if extension else 'without'} the extension: {grown:.0f} kB of heap a closed notebook")
                lab.end_kernels()


def heap(page: Any) -> float:
    """Bytes of the page's heap after its garbage was collected."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used: float = session.send("Runtime.getHeapUsage")["usedSize"]
    return used


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else NOTEBOOKS)

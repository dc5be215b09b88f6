"""Measures how long the picture of the ranks takes to show the next look, next to the same cells as DOM elements.

    python benchmarks/panel.py

Drives the built modules of extension/shared (`make card`) in Debian's Chromium and prints median and 95th percentile in
milliseconds, of the script with its layout and until the frame is painted. The target for 4096 ranks is 16 ms.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "editors"))
from browsers import CHROMIUM, FLAGS

SHARED = Path(__file__).parents[1] / "extension" / "shared"
COUNTS = (8, 512, 4096)
LOOKS, WARM = 120, 20
MEASURE = """async ([count, looks, peer, all]) => {
    const { RanksView } = await import("/build/src/ranks/view.js");
    const { many } = await import("/build/test/ranks/look.js");
    const frame = () => new Promise(requestAnimationFrame);
    const painted = () => new Promise(done => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => done(performance.now());
        channel.port2.postMessage(0);
    });
    const view = peer ? elements() : new RanksView();
    document.body.replaceChildren(view.node);
    const scripts = [], frames = [];
    for (let i = 0; i < looks; i += 1) {
        const data = many(count, i);
        if (all && i % 2) data.rows.forEach(row => { if (row.state === "waits") row.state = "runs"; });
        await frame().then(painted);
        await frame();  // from here on the browser paints before it does anything else
        const begun = performance.now();
        view.update(data);
        view.node.offsetHeight;
        scripts.push(performance.now() - begun);
        frames.push(await painted() - begun);
    }
    return [scripts, frames];

    function elements() {
        const node = document.createElement("div");
        node.style.cssText = "display: grid; gap: 1px; width: 384px; grid-template-columns: repeat(64, 5px)";
        const colours = { culprit: "red", waits: "lightblue", runs: "green", silent: "purple", gone: "black" };
        const cells = Array.from({ length: count }, () => node.appendChild(document.createElement("div")));
        cells.forEach(cell => cell.style.height = "5px");
        return { node, update: data => data.rows.forEach((row, i) => {
            const title = `rank ${row.rank} ${row.state} ${row.op ?? ""} #${row.seq ?? ""} step ${row.step}`;
            if (cells[i].title !== title) cells[i].title = title;
            if (cells[i].dataset.state !== row.state) {
                cells[i].dataset.state = row.state;
                cells[i].style.background = colours[row.state];
            }
        }) };
    }
}"""


def main() -> None:
    """Print one line for each number of ranks and way to draw them."""
    print("ranks | cells that change | drawn as        | script, layout: median, p95 | until painted: median, p95")
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 400, "height": 1000})
        page.route("http://dtdebug.test/**", serve)
        page.goto("http://dtdebug.test/")
        for count in COUNTS:
            for every in (False, True):
                ours, peer = (row(page, count, every, elements=elements) for elements in (False, True))
                print(f"      elements take {peer / ours:.1f} times as long until painted")
        browser.close()


def row(page: Page, count: int, every: bool, *, elements: bool) -> float:
    """Print the figures of one way; return the median until painted."""
    found: list[list[float]] = page.evaluate(MEASURE, [count, LOOKS, elements, every])
    script, frame = (
        [statistics.median(each), statistics.quantiles(each, n=20)[-1]] for each in (f[WARM:] for f in found)
    )
    drawn = "elements (peer)" if elements else "RanksView"
    figures = f"{script[0]:6.2f} {script[1]:6.2f} | {frame[0]:6.2f} {frame[1]:6.2f}"
    print(f"{count:5} | {'nearly all' if every else 'about 7 %':17} | {drawn:15} | {figures}")
    return frame[0]


def serve(route: Route) -> Any:
    """Serve an empty page, and the modules."""
    path = SHARED / route.request.url.split("/", 3)[3]
    if path == SHARED:
        route.fulfill(body="<!doctype html><html lang=en><title>ranks</title><body>", content_type="text/html")
    else:
        route.fulfill(path=path, content_type="text/javascript")


if __name__ == "__main__":
    main()

"""The card of `%dtdebug doctor` in a real JupyterLab, and what it holds of pairs and of hostile texts."""

import os
from pathlib import Path

import notebooks as nb
import pytest

from dtdebug.doctor import notebook_card
from dtdebug.doctor.report_types import Area, HostFinding, Matrix, Report

ASKED = """
import dtdebug.notebook.magic as m, dtdebug.notebook.extension_state as e
print({k.key: (k.values, k.source) for k in m._session(e.extension).diagnosis().known})
"""
playwright = pytest.importorskip("playwright.sync_api")
MISSING = nb.what_is_missing()


def test_pairs_are_a_heat_map_and_texts_are_escaped():
    """A pair that fails, one that is late, one that carries little; what a host is called can hold anything."""
    matrix = Matrix(
        hosts=("h0", "<b>h1", "h2"),
        milliseconds=((None, 0.2, 0.2), (-1.0, None, 30.0), (0.2, 0.2, None)),
        rates=(((0, 1), 500.0), ((2, 0), 10.0), ((1, 2), 480.0)),
    )
    area = Area(id="network", state="fault", text="")
    fault = HostFinding(id="DR301", area="network", severity="fault", text="<script>", hosts=("<b>h1",))
    shown = notebook_card.html(Report(areas=(area,), findings=(fault,), matrix=matrix))
    assert "<script>" not in shown
    assert "<b>h1" not in shown
    assert shown.count("&#10005;") == 1
    cells = dict(row.split('">', 1)[0].split('" title="')[::-1] for row in shown.split("<td ") if "title=" in row)
    hues = {
        title.split(":")[0]: style.split("hsla(")[1].split(",")[0] for title, style in cells.items() if "hsla" in style
    }
    assert hues["h0 to h2"] == "120"
    assert hues["&lt;b&gt;h1 to h2"] == "0"
    assert hues["h2 to h0"] == "0"
    assert "#10005" not in notebook_card.html(Report(areas=(area,)))


@pytest.mark.browser
@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
def test_the_card_stands_in_jupyterlab_and_answers_questions(tmp_path):
    """Areas as rows under the cell, its sum in the panel; what was measured is no question of the wizard any more."""
    server = nb.Jupyter("lab", tmp_path / "lab")
    cells = (
        "%load_ext dtdebug",
        "%dtdebug doctor torchrun --nproc-per-node 8 --master-port 29731 train.py --tensor-model-parallel-size 3",
        ASKED,
    )
    with server, playwright.sync_playwright() as p:
        (Path(server.work) / "train.py").write_text("pass\n")
        browser = p.chromium.launch(executable_path=nb.CHROMIUM, headless=True, args=nb.FLAGS)
        page = server.open(
            browser.new_page(viewport={"width": 1280, "height": 1100}), "train.ipynb", nb.notebook(*cells)
        )
        nb.run(page, 0)
        shown = nb.run(page, 1).locator(".dtdebug-doctor")
        shown.wait_for()
        rows = shown.locator("tr").all_inner_texts()
        said = nb.run(page, 2).inner_text()
        page.evaluate("() => window.jupyterapp.commands.execute('dtdebug:open-panel')")
        line = page.locator("#dtdebug-panel .dtdp-doctor [data-state=fault]").inner_text()
        found = page.locator("#dtdebug-panel .dtdp-doctor li").all_inner_texts()
        if os.environ.get("DTDEBUG_SHOTS"):
            nb.shoot(page, "doctor", shown)
        browser.close()
    partition = next(row for row in rows if "partition" in row)
    assert "fault" in partition
    assert "8 ranks can't be split into parts of 3" in partition
    assert "'launcher': (('torchrun',), 'measured')" in said
    assert "doctor: 1 host, 8 ranks, " in line
    assert line.endswith(("1 fault", "faults"))
    assert any("8 ranks can't be split into parts of 3" in text for text in found)

"""What a user of dtdebug[lab] sees in a real JupyterLab and in a real Notebook 7."""

import json
import time

import notebooks as nb
import pytest
from places import ROOT

from dtdebug.presentation.diagnosis_card import MIME

playwright = pytest.importorskip("playwright.sync_api")
MISSING = nb.what_is_missing()
pytestmark = [pytest.mark.browser, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]

SAVED = ROOT / "extension" / "shared" / "test" / "samples" / "settled.json"
SHORT = SAVED.with_name("short.json")
NCCL = "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error, NCCL version 2.19.3"
RAISES = f'raise RuntimeError("{NCCL}")'
LOAD = "%load_ext dtdebug"
LOADED = "from dtdebug.notebook import extension_state as loaded; print(loaded.extension is not None)"
INSTALL = '%pip install "dtdebug[notebook]"'
RANKS = """
import torch
import torch.distributed as dist

def work(rank):
    dist.init_process_group("gloo", init_method="file://{store}", rank=rank, world_size=2)
    if rank == 1:
        torch.ones(2, 3) @ torch.ones(2, 3)
    dist.barrier()
"""
SECONDS = """import torch.distributed as dist
dist.init_process_group("gloo", init_method="tcp://localhost:29517", rank=0, world_size=2, timeout=3)"""
SPAWN = "import ranks, torch.multiprocessing as mp\nmp.spawn(ranks.work, nprocs=2)"


both = pytest.mark.parametrize("app", ["lab", "notebook"])


def diagnose(cell):
    return cell.get_by_role("button", name="Diagnose", exact=False)


def card(cell):
    return cell.locator(".dtd-card")


def opened_card(cell):
    """The card of a cell with all that is behind Why?."""
    shown = card(cell)
    shown.wait_for()
    why = shown.get_by_role("button", name="Why?")
    if why.get_attribute("aria-expanded") == "false":
        why.click()
    return shown


def told(cell):
    return cell.locator(".dtd-status").filter(has_text=" ")


def test_it_is_small():
    """Everyone who opens JupyterLab loads it, with what is known of messages: less than 220 kB."""
    assert sum(file.stat().st_size for file in nb.LABEXTENSION.rglob("*") if file.is_file()) < 220_000


@pytest.mark.ranks
@both
def test_the_card_stands_above_the_traceback_and_an_answer_is_a_cell_below(servers, opened, app, tmp_path):
    """A failing two-rank cell; then a click on an answer, which runs where everyone can see it."""
    pytest.importorskip("torch")
    (servers(app).work / "ranks.py").write_text(RANKS.format(store=tmp_path / "store"))
    page = opened(app, nb.notebook(LOAD, SPAWN))
    nb.run(page, 0)
    failed = nb.run(page, 1)
    card(failed).wait_for()

    assert "Rank 1 raised RuntimeError" in card(failed).inner_text()
    assert "mat1 and mat2 shapes cannot be multiplied" in card(failed).inner_text()
    assert 0 == diagnose(failed).count()
    above, red = card(failed).bounding_box(), failed.locator("[data-mime-type$=error], [data-mime-type$=stderr]").last
    assert above["y"] + above["height"] <= red.bounding_box()["y"]
    nb.shoot(page, f"{app}-card", failed)

    nb.answer(failed, "installing or compiling").click()
    below = nb.cell(page, 2)
    card(below).wait_for()

    assert [LOAD, SPAWN, "%dtdebug answer activity installing"] == nb.sources(page)
    assert "your answer" in opened_card(below).inner_text()
    nb.shoot(page, f"{app}-answered", below)

    card(below).locator(".dtd-choices button").first.click()
    card(nb.cell(page, 3)).wait_for()

    assert 4 == len(nb.sources(page))


@both
def test_one_click_diagnoses_in_a_kernel_that_has_not_loaded_dtdebug(opened, app):
    """The card comes in the place of the button; its answers narrow it there, for no cell could take them."""
    page = opened(app, nb.notebook(RAISES, LOADED))
    failed = nb.run(page, 0)
    diagnose(failed).wait_for()
    nb.shoot(page, f"{app}-button", failed)
    diagnose(failed).click()
    card(failed).wait_for()

    assert "The path that NCCL, Gloo or MPI chose between GPUs or hosts fails." in card(failed).inner_text()
    assert [RAISES, LOADED] == nb.sources(page)
    assert "False" in nb.run(page, 1).inner_text()
    nb.shoot(page, f"{app}-diagnosed", card(failed))

    asked = failed.locator(".dtd-ask").inner_text()
    nb.answer(failed, "training steps").click()
    failed.get_by_text("Answered here").wait_for()

    assert "Answered here: activity = training." in failed.inner_text()
    assert asked not in failed.inner_text()
    nb.shoot(page, f"{app}-narrowed", failed.get_by_text("Answered here"))

    failed.get_by_role("button", name="Take back").click()
    assert asked == failed.locator(".dtd-ask").inner_text()

    failed.get_by_role("button", name=f"Insert {LOAD} as a cell").click()
    assert [RAISES, LOAD, LOADED] == nb.sources(page)


def test_the_fix_of_the_users_own_line_is_applied_to_its_cell(opened):
    """A real failure on a line of which a check knows the fix: one click changes the cell, and runs nothing."""
    pytest.importorskip("torch")
    page = opened("lab", nb.notebook(LOAD, SECONDS))
    nb.run(page, 0)
    failed = nb.run(page, 1)
    card(failed).wait_for()
    nb.shoot(page, "lab-apply", card(failed))
    assert "needs a datetime.timedelta as its time-out: timeout is 3" in card(failed).inner_text()
    assert "cell In[2], line 2" in card(failed).inner_text()
    card(failed).get_by_role("button", name="Apply to this cell").click()
    failed.get_by_text("Applied to this cell: run it again.").wait_for()

    assert [LOAD, "from datetime import timedelta\n" + SECONDS.replace("=3)", "=timedelta(seconds=3))")] == nb.sources(
        page
    )
    assert "TypeError" in failed.inner_text()  # the output of the run before: nothing has run since


def test_a_fix_of_two_cells_is_applied_to_both_and_undone_in_each(opened):
    """A line that moves to the cell below: one button, all of it or nothing."""
    diff = "--- In[1]\n+++ In[1]\n@@ -1,2 +1 @@\n a\n-b\n--- In[2]\n+++ In[2]\n@@ -1 +1,2 @@\n c\n+b\n"
    known = json.loads(SHORT.read_text())
    known["answer"]["fix"]["diff"] = diff
    page = opened("lab", nb.notebook("a\nb", ("c", [nb.display({MIME: known})])))
    failed = nb.cell(page, 1)
    failed.get_by_role("button", name="Apply to cells [ ], [1]").click()
    failed.get_by_text("Applied to cells [ ], [1]: run it again.").wait_for()
    applied = nb.sources(page)
    for number in range(2):
        page.evaluate("i => window.jupyterapp.shell.currentWidget.content.widgets[i].editor.undo()", number)

    assert ["a", "c\nb"] == applied
    assert ["a\nb", "c"] == nb.sources(page)
    nb.cell(page, 0).locator(".cm-content").fill("a\nb2")
    failed.get_by_role("button", name="Apply to cells").click()
    failed.get_by_text("The code has changed since").wait_for()
    assert ["a\nb2", "c"] == nb.sources(page)


@pytest.mark.parametrize("width", [1400, 700])
def test_a_closed_card_is_a_fifth_of_the_window_and_shows_the_own_line_with_its_change(opened, width):
    """At most 230 pixels; nothing of another program, no code of a symptom, and all else is behind Why?."""
    page = opened("lab", nb.notebook(("train()", [nb.display({MIME: json.loads(SHORT.read_text())})])), width=width)
    page.evaluate("() => { const s = window.jupyterapp.shell; s.collapseLeft(); s.collapseRight(); }")
    shown = card(nb.cell(page, 0))
    shown.wait_for()
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        nb.theme(page, name)
        nb.shoot(page, f"lab-short-{width}-{name[11:].lower()}", shown)
    text = shown.inner_text()

    assert shown.bounding_box()["height"] <= 230
    assert "timeout=timedelta(seconds=3)" in text
    assert "cell In[2], line 2" in text
    assert "B.1" not in text
    shown.get_by_role("button", name="Why?").click()
    assert "B.1" in shown.inner_text()


@both
def test_the_keyboard_alone_is_enough(opened, app):
    """From the cell to the button by Tab, then Enter; the card has the focus, and Space opens what is below."""
    page = opened(app, nb.notebook(RAISES))
    failed = nb.run(page, 0)
    diagnose(failed).wait_for()
    press_until(page, "button", "Diagnose")
    page.keyboard.press("Enter")
    card(failed).wait_for()
    why = card(failed).get_by_role("button", name="Why?")
    playwright.expect(why).to_be_focused()
    nb.shoot(page, f"{app}-keyboard", card(failed))
    page.keyboard.press("Space")
    playwright.expect(why).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Enter")
    playwright.expect(why).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    press_until(page, "button", "training steps")
    page.keyboard.press("Enter")
    failed.get_by_text("Answered here").wait_for()

    assert [RAISES] == nb.sources(page)
    assert 0 == page.locator(".jp-Notebook.jp-mod-editMode").count()


def press_until(page, tag, text):
    """Presses Tab until an element has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = "([tag, text]) => document.activeElement.matches(tag) && document.activeElement.innerText === text"
        if page.evaluate(focused, [tag, text]):
            return
    pytest.fail(f"Tab does not come to {text}")


@both
def test_a_saved_notebook_that_nobody_trusts_shows_its_card_and_its_button(opened, app):
    """Reopened without a kernel: the card is drawn, the button says what to do, nothing of the notebook runs."""
    hostile = json.loads(SAVED.read_text())
    hostile["symptoms"][0]["title"] = '<img src=x onerror="window.broken = 1"><b>bold</b>'
    html = '<script>window.broken = 1</script><img src=x onerror="window.broken = 1">fall-back'
    saved = ("train()", [nb.error("RuntimeError", NCCL), nb.display({MIME: hostile, "text/html": html})])
    page = opened(
        app,
        nb.notebook(saved, (RAISES, [nb.error("RuntimeError", NCCL)]), ("1/0", [nb.error("ZeroDivisionError", "x")])),
    )
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    with_card, with_button, other = (nb.cell(page, i) for i in range(3))
    diagnose(with_button).wait_for()

    assert "<b>bold</b>" in card(with_card).inner_text()
    assert "fall-back" not in with_card.inner_text()
    assert [0, 1, 0] == [diagnose(each).count() for each in (with_card, with_button, other)]

    diagnose(with_button).click()
    playwright.expect(told(with_button)).to_have_text(
        "No kernel runs for this notebook: choose one in the menu Kernel, then try again."
    )
    nb.shoot(page, f"{app}-saved", with_button)

    assert page.evaluate("() => window.broken") is None
    assert [False] * 3 == page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets.map(w => w.model.trusted)"
    )


def test_a_saved_failure_is_diagnosed_by_a_fresh_kernel(opened):
    """The kernel has not seen it; the text of the notebook is enough, and `%dtdebug` goes on from it."""
    page = opened("lab", nb.notebook(LOAD, ("train()", [nb.error("RuntimeError", NCCL)])))
    nb.run(page, 0)
    failed = nb.cell(page, 1)
    diagnose(failed).click()
    card(failed).wait_for()

    assert 0 == failed.get_by_role("button", name=f"Insert {LOAD}").count()
    nb.answer(failed, "training steps").click()
    card(nb.cell(page, 2)).wait_for()
    assert "NCCL, Gloo or MPI chose between GPUs or hosts fails." in card(nb.cell(page, 2)).inner_text()


def test_a_kernel_without_dtdebug_is_offered_the_line_that_installs_it(opened):
    """The kernel may be another environment than JupyterLab's."""
    hide = (
        "import sys\nclass Hide:\n    def find_spec(name, *_):\n        if name == 'dtdebug':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\nsys.meta_path.insert(0, Hide)"
    )
    page = opened("lab", nb.notebook(hide, RAISES))
    nb.run(page, 0)
    failed = nb.run(page, 1)
    diagnose(failed).click()
    playwright.expect(told(failed)).to_have_text("The kernel has no dtdebug; this line installs it:")
    nb.shoot(page, "lab-not-installed", failed)
    failed.get_by_role("button", name=f"Insert {INSTALL} as a cell").click()

    assert [hide, RAISES, INSTALL] == nb.sources(page)


def test_a_busy_kernel_answers_when_it_has_time(opened):
    """And says so meanwhile; a kernel that is restarted instead is told of too."""
    wait = "import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(.05)"
    page = opened("lab", nb.notebook(RAISES, wait))
    failed = nb.run(page, 0)
    diagnose(failed).wait_for()
    page.evaluate(
        """() => {
            window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1;
            window.jupyterapp.commands.execute('notebook:run-cell');
        }"""
    )
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'"
    )
    diagnose(failed).click()
    playwright.expect(told(failed)).to_have_text("The kernel computes: the answer comes when that has ended.")
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    playwright.expect(told(failed)).to_contain_text("try again")
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.info")
    diagnose(failed).click()
    card(failed).wait_for()


@both
def test_other_errors_look_as_they_did(opened, app):
    """Not a pixel more: the output is what JupyterLab makes of it."""
    page = opened(app, nb.notebook("1/0"))
    failed = nb.run(page, 0)
    failed.locator(".jp-OutputArea-output").wait_for()

    assert "ZeroDivisionError: division by zero" in failed.inner_text()
    assert 0 == failed.locator(".dtd").count()
    heights = "e => [e.offsetHeight, e.querySelector('.jp-RenderedText').offsetHeight]"
    ours, theirs = failed.locator(".jp-OutputArea-output").first.evaluate(heights)
    assert theirs == ours


@both
def test_the_palette_diagnoses_the_last_failed_cell(opened, app):
    """Also one whose error has no button; where nothing failed it says so."""
    page = opened(app, nb.notebook("1/0", "pass"))
    execute = "command => window.jupyterapp.commands.execute(command)"
    page.evaluate(execute, "dtdebug:diagnose")
    page.get_by_text("no cell of this notebook shows an error").first.wait_for()
    failed = nb.run(page, 0)
    nb.run(page, 1)
    page.evaluate(execute, "dtdebug:diagnose")
    card(failed).wait_for()
    page.evaluate(execute, "dtdebug:insert-load-ext")

    assert ["1/0", LOAD, "pass"] == nb.sources(page)
    assert "dtdebug: Diagnose the last failed cell" == page.evaluate(
        "() => window.jupyterapp.commands.label('dtdebug:diagnose')"
    )


def test_what_a_reader_says_stays_in_jupyterlabs_state(servers, opened):
    """It is in the workspace file and nowhere else."""
    page = opened("lab", nb.notebook(("train()", [nb.display({MIME: json.loads(SAVED.read_text())})])))
    nb.cell(page, 0).get_by_role("button", name="This was it").first.click()
    nb.cell(page, 0).get_by_text("Thank you.").wait_for()
    kept = feedback(servers("lab").home / "workspaces")

    assert json.loads(SAVED.read_text())["advice"][0]["cause"] == kept[-1]["cause"]
    assert kept[-1]["helped"]


def feedback(workspaces):
    """What is kept; JupyterLab writes it a moment later."""
    deadline = time.monotonic() + nb.SECONDS
    while time.monotonic() < deadline:
        for file in workspaces.glob("*.jupyterlab-workspace"):
            if '"dtdebug:feedback"' in (text := file.read_text()):
                return json.loads(text)["data"]["dtdebug:feedback"]
        time.sleep(0.1)
    pytest.fail("nothing was kept")


def test_switched_off_all_looks_as_without_the_extension(opened):
    """The setting shows the static HTML, and no button."""
    data = {MIME: json.loads(SAVED.read_text()), "text/html": "<p>static</p>"}
    text = nb.notebook(("train()", [nb.display(data)]), (RAISES, [nb.error("RuntimeError", NCCL)]))
    page = opened("lab", text, enabled=False)
    nb.cell(page, 0).get_by_text("static").wait_for()

    assert 0 == page.locator(".jp-Notebook .dtd").count()


@pytest.mark.parametrize("name", ["Light", "Dark", "Dark High Contrast"])
def test_the_card_can_be_read_in_every_theme(opened, name):
    """All text stands out from what is behind it as WCAG 2 AA asks for."""
    saved = [nb.error("RuntimeError", NCCL)]
    shown = [("train()", [nb.display({MIME: json.loads(each.read_text())})]) for each in (SAVED, SHORT)]
    page = opened("lab", nb.notebook(*shown, (RAISES, saved)))
    nb.theme(page, f"JupyterLab {name}")
    diagnose(nb.cell(page, 2)).wait_for()
    for number in (0, 1):
        nb.shoot(page, f"lab-theme-{name.lower().replace(' ', '-')}-{number}", card(nb.cell(page, number)))
    card(nb.cell(page, 1)).get_by_role("button", name="Why?").click()

    assert [] == page.evaluate(CONTRAST)


@both
def test_nothing_is_cut_off_in_a_narrow_window(opened, app):
    """400 pixels, with a change that is longer than a line."""
    cards = [("train()", [nb.display({MIME: json.loads(each.read_text())})]) for each in (SAVED, SHORT)]
    page = opened(app, nb.notebook(*cards, (RAISES, [nb.error("RuntimeError", NCCL)])), width=400)
    if app == "lab":
        page.evaluate("() => { const s = window.jupyterapp.shell; s.collapseLeft(); s.collapseRight(); }")
    shown = nb.cell(page, 0)
    card(shown).wait_for()
    nb.shoot(page, f"{app}-narrow", card(shown))
    nb.shoot(page, f"{app}-narrow-short", card(nb.cell(page, 1)))
    wide = """() => [...document.querySelectorAll('.dtd, .dtd *')]
        .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth && getComputedStyle(e).overflowX !== 'auto')
        .map(e => e.className)"""

    assert [] == page.evaluate(wide)
    diagnose(nb.cell(page, 2)).click()
    card(nb.cell(page, 2)).wait_for()
    assert [] == page.evaluate(wide)


CONTRAST = """() => {
    const parse = c => { const n = c.match(/[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
    const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
    const behind = e => {
        if (!e) return [255, 255, 255, 1];
        const own = parse(getComputedStyle(e).backgroundColor);
        return own[3] === 1 ? own : over(own, behind(e.parentElement));
    };
    const light = c => c.slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
    const found = [];
    for (const e of document.querySelectorAll('.dtd *')) {
        const text = [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim()).join('');
        if (!text || e.tagName === 'STYLE' || !e.checkVisibility()) continue;
        const back = behind(e), front = over(parse(getComputedStyle(e).color), back);
        const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
        if ((a + .05) / (b + .05) < 4.5) found.push([e.className, text.slice(0, 40), (a + .05) / (b + .05)]);
    }
    return found;
}"""

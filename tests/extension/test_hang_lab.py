"""What a user of JupyterLab sees and can do while the ranks of a cell hang: a real JupyterLab, real gloo ranks."""

import json
import re
from importlib.util import find_spec

import notebooks as nb
import pytest
from places import ROOT

from dtdebug.presentation.diagnosis_card import MIME

playwright = pytest.importorskip("playwright.sync_api")
MISSING = nb.what_is_missing() or (None if find_spec("torch") else "torch is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.ranks,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]

LOAD = "%load_ext dtdebug"
TRAIN = """
import datetime, time, torch
import torch.distributed as dist, torch.multiprocessing as mp
def train(rank, size, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=90))
    x = torch.ones(4)
    dist.all_reduce(x)
    print(f"begun {rank}", flush=True)
    if rank == 1 and not torch.os.path.exists(store + "-fixed"):
        time.sleep(90)
    dist.all_reduce(x)  # rank 1 is elsewhere
""".strip()
CULPRIT = 10
"""The line of it in which rank 1 stays."""
HANGS = """
kept = globals().get('kept', 40) + 1
mp.start_processes(train, args=({size}, {store!r}), nprocs={size}, start_method='fork')
""".strip()
LEAVES = """
for number in "01":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(90)"], start_new_session=True,
                     env={**os.environ, "RANK": number, "WORLD_SIZE": "2"})
""".strip()
HOLDS_GIL = "import ctypes, time\ntime.sleep(.5)\nctypes.PyDLL(None).sleep(25)"
NOTES = """() => {
    window.asked = [];
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    kernel.anyMessage.connect((_, { msg, direction }) => {
        if (direction === 'send' && msg.header.msg_type === 'dtdebug_request') window.asked.push(msg.content.kind);
    });
}"""
"""Keeps in the window what the kernel is asked."""
SENT = """() => [...window.asked, ...performance.getEntriesByType('resource')
    .map(each => new URL(each.name).pathname).filter(path => path.startsWith('/dtdebug/'))]"""


SAVE = "() => window.jupyterapp.shell.currentWidget.context.save()"
SAMPLE = ROOT / "extension" / "shared" / "test" / "samples" / "settled.json"
RUN_ELSEWHERE = """outputs => {
    const { model } = window.jupyterapp.shell.currentWidget.content.widgets[0];
    model.executionState = 'running';
    outputs.forEach(each => model.outputs.add(each));
    model.executionCount = 7;
}"""
"""What reaches a page when another page of the same document runs a cell."""


@pytest.fixture(scope="module")
def servers(servers):
    """Those that look at a cell after three silent seconds."""
    return lambda app="lab", **settings: servers(app, **{"hangAfter": 3, **settings})


@pytest.fixture
def opened(opened):
    """Opens a notebook of these cells, or again that of this test, in a window of its own."""
    return lambda *cells, app="lab", **settings: opened(
        app, nb.notebook(*cells) if cells else None, width=1400, **settings
    )


@pytest.fixture
def hanging(opened, tmp_path):
    """A window in which a cell of so many ranks hangs, or one that is holding the GIL."""

    def hang(size=2, cell=None, *after, **settings):
        source = cell or HANGS.format(size=size, store=str(tmp_path / "store"))
        page = opened(LOAD, TRAIN, source, *after, **settings)
        nb.run(page, 0)
        nb.run(page, 1)
        page.evaluate(NOTES)
        nb.start(page, 2)
        if not cell:
            for rank in range(size):
                nb.cell(page, 2).get_by_text(f"begun {rank}").wait_for()
        return page

    return hang


def item(page):
    return page.locator(".dtdebug-hangs button")


def panel(page):
    return page.locator("#dtdebug-panel")


def press(page, name):
    panel(page).get_by_role("button", name=name).click()


def sent(page):
    """What the kernel and the server have been asked in this window."""
    return page.evaluate(SENT)


def changes(page, selector, act=lambda: None):
    """Waits until an element says something else, by itself or because of what is done."""
    before = page.locator(selector).inner_text()
    act()
    said = "([selector, before]) => document.querySelector(selector).innerText !== before"
    page.wait_for_function(said, arg=[selector, before])


def is_running(page, index):
    return "[*]" in nb.cell(page, index).inner_text()


def test_a_hang_is_told_and_its_ranks_are_ended_while_the_kernel_keeps_its_variables(hanging, servers, tmp_path):
    """From the item in the status bar to the culprit's line, a file, the end of the ranks alone, and a better run."""
    page = hanging(2, None, "print(kept + 1)")
    item(page).wait_for()
    nb.shoot(page, "hang-item")

    counts = re.compile(r"^rank 0 waits \d+ s in all_?reduce( #\d+)?( for rank 1)?$")
    item(page).filter(has_text=counts).wait_for()  # a kernel that answers late is first seen from outside: no times
    changes(page, ".dtdebug-hangs button")
    assert counts.match(item(page).inner_text())
    assert "rank 1" in item(page).get_attribute("title").lower()

    item(page).click()
    verdict = panel(page).get_by_role("region", name="Verdict")
    verdict.wait_for()
    nb.shoot(page, "hang-panel")
    assert f"cell In[2], line {CULPRIT}" in verdict.inner_text()
    assert is_running(page, 2)

    for place, index in ((f"cell In[2], line {CULPRIT}", 1), ("cell In[3], line 2", 2)):
        verdict.get_by_role("button", name=place).click()
        page.wait_for_function(
            "index => window.jupyterapp.shell.currentWidget.content.activeCellIndex === index", arg=index
        )

    press(page, "Dump all")
    panel(page).get_by_text("Saved as dtdebug-report-").wait_for()
    (report,) = servers().work.glob("dtdebug-report-*.md")
    assert f"cell In[2], line {CULPRIT}" in report.read_text()

    press(page, "Interrupt")
    dialog = page.get_by_role("dialog")
    assert "a collective that waits in C goes on waiting" in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").click()
    dialog.wait_for(state="detached")
    assert is_running(page, 2)

    press(page, "End the ranks only")
    nb.shoot(page, "hang-end")
    assert "rank 0 (pid" in dialog.inner_text()
    assert "rank 1 (pid" in dialog.inner_text()
    dialog.get_by_role("button", name="End the ranks").click()
    panel(page).get_by_role("button", name="Run the cell again").wait_for()
    nb.shoot(page, "hang-ended")

    item(page).wait_for(state="hidden")
    assert not is_running(page, 2)
    (tmp_path / "store").unlink(missing_ok=True)
    (tmp_path / "store-fixed").touch()
    press(page, "Run the cell again")
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.content.widgets[2].model.executionCount === 4")
    assert "Error" not in nb.cell(page, 2).inner_text()
    assert 0 == panel(page).get_by_role("button", name="Run the cell again").count()
    assert "43" in nb.run(page, 3).locator(".jp-OutputArea-output").inner_text()


def test_a_page_that_has_not_started_the_cell_is_told_too(opened, tmp_path):
    """In both the panel opens by itself, once, and leaves the keyboard where it is; one of them is dark."""
    page = opened(LOAD, TRAIN, HANGS.format(size=2, store=str(tmp_path / "store")), panel="hang")
    nb.run(page, 0)
    nb.run(page, 1)
    page.evaluate(SAVE)
    other = opened(panel="hang")
    nb.theme(other, "JupyterLab Dark")
    nb.start(page, 2)
    for each in (page, other):
        panel(each).get_by_role("region", name="Verdict").wait_for()
        assert not panel(each).evaluate("e => e.contains(document.activeElement)")
    page.evaluate("() => window.jupyterapp.shell.collapseRight()")
    nb.shoot(other, "hang-dark")

    assert item(page).inner_text().split(" s in ")[1] == item(other).inner_text().split(" s in ")[1]
    panel(other).get_by_role("button", name=f"cell In[2], line {CULPRIT}").first.click()
    other.wait_for_function("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex === 1")

    press(other, "End the ranks only")
    nb.shoot(other, "hang-dark-end")
    other.get_by_role("dialog").get_by_role("button", name="End the ranks").click()
    for each in (page, other):
        item(each).wait_for(state="hidden")
    panel(other).get_by_text("Ended processes").wait_for()
    assert not panel(page).is_visible()
    assert 0 == panel(other).get_by_role("button", name="Run the cell again").count()  # its document does not say which


def test_a_cell_that_another_page_of_the_document_has_run_counts(opened):
    """Where people edit one document together: the wizard begins with it, and the history has it."""
    page = opened("train()")
    page.evaluate("() => window.jupyterapp.commands.execute('dtdebug:open-panel')")
    panel(page).get_by_text("No diagnosis yet.").wait_for()
    failed = [nb.error("RuntimeError", "NCCL error"), nb.display({MIME: json.loads(SAMPLE.read_text())})]
    page.evaluate(RUN_ELSEWHERE, failed)
    panel(page).get_by_role("button", name="Guide me from cell [7]").wait_for()
    playwright.expect(panel(page).locator(".dtdp-entry")).to_have_count(1)
    assert "[7]" in panel(page).locator(".dtdp-entry").inner_text()


def test_eight_ranks_a_quiet_user_and_a_page_that_is_loaded_again(hanging):
    """Keep waiting hides the item; a page loaded while the cell runs finds the hang by the server's glance."""
    page = hanging(8)
    item(page).click()
    panel(page).get_by_text("8 ranks: 1 culprit, 7 wait").wait_for()
    nb.shoot(page, "hang-eight")
    assert "rank 1 · culprit" in panel(page).inner_text()

    press(page, "Keep waiting")
    item(page).wait_for(state="hidden")

    page.reload()
    item(page).wait_for()
    item(page).click()
    panel(page).get_by_role("region", name="Verdict").wait_for()
    nb.shoot(page, "hang-reloaded")
    assert "rank 1" in panel(page).get_by_role("region", name="Verdict").inner_text().lower()
    panel(page).get_by_role("button", name="End the ranks only").wait_for()


def test_a_kernel_that_holds_the_interpreter_lock_is_seen_by_the_server(hanging, tmp_path):
    """It can't answer itself; its server would end its ranks too, where their processes are known."""
    store = str(tmp_path / "store")
    ranks = f"mp.start_processes(train, args=(2, {store!r}), nprocs=2, start_method='fork', join=False)"
    page = hanging(2, f"p = {ranks}\nwhile not torch.os.path.exists({store!r}): pass\n{HOLDS_GIL}")
    item(page).click()
    panel(page).get_by_text("does not answer").first.wait_for()
    nb.shoot(page, "hang-gil")

    assert "GIL" in panel(page).inner_text()
    assert is_running(page, 2)
    assert any("/look" in each for each in sent(page))


def test_a_cell_that_only_takes_long_is_no_hang(opened):
    """Nothing is shown, the kernel is not asked, and when the cell has ended or nobody looks, nobody is asked."""
    page = opened(LOAD, "import time; time.sleep(8)")
    nb.run(page, 0)
    page.evaluate(NOTES)
    nb.start(page, 1)
    page.wait_for_function(f"() => ({SENT})().length > 0")
    page.evaluate("() => Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    asked = sent(page)
    assert all("/look" in each for each in asked)
    assert 0 == item(page).locator("visible=true").count()

    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.content.widgets[1].model.executionCount === 2")
    page.evaluate("() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); }")
    page.wait_for_timeout(4_000)
    assert asked == sent(page)


def test_the_wizard_in_a_subshell_answers_while_the_cell_runs(opened):
    """Its widgets are made there; closing it deletes the subshell."""
    pytest.importorskip("ipywidgets")
    page = opened(LOAD, "import time; time.sleep(40)")
    nb.run(page, 0)
    nb.start(page, 1)
    page.evaluate("() => window.jupyterapp.commands.execute('dtdebug:wizard-beside')")
    wizard = panel(page).locator(".dtdebug-beside")
    wizard.locator(".jupyter-widgets button").first.wait_for()
    nb.shoot(page, "hang-beside")
    changes(page, ".dtdebug-beside", wizard.locator(".jupyter-widgets button:enabled").first.click)
    nb.shoot(page, "hang-beside-answered")
    assert is_running(page, 1)

    wizard.get_by_role("button", name="Close").click()
    shells = """async () => {
        const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
        const future = kernel.requestListSubshell({});
        return (await future.done).content.subshell_id;
    }"""
    page.wait_for_function(f"async () => (await ({shells})()).length < 2")


def test_notebook_7_without_the_servers_part_asks_the_kernel_and_tells_it_in_a_notification(hanging):
    """It has no status bar; the control channel alone is enough, and is asked more and more seldom."""
    page = hanging(2, app="notebook", server=False)
    page.get_by_text("rank 0 waits").first.wait_for()
    nb.shoot(page, "hang-notebook")
    page.get_by_role("button", name="Show", exact=True).click()
    verdict = panel(page).get_by_role("region", name="Verdict")
    verdict.wait_for()
    nb.shoot(page, "hang-notebook-panel")

    assert f"cell In[2], line {CULPRIT}" in verdict.inner_text()
    assert 1 == sum("/look" in each for each in sent(page))
    assert "hang" in sent(page)


def test_ranks_that_an_interrupted_cell_has_left_are_ended_from_any_notebook_after_a_reload(opened):
    """Nobody runs a cell any more, the page is a new one: the panel says who still runs, and ends them."""
    page = opened(LOAD, f"import os, subprocess, sys\n{LEAVES}")
    nb.run(page, 0)
    nb.run(page, 1)
    page.reload()
    page.wait_for_function("() => window.jupyterapp")
    page.evaluate(nb._READY, False)
    page.keyboard.press("Alt+Shift+D")
    row = page.get_by_role("group", name="Ranks of earlier cells").locator(".dtdp-row")
    row.wait_for()
    nb.shoot(page, "hang-left-behind")
    told = row.inner_text()
    page.keyboard.press("Alt+Shift+D")
    page.wait_for_function("() => document.querySelector('#dtdebug-panel').contains(document.activeElement)")
    row.get_by_role("button").click()
    page.get_by_role("button", name="End the ranks", exact=True).click()
    page.get_by_text("Ended processes").wait_for()
    row.wait_for(state="detached")

    assert "Ranks 0-1 of cell [2] are still running and hold " in told

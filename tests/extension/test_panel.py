"""The panel beside the notebook in a real JupyterLab and a real Notebook 7: the wizard, the history, the settings."""

import json
from urllib.parse import urlsplit

import notebooks as nb
import pytest
from places import ROOT

from dtdebug.presentation.diagnosis_card import MIME

playwright = pytest.importorskip("playwright.sync_api")
MISSING = nb.what_is_missing()
pytestmark = [pytest.mark.browser, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]

SHARED = ROOT / "extension" / "shared"
SAMPLE = json.loads((SHARED / "test" / "samples" / "settled.json").read_text())
AXE = SHARED / "node_modules" / "axe-core" / "axe.min.js"
NCCL = "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error, NCCL version 2.19.3"
RAISES = f'raise RuntimeError("{NCCL}")'
LOAD = "%load_ext dtdebug"
FAILED = (RAISES, [nb.error("RuntimeError", NCCL)])
RANKS = """
import torch
import torch.distributed as dist

def train(rank, width):
    dist.init_process_group("gloo", init_method="file://{store}" + str(width), rank=rank, world_size=2)
    if rank == 1:
        torch.ones(2, 3) @ torch.ones(width, 3)
    dist.barrier()
"""
SPAWN = "import ranks, torch.multiprocessing as mp\nmp.spawn(ranks.train, args=(2,), nprocs=2)"
FIXED = "mp.spawn(ranks.train, args=(3,), nprocs=2)"
OLD = """
def old(stream, ident, parent):
    session = get_ipython().kernel.session
    content = {"status": "error", "ename": "ValueError", "evalue": "kind is one of ('state', 'hang')"}
    session.send(stream, "dtdebug_reply", content, parent, ident=ident)
get_ipython().kernel.control_handlers["dtdebug_request"] = old
"""
"""What the control channel of release 0.0.1 answers to a request of a newer front end."""
HIDE = "import sys; sys.path[:] = [p for p in sys.path if 'dtdebug' not in p and not p.endswith('/kernel')]"
NOT_OURS = ("reading 'observe'",)
"""What JupyterLab throws at a reload without any extension."""
EXECUTE = "command => window.jupyterapp.commands.execute(command)"
RESTART = "() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()"
SHUT_DOWN = "() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()"
SAVE = "() => window.jupyterapp.shell.currentWidget.context.save()"
WIDE = """() => [...document.querySelectorAll('#dtdebug-panel, #dtdebug-panel *')]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth && !e.matches('.dtd-diff, .dtd-diff *, textarea')
        && getComputedStyle(e).overflowX !== 'auto' && getComputedStyle(e).display !== 'inline')
    .map(e => `${e.tagName}.${e.className}`)"""


both = pytest.mark.parametrize("app", ["lab", "notebook"])


def panel(page):
    return page.locator("#dtdebug-panel")


def wizard(page):
    return page.locator("#dtdebug-panel .dtdp-wizard")


def open_panel(page):
    page.evaluate(EXECUTE, "dtdebug:open-panel")
    wizard(page).wait_for()


def question(page):
    """The question that the wizard asks now; empty at its end."""
    wizard(page).locator(":not([inert]) > .dtd-ask, .dtdp-end:not([inert])").first.wait_for()
    ask = wizard(page).locator(".dtd-ask")
    return ask.inner_text() if ask.count() else ""


def step(page, button):
    """Presses a button of the question and gives the next one."""
    before = question(page)
    button.click()
    page.wait_for_function(
        "before => { const e = document.querySelector('.dtdp-wizard .dtd-ask'); return e?.innerText !== before"
        " && (e || document.querySelector('.dtdp-wizard .dtdp-end')); }",
        arg=before,
    )
    return question(page)


def to_the_end(page):
    """Answers what is asked until nothing is."""
    for _ in range(40):
        if not question(page):
            return
        step(page, wizard(page).get_by_role("button", name="Don't know"))
    pytest.fail("the wizard asks without end")


def reload(page):
    page.reload()
    page.wait_for_function("() => window.jupyterapp")
    page.evaluate(nb._READY, False)


def serious(page):
    """What axe-core finds in the panel that hinders people."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("() => axe.run('#dtdebug-panel', {resultTypes: ['violations']})")["violations"]
    return [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")]


@pytest.mark.ranks
@both
def test_from_two_failed_ranks_to_a_green_run(servers, opened, app, tmp_path):
    """Button, card, wizard to the end; that the mended cell runs without an error is told of."""
    pytest.importorskip("torch")
    (servers(app).work / "ranks.py").write_text(RANKS.format(store=tmp_path / "store"))
    page = opened(app, nb.notebook(SPAWN))
    failed = nb.run(page, 0)
    failed.get_by_role("button", name="Diagnose").click()
    failed.get_by_role("button", name="Guide me").click()
    first = question(page)

    assert first
    assert "Cell [1]" in wizard(page).inner_text()
    nb.shoot(page, f"panel-{app}-first")

    second = step(page, nb.answer(wizard(page), "installing or compiling"))
    third = step(page, wizard(page).get_by_role("button", name="Don't know"))
    assert len({first, second, third}) == 3
    assert second == step(page, wizard(page).get_by_role("button", name="Back"))

    wizard(page).get_by_label("What else do you see?").fill("it fails at the first step on rank 1")
    wizard(page).get_by_role("button", name="Send").click()
    wizard(page).get_by_text("You said (2)").click()
    assert "it fails at the first step on rank 1" in wizard(page).inner_text()
    nb.shoot(page, f"panel-{app}-steps")

    to_the_end(page)
    nb.shoot(page, f"panel-{app}-end")
    assert "Insert the code" not in wizard(page).inner_text(), "code of another program is no fix of this one"

    page.evaluate(
        "source => window.jupyterapp.shell.currentWidget.content.widgets[0].model.sharedModel.setSource(source)", FIXED
    )
    nb.run(page, 0)
    wizard(page).get_by_text("has run without an error since").wait_for()
    nb.shoot(page, f"panel-{app}-green")


@both
def test_it_goes_on_after_a_reload_of_the_page_and_a_restart_of_the_kernel(opened, app):
    """What was answered is kept by the front end; `%dtdebug` knows it too while its kernel lives."""
    page = opened(app, nb.notebook(LOAD, RAISES, "%dtdebug"))
    nb.run(page, 0)
    nb.run(page, 1)
    page.evaluate(SAVE)
    open_panel(page)
    wizard(page).get_by_role("button", name="Guide me from cell [2]").click()
    second = step(page, nb.answer(wizard(page), "training steps"))
    page.wait_for_timeout(1_000)  # JupyterLab writes its state a moment later
    reload(page)
    open_panel(page)
    assert second == question(page)
    wizard(page).get_by_text("You said (1)").wait_for()

    page.evaluate(RESTART)
    third = step(page, wizard(page).locator(".dtd-choices button").first)
    assert third != second  # from the text alone, for the kernel has forgotten the failure
    wizard(page).get_by_text("You said (2)").wait_for()
    wizard(page).get_by_role("button", name="Start over").click()
    wizard(page).get_by_role("button", name="Guide me from cell [2]").wait_for()


def test_an_answer_beside_a_running_cell_is_known_to_the_magic(servers, opened):
    """One session, asked in two places; also while a cell runs."""
    busy = "import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(.05)"
    page = opened("lab", nb.notebook(LOAD, RAISES, busy, "%dtdebug"))
    for index in (0, 1):
        nb.run(page, index)
    open_panel(page)
    wizard(page).get_by_role("button", name="Guide me from cell [2]").click()
    question(page)
    page.evaluate(
        """() => {
            window.jupyterapp.shell.currentWidget.content.activeCellIndex = 2;
            window.jupyterapp.commands.execute('notebook:run-cell');
        }"""
    )
    nb.cell(page, 2).get_by_text("[*]:").wait_for()
    step(page, nb.answer(wizard(page), "training steps"))
    assert "[*]:" in nb.cell(page, 2).inner_text()
    (servers("lab").work / "go").touch()
    shown = nb.run(page, 3)
    shown.get_by_text("training").first.wait_for()


def test_the_history_of_a_notebook(opened):
    """From its outputs as they come and from the wizard, newest first; it shows, goes with its name, and is cleared."""
    page = opened("lab", nb.notebook(LOAD, RAISES))
    nb.run(page, 0)
    nb.run(page, 1)
    open_panel(page)
    entries = panel(page).locator(".dtdp-entry")
    playwright.expect(entries).to_have_count(1)
    nb.run(page, 1)
    playwright.expect(entries).to_have_count(2)
    assert "[3]" in entries.first.inner_text()
    entries.last.locator("summary").first.click()
    entries.last.locator(".dtd-card").wait_for()
    nb.shoot(page, "panel-history", entries.last)

    page.evaluate("() => window.jupyterapp.shell.currentWidget.context.rename('renamed.ipynb')")
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.context.path === 'renamed.ipynb'")
    open_panel(page)
    page.wait_for_timeout(300)
    playwright.expect(entries).to_have_count(2)
    page.wait_for_timeout(1_000)
    reload(page)
    open_panel(page)
    playwright.expect(entries).to_have_count(2)
    panel(page).get_by_role("button", name="Clear the history of this notebook").click()
    panel(page).get_by_text("No diagnosis yet.").wait_for()


@pytest.mark.parametrize("kept", ["broken", '{"v": {"kept": [{"id": 3}]}}'])
def test_a_corrupted_memory_is_one_line(servers, opened, kept):
    """The panel begins anew and works."""
    page = opened("notebook", nb.notebook(FAILED))
    base = urlsplit(servers("notebook").url).path
    path = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    for part in ("history", "wizard"):
        key = f"dtdebug-{part}:{path}"
        page.evaluate(
            "([key, base, value]) => localStorage.setItem(`dtdebug@${location.origin}${base}:${key}`, value)",
            [key, base, kept],
        )
    open_panel(page)
    panel(page).get_by_text("The history of this notebook can't be read").wait_for()
    reload(page)
    open_panel(page)
    wizard(page).get_by_text("the wizard starts anew").wait_for()
    wizard(page).get_by_role("button", name="Guide me from cell [1]").click()
    assert question(page)


def test_a_saved_notebook_that_nobody_trusts(opened):
    """Without a kernel the server answers; dark, narrow and by axe-core too."""
    hostile = json.loads(json.dumps(SAMPLE))
    hostile["symptoms"][0]["title"] = '<img src=x onerror="window.broken = 1"><b>bold</b>'
    saved = ("train()", [nb.error("RuntimeError", NCCL), nb.display({MIME: hostile})])
    page = opened("lab", nb.notebook(saved))
    page.evaluate(SHUT_DOWN)
    open_panel(page)
    assert [] == serious(page)
    nb.shoot(page, "panel-start")
    nb.cell(page, 0).get_by_role("button", name="Guide me").click()
    question(page)
    assert [] == serious(page)
    nb.theme(page, "JupyterLab Dark")
    assert [] == serious(page)
    nb.shoot(page, "panel-dark")
    to_the_end(page)
    assert [] == serious(page)
    nb.shoot(page, "panel-dark-end")
    page.set_viewport_size({"width": 560, "height": 900})
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    page.wait_for_timeout(300)
    assert [] == page.evaluate(WIDE)
    nb.shoot(page, "panel-narrow")
    nb.theme(page, "JupyterLab Light")
    assert page.evaluate("() => window.broken") is None


@both
def test_the_keyboard_alone_is_enough(opened, app):
    """The shortcut opens the panel; Tab and Enter go through the wizard, the focus stays with the question."""
    page = opened(app, nb.notebook(FAILED))
    page.keyboard.press("Alt+Shift+D")
    wizard(page).wait_for()
    press_until(page, "Guide me from cell [1]")
    page.keyboard.press("Enter")
    first = question(page)
    playwright.expect(wizard(page).locator(".dtd-choices button").first).to_be_focused()
    press_until(page, "Other answers")
    page.keyboard.press("Enter")
    press_until(page, "installing or compiling a package")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "before => ![before, undefined].includes(document.querySelector('.dtdp-wizard .dtd-ask')?.innerText)", arg=first
    )
    playwright.expect(wizard(page).locator(".dtd-choices button").first).to_be_focused()
    press_until(page, "Back")
    page.keyboard.press("Enter")
    playwright.expect(wizard(page).locator(".dtd-ask")).to_have_text(first)
    assert [RAISES] == nb.sources(page)


def press_until(page, text):
    """Presses Tab until a button has the focus."""
    for _ in range(80):
        if page.evaluate("text => document.activeElement?.innerText === text", text):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab does not come to {text}")


@pytest.mark.parametrize(
    ("before", "says"),
    [(HIDE, "has not loaded dtdebug"), (OLD, "too old"), ("", "has not loaded dtdebug")],
    ids=["no-dtdebug", "old-dtdebug", "not-loaded"],
)
def test_a_kernel_that_can_not_answer(opened, before, says):
    """The server goes by the text; a line says what would help, and puts it into a cell."""
    page = opened("lab", nb.notebook(before, FAILED))
    nb.run(page, 0)
    open_panel(page)
    wizard(page).get_by_role("button", name="Guide me").click()
    assert question(page)
    playwright.expect(wizard(page).locator(".dtdp-told")).to_contain_text(says)
    wizard(page).locator(".dtdp-told").get_by_role("button", name="Insert").click()
    assert 3 == len(nb.sources(page))


def test_without_the_server_s_part_an_idle_kernel_answers(opened):
    """As the button "Diagnose" asks it."""
    page = opened("lab", nb.notebook(FAILED), server=False)
    open_panel(page)
    wizard(page).get_by_role("button", name="Guide me").click()
    first = question(page)
    assert first != step(page, nb.answer(wizard(page), "installing or compiling"))
    page.evaluate(SHUT_DOWN)
    wizard(page).get_by_role("button", name="Don't know").click()
    playwright.expect(wizard(page).locator(".dtdp-told")).to_contain_text("kernel")
    nb.shoot(page, "panel-no-kernel")


def test_two_browsers_on_one_kernel(servers, opened):
    """Each goes its own way."""
    page = opened("lab", nb.notebook(LOAD, RAISES))
    nb.run(page, 0)
    nb.run(page, 1)
    page.evaluate(SAVE)
    saved = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    other = opened("lab", (servers("lab").work / saved).read_text())
    for each in (page, other):
        open_panel(each)
        wizard(each).get_by_role("button", name="Guide me").click()
    first = [question(each) for each in (page, other)]
    second = step(page, nb.answer(wizard(page), "training steps"))
    assert first[0] == first[1] != second
    step(other, wizard(other).get_by_role("button", name="Don't know"))
    assert second == question(page)


def test_nothing_is_asked_while_nobody_looks(opened):
    """A hidden panel sends nothing and holds no timer; a folded part neither."""
    page = opened("lab", nb.notebook(LOAD, RAISES))
    sent = []
    nb.run(page, 0)
    open_panel(page)
    wizard(page).get_by_text("What do you see?").wait_for()
    page.evaluate("() => window.jupyterapp.shell.collapseRight()")
    page.on("request", lambda request: "/dtdebug/" in request.url and sent.append(request.url))
    nb.run(page, 1)
    page.wait_for_timeout(1_500)
    assert [] == sent
    assert not panel(page).is_visible()


def test_the_launcher_opens_a_wizard_that_needs_no_notebook(opened):
    """A pasted log, or words; the server answers."""
    page = opened("lab", nb.notebook(""))
    page.evaluate(EXECUTE, "launcher:create")
    page.get_by_role("button", name="Why did my distributed run fail?").click()
    why = page.locator(".dtdp-why")
    why.get_by_label("What do you see?").fill(f"[rank1]: RuntimeError: {NCCL}")
    nb.shoot(page, "panel-why")
    why.get_by_role("button", name="Ask").click()
    why.locator(".dtd-ask").wait_for()
    assert "NCCL made a call of the operating system" in why.inner_text()
    nb.shoot(page, "panel-why-asked")


def test_lessons_and_labs_are_opened_from_launcher_palette_and_help(opened):
    """A lesson is copied once and opened; a second time the copy itself is opened."""
    page = opened("lab", nb.notebook(""))
    page.get_by_role("menuitem", name="Help").click()
    assert page.get_by_role("menuitem", name="Learn to debug distributed training").is_visible()
    page.keyboard.press("Escape")
    page.evaluate(EXECUTE, "launcher:create")
    page.locator(".jp-LauncherCard", has_text="Learn to debug").click()
    lessons = page.locator("#dtdebug-lessons")
    lessons.get_by_role("button", name="Open: Your first failure").wait_for()
    nb.shoot(page, "panel-lessons")
    counted = [lessons.locator("section").nth(n).locator("li").count() for n in range(2)]
    lessons.get_by_role("button", name="Open: Your first failure").click()
    page.locator(".jp-NotebookPanel:visible").wait_for()

    assert counted[0] == 5
    assert counted[1] > 20
    assert page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path") == (
        "dtdebug-learn/01_first_failure.ipynb"
    )


def test_the_panel_opens_by_itself_where_its_user_wants_it(opened):
    """Left, and when a cell fails for a cause that dtdebug knows; the keyboard stays in the notebook."""
    page = opened("lab", nb.notebook(LOAD, RAISES, "1/0"), side="left", panel="failure")
    nb.run(page, 0)
    nb.run(page, 2)
    assert not panel(page).is_visible()
    nb.run(page, 1)
    wizard(page).wait_for()
    assert page.locator("#jp-left-stack #dtdebug-panel").count()
    assert not panel(page).evaluate("e => e.contains(document.activeElement)")


LIVE = """() => {
    const find = (widget, out) => {
        const ours = widget.node.querySelector(':scope > .lm-Widget > .dtd');
        if (ours && widget.renderModel) out.push(widget);
        for (const child of widget.children()) find(child, out);
        return out;
    };
    return find(window.jupyterapp.shell.currentWidget.content, []);
}"""
MARK = """() => {
    const buttons = window.jupyterapp.shell.currentWidget.node.querySelectorAll('.dtd button');
    window.marks = [...buttons].map(button => new WeakRef(button.mark = {}));
    return window.marks.length;
}"""


WITHIN = """(doing) => Promise.race([
    doing(), new Promise((_, reject) => setTimeout(() => reject(new Error('it takes more than a minute')), 60_000)),
])"""


def test_nothing_of_ours_stays_when_a_notebook_closes(opened):
    """Counted in the browser's heap: each of our outputs, and each button in them, goes with its notebook."""
    page = opened("lab", nb.notebook(FAILED, ("train()", [nb.display({MIME: SAMPLE})])), kernel=False)
    open_panel(page)
    shown = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    shown.get_by_role("button", name="Diagnose").wait_for()
    shown.locator(".dtd-card").wait_for()
    heap = page.context.new_cdp_session(page)
    failed, card = (prototype(heap, evaluate(heap, f"({LIVE})()[{i}]")) for i in range(2))
    path = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    for number in range(3):
        page.evaluate(
            f"([path, name]) => ({WITHIN})"
            """(async () => {
                const app = window.jupyterapp, contents = app.serviceManager.contents;
                await contents.save(name, await contents.get(path));
                const kernel = app.shell.currentWidget.sessionContext.session?.kernel?.model;
                const opened = await app.commands.execute('docmanager:open', {path: name, kernel});
                await opened.context.ready;
                await opened.revealed;
                app.shell.activateById(opened.id);
            })""",
            [path, f"other-{number}.ipynb"],
        )
        shown.get_by_role("button", name="Diagnose").wait_for()
        shown.locator(".dtd-card").wait_for()
        assert (2, 2) == (count(heap, failed), count(heap, card))
        assert page.evaluate(MARK) > 1
        page.evaluate(
            f"() => ({WITHIN})"
            """(async () => {
                const widget = window.jupyterapp.shell.currentWidget;
                await Promise.race([widget.sessionContext.ready, new Promise(resolve => setTimeout(resolve, 5_000))]);
                const ended = new Promise(resolve => widget.disposed.connect(resolve));
                widget.context.model.dirty = false; // else a dialog asks: a kernel writes its language
                widget.close();
                const asked = setInterval(() => document.querySelector('.jp-Dialog .jp-mod-warn')?.click(), 500);
                await ended;
                clearInterval(asked);
            })"""
        )
        assert (1, 1) == (count(heap, failed), count(heap, card))
        assert 0 == marked(heap, page)


def marked(heap, page):
    """How many of the marked buttons live; what is collected in one round may have held on to more."""
    for _ in range(10):
        heap.send("HeapProfiler.collectGarbage")
        left = page.evaluate("() => window.marks.filter(mark => mark.deref()).length")
        if not left:
            break
        page.wait_for_timeout(200)
    return left


def evaluate(heap, expression):
    """The remote object that an expression gives."""
    return heap.send("Runtime.evaluate", {"expression": expression})["result"]["objectId"]


def prototype(heap, instance):
    """The prototype of an object."""
    call = {"objectId": instance, "functionDeclaration": "function () { return Object.getPrototypeOf(this); }"}
    return heap.send("Runtime.callFunctionOn", call)["result"]["objectId"]


def count(heap, prototype):
    """How many objects of this kind live; JupyterLab itself holds on to some that are disposed of."""
    objects = heap.send("Runtime.queryObjects", {"prototypeObjectId": prototype})["objects"]["objectId"]
    call = {
        "objectId": objects,
        "functionDeclaration": "function () { return this.filter(each => !each.isDisposed).length; }",
        "returnByValue": True,
    }
    found = heap.send("Runtime.callFunctionOn", call)["result"]["value"]
    heap.send("Runtime.releaseObject", {"objectId": objects})
    return found

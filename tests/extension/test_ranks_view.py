"""What a reader of the ranks sees in a real browser: `RanksView` of `extension/shared`, as front ends bundle it."""

import os
from pathlib import Path

import pytest
from browsers import CHROMIUM
from places import ROOT

playwright = pytest.importorskip("playwright.sync_api")
SHARED = ROOT / "extension" / "shared"
BUILT = SHARED / "build" / "src" / "ranks" / "view.js"
AXE = SHARED / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.skipif(not AXE.exists(), reason="extension/shared is not built: make card"),
]

LIGHT = "--jp-layout-color1: #fff; --jp-content-font-color1: #212121; --jp-content-font-color2: #616161;"
DARK = (
    "--jp-layout-color1: #111; --jp-content-font-color1: #fff; --jp-content-font-color2: #bdbdbd;"
    "--jp-error-color1: #ef5350; --jp-brand-color1: #42a5f5; --jp-success-color1: #66bb6a; --jp-border-color2: #555;"
)
PAGE = """<!doctype html><html lang="en"><title>ranks</title>
<style>body { %s background: var(--jp-layout-color1); margin: 8px }
body.dark { %s }</style><body><main></main>"""
START = """async () => {
    const { RanksView } = await import("/build/src/ranks/view.js");
    const look = await import("/build/test/ranks/look.js");
    window.opened = [];
    window.view = new RanksView({ openPlace: at => window.opened.push(at) });
    window.look = look;
    window.layout = (await import("/build/src/ranks/layout.js")).layout;
    document.querySelector("main").append(view.node);
}"""
PIXELS = """([layer, index]) => {
    const canvas = document.querySelector(`.dtd-${layer}`);
    const cell = layout(shown.rows.length, canvas.parentElement.clientWidth);
    const [x, y] = [index % cell.columns * cell.width, Math.floor(index / cell.columns) * cell.height];
    const size = [cell.width - cell.gap, cell.height - cell.gap];
    const { data } = canvas.getContext("2d").getImageData(x, y, ...size);
    return Array.from({ length: data.length / 4 }, (_, i) => [...data.slice(4 * i, 4 * i + 4)]);
}"""
COUNT_CELLS = """() => {
    window.cleared = { cells: 0 };
    const { prototype } = CanvasRenderingContext2D;
    const clear = prototype.clearRect;
    prototype.clearRect = function (...box) {
        if (this.canvas.className.includes("dtd-cells")) cleared.cells += 1;
        return clear.apply(this, box);
    };
}"""
HOSTILE = """() => {
    const owned = '<img src=x onerror="window.owned = 1"></style><script>window.owned = 1</' + 'script>';
    const data = look.eight();
    view.update({ ...data, line: owned, rows: data.rows.map(row => ({ ...row, op: owned, at: owned })) });
}"""


def serve(route):
    """A page, and what it imports."""
    path = SHARED / route.request.url.split("/", 3)[3]
    if path == SHARED:
        route.fulfill(body=PAGE % (LIGHT, DARK), content_type="text/html")
    else:
        route.fulfill(path=path, content_type="text/javascript")


@pytest.fixture
def opened(browser):
    """Opens a page with an empty view; at the end nothing has been thrown."""
    thrown = []
    contexts = []

    def open_(width=400, *, dark=False, **options):
        context = browser.new_context(viewport={"width": width, "height": 1100}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: thrown.append(str(error)))
        page.route("http://dtdebug.test/**", serve)
        page.goto("http://dtdebug.test/")
        if dark:
            page.evaluate("document.body.className = 'dark'")
        page.evaluate(START)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert [] == thrown


def show(page, look):
    """Returns when it is drawn, which waits for the next frame."""
    page.evaluate(f"view.update(window.shown = look.{look})")
    page.evaluate("() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


def shoot(page, name):
    if folder := os.environ.get("DTDEBUG_SHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{folder}/ranks-{name}.png", full_page=True)


def pixels(page, layer, index):
    """What a layer of the grid has in the cell of a row: RGBA of its pixels, row by row."""
    return page.evaluate(PIXELS, [layer, index])


def colours(page, layer, index):
    return {tuple(each) for each in pixels(page, layer, index) if each[3] > 200}


def red(colour):
    return colour[0] > 1.5 * max(colour[1:3])


def detail(page):
    return page.locator(".dtd-detail").inner_text()


def serious(page):
    """What axe-core finds that keeps someone from using it."""
    page.add_script_tag(path=AXE)
    found = page.evaluate(
        "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })"
    )
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 400, 800])
@pytest.mark.parametrize("look", ["eight()", "many(64)", "many(512)", "many(4096)"])
def test_it_fits_in_a_panel_of_any_width(opened, look, width, dark):
    """Nothing is cut off, and the page never scrolls sideways."""
    page = opened(width, dark=dark)
    show(page, look)
    shoot(page, f"{look.replace('(', '').replace(')', '')}-{width}{'-dark' if dark else ''}")

    assert width >= page.evaluate("document.documentElement.scrollWidth")
    assert page.locator(".dtd-cells").bounding_box()["width"] <= width - 16


def test_a_culprit_among_thousands_is_seen(opened):
    """A red diamond that is larger than its cell; no other cell has that colour."""
    page = opened()
    show(page, "many(4096)")

    assert any(red(each) for each in colours(page, "marks", 2867))
    assert any(red(each) for each in colours(page, "marks", 2868)), "it is larger than its cell"
    assert set() == colours(page, "marks", 100)
    assert not any(red(each) for i in (0, 3, 13, 100, 110) for each in colours(page, "cells", i))


def test_states_differ_without_colour(opened):
    """By which pixels of a cell are filled, and how much."""
    page = opened()
    show(page, "many(4096)")
    waits, runs, silent, gone = ([each[3] for each in pixels(page, "cells", i)] for i in (0, 3, 13, 110))

    assert 4 == len({tuple(each) for each in (waits, runs, silent, gone)})
    assert sum(waits) < 0.6 * sum(runs)


def test_many_culprits_do_not_hide_the_others(opened):
    """Where a third of the ranks are culprits, their cells are the picture."""
    page = opened()
    show(page, "many(4096, 0, Array.from({ length: 1365 }, (_, i) => 3 * i))")

    assert set() == colours(page, "marks", 3)
    assert any(red(each) for each in colours(page, "cells", 3))


@pytest.mark.parametrize(
    ("look", "first", "down"), [("eight()", 3, 3), ("many(4096)", 2867, 64), ("many(64)", 44, 8)], ids=str
)
def test_the_grid_is_used_by_keyboard(opened, look, first, down):
    """Focus goes to the culprit; arrows, Home and End move; what is there is said in a live region."""
    page = opened()
    show(page, look)
    count = page.evaluate(f"look.{look}.rows.length")
    page.locator(".dtd-field").focus()

    def rank_after(*keys):
        for key in keys:
            page.keyboard.press(key)
        option = page.locator("[role=option]")
        assert option.get_attribute("id") == page.locator(".dtd-field").get_attribute("aria-activedescendant")
        assert detail(page) == option.get_attribute("aria-label")
        return int(detail(page).split(" · ")[0].removeprefix("rank "))

    assert first == rank_after()
    assert first + 1 == rank_after("ArrowRight")
    assert first == rank_after("ArrowLeft")
    assert first + down == rank_after("ArrowDown")
    assert first == rank_after("ArrowUp")
    assert 0 == rank_after("Home", "ArrowLeft", "ArrowUp")
    assert count - 1 == rank_after("End", "ArrowRight", "ArrowDown")
    assert str(count) == page.locator("[role=option]").get_attribute("aria-posinset")
    shoot(page, f"keyboard-{count}")


def test_the_pointer_shows_a_rank_and_leaves_again(opened):
    """Hovering tells; a click keeps."""
    page = opened()
    show(page, "eight()")
    box = page.locator(".dtd-cells").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)

    assert detail(page).startswith("rank 0 · waits · all_reduce #41 for 74 s · step 12 · cell In[3], line 6, in train")

    show(page, "eight()")

    assert detail(page).startswith("rank 0 · "), "another look does not take the pointer away"

    page.mouse.click(box["x"] + box["width"] - 20, box["y"] + 20)
    page.mouse.move(1, 1)

    assert detail(page).startswith("rank 2 · ")


def test_a_class_shows_where_its_ranks_are(opened):
    """All others fade; a second press shows all alike again."""
    page = opened()
    show(page, "many(4096)")
    line = page.locator(".dtd-class", has_text="do not answer")
    line.focus()
    page.keyboard.press("Enter")
    shoot(page, "class-4096")

    assert "true" == line.get_attribute("aria-pressed")
    assert colours(page, "marks", 13)
    assert set() == colours(page, "marks", 14)
    assert page.locator(".dtd-cells").evaluate("each => each.classList.contains('dtd-dim')")
    assert detail(page).startswith("rank 13 · does not answer")

    page.keyboard.press("Enter")

    assert "false" == line.get_attribute("aria-pressed")
    assert set() == colours(page, "marks", 13)


def test_only_what_changed_is_drawn(opened):
    """A look in which one rank differs draws one cell; the same look draws none."""
    page = opened()
    show(page, "many(4096)")
    page.evaluate(COUNT_CELLS)
    show(page, "many(4096)")
    same = page.evaluate("cleared.cells")
    page.evaluate("const next = look.many(4096); next.rows[7] = { ...next.rows[7], state: 'gone' }; view.update(next)")

    assert [0, 1] == [same, page.evaluate("cleared.cells")]


def test_nothing_is_drawn_while_the_panel_is_hidden(opened):
    """And what was missed is there when it is shown."""
    page = opened()
    show(page, "many(4096)")
    page.evaluate(COUNT_CELLS)
    page.evaluate("document.querySelector('main').style.display = 'none'")
    show(page, "many(4096, 5, [1000])")

    assert 0 == page.evaluate("cleared.cells")

    page.evaluate("document.querySelector('main').style.display = ''")
    page.wait_for_function("cleared.cells > 0")

    assert any(red(each) for each in colours(page, "marks", 1000))


def test_it_follows_the_theme_and_the_width(opened):
    """Without another look."""
    page = opened(400)
    show(page, "many(4096)")
    light = colours(page, "marks", 2867)
    page.evaluate("document.body.className = 'dark'")
    page.evaluate("new Promise(requestAnimationFrame)")

    assert light != colours(page, "marks", 2867)

    page.evaluate(COUNT_CELLS)
    page.evaluate("document.body.classList.add('another')")
    page.evaluate("new Promise(requestAnimationFrame)")

    assert 0 == page.evaluate("cleared.cells"), "a class of the body that is no theme"

    page.set_viewport_size({"width": 320, "height": 900})
    page.wait_for_function("document.querySelector('.dtd-cells').clientWidth < 320")


def test_it_is_sharp_on_a_dense_screen(opened):
    """As many pixels as the screen has."""
    page = opened(400, device_scale_factor=2)
    show(page, "eight()")
    shoot(page, "dense")

    page.wait_for_function("(each => each.width === 2 * each.clientWidth)(document.querySelector('.dtd-cells'))")


def test_it_respects_what_readers_set_in_their_system(opened):
    """Forced colours keep the marks, reduced motion moves nothing."""
    page = opened(400, forced_colors="active", reduced_motion="reduce", color_scheme="dark")
    show(page, "many(4096)")
    shoot(page, "forced")

    assert "0s" == page.locator(".dtd-cells").evaluate("each => getComputedStyle(each).transitionDuration")
    assert colours(page, "marks", 2867)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("look", ["eight()", "many(4096)"])
def test_axe_finds_nothing_serious(opened, look, dark):
    """Folded and unfolded, with a rank chosen."""
    page = opened(400, dark=dark)
    show(page, look)
    page.locator(".dtd-field").focus()
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    shoot(page, f"open-{look[:4]}{'-dark' if dark else ''}")

    assert [] == serious(page)


def test_a_place_is_opened(opened):
    """By keyboard."""
    page = opened()
    show(page, "eight()")
    page.locator(".dtd-where button").first.focus()
    page.keyboard.press("Enter")

    assert ["cell In[3], line 11, in save"] == page.evaluate("opened")


def test_markup_is_text(opened):
    """No data becomes an element or runs."""
    page = opened()
    page.evaluate(HOSTILE)

    assert "<img src=x" in page.locator(".dtd-class").first.inner_text()
    assert 0 == page.locator("img, main script").count()
    assert page.evaluate("window.owned === undefined")

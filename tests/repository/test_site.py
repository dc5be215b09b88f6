"""The documentation site: built once, then every page, link, address and look of it."""

import re
import runpy
import subprocess
import sys
from collections import defaultdict
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote_plus, unquote, urljoin, urlsplit
from xml.etree import ElementTree as ET

import pytest
from places import ROOT

from dtdebug_lsp.hovers import symptom_address
from dtdebug_taxonomy.checks import SITE, page_address
from dtdebug_taxonomy.checks import load as load_checks
from dtdebug_taxonomy.knowledge.labs import load_labs
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.knowledge.topics import load_topics

pytest.importorskip("sphinx")

AXE = ROOT / "extension" / "shared" / "node_modules" / "axe-core" / "axe.min.js"
SEEN = ["", "hangs/", "symptoms/D.2.1/", "checks/DT101/", "labs/uneven-batches/", "labs/", "causes/", "accuracy/"]
WCAG = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]


class Page(HTMLParser):
    """What a page points at, and where it can be pointed at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        of = dict(attributes)
        if "id" in of:
            self.anchors.add(of["id"])
        if tag == "a" and "href" in of:
            self.links.add(of["href"])
        elif tag in {"script", "img", "iframe", "source"} and "src" in of:
            self.loads.add(of["src"])
        elif tag == "link" and "href" in of and of.get("rel") in {"stylesheet", "icon", "preload"}:
            self.loads.add(of["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; every warning of Sphinx is an error."""
    folder = tmp_path_factory.mktemp("site")
    # one process: the tests beside it want the other cores, and two take a third more of processor time
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "dirhtml", "-n", "-W", "--keep-going"]
    command += ["-d", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "html")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)

    assert 0 == done.returncode, done.stderr[-3000:]

    return folder / "html"


@pytest.fixture(scope="module")
def read(site):
    """Every page by its address below the site."""
    files = [f for f in site.rglob("*.html") if "_static" not in f.parts]
    return {
        str(f.relative_to(site)).removesuffix("index.html"): Page(f.read_text(encoding="utf-8")) for f in sorted(files)
    }


def addresses() -> dict[str, str]:
    """What must have a page -> its address below the site."""
    known = load()
    found = {page_address(c): c.id for c in load_checks().values()}
    found |= {symptom_address(code): code for code in known.symptoms}
    found |= {f"{SITE}/causes/{s.code}/{c.id}/": c.id for s in known.symptoms.values() for c in s.cause}
    found |= {f"{SITE}/labs/{name}/": name for name in load_labs()}
    found |= {f"{SITE}/topics/{name}/": name for name in load_topics()}
    return {name: address.removeprefix(f"{SITE}/") for address, name in found.items()}


def test_everything_known_has_a_page(read):
    """Symptoms, causes, checks, labs and topics: each at the address that the code gives."""
    assert [] == [name for name, address in addresses().items() if address not in read]


def test_a_message_is_found_by_its_own_words(site, read):
    """Most messages have a page whose title is what is printed; the index for programs names the guides."""
    printed = [e for e in load().evidence.values() if e.text and e.symptoms]
    with_page = [e for e in printed if f"messages/{e.id}/" in read]
    assert len(with_page) > 0.8 * len(printed)
    page = (site / "messages" / "ddp-unfinished-reduction" / "index.html").read_text(encoding="utf-8")
    assert "<title>Expected to have finished reduction in the prior iteration" in page
    assert "- [My job hangs](hangs/)" in (site / "llms.txt").read_text(encoding="utf-8")


def test_code_writes_no_address_without_a_test():
    """Whoever links to the site does it by these two functions, so that the test above sees the address."""
    written = defaultdict(set)
    for folder in ("kernel", "lsp", "taxonomy", "extension/shared/src", "extension/jupyterlab/src"):
        for file in (f for f in (ROOT / folder).rglob("*") if f.suffix in {".py", ".ts", ".toml", ".md"}):
            for found in re.findall(r"dtdebug\.readthedocs\.io\S*|\{SITE\}[^\"]*", file.read_text(encoding="utf-8")):
                written[found].add(file.name)

    assert {
        'dtdebug.readthedocs.io/en/latest"': {"__init__.py"},
        "{SITE}/checks/{check.id}/": {"__init__.py"},
        "{SITE}/symptoms/{code}/": {"hovers.py"},
    } == written


def test_links_inside_lead_somewhere(read):
    """Pages and anchors that are pointed at are there."""
    broken = []
    for address, page in read.items():
        for link in page.links:
            target = urlsplit(urljoin(f"https://site/{address}", link))
            if target.netloc != "site":
                continue
            path, anchor = unquote(target.path[1:]), unquote(target.fragment)
            if path not in read or (anchor and anchor not in read[path].anchors):
                broken.append(f"{address}: {link}")

    assert [] == broken


def test_links_outside_are_well_formed_and_spelt_in_one_way(read):
    """https, a host with a dot, no registry, and no second spelling of an address."""
    outside = {link for page in read.values() for link in page.links if urlsplit(link).scheme}
    spellings = defaultdict(set)
    for link in outside:
        parts = urlsplit(link)
        assert ("https", True) == (parts.scheme, "." in parts.netloc and not re.search(r"[\s<>\"`]", link)), link
        plain = parts._replace(scheme="", fragment="", netloc=parts.netloc.removeprefix("www.").lower())
        spellings[plain.geturl().rstrip("/")].add(link.partition("#")[0])

    assert [] == [sorted(links) for links in spellings.values() if len(links) > 1]


def test_pages_load_nothing_from_elsewhere(site, read):
    """Scripts, styles, fonts and images are the site's own."""
    loads = {load for page in read.values() for load in page.loads}
    styles = "".join(f.read_text(encoding="utf-8") for f in (site / "_static").rglob("*.css"))

    assert set() == {load for load in loads if urlsplit(load).netloc}
    assert [] == re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)\"']+", styles)


def test_search_knows_every_check_and_symptom(site):
    """The index that the browser searches names each of them."""
    index = (site / "searchindex.js").read_text(encoding="utf-8")

    assert [] == [name for name in (*load_checks(), *load().symptoms) if f'"{name} ' not in index]


def test_what_is_made_is_ignored_by_git():
    """No page that is made from the knowledge can be committed by mistake."""
    ignored = (ROOT / "docs" / ".gitignore").read_text(encoding="utf-8").split()
    made = runpy.run_path(str(ROOT / "docs" / "conf.py"))["made"]()

    assert set() == {f"/{top}/" if rest else f"/{top}.md" for top, _, rest in (n.partition("/") for n in made)} - {
        *ignored
    }


def test_recording_is_small_and_holds_an_answer():
    """The film is one file without scripts or loads from elsewhere, and its lines are those of a verdict."""
    film = ROOT / "docs" / "images" / "recording.svg"
    root = ET.parse(film).getroot()
    said = " ".join("".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))

    assert film.stat().st_size < 400_000
    assert {"svg", "title", "style", "rect", "defs", "text", "tspan", "g", "use"} == {
        element.tag.rpartition("}")[2] for element in root.iter()
    }
    assert "Only rank 0 passes" in said
    assert "DT101 train.py:6: Call barrier() on every rank (written)" in " ".join(said.split())
    assert "url(" not in film.read_text(encoding="utf-8")
    assert {"/opt/venv"} == set(re.findall(r"[\w./-]+(?=/lib/python[\d.]+/site-packages)", said))


@contextmanager
def _served(folder: Path):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_pages_fit_a_phone_and_ask_nobody_else(site, browser, scheme):
    """At 400 px nothing makes a page wider than the screen, contrast and names suffice, and no other host is asked."""
    asked = set()
    with _served(site) as address, browser.new_context(viewport={"width": 400, "height": 900}) as context:
        context.on("request", lambda request: asked.add(request.url))
        page = context.new_page()
        page.emulate_media(color_scheme=scheme)
        for name in SEEN:
            page.goto(address + name, wait_until="load")

            assert 400 == page.evaluate("document.documentElement.scrollWidth"), name
            if AXE.is_file():
                page.evaluate(AXE.read_text(encoding="utf-8"))
                found = page.evaluate(f"axe.run(document.querySelector('article'), {{runOnly: {WCAG}}})")
                assert [] == [(v["id"], v["nodes"][0]["html"][:200]) for v in found["violations"]], name

    assert set() == {url for url in asked if not url.startswith((address, "data:"))}


PASTED = {
    "nccl-unhandled-system-error": "RuntimeError: NCCL error in: ../ProcessGroupNCCL.cpp:1275, unhandled system error",
    "torch-network-error": "torch.distributed.DistNetworkError: The client socket has timed out after 60s",
    "collective-watchdog-timeout": "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)",
    "elastic-child-failed": "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "fsdp-inner-module-first": "_is_root should not have been set",
    "ddp-unfinished-reduction": "Expected to have finished reduction",
}
"""Page -> a line as users paste it, with their own numbers or in part."""


@pytest.mark.browser
def test_a_pasted_line_finds_the_page_of_its_message_first(site, browser):
    """Its numbers and paths are in no page; words that are no message find the pages that hold them, as before."""
    with _served(site) as address, browser.new_context() as context:
        page = context.new_page()
        for name, line in PASTED.items():
            page.goto(f"{address}search/?q={quote_plus(line)}", wait_until="load")
            page.wait_for_selector("#search-messages a", timeout=30_000)

            assert f"messages/{name}/" in page.locator("#search-messages a").first.get_attribute("href"), line

        broken = "async () => (await (await fetch('../_static/messages.json')).json()).flatMap(m => m.patterns).filter("
        broken += "p => { try { new RegExp(p, 'im') } catch { return true } })"
        assert [] == page.evaluate(broken)
        page.goto(f"{address}search/?q=sampler+epoch", wait_until="load")
        page.wait_for_selector("#search-results li a", timeout=30_000)
        assert 0 == page.locator("#search-messages").count()


@pytest.mark.browser
def test_search_finds_a_page_without_a_network(site, browser):
    """Words of a symptom lead to it."""
    with _served(site) as address, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{address}search/?q=sampler+epoch", wait_until="load")
        page.wait_for_selector("#search-results li a", timeout=30_000)

        assert "DT502" in page.inner_text("#search-results")

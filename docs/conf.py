"""How Sphinx builds the site: `make docs`, and on Read the Docs."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent / "taxonomy")]  # pages show examples that an installed wheel leaves out

import message_pages  # noqa: E402
import pages  # noqa: E402

from dtdebug_taxonomy import __version__  # noqa: E402

TOP = DOCS.parent
MIRRORED = {
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "extension/vscode/README.md": "vscode",
    "tests/faults/README.md": "faults",
    "tests/precision/README.md": "precision",
}
"""Pages that lie elsewhere in the repository, and their names on the site."""

BELOW_CONTRIBUTING = """
```{toctree}
:hidden:

how-it-works
faults
precision
changelog
```
"""
"""Menu of what only contributors read."""

project, author, release = "dtdebug", "the dtdebug authors", __version__
copyright = author  # noqa: A001 - Sphinx's name
extensions = ["myst_parser"]
nitpicky = True
exclude_patterns = ["_build"]
suppress_warnings = ["misc.highlighting_failure"]  # examples are shortened, or wrong on purpose
myst_heading_anchors = 4
myst_links_external_new_tab = False
html_theme = "furo"
html_title = "dtdebug"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def relinked(text: str, home: Path) -> str:
    """The text of a file in `home` with its links to files of the repository made links of the site."""

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found["words"], found["target"], found["anchor"] or ""
        path = os.path.relpath(home / target, TOP)
        if path in MIRRORED:
            return f"[{words}]({MIRRORED[path]}.md{anchor})"
        if path.startswith("docs/"):
            return f"[{words}]({path.removeprefix('docs/')}{anchor})"
        return f"{words} (`{path}`)"

    return re.sub(r"\[(?P<words>[^\]\[]*)\]\((?P<target>(?!https?:)[^)#\s]+)(?P<anchor>#[^)]*)?\)", link, text)


def made() -> dict[str, str]:
    """All pages that are made at build time: name -> Markdown."""
    mirrors = {name: relinked((TOP / f).read_text(encoding="utf-8"), (TOP / f).parent) for f, name in MIRRORED.items()}
    mirrors["contributing"] += BELOW_CONTRIBUTING
    return {**pages.pages(), **message_pages.pages(), **mirrors}


def write(*_: object) -> None:
    """Writes the pages that differ from those that lie there, and takes away those that no longer have a source."""
    wanted = {DOCS / f"{name}.md": text for name, text in made().items()}
    for file, text in wanted.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            fresh = file.with_suffix(f".{os.getpid()}")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(file)  # two builds at once see whole pages
    for folder in ("causes", "checks", "labs", "messages", "symptoms", "topics"):
        for file in (DOCS / folder).rglob("*.md"):
            if file not in wanted:
                file.unlink()


def adapt(_: object, name: str, source: list[str]) -> None:
    """Makes a written page one of the site: its links, its tables of what is made."""
    if f"{name}.md" in WRITTEN:
        source[0] = relinked(source[0], DOCS) + pages.appended(name)


WRITTEN = {f.name for f in DOCS.glob("*.md")} - {f"{name}.md" for name in made()}


def share_menu(app: Any, name: str, _: str, context: dict[str, Any], __: object) -> None:
    """Makes the menu once for all pages of a folder, which it does not name: it takes a third of a build."""
    folder = name.rpartition("/")[0]
    if not folder or "toctree" not in context:
        return
    menu = context["toctree"]

    def kept(**options: Any) -> str:
        key = (folder, *sorted(options.items()))
        if key not in MENUS:
            MENUS[key] = menu(**options)
        return MENUS[key]

    context["toctree"] = kept


MENUS: dict[tuple[Any, ...], str] = {}


def list_for_models(app: Any, failed: Exception | None) -> None:
    """Writes llms.txt (https://llmstxt.org): what the site has, for programs that read it."""
    if failed or app.builder.name != "dirhtml":
        return
    titles = {name: app.env.titles[name].astext() for name in sorted(app.env.found_docs)}
    menu = [name for name in titles if "/" not in name and name != "index"]
    parts = {"Guides and tables": menu, "Symptoms": [n for n in titles if n.startswith("symptoms/")]}
    about = "Says why distributed deep-learning training failed: which rank, where, the cause, the fix. Local, no LLM."
    text = f"# dtdebug\n\n> {about}\n"
    for head, names in parts.items():
        text += f"\n## {head}\n\n" + "".join(f"- [{titles[name]}]({name}/)\n" for name in names)
    (Path(app.outdir) / "llms.txt").write_text(text, encoding="utf-8")


def list_for_search(app: Any, failed: Exception | None) -> None:
    """Writes the messages by which `static/site.js` finds the page of a pasted line."""
    if not failed and app.builder.name == "dirhtml":
        text = json.dumps(message_pages.searched(), ensure_ascii=False)
        (Path(app.outdir) / "_static" / "messages.json").write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    """Tells Sphinx when to make the pages."""
    app.connect("config-inited", write)
    app.connect("source-read", adapt)
    app.connect("html-page-context", share_menu, priority=400)  # before the theme asks for it
    app.connect("build-finished", list_for_models)
    app.connect("build-finished", list_for_search)

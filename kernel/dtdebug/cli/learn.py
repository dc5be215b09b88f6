"""Sub-command `dtdebug learn`: the learning notebooks, and guides to developers' most frequent questions."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add(commands: Any) -> None:
    """Add the sub-command to the command-line parser."""
    learn = commands.add_parser(
        "learn",
        help="notebooks, and guides to what developers ask most, with runnable programs",
        description="Without a name, lists what there is. A topic (backends, communication/backends, device-usage) "
        "prints a guide; with DIR it writes the guide's programs there. A notebook is copied to DIR (default: here). "
        "No file is ever overwritten.",
        epilog="Examples: `dtdebug learn backends`, `dtdebug learn first-failure`.",
    )
    learn.add_argument("words", nargs="*", metavar="NAME [DIR]", help="a topic or a notebook; none lists all")
    learn.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    learn.set_defaults(run=_learn)


def _learn(options: argparse.Namespace) -> int:
    from dtdebug.learn.pages import answer_page, record

    if options.format == "json":
        import msgspec

        print(msgspec.json.encode(record(options.words)).decode())
    else:
        _show(answer_page(options.words, "dtdebug"), rendered=options.format == "text" and sys.stdout.isatty())
    return 0


def _show(text: str, *, rendered: bool) -> None:
    if not rendered:
        print(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text, hyperlinks=False))

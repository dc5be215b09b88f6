"""Links for codes and issue numbers in comments."""

from __future__ import annotations

import re

from lsprotocol import types

from dtdebug_lsp.documents import Document
from dtdebug_lsp.hovers import symptom_address
from dtdebug_lsp.positions import Positions
from dtdebug_lsp.words import comment_start
from dtdebug_taxonomy.checks import load, page_address
from dtdebug_taxonomy.source.text import Span

_LINK = re.compile(
    r"(?P<check>\bDT\d{3}\b)"
    r"|(?<![\w.])(?P<symptom>[A-D]\.\d(?:\.\d{1,2})?)(?![\w.]*\w)"
    r"|(?<![\w/.-])(?P<repository>[A-Za-z\d][\w-]{0,38}/[\w.-]{1,100})#(?P<number>\d{1,7})\b"
)
_OURS = re.compile(r"dtdebug|symptom", re.IGNORECASE)


def links(document: Document, positions: Positions) -> list[types.DocumentLink]:
    """Return the links of a text: comments that name a check, a symptom or an issue on GitHub."""
    text = document.text
    slashes = document.language in {"json", "jsonc"}
    found = []
    for match in _LINK.finditer(text):
        number = text.place(match.start()).line
        line = text.line(number)
        comment = comment_start(line, slashes=slashes)
        if comment is None or match.start() - text.starts[number - 1] < comment:
            continue
        target, tooltip = "", ""
        if match["check"] and (check := load().get(match["check"])):
            target, tooltip = page_address(check), check.title
        elif match["symptom"] and _OURS.search(line):  # elsewhere `B.1` is a section of a paper
            target = symptom_address(match["symptom"])
        elif match["repository"]:
            target = f"https://github.com/{match['repository']}/issues/{match['number']}"
        if target:
            where = positions.range(text, Span(*match.span()))
            found.append(types.DocumentLink(where, target=target, tooltip=tooltip or None))
    return found

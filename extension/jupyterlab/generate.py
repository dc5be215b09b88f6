"""Writes `src/known.json`: by what the front end tells, without a kernel, whether dtdebug knows an error.

The build runs it (`make lab`, a wheel). Under words stand the patterns that can only match where one of them occurs, so
that most of them need not be tried. The patterns are packed (deflate, in base64), because everyone who opens JupyterLab
loads them; `--show` prints them.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# of this checkout, whatever is installed: pip takes the folders of an editable install out of the build's path
sys.path.insert(0, str(HERE.parents[1] / "taxonomy"))

from dtdebug_taxonomy.knowledge.loader import Knowledge, load  # noqa: E402
from dtdebug_taxonomy.text.pattern_matcher import literals  # noqa: E402

FILE = HERE / "src" / "known.json"
_CASED = "(?-i:"
"""What older browsers can't read; without it a column `rank` of a table would count as the variable RANK."""


def known(knowledge: Knowledge) -> dict[str, Any]:
    """Classes and patterns that only distributed training raises or prints."""
    own = [e for e in knowledge.evidence.values() if e.role != "advice" and not e.generic]
    classes = sorted({name.rpartition(".")[2].rpartition(":")[2] for e in own for name in e.exception})
    patterns: defaultdict[str, set[str]] = defaultdict(set)
    for pattern in (p for e in own for p in e.text if _CASED not in p):
        words = {max(re.findall("[a-z]+", literal), key=len, default="") for literal in literals(pattern)}
        patterns[" ".join(sorted(words))].add(pattern)
    return {"classes": classes, "patterns": {words: sorted(patterns[words]) for words in sorted(patterns)}}


def pack(content: dict[str, Any]) -> str:
    """What the file holds: words, then their patterns, a line each, parted by empty lines."""
    groups = ("\n".join([words, *patterns]) for words, patterns in content["patterns"].items())
    packed = zlib.compress("\n\n".join(groups).encode(), 9)
    return json.dumps({"classes": content["classes"], "packed": base64.b64encode(packed).decode()}, indent=0) + "\n"


def unpack(text: str) -> dict[str, Any]:
    """The content of the file, as `known` gave it; its bytes differ from one zlib to another."""
    content = json.loads(text)
    groups = zlib.decompress(base64.b64decode(content["packed"])).decode().split("\n\n")
    rows = (group.split("\n") for group in groups)
    return {"classes": content["classes"], "patterns": {words: patterns for words, *patterns in rows}}


if __name__ == "__main__":
    if "--show" in sys.argv:
        print(json.dumps(unpack(FILE.read_text(encoding="utf-8")), indent=1, ensure_ascii=False))
    else:
        FILE.write_text(pack(known(load())), encoding="utf-8")
        print(FILE)

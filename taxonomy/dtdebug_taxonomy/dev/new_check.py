"""The folder of a new check: `make check-rule NAME=what-is-wrong GROUP=1`.

python -m dtdebug_taxonomy.dev.new_check NAME [GROUP]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template

from dtdebug_taxonomy.checks import HOME
from dtdebug_taxonomy.dev.new_symptom import ScaffoldError

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_FILES = {
    "check.toml": """\
title = "What is wrong, without a full stop"
# the cause that it sees, by its id in symptoms/*.toml; its symptom comes first in `symptom`
cause = "collective-under-rank-guard"
symptom = ["D.2.1"]
# warning: contradicts one API's contract; hint: a heuristic, off in tests
severity = "hint"
# certain, high, medium or low
precision = "medium"
# the text must hold one of these, else the check is not asked
words = ["torch"]
reference = [
  { title = "The page's own title", url = "https://docs.pytorch.org/docs/stable/distributed.html" },
]
""",
    "check.py": '''\
"""State what is wrong, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Reports the call that is wrong."""
    for call in code.calls("torch.distributed.replace_me"):
        yield Hit(code.span(call), "What is wrong here, and what follows from it.")
''',
    "doc.md": """\
## What it does

## Why is this bad

## Example
```python
```

## Use instead
```python
```

## Fix safety

## Known false positives
""",
    "bad_1.py": "import torch.distributed as dist\n\ndist.replace_me()  # dt: $id\n",
    "good_1.py": "import torch.distributed as dist\n\ndist.barrier()\n",
    "near_miss_1.py": "import mine as dist\n\ndist.replace_me()\n",
}


def scaffold(name: str, group: str, home: Path = HOME) -> Path:
    """Writes the skeleton of a check under the next free id of a group; returns its folder.

    Raises:
        ScaffoldError: no or a bad name or group, or there is a check of that name.

    """
    if not _NAME.fullmatch(name):
        raise ScaffoldError(
            "name what is wrong, in words joined by '-': make check-rule NAME=sampler-seed-per-rank GROUP=5"
        )
    if not re.fullmatch("[1-9]", group):
        raise ScaffoldError(
            f"GROUP={group}: the first digit of its id, 1 to 9; `dtdebug check --list` shows the groups"
        )
    if any(home.glob(f"dt*_{name.replace('-', '_')}")):
        raise ScaffoldError(f"{name}: already exists; choose another name")
    taken = {int(f.name[2:5]) for f in home.glob(f"dt{group}??_*")}
    number = next(n for n in range(int(group) * 100 + 1, int(group) * 100 + 100) if n not in taken)
    folder = home / f"dt{number}_{name.replace('-', '_')}"
    folder.mkdir()
    for file, text in _FILES.items():
        (folder / file).write_text(Template(text).substitute(id=f"DT{number}"), encoding="utf-8")
    return folder


def main(arguments: Sequence[str]) -> int:
    """Makes the folder of the check that is named; exit status 2 if that can't be done."""
    try:
        name, group = (*arguments, "", "")[:2]
        folder = scaffold(name, group)
    except (ScaffoldError, OSError) as error:
        print(f"check-rule: {error}", file=sys.stderr)
        return 2
    print(f"wrote {folder}")
    print(f"next: `.venv/bin/python -m pytest tests/taxonomy/checks -k {folder.name[:5]}` says what is missing")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

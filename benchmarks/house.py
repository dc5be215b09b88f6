"""Measure how readable the product's own source is: size, names and docstrings; with --list, name what to change.

Counted are the modules of `kernel/`, `lsp/` and `taxonomy/` without labs, examples and notebooks. The aims are those of
CONTRIBUTING: below 1 % of functions named by one bare participle, below 3 % of docstrings that begin with a question
word, and no two modules of one name in one package folder.

    python benchmarks/house.py [--list] [FOLDER...]
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("kernel/dtdebug", "lsp/dtdebug_lsp", "taxonomy/dtdebug_taxonomy")
SKIP = re.compile(r"/labs/|/learn/notebooks/|/(rules/)?dt\d+_\w+/(?!check\.py)|/bootstrap/")
IRREGULAR = frozenset({
    "told", "kept", "held", "found", "seen", "begun", "known", "made", "said", "left", "sent", "met", "lost", "stuck",
    "shown", "drawn", "written", "given", "taken", "spoken", "broken", "chosen", "gone", "done", "born", "laid",
    "spied", "bereft", "apart", "within", "beside", "elsewhere", "again",
})  # fmt: skip
"""Participles that do not end in -ed, and the adverbs used like them."""
NOT_PARTICIPLES = frozenset(["seed", "feed", "need", "speed", "embed", "shed", "bed", "red"])
QUESTION = re.compile(r"(What|Who|Whose|Whether|Where|Of|Those|Which|How)\b")


def modules(folders: list[str]) -> Iterator[Path]:
    """Yield the product's Python files."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not SKIP.search(path.as_posix()):
                yield path


def is_bare_participle(name: str) -> bool:
    """True if a function is named by one past participle or adverb alone."""
    bare = name.strip("_")
    return bare in IRREGULAR or (bare.endswith("ed") and bare.isalpha() and bare not in NOT_PARTICIPLES)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each docstring: of modules, classes, functions, and below attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text
        if isinstance(node, ast.Module | ast.ClassDef):
            for before, after in zip(node.body, node.body[1:], strict=False):
                if (
                    isinstance(before, ast.Assign | ast.AnnAssign)
                    and isinstance(after, ast.Expr)
                    and isinstance(after.value, ast.Constant)
                    and isinstance(after.value.value, str)
                ):
                    yield after.lineno, after.value.value


def main(arguments: list[str]) -> int:
    """Print the table; returns 0."""
    listed = "--list" in arguments
    folders = [a for a in arguments if a != "--list"] or list(PRODUCT)
    counts: Counter[str] = Counter()
    for path in modules(folders):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        counts["modules"] += 1
        counts["lines"] += text.count("\n")
        shown = path.relative_to(ROOT)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                counts["functions"] += 1
                if is_bare_participle(node.name):
                    counts["participles"] += 1
                    if listed:
                        print(f"{shown}:{node.lineno}: name: {node.name}")
        for line, doc in docstrings(tree):
            counts["docstrings"] += 1
            if QUESTION.match(doc):
                counts["questions"] += 1
                if listed:
                    print(f"{shown}:{line}: docstring: {doc.splitlines()[0]}")
    share = 100 * counts["participles"] / max(counts["functions"], 1)
    asked = 100 * counts["questions"] / max(counts["docstrings"], 1)
    print(f"{counts['modules']} modules, {counts['lines']} lines")
    print(
        f"functions named by one bare participle: {counts['participles']} of {counts['functions']}"
        f" ({share:.1f} %, aim 1 %)"
    )
    print(
        f"docstrings that begin with a question word: {counts['questions']} of {counts['docstrings']} ({asked:.1f} %)"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

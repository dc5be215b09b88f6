"""The texts that are shown and documented use the field's own words."""

import ast
import re
import subprocess
import tomllib
from functools import cache

from places import ROOT

LISTS = tomllib.loads((ROOT / "tests" / "words.toml").read_text(encoding="utf-8"))
WORDS = LISTS["dropped"]
PATTERN = re.compile("|".join(WORDS), re.IGNORECASE)
SHOWN = frozenset(("title", "means", "why", "fix", "summary", "apart", "how", "ask", "wrong", "text", "note", "reason"))
"""Keys of the knowledge whose values are our sentences; others hold patterns, names and what users say."""
FOREIGN = (
    "tests/",
    "CHANGELOG.md",
    "taxonomy/dtdebug_taxonomy/knowledge/facts/",
    "benchmarks/isolate/programs/",
    "kernel/dtdebug/learn/notebooks/",
)


def files(ending):
    listed = subprocess.run(["git", "ls-files", f"*{ending}"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if not name.startswith(FOREIGN)]


def sentences(value, key=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from sentences(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from sentences(inner, key if isinstance(inner, str) else "")
    elif isinstance(value, str) and key in SHOWN:
        yield value


def strings(path):
    """What a program may show: its strings with a space in them, without patterns and docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in told
    ]
    yield from (n.value for n in texts if " " in n.value and not any(part in n.value for part in ("\\b", "|")))


def said():
    """Each text with the file that it is in."""
    for path in files(".toml"):
        for text in sentences(tomllib.loads(path.read_text(encoding="utf-8"))):
            yield path, text
    for path in files(".md"):
        yield from ((path, line) for line in path.read_text(encoding="utf-8").splitlines())
    for path in files(".py"):
        if path.name.startswith(("bad_", "good_", "near_miss_", "program_")):  # programs as others write them
            continue
        yield from ((path, text) for text in strings(path))
    for path in files(".ts"):
        yield from ((path, quoted) for quoted in re.findall(r'__\(\s*"([^"]+)"', path.read_text(encoding="utf-8")))


def instead(word):
    """What to write instead."""
    return next(better for dropped, better in WORDS.items() if re.search(dropped, word, re.IGNORECASE))


def test_no_text_has_a_word_that_the_field_does_not_use():
    """Each hit says which text, and what to write instead."""
    hits = [
        f"{path.relative_to(ROOT)}: {found[0]!r} in {text[:120]!r}: say {instead(found[0])!r}"
        for path, text in said()
        if (found := PATTERN.search(text))
    ]
    assert hits == []


def test_the_words_are_looked_for_where_texts_are():
    """A text of each kind of file is read, so that silence means something."""
    kinds = {path.suffix for path, _ in said()}
    assert kinds == {".toml", ".md", ".py", ".ts"}
    assert PATTERN.search("The machine lacks memory, and the rank stands still.")


@cache
def product():
    """Parse the product's own modules: (path, tree) of each."""
    return [
        (path, ast.parse(path.read_text(encoding="utf-8")))
        for path in files(".py")
        if path.relative_to(ROOT).as_posix().startswith(("kernel/", "lsp/", "taxonomy/")) and "/labs/" not in str(path)
        if not path.name.startswith(("bad_", "good_", "near_miss_", "program", "run.py"))  # as others write them
    ]


def docstrings():
    """Each docstring of the product with its file."""
    for path, tree in product():
        for node in ast.walk(tree):
            value = node.value if isinstance(node, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield path, value.value


def test_docstrings_are_in_plain_english():
    """Tools for agents show theirs to programs, and may ask."""
    hits = [
        f"{path.relative_to(ROOT)}: {found[0]!r} in {text[:100]!r}: say {better!r}"
        for path, text in docstrings()
        if "/mcp/" not in path.as_posix()
        for word, better in LISTS["docstrings"].items()
        if (found := re.search(word, text))
    ]

    assert hits == []


def test_functions_are_not_named_by_a_participle():
    """Below one in a hundred: a verb phrase, or the noun that is returned."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = [n.name.strip("_") for _, tree in product() for n in ast.walk(tree) if isinstance(n, functions)]
    bare = [
        name for name in names if name.isalpha() and (name.endswith("ed") or name in {"told", "kept", "seen", "found"})
    ]

    assert len(bare) * 100 < len(names), bare

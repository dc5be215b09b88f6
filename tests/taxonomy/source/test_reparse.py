"""A text that is edited has the same tree and the same findings as if it were read for the first time."""

import ast
import random

import pytest
from places import ROOT

from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards

LABS = sorted((ROOT / "taxonomy/dtdebug_taxonomy/labs").glob("*/before.py"))
CUTS = ["x", "(", ")", '"', '"""', ":", " ", "\\", ".", "=", "#", ";", "\t", "else:", "@a", "é"]
WORDS = [
    "import os",
    "model",
    "dist.barrier()",
    "rank == 0",
    "if rank == 0:",
    "y = 1; z = 2",
    "return",
    "self.model = DDP(model)",
]


def programs() -> list[str]:
    """Return real texts: programs with mistakes in a row, a program in functions, a module of classes."""
    names = ["benchmarks/planted.py", "kernel/dtdebug/check/examine_file.py", "lsp/dtdebug_lsp/documents.py"]
    rows = ["\n".join(file.read_text(encoding="utf-8") for file in LABS[n : n + 4]) for n in (12, 8)]
    return [*rows, *((ROOT / name).read_text(encoding="utf-8") for name in names)]


def edited(text: str, chance: random.Random) -> str:
    """Return a text after an edit as people make them, with errors."""
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    line = lines[at]
    match chance.randrange(9):
        case 0:
            lines.insert(at, "")
        case 1:
            del lines[at : at + chance.randrange(1, 8)]
        case 2:
            lines[at] = f"{line}  # note"
        case 3:
            lines[at] = f"    {line}"
        case 4:
            lines[at] = line.removeprefix("    ")
        case 5 | 6:
            column = chance.randrange(len(line) + 1)
            lines[at] = line[:column] + chance.choice(CUTS) + line[column:]
        case 7:
            start = chance.randrange(len(lines))
            lines[at:at] = lines[start : start + chance.randrange(1, 8)]
        case _:
            indent = line[: len(line) - len(line.lstrip())]
            lines.insert(at, indent + chance.choice(WORDS))
    return "\n".join(lines)


def same(one: Code, other: Code) -> bool:
    """True if two programs have the same tree, places included, and the same index."""
    if ast.dump(one.tree, include_attributes=True) != ast.dump(other.tree, include_attributes=True):
        return False
    rows = []
    for code in (one, other):
        order, parent = code.order, code.parent
        kinds = {kind: [order[n] for n in nodes] for kind, nodes in code._by_type.items() if nodes}
        rows.append(([(type(n), order.get(parent.get(n))) for n in order], kinds, len(parent)))
    return rows[0] == rows[1]


@pytest.mark.parametrize("number", range(5))
def test_an_edited_text_has_the_findings_of_a_fresh_one(number: int) -> None:
    """60 random edits of each text, one after the other, some of which do not parse."""
    chance = random.Random(number)
    whole = text = programs()[number]
    found, reused, code, tree = 0, 0, Code(text, path="train.py"), None
    for _ in range(60):
        code.revise(text)
        fresh = Code(text, path="train.py")
        findings = examine(code, unused=True)
        assert findings == examine(fresh, unused=True)
        assert same(code, fresh)
        assert code.unread == fresh.unread
        around = [[(g.test, code.order[g.node]) for g in guards(code).around(n)] for n in code.nodes(ast.Call)]
        assert around == [
            [(g.test, fresh.order[g.node]) for g in guards(fresh).around(n)] for n in fresh.nodes(ast.Call)
        ]
        bound = [[code.order[b.node] for b in code.bound(n)] for n in code.nodes(ast.Name)]
        assert bound == [[fresh.order[b.node] for b in fresh.bound(n)] for n in fresh.nodes(ast.Name)]
        found += len(findings)
        reused += code.tree is tree
        tree = code.tree
        text = edited(text if fresh.whole or chance.random() < 0.6 else whole, chance)
    assert reused > 20
    assert found or number > 1


IMPORTS = [
    "import os",
    "import mine as os",
    "from mine import rank, dist",
    "import torch.distributed as dist",
    "import time",
]
NAMES = ["os", "dist", "rank", "torch", "time", "model", "is_main", "get_rank", "print", "args"]
DECORATORS = ["@main_process_only", "@staticmethod", "@functools.cache", "@property", "@torch.no_grad()"]


def restructured(text: str, chance: random.Random) -> str:
    """Return a valid text after an edit that changes what names mean elsewhere; the same text if none applies."""
    lines = text.split("\n")
    tree = ast.parse(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    function = chance.choice(functions)
    start = min([function.lineno, *(d.lineno for d in function.decorator_list)]) - 1
    end, indent = function.end_lineno or 0, " " * function.col_offset
    first = function.body[0].lineno - 1
    match chance.randrange(8):
        case 0:
            lines.insert(chance.choice([s.lineno - 1 for s in tree.body]), chance.choice(IMPORTS))
        case 1:
            imports = [s for s in tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
            gone = chance.choice(imports) if imports else None
            if gone is not None:
                del lines[gone.lineno - 1 : gone.end_lineno]
        case 2:
            moved = lines[start:end]
            del lines[start:end]
            other = chance.choice([s.lineno - 1 for s in tree.body])
            at = other if other <= start else other - len(moved)
            lines[at:at] = [line.removeprefix(indent) for line in moved]
        case 3:
            lines.insert(start, indent + chance.choice(DECORATORS))
        case 4 if function.decorator_list:
            del lines[start : function.lineno - 1]
        case 5:
            value = chance.choice(["0", "None", "dist.get_rank()", 'os.environ["RANK"]', "lambda: rank == 0"])
            lines.insert(first, f"{indent}    {chance.choice(NAMES)} = {value}")
        case 6:
            inner = chance.choice(
                ["global rank", "def rank(): return 1", "import time as dist", "for model in args: pass"]
            )
            lines.insert(first, f"{indent}    {inner}")
        case _:
            name, other = function.name, chance.choice(functions).name
            lines[function.lineno - 1] = lines[function.lineno - 1].replace(name, other, 1)
    after = "\n".join(lines)
    try:
        ast.parse(after)
    except SyntaxError:
        return text
    return after


@pytest.mark.parametrize("number", range(6))
def test_names_that_come_to_mean_something_else(number: int) -> None:
    """Imports, functions that move, decorators and names that hide others change findings in statements far away."""
    chance = random.Random(number)
    whole = text = [*programs()[:3], *(file.read_text(encoding="utf-8") for file in chance.sample(LABS, 3))][number]
    code = Code(text, path="train.py")
    seen = set()
    for _ in range(40):
        code.revise(text)
        fresh = Code(text, path="train.py")
        findings = examine(code, unused=True)
        assert findings == examine(fresh, unused=True)
        assert same(code, fresh)
        seen.add(tuple(f.check.id for f in findings))
        text = restructured(text if chance.random() < 0.9 else whole, chance)
    assert len(seen) > 1 or number > 1


def test_a_result_is_dropped_where_an_import_changes_a_name() -> None:
    """The rank is no longer read from the environment as soon as `os` is another module."""
    head = "import torch.distributed as dist\nimport {os}\n\n\n"
    text = head + "def f():\n    r = os.environ.get('RANK')\n    if r == '0':\n        dist.barrier()\n"
    code = Code(text.format(os="os"), path="train.py")
    assert [f.check.id for f in examine(code)] == ["DT101"]
    code.revise(text.format(os="mine as os"))
    assert examine(code) == examine(Code(code.text, path="train.py")) == []


SEVERAL = """\
import torch.distributed as dist


class Trainer:
    def __init__(self, args):
        self.rank = {rank}

    def save(self):
        if self.rank == 0:
            dist.barrier()
"""


def test_a_result_is_dropped_where_another_statement_changes_it() -> None:
    """The condition is on the rank as long as the constructor says so, in a method that is not edited."""
    code = Code(SEVERAL.format(rank="dist.get_rank()"), path="train.py")
    assert [f.check.id for f in examine(code)] == ["DT101"]
    code.revise(SEVERAL.format(rank="1  "))
    assert examine(code) == examine(Code(code.text, path="train.py")) == []
    code.revise(SEVERAL.format(rank="dist.get_rank()"))
    assert [f.check.id for f in examine(code)] == ["DT101"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1 \\\n\ny = 2\n", "x = 1 \\\n+ 2\ny = 2\n"),  # a line that goes on
        ("if a:\n    b\nc = 1\n", "if a:\n    b\nelse:\n    c = 1\n"),
        ("a = 1\nb = 2\nc = 3\n", 'a = 1\nb = """2\nc = 3\n'),  # a string without an end
        ("class A:\n    a = 1;\n    b = 1;\n", "class A:\n    a = 1;\n    b = 2;\n\n"),
        (
            "class A:\n    a = 1\n    @f\n    def b(self): pass\n",
            "class A:\n    a = 1\n    @g\n    def b(self): pass\n",
        ),
        ("@f\nclass A:\n    a = 1\n    b = 1\nc = 1\n", "@f\nclass A:\n    a = 1\n\n    b = 2\nc = 1\n"),
        ("class A:\n\ta = 1\n\tb = 2\n", "class A:\n\ta = 1\n        b = 2\n"),
        ("a = 1\nb = 2\n", ""),
        ("", "a = 1\n"),
    ],
)
def test_edits_at_the_edges(before: str, after: str) -> None:
    """What is before or behind the changed statements may belong to them, or they to it."""
    code, fresh = Code(before), Code(after)
    assert code.parent is not None
    code.revise(after)
    assert same(code, fresh)

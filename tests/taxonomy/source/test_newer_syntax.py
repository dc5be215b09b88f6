"""Programs in the syntax of Python 3.12 to 3.14, read on 3.11."""

from __future__ import annotations

import ast

import pytest

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.lenient_parser import parse_program
from dtdebug_taxonomy.source.python.newer_syntax import in_older_syntax


@pytest.mark.parametrize(
    "line",
    [
        "def first[T](items: list[T]) -> T: pass",
        "async def first[T = int, *Ts, **P](items): pass",
        "class Box[T: (int, str)](Base): pass",
        "type Pair[T] = tuple[T, T]",
        "if fine: type Row = int",
        'print(f"{row["loss"]} of {", ".join(names)}")',
        "print(f'{f'{row['loss']}'}')",
        'print(f"{f"{f"{f"{1 + 1}"}"}"}")',
        'print(f"{"\\n".join(names)} {row["it\'s"]!r:>{width}}")',
        'print(f"{now:%H:%M} {{}} {row["a"]:{"x"}}")',
        'print(f"""{\n    row["loss"]  # the newest one\n}""")',
        "try: pass\nexcept ValueError, OSError: pass",
        'name = t"step {step}"',
    ],
)
def test_new_syntax_is_read(line: str) -> None:
    """A program in newer syntax is read completely, and what stands after it keeps its place."""
    text = f"import torch.distributed as dist\n{line}\nrank = 0; dist.barrier()\n"
    older = in_older_syntax(text)
    assert len(older) == len(text)
    ast.parse(older, feature_version=(3, 11))
    result = parse_program(text)
    assert result.whole
    assert result.gaps == ()
    call = Code(text).calls("torch.distributed.barrier")[0]
    assert (call.lineno, call.col_offset) == (text.count("\n"), 10)


@pytest.mark.parametrize(
    "text",
    [
        "type = 3\ntype (3)\nkinds = [type, type]\ntype: int = 4\n",
        "x = f\"{a['b']}\" 'it''s' r'\\' \"# no comment\"\n",
        "class A:\n    def f(self): return self.type == 3\n",
        "try: pass\nexcept (ValueError, OSError): pass\n",
        "def f(x): return x[0]\n",
    ],
)
def test_older_syntax_is_left_alone(text: str) -> None:
    """A program that every release reads stays as it is."""
    assert in_older_syntax(text) == text


@pytest.mark.parametrize(
    "text", ["except ValueError, e: pass", 'x = f"{a', "x = f'{a:{b", "x = 'a", 'f"""{', "def f[T"]
)
def test_broken_text_stays_broken(text: str) -> None:
    """What no release accepts is reported as not understood."""
    whole = f"try: pass\n{text}\n"
    assert len(in_older_syntax(whole)) == len(whole)
    assert not parse_program(whole).whole

"""Programs are read as they are, broken ones too, and their conditions on the rank are understood."""

import ast
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtdebug_taxonomy.source.config.yaml_reader import read_yaml
from dtdebug_taxonomy.source.python import bindings
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.lenient_parser import parse_program
from dtdebug_taxonomy.source.python.ranks import rank, several
from dtdebug_taxonomy.source.text import Place, Span, Text

PROGRAM = '''\
"""A program with all kinds of statements."""
import os
import torch.distributed as dist

@decorated(1,
           two="é😀")
class Trainer(Base):
    text = """several
lines # no comment
"""
    def __init__(self, rank=0, *args, **kwargs):
        self.rank = int(os.environ.get("RANK", rank))

    async def run(self, loader):
        async with lock:
            for i, (x, y) in enumerate(loader):
                if self.rank == 0 and i % 10 == 0:
                    print(f"{i}: {x!r:>{10}}")
                elif self.rank == 1:
                    continue
                else:
                    dist.barrier()
                try:
                    loss = self.model(x)
                except (RuntimeError, ValueError) as error:
                    raise SystemExit(1) from error
                else:
                    pass
                finally:
                    del x
        match loader:
            case [first, *_]:
                return {k: v for k, v in first.items() if (n := len(v)) > 1}
            case _:
                return lambda a, /, b=1: a[b:2, ...]

if __name__ == "__main__":
    Trainer().run([1, 2,
                   3])
'''


# -- text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a\nb", ["a", "b"]),
        ("a\r\nb\rc\n", ["a", "b", "c", ""]),
        ("a\fb\x0bc\x1cd\u2028e\x85f", ["a\fb\x0bc\x1cd\u2028e\x85f"]),
    ],
)
def test_lines_end_where_editors_end_them(text, lines):
    read = Text(text)

    assert lines == read.lines()
    assert lines == [read.line(n) for n in range(1, len(read.starts) + 1)]
    assert "" == read.line(len(lines) + 1) == read.line(0)


@given(st.text(alphabet="ab \r\n\f\u2028é😀", max_size=60))
def test_every_offset_has_one_place_and_every_place_its_offset(text):
    read = Text(text)

    for offset in range(len(text) + 1):
        line, column = read.place(offset)
        assert 1 <= line <= len(read.starts)
        assert offset == read.starts[line - 1] + column - 1


def test_columns_of_the_parser_are_bytes_and_become_code_points():
    text = Text('x = 1\ns = "é😀"; y = 2\n')

    second = ast.parse(text).body[2]

    assert "y = 2" == text[text.offset_of_byte(second.lineno, second.col_offset) :].strip()


@pytest.mark.parametrize("before", ["", "\ufeff", "# é\n", "\ufeff'é'; "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_span_of_a_call_is_its_own_text(before, end):
    code = Code(f"{before}f(1){end}if x:{end}    s = '😀é'; g(2,{end}      3){end}")

    spans = [code.span(c) for c in code.nodes(ast.Call)]

    assert ["f(1)", f"g(2,{end}      3)"] == [code.cut(s) for s in spans]


# -- tolerant parsing ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("f()\ndist.\ng()\n", {"f", "g"}),
        ("def a():\n    f()\n    if rank ==\n    g()\n", {"f", "g"}),
        ("f()\nx = [1,\ndef a():\n    g()\n", {"f", "g"}),
        ("<<<<<<< mine\nf()\n=======\ng()\n>>>>>>> theirs\n", {"f", "g"}),
        ("if rank == 0:\ng()\n", {"g"}),
        ("try:\n    f()\nexcept\n    g()\nh()\n", {"f", "g", "h"}),
        ("f()\nprint 'python 2'\ng()\n", {"f", "g"}),
        ("@decorator\ng()\n", {"g"}),
    ],
)
def test_what_stands_around_a_broken_statement_is_kept(text, calls):
    tree, whole, *_ = parse_program(text)

    found = {n.func.id: n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}

    assert not whole
    assert calls <= set(found)
    for name, node in found.items():
        assert text.split("\n")[node.lineno - 1][node.col_offset :].startswith(name)


def test_a_call_stays_in_its_function_when_another_one_is_broken():
    code = Code("def one():\n    f(\n\ndef two():\n    g()\n")

    (call,) = code.calls("g")

    assert "two" == code.function(call).name


def test_a_whole_program_is_parsed_as_python_parses_it():
    tree, whole, *_ = parse_program(PROGRAM)

    assert whole
    assert ast.dump(ast.parse(PROGRAM)) == ast.dump(tree)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "\ufeff",
        "x = '\0'\nf()",
        "\f\nf()\f",
        "def f(:\n" * 500,
        "(" * 5000,
        "[" * 300 + "]" * 300,
        "if x:\n" * 300,
        "".join(" " * n + "if x:\n" for n in range(300)),
        "'" * 9999,
        '"""' + "a\n" * 5000,
        "x = 1;" * 5000 + ")",
        "é" * 5000 + "(",
        "\\\n" * 5000,
        "@a\n" * 2000,
        "else:\n" * 2000,
        "\t if x:\n \t f()\n" * 500,
        "# " + "x" * 1_000_000,
        "x = [" + "1, " * 300_000,
        "f(" + "'" * 1_000_001,
        "a" * 2_500_000,
        "lambda: " * 3000,
        "-" * 20_000 + "1",
        "a." * 20_000 + "b",
        "\ud800 = 1",
    ],
)
def test_hostile_text_is_read_to_its_end(text):
    code = Code(text)

    assert all(0 <= start <= end <= len(text) for start, end in map(code.span, code.nodes(ast.Call)))


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\r\nb: é\r\nc: [1,\r\n 2]\n",
        '\ufeffa: 1\nb: "ä😀" # x\nc: 2\n',
        "a:\x85 b: 1\u2028c: 2\n",
        'a: "\ud800"',
        "- &a [*a]\n- *a\n",
        "a: |\n  x\n  y\n\nb: >-\n  z\n---\nc: {d: ''}\n",
        "x: !!python/object:os.system y\n<<: {z: 1}\n",
        "a: 1\n---\nb: [1\n",
        "a: *nowhere\n",
        "[" * 20_000,
    ],
)
def test_yaml_is_read_alike_with_and_without_libyaml(text, monkeypatch):
    """Values, places and the words of a fault."""
    quick = read_yaml(Text(text))
    monkeypatch.setattr("yaml.__with_libyaml__", False)
    assert read_yaml(Text(text)) == quick


def _read_all(text):
    """Asks all that the checks ask; every place is within the text."""
    code = Code(text)
    conditions = guards(code)
    for call in code.nodes(ast.Call):
        span = code.span(call)
        assert 0 <= span.start <= span.end <= len(text)
        assert 1 <= code.text.place(span.start).line <= len(code.text.starts)
        conditions.around(call)
        code.local_function(call)
        code.name(call.func)
    for name in code.nodes(ast.Name):
        rank(code, name)
        code.made_by(name)
        code.constant(name)
    for condition in code.nodes(ast.If):
        conditions.test(condition.test)
        several(code, condition.test)
    return code


@given(st.integers(0, len(PROGRAM)))
def test_any_beginning_of_a_program_can_be_read(end):
    _read_all(PROGRAM[:end])


@given(
    st.integers(0, len(PROGRAM)),
    st.integers(0, 40),
    st.text(alphabet=string.printable + "\0\f\r\u2028\ufeffé😀", max_size=12),
)
def test_any_edit_of_a_program_can_be_read(start, cut, new):
    _read_all(PROGRAM[:start] + new + PROGRAM[start + cut :])


@given(st.text(max_size=200))
def test_any_text_can_be_read(text):
    _read_all(text)


# -- names and values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "values"),
    [
        ("x = 1", ["1"]),
        ("x = 1\nx = 2", ["2"]),
        ("x = 1\nif c:\n    x = 2", ["1", "2"]),
        ("if c:\n    x = 1\nelse:\n    x = 2", ["1", "2"]),
        ("x, y = 1, 2", ["1"]),
        ("x, y = f()", [None]),
        ("(x := 3)", ["3"]),
        ("x: int = 4", ["4"]),
        ("x = 1\nif c:\n    x = 2\n    raise E", ["1"]),
        ("for x in rows: pass", [None]),
        ("import x", [None]),
    ],
)
def test_a_name_stands_for_what_can_reach_it(before, values):
    code = Code(f"{before}\nuse(x)\n")
    (call,) = code.calls("use")

    found = code.values(call.args[0])

    assert values == [v if v is None else ast.unparse(v) for v in found]


def test_an_attribute_of_self_is_known_in_other_methods():
    code = Code("class T:\n    def __init__(self):\n        self.m = DDP(n)\n    def f(self):\n        use(self.m)\n")
    (call,) = code.calls("use")

    assert {"DDP"} == code.made_by(call.args[0])


def test_an_argument_stands_for_what_the_calls_in_the_file_pass():
    code = Code("def f(m, k=1):\n    use(m)\n\nf(DDP(a))\nf(m=DDP(b))\n")
    (call,) = code.calls("use")

    assert code.is_made_by(call.args[0], "DDP")
    assert not Code("def f(m):\n    use(m)\nf(DDP(a))\nf(g)\n").is_made_by(call.args[0], "DDP")


@pytest.mark.parametrize(
    ("first", "later", "sure"),
    [
        ("a()", "b()", True),
        ("if c:\n    a()", "b()", False),
        ("if c:\n    a()\n    raise E", "b()", None),
        ("if c:\n    a()\nelse:\n    b()", "", None),
        ("with c:\n    a()", "b()", True),
        ("for x in y:\n    a()", "b()", False),
        ("try:\n    a()\nexcept E:\n    pass", "b()", False),
    ],
)
def test_whether_one_place_is_always_passed_before_another(first, later, sure):
    code = Code(f"{first}\n{later}\n")
    (a,), (b,) = code.calls("a"), code.calls("b")

    assert sure is bindings.surely_before(code, a, b)


# -- ranks and conditions on them -----------------------------------------------------------------

IMPORTS = """\
import os
import torch
import torch.distributed as dist
import horovod.torch as hvd
from accelerate import PartialState
"""


def _test_of(condition, before=""):
    code = Code(f"{IMPORTS}{before}\nif {condition}:\n    use()\n")
    test = guards(code).test(code.nodes(ast.If)[-1].test)
    return None if test is None else (test.which, test.value, test.equal)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("rank == 0", ("global", "0", True)),
        ("0 == args.rank", ("global", "0", True)),
        ("not rank", ("global", "0", True)),
        ("self.rank", ("global", "0", False)),
        ("self.rank != 0", ("global", "0", False)),
        ("rank > 0", ("global", "0", False)),
        ("rank >= 1", ("global", "0", False)),
        ("rank < 1", ("global", "0", True)),
        ("rank <= 0", ("global", "0", True)),
        ("0 < rank", ("global", "0", False)),
        ("rank < 4", ("global", "< 4", True)),
        ("rank >= 4", ("global", "< 4", False)),
        ("4 <= rank", ("global", "< 4", False)),
        ("rank in (0, 1)", ("global", "0,1", True)),
        ("local_rank in [-1, 0]", ("local", "0", True)),
        ("local_rank not in [-1, 0]", ("local", "0", False)),
        ("rank in leaders", ("global", "in leaders", True)),
        ("rank % 2 == 0", ("global", "% 2 == 0", True)),
        ("rank % 2", ("global", "% 2 == 0", False)),
        ("rank // 8 != 0", ("global", "// 8 == 0", False)),
        ("rank == world_size - 1", ("global", "world_size - 1", True)),
        ("args.gpu == 0", ("local", "0", True)),
        ("tp_rank == 0", ("tp_rank", "0", True)),
        ("node_rank == 0", ("node_rank", "0", True)),
        ("dist.get_rank() == 0", ("global", "0", True)),
        ("torch.distributed.get_rank() != 0", ("global", "0", False)),
        ("dist.get_rank(group) == 0", ("group", "0", True)),
        ("hvd.local_rank() == 0", ("local", "0", True)),
        ("int(os.environ['RANK']) == 0", ("global", "0", True)),
        ("int(os.environ.get('LOCAL_RANK', 0)) == 0", ("local", "0", True)),
        ("os.getenv('SLURM_PROCID') == '0'", ("global", "0", True)),
        ("is_main_process()", ("global", "0", True)),
        ("not utils.is_main_process()", ("global", "0", False)),
        ("is_master(args)", ("global", "0", True)),
        ("accelerator.is_local_main_process", ("local", "0", True)),
        ("PartialState().is_main_process", ("global", "0", True)),
        ("get_context().get_world_rank() == 0", ("global", "0", True)),
        ("trainer.is_global_zero", ("global", "0", True)),
        ("trainer.is_world_process_zero()", ("global", "0", True)),
        ("master_process", ("global", "0", True)),
        ("is_rank0", ("global", "0", True)),
        ("rank == 0 and step % 10 == 0", ("global", "0", True)),
        ("verbose and not is_main_process()", ("global", "0", False)),
        ("not dist.is_initialized() or dist.get_rank() == 0", ("global", "0", True)),
        ("rank == -1 or rank == 0", ("global", "0", True)),
        ("world_size == 1 or rank == 0", ("global", "0", True)),
        ("rank == 0 or rank == 3", ("global", "0,3", True)),
        ("bool(rank == 0)", ("global", "0", True)),
    ],
)
def test_a_condition_on_the_rank_is_seen(condition, expected):
    assert expected == _test_of(condition)


@pytest.mark.parametrize(
    "condition",
    [
        "rank != -1",
        "rank == -1",
        "rank > -1",
        "rank >= 0",
        "rank is None",
        "rank is not None",
        "rank < world_size",
        "rank < dist.get_world_size()",
        "world_size > 1",
        "args.gpu is not None",
        "args.gpu",
        "args.distributed",
        "dist.is_initialized()",
        "rank == 0 or everywhere",
        "rank == 0 and world_size == 1",
        "not dist.is_initialized() and rank == 0",
        "lora_rank == 0",
        "matrix.rank_of == 0",
        "args.master == 'host'",
        "main()",
        "args.leader",
        "is_first_batch",
        "is_root",
        "step == 0",
        "True",
    ],
)
def test_other_conditions_say_nothing_of_the_rank(condition):
    assert _test_of(condition) is None


@pytest.mark.parametrize(
    ("before", "condition"),
    [
        ("me = dist.get_rank()", "me == 0"),
        ("me, n = dist.get_rank(), dist.get_world_size()", "me == 0"),
        ("is_zero = dist.get_rank() == 0", "is_zero"),
        ("log = not dist.is_initialized() or dist.get_rank() == 0", "log"),
        ("first = dist.get_rank() == 0 if dist.is_initialized() else True", "first"),
        ("def mine():\n    return dist.get_rank() == 0", "mine()"),
        (
            "def mine():\n    if not dist.is_initialized():\n        return True\n    return dist.get_rank() == 0",
            "mine()",
        ),
        ("me = int(os.environ.get('RANK') or 0)", "me == 0"),
        ("main_rank = 0\nrank = dist.get_rank()", "rank == main_rank"),
    ],
)
def test_a_condition_is_followed_to_what_its_names_stand_for(before, condition):
    assert ("global", "0", True) == _test_of(condition, before)


def test_a_condition_is_followed_into_a_property_of_the_class():
    code = Code(
        f"{IMPORTS}class C:\n    @property\n    def first(self):\n        return dist.get_rank() == 0\n"
        "    def f(self):\n        if self.first:\n            use()\n"
    )
    (call,) = code.calls("use")

    assert ["only on rank 0"] == [g.test.words for g in guards(code).around(call)]


@pytest.mark.parametrize(
    ("before", "condition"),
    [
        ("for rank in range(8): pass", "rank == 0"),
        ("rank = torch.linalg.matrix_rank(a)", "rank == 0"),
        ("rank = 8", "rank == 0"),
        ("rank = []", "rank == 0"),
        ("for turn in range(8): pass", "turn == dist.get_rank()"),
    ],
)
def test_a_name_like_a_rank_that_is_none_is_told_from_one(before, condition):
    assert _test_of(condition, before) is None


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("dist.is_initialized()", True),
        ("not args.distributed", False),
        ("dist.is_available() and dist.is_initialized()", True),
        ("world_size > 1", True),
        ("dist.get_world_size() == 1", False),
        ("int(os.environ['WORLD_SIZE']) >= 2", True),
        ("'RANK' in os.environ", True),
        ("local_rank != -1", True),
        ("rank is None", False),
        ("torch.cuda.is_available()", None),
        ("world_size > 4", None),
        ("rank == 0", None),
        ("x in y", None),
    ],
)
def test_a_condition_tells_whether_there_are_several_processes(condition, expected):
    code = Code(f"{IMPORTS}if {condition}:\n    use()\n")

    assert expected is several(code, code.nodes(ast.If)[-1].test)


def _words(program):
    code = Code(IMPORTS + program)
    (call,) = code.calls("use")
    return [(g.test.words, g.early) for g in guards(code).around(call)]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("if rank == 0:\n    use()", [("only on rank 0", False)]),
        ("if rank == 0:\n    pass\nelse:\n    use()", [("on all ranks but rank 0", False)]),
        (
            "if rank == 0:\n    pass\nelif rank == 1:\n    use()",
            [("only on rank 1", False), ("on all ranks but rank 0", False)],
        ),
        ("x = use() if rank == 0 else None", [("only on rank 0", False)]),
        ("rank == 0 and use()", [("only on rank 0", False)]),
        ("rank == 0 or use()", [("on all ranks but rank 0", False)]),
        ("while rank == 0:\n    use()", [("only on rank 0", False)]),
        ("if rank < 2:\n    with a:\n        for b in c:\n            use()", [("only where rank < 2", False)]),
        ("def f():\n    if rank != 0:\n        return\n    use()", [("only on rank 0", True)]),
        ("for a in b:\n    if local_rank:\n        continue\n    use()", [("only on local rank 0", True)]),
        ("import sys\nif rank > 0:\n    sys.exit()\nuse()", [("only on rank 0", True)]),
        ("def f():\n    if rank == 0:\n        pass\n    else:\n        return\n    use()", [("only on rank 0", True)]),
        (
            "def f():\n    if dist.is_initialized():\n        if rank != 0:\n            return\n    use()",
            [("only on rank 0", True)],
        ),
        ("def f():\n    with a:\n        if rank != 0:\n            return\n    use()", [("only on rank 0", True)]),
        ("@rank_zero_only\ndef f():\n    use()", [("only on rank 0", False)]),
        ("@acc.on_local_main_process\ndef f():\n    use()", [("only on local rank 0", False)]),
        ("def f():\n    if rank != 0:\n        raise E\n    use()", []),
        ("if rank == 0:\n    def f():\n        use()", []),
        ("if rank == 0 and fast:\n    pass\nelif slow:\n    use()", []),
        ("def f():\n    if rank != 0 and quiet:\n        return\n    use()", []),
        ("if use() == rank:\n    pass", []),
    ],
)
def test_the_conditions_on_the_rank_around_a_place(program, expected):
    assert expected == _words(program)


@pytest.mark.parametrize(
    ("program", "paired"),
    [
        ("if rank == 0:\n    f()\nelse:\n    f()", True),
        ("if rank != 0:\n    f()\nwork()\nif rank == 0:\n    f()", True),
        ("if local_rank != 0:\n    f()\nif is_main_process():\n    f()", True),
        ("def g():\n    if rank == 0:\n        f()\n        return\n    f()", True),
        (
            "class C:\n    def enter(self):\n        if rank: f()\n    def exit(self):\n        if not rank: f()",
            True,
        ),
        ("if rank == 0 and x:\n    f()\nelse:\n    f()", True),
        ("if rank == 0:\n    f()\n    f()", False),
        ("if rank == 0:\n    f()\nif rank == 1:\n    f()", False),
        ("if rank == 0:\n    f()\nf()", False),
        ("def a():\n    if rank == 0: f()\ndef b():\n    if rank != 0: f()", False),
    ],
)
def test_two_places_that_make_up_for_each_other_are_a_pair(program, paired):
    code = Code(IMPORTS + program)
    calls = code.calls("f")

    assert paired is guards(code).has_counterpart(calls[0], calls)


def test_spans_and_places_compare_by_value():
    assert Span(1, 2) == Span(1, 2)
    assert Place(3, 1) == Text("a\nb\nc").place(4)


@pytest.mark.parametrize(
    "program",
    [
        "def setup():\n    return dist.get_rank() == 0, 4\nboss, n = setup()\nif boss:\n    dist.barrier()\n",
        "def mine():\n    return int(os.environ['RANK'])\nme = mine()\nif me == 0:\n    dist.barrier()\n",
        (
            "def main(args):\n    args.me = dist.get_rank()\n    run(args)\ndef run(a):\n    if a.me == 0:\n"
            "        dist.barrier()\nmain(parse())\n"
        ),
        (
            "@dataclass\nclass C:\n    who: int = field(default_factory=lambda: dist.get_rank())\nc = C()\n"
            "if c.who == 0:\n    dist.barrier()\n"
        ),
        "class C:\n    def one(self):\n        return not dist.get_rank()\nc = C()\nif c.one():\n    dist.barrier()\n",
        (
            "class C:\n    def __init__(self, who):\n        self.who = who\n    def go(self):\n"
            "        if self.who == 0:\n            dist.barrier()\nC(dist.get_rank()).go()\n"
        ),
    ],
)
def test_a_rank_is_followed_through_functions_arguments_and_objects(program):
    code = Code(f"import os\nimport torch.distributed as dist\nfrom dataclasses import dataclass, field\n{program}")
    (barrier,) = code.calls("torch.distributed.barrier")

    assert [g.test.words for g in guards(code).around(barrier)] == ["only on rank 0"]


@pytest.mark.parametrize(
    "program",
    [
        "n = dist.get_world_size()\nif dist.get_rank() in range(n):\n    dist.barrier()\n",
        "every = list(range(dist.get_world_size()))\nif dist.get_rank() in every:\n    dist.barrier()\n",
        "class C:\n    who = 0\nc = C()\nc.who = parse()\nif c.who:\n    dist.barrier()\n",
        "world_size = 4\nif dist.get_rank() in [0, 1, 2, 3]:\n    dist.barrier()\n",
        "spawn(f, nprocs=2)\nranks = (0, 1)\nif dist.get_rank() in ranks:\n    dist.barrier()\n",
        "match mode:\n    case 0:\n        dist.barrier()\n",
        "match rank:\n    case -1:\n        pass\n    case _:\n        dist.barrier()\n",
        "match rank:\n    case 0 | Role.FIRST:\n        dist.barrier()\n",
        "match rank:\n    case 0 if quiet:\n        pass\n    case _:\n        dist.barrier()\n",
        "match rank:\n    case 0 if quiet:\n        exit()\ndist.barrier()\n",
    ],
)
def test_what_every_rank_is_in_keeps_none_back(program):
    code = Code(f"import torch.distributed as dist\n{program}")
    (barrier,) = code.calls("torch.distributed.barrier")

    assert not guards(code).around(barrier)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("match dist.get_rank():\n    case 0:\n        dist.barrier()\n", "only on rank 0"),
        ("match rank:\n    case 0 | 2 as me:\n        dist.barrier()\n", "only on rank 0,2"),
        ("match rank:\n    case 0:\n        pass\n    case _:\n        dist.barrier()\n", "on all ranks but rank 0"),
        ("match rank:\n    case n if n == 0:\n        pass\n    case 1:\n        dist.barrier()\n", "only on rank 1"),
        ("match rank == 0:\n    case True:\n        dist.barrier()\n", "only on rank 0"),
        ("match rank:\n    case 0:\n        pass\n    case _:\n        exit()\ndist.barrier()\n", "only on rank 0"),
        ("world_size = 4\nif dist.get_rank() in [0, 1]:\n    dist.barrier()\n", "only on rank 0,1"),
        ("world_size = 4\nif dist.get_rank() not in [1, 2, 3]:\n    dist.barrier()\n", "on all ranks but rank 1,2,3"),
    ],
)
def test_a_case_and_a_row_of_ranks_let_only_some_pass(program, words):
    code = Code(f"import torch.distributed as dist\n{program}")
    (barrier,) = code.calls("torch.distributed.barrier")

    assert [g.test.words for g in guards(code).around(barrier)] == [words]


@pytest.mark.parametrize(
    ("program", "values"),
    [
        ("match mode:\n    case 1:\n        a = f()\n    case _:\n        a = g()\nprint(a)\n", {"f", "g"}),
        ("a = f()\nmatch mode:\n    case 1:\n        a = g()\n    case _:\n        print(a)\n", {"f"}),
    ],
)
def test_what_one_case_binds_the_others_do_not_see(program, values):
    code = Code(program)
    (shown,) = code.calls("print")

    assert code.made_by(shown.args[0]) == values

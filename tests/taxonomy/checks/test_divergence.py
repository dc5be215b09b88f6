"""Values that ranks do not share are followed to the decision before a collective; fixes add no divergence."""

import pytest

from dtdebug_taxonomy.checks.divergence.decisions import divergences
from dtdebug_taxonomy.checks.run.effects_of_fix import breaks
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.project import Project

HEAD = "import os, random, signal, socket, time\nimport torch\nimport torch.distributed as dist\n"


def found(text, **others):
    code = Code(HEAD + text, path="main.py")
    code.project = Project(lambda path: others.get(path.removesuffix(".py")))
    return [(d.kind, d.how, d.call) for d in divergences(code)]


def test_a_lambda_a_partial_and_a_function_in_an_attribute_are_followed():
    guarded = "def f(x):\n    {make}\n    if dist.get_rank() == 0:\n        g()\n"
    keeper = (
        "def wait():\n    dist.barrier()\nclass T:\n    def __init__(self, end):\n        self.end = end\n"
        "    def finish(self):\n        if dist.get_rank() == 0:\n            self.end()\nT(wait).finish()\n"
    )

    assert found(guarded.format(make="g = lambda: dist.barrier()")) == [("rank", "call", "barrier")]
    assert found(guarded.format(make="from functools import partial; g = partial(dist.all_reduce, x)")) == [
        ("rank", "call", "all_reduce")
    ]
    assert found(guarded.format(make="g = lambda: print(x)")) == []
    assert found(keeper) == [("rank", "call", "barrier")]


def test_a_value_from_another_module_is_followed_until_the_ranks_exchange_it():
    late = "import time\nSTART = time.time()\ndef late():\n    return time.time() - START > 60\n"
    loop = "from clock import late\ndef run(x):\n    while True:\n        dist.all_reduce(x)\n"
    loop += "{decide}        if {test}:\n            break\n"
    shared = "        t = torch.tensor([float(late())])\n        dist.broadcast(t, src=0)\n"

    assert found(loop.format(decide="", test="late()"), clock=late) == [("clock", "leave", "all_reduce")]
    assert found(loop.format(decide=shared, test="t.item()"), clock=late) == []


@pytest.mark.parametrize(
    "text",
    [
        "x = " + " + ".join(["1"] * 3000) + "\ndist.barrier()\n",
        "def f():\n    f()\n    dist.barrier()\nf()\n",
        "\n".join(f"def f{n}():\n    f{n + 1}()\n" for n in range(300)) + "\ndef f300():\n    dist.barrier()\n",
    ],
)
def test_long_and_circular_programs_end(text):
    assert found(text) == []


def test_a_change_that_reads_a_name_too_early_or_parts_the_ranks_breaks():
    early = "def main(args):\n{guard}    setup(args)\n    args.rank = dist.get_rank()\n"
    before = Code(HEAD + early.format(guard=""), path="main.py")
    after = Code(HEAD + early.format(guard="    if args.rank == 0:\n        print(1)\n"), path="main.py")
    both = Code("a = acc.gather(p) == acc.gather(q)\n", path="main.py")
    half = Code("a = acc.gather_for_metrics(p) == acc.gather(q)\n", path="main.py")
    wait = Code(HEAD + "def f(x):\n    dist.all_reduce(x)\n", path="main.py")
    alone = Code(HEAD + "def f(x):\n    if random.random() < 1:\n        dist.all_reduce(x)\nf(1)\n", path="main.py")

    assert breaks(before, after)
    assert breaks(both, half)
    assert breaks(wait, alone)
    assert not breaks(after, before)
    assert not breaks(alone, wait)
    assert not breaks(before, before)


def test_a_change_that_does_not_compile_or_asks_none_for_a_method_breaks():
    head = "def step(loss, model, amp):\n    scaler = S() if amp else None\n"
    body = "    if amp:\n        scaler.scale(loss)\n    {new}if amp:\n        scaler.step()\n"
    before = Code(head + body.format(new=""), path="main.py")
    twice = Code("t = T(a=1, b=2)\n", path="main.py"), Code("t = T(a=1, a=2)\n", path="main.py")

    assert breaks(before, Code(head + body.format(new="scaler.unscale_()\n    "), path="main.py"))
    assert not breaks(before, Code(head + body.format(new="if amp:\n        scaler.unscale_()\n    "), path="main.py"))
    assert breaks(*twice)


def test_a_change_that_leaves_a_call_with_a_possible_meeting_to_one_rank_breaks():
    text = "def load(x, many):\n    if many:\n        dist.barrier()\ndef run(x, many):\n    {guard}load(x, many)\n"
    before = Code(HEAD + text.format(guard=""), path="main.py")
    after = Code(HEAD + text.format(guard="if dist.get_rank() == 0: "), path="main.py")

    assert breaks(before, after)
    assert not breaks(after, before)


def test_each_part_of_a_returned_tuple_has_its_own_value():
    env = "import os\ndef info():\n    if True:\n        r = int(os.environ['RANK'])\n        n = 8\n    return r, n\n"
    use = "from env import info\ndef run(x):\n    r, n = info()\n    if {name} > 3:\n        dist.all_reduce(x)\n"

    assert found(use.format(name="n"), env=env) == []
    assert found(use.replace("r, n =", "a, b =").format(name="a"), env=env) == [("rank", "branch", "all_reduce")]


def test_where_a_range_ends_does_not_decide_which_numbers_are_in_it():
    loop = "def run(x, loader):\n    for i in range({ends}):\n        if i % 10 == 0:\n            dist.all_reduce(x)\n"
    own = "own = len(os.listdir(f'part{dist.get_rank()}'))\n"

    assert ("part", "branch", "all_reduce") not in found(own + loop.format(ends="own"))
    assert ("part", "branch", "all_reduce") in found(own + loop.format(ends="own, 100"))


def test_a_file_that_is_asked_for_before_the_work_is_the_same_for_all():
    loop = "def run(x):\n    {first}while True:\n        dist.all_reduce(x)\n        if {test}:\n            break\n"

    early = "there = os.path.exists('stop')\n    "
    step = "n = 0\n    if os.path.exists('stop'):\n        n = 9\n    "

    assert found(loop.format(first=early, test="there")) == []
    assert found(loop.replace("while True", "while n < 10").format(first=step, test="os.path.exists('x') > n")) == [
        ("file", "leave", "all_reduce")
    ]
    assert found(loop.format(first="", test="os.path.exists('stop')")) == [("file", "leave", "all_reduce")]

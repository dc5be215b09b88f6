"""Contracts in a source: values that it decides, calls that break a demand by them, and silence where it does not."""

import ast

import pytest

from dtdebug_taxonomy.checks.shared.contract_calls import broken_calls, sentence, started_size
from dtdebug_taxonomy.knowledge.contracts import load_contracts
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.known_values import ANYWHERE, KnownValues, World

HEAD = "import os\nimport torch\nimport torch.distributed as dist\nfrom torch import nn\n"


def value(text, world=ANYWHERE, head=""):
    code = Code(f"{HEAD}{head}\nx = {text}\n")
    (bound,) = [n for n in code.nodes(ast.Assign) if ast.unparse(n.targets[0]) == "x"]
    return KnownValues(code, world).value(bound.value)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("[None] * 3", 3),
        ("[torch.zeros(2) for _ in range(dist.get_world_size() + 1)]", 5),
        ("list(range(int(os.environ['WORLD_SIZE'])))", 4),
        ("torch.zeros(8, 3).chunk(4)", 4),
        ("torch.ones(7).chunk(4)", 4),
        ("torch.ones(5).chunk(4)", 3),
        ("[1, 2] if dist.get_rank() == 0 else None", None),
        ("[a for a in unknown]", None),
        ("[a for a in range(4) if a]", None),
        ("[*unknown, 1]", None),
    ],
)
def test_the_length_of_a_list_is_known_for_a_rank(text, length):
    """What is not decided is None."""
    found = value(text, World(4, 1))
    assert (found and found.length) == length


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("torch.zeros(2, 3)", (2, 3), "float32"),
        ("torch.empty((2, 3), dtype=torch.int64)", (2, 3), "int64"),
        ("torch.zeros_like(torch.ones(4)).long()", (4,), "int64"),
        ("torch.tensor([0, 3])", (2,), "int64"),
        ("torch.ones(2, 3).view(6).unsqueeze(0)", (1, 6), "float32"),
        ("torch.full((2,), 1)", (2,), "int64"),
        ("torch.ones(2).to('cuda')", (2,), "float32"),
        ("torch.ones(2).to(device)", (2,), None),
    ],
)
def test_a_tensor_that_is_made_here_has_its_shape(text, shape, dtype):
    """Its dtype only if nothing may change it."""
    found = value(text)
    assert (found.shape, found.dtype) == (shape, dtype)


@pytest.mark.parametrize(
    "head",
    [
        "n = 3\nn += 1\n",
        "n = int(input())\n",
        "if dist.is_available():\n    n = 3\nelse:\n    n = 4\n",
        "for n in range(3):\n    pass\n",
        "def f(n):\n    return n\n",
        "from other import n\n",
    ],
)
def test_a_name_of_several_values_is_unknown(head):
    """Also an argument, and what another module has."""
    assert value("n", head=head) is None


@pytest.mark.parametrize("use", ["parts.append(1)", "parts[0] = 1", "del parts[0]", "change(parts)"])
def test_a_list_that_may_have_changed_is_unknown(use):
    """Its length is not that of its assignment."""
    assert value("parts", head=f"def change(p):\n    p.clear()\nparts = [1, 2]\n{use}\n") is None


def found(body, **options):
    code = Code(HEAD + body)
    return [(b.contract.id, sentence(code, b)) for b in broken_calls(code, **options)]


def test_the_values_and_their_lines_are_in_the_sentence():
    """Here of a program that is started on two ranks."""
    ((contract, said),) = found("count = 4\nparts = [torch.zeros(2)] * count\ndist.all_gather(parts, x)\n", size=2)
    assert contract == "one-output-per-rank"
    assert "`parts` has 4, the group has 2 ranks; `count = 4` (line 5)" in said


def test_a_number_that_fits_some_job_is_left_alone():
    """Four outputs are right for four ranks."""
    assert found("dist.all_gather([torch.zeros(2)] * 4, x)\n") == []
    assert found("dist.broadcast(x, src=3)\n") == []
    assert found("dist.broadcast(x, src=3)\n", size=4) == []
    assert [c for c, _ in found("dist.broadcast(x, src=3)\n", size=2)] == ["source-is-a-rank"]


def test_what_fits_no_job_is_named_without_knowing_its_size():
    """And the sentence says so."""
    ((contract, said),) = found("dist.all_gather([torch.zeros(2)] * (dist.get_world_size() + 1), x)\n")
    assert contract == "one-output-per-rank"
    assert said.endswith("it is so with any number of ranks.")


GATHER = "outs = [torch.zeros(2) for _ in range(dist.get_world_size())]\n"


@pytest.mark.parametrize(
    ("body", "broken"),
    [
        (f"{GATHER}dist.gather(x, outs, dst=0)\n", ["gather-list-elsewhere"]),
        (f"{GATHER}if dist.get_rank() == 0:\n    dist.gather(x, outs, dst=0)\nelse:\n    dist.gather(x, dst=0)\n", []),
        (f"{GATHER}dist.gather(x, outs if dist.get_rank() == 0 else None, dst=0)\n", []),
        ("def f():\n    outs = [1] * dist.get_world_size()\n    dist.gather(x, outs, dst=0)\nif ready: f()\n", []),
    ],
)
def test_a_demand_on_some_ranks_needs_that_they_come_there(body, broken):
    """A rank that the program sends another way breaks nothing."""
    assert [c for c, _ in found(body)] == broken


@pytest.mark.parametrize(
    "body",
    [
        "width = 10\nif width % 3 == 0:\n    nn.MultiheadAttention(width, 3)\n",
        "width = 10\nassert width % 3 == 0\nnn.MultiheadAttention(width, 3)\n",
        "try:\n    nn.MultiheadAttention(10, 3)\nexcept AssertionError:\n    pass\n",
        "import pytest\nwith pytest.raises(AssertionError):\n    nn.MultiheadAttention(10, 3)\n",
        "nn.MultiheadAttention(*sizes, 3)\n",
        "dist.all_gather([1] * (dist.get_world_size() - 1), x, group=g)\n",
        "import torch.distributed.nn as dnn\ndnn.all_gather([1, 2])\n",
    ],
)
def test_what_the_program_tests_or_hides_is_left_alone(body):
    """The same call alone would be named."""
    assert found(body) == []
    assert [c for c, _ in found("nn.MultiheadAttention(10, 3)\n")] == ["heads-divide-the-width"]


def test_methods_are_known_by_the_class_of_their_object():
    """A tensor that is made here, an object of a library."""
    assert [c for c, _ in found("x = torch.zeros(4, 3)\nx.view(5, 2)\n")] == ["shape-holds-all-elements"]
    assert found("x = load()\nx.view(5, 2)\n") == []


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("import torch.multiprocessing as mp\nmp.spawn(f, nprocs=2)\n", 2),
        ("import torch.multiprocessing as mp\nN = 4\nmp.spawn(f, (1,), N)\n", 4),
        ("import torch.multiprocessing as mp\nmp.spawn(f, nprocs=n)\n", None),
        (
            "import torch.multiprocessing as mp\nmp.spawn(f, nprocs=2)\ndist.init_process_group('x', world_size=8)\n",
            None,
        ),
        ("pass\n", None),
    ],
)
def test_a_program_that_starts_its_ranks_tells_their_number(body, size):
    """If every start gives the same."""
    assert started_size(Code(HEAD + body)) == size


@pytest.mark.parametrize("contract", [c for c in load_contracts().all if c.check], ids=lambda c: c.id)
def test_the_check_that_a_contract_names_exists(contract):
    """It finds the same where values are not known."""
    from dtdebug_taxonomy.checks import load

    assert contract.check in load()


def test_other_functions_of_the_same_name_have_other_contracts():
    """`torch.distributed.nn` has functions with a gradient, that take other arguments."""
    of = load_contracts().called
    assert of("torch.distributed.all_gather")
    assert of("torch.distributed.distributed_c10d.all_gather") == of("torch.distributed.all_gather")
    assert of("torch.distributed.nn.all_gather") == ()
    assert of("pytorch_lightning.Trainer") == of("lightning.Trainer")

"""Contracts: the texts of values, the language of demands, and what real programs break or keep."""

import json

import msgspec
import pytest
from places import TESTS

from dtdebug_taxonomy.inference.account_call import read_call, work_out
from dtdebug_taxonomy.inference.contracts import broken_contract, parted_contract
from dtdebug_taxonomy.knowledge.contracts import load_contracts
from dtdebug_taxonomy.knowledge.loader import KnowledgeError
from dtdebug_taxonomy.model.account import Account, NamedValue, Place, Refusal
from dtdebug_taxonomy.text.demands import DemandError, Scope, is_met, names_in, value_of
from dtdebug_taxonomy.text.value_texts import read_value

RECORDED = TESTS / "contracts" / "accounts.jsonl"
_UNRECORDED = {
    "all-reduce-alike",  # one rank of two raises
    "all-gather-alike",
    "all-gather-parts-alike",
    "deepspeed-batch-sizes",  # needs a launcher
    "device-of-the-backend",  # needs NCCL
    "monitored-barrier-is-gloos",
    "subgroup-size-divides",  # needs three ranks
}


def recorded():
    rows = {}
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows.setdefault((row["contract"], row["kind"]), []).append(msgspec.convert(row["account"], Account))
    return rows


ROWS = recorded()


@pytest.mark.parametrize("case", ROWS, ids="-".join)
def test_a_program_breaks_its_contract_and_no_other(case):
    """Recorded from programs that really raised, and from the same calls where they succeeded."""
    contract, kind = case
    found = {b.contract.id for account in ROWS[case] if (b := broken_contract(account)) is not None}
    assert found == ({contract} if kind == "breaks" else set())


def test_every_contract_has_a_program_that_breaks_it():
    """But those that need what a CPU and two processes do not have."""
    broken = {contract for contract, kind in ROWS if kind == "breaks"}
    assert {c.id for c in load_contracts().all} - broken == _UNRECORDED


@pytest.mark.parametrize("contract", load_contracts().all, ids=lambda c: c.id)
def test_a_contract_is_written_in_the_language(contract):
    """And its sentences end where the deciding line follows."""
    for expression in filter(None, (contract.when, contract.demand, *contract.alike)):
        names_in(expression)
    assert not contract.says.endswith(".")
    assert contract.fix.endswith(".")
    assert all(r.url.startswith("https://") for r in contract.reference)
    assert contract.reference


@pytest.mark.parametrize(
    "text",
    ["len(", "__import__('os')", "open('x')", "[x for x in y]", "lambda: 1", "f(1)", "x := 1", "a if b else c", "{1}"],
)
def test_what_is_not_of_the_language_is_refused(text):
    """Nothing of it is ever run."""
    with pytest.raises(DemandError):
        names_in(text)


def scope(**texts):
    return Scope({name: read_value(text) for name, text in texts.items()})


@pytest.mark.parametrize(
    ("demand", "met"),
    [
        ("len(parts) == world", False),
        ("len(parts) == 4", True),
        ("labels.max < logits.shape[1]", False),
        ("labels.min >= 1", True),
        ("unknown == 1", None),
        ("unknown == 1 and world == 3", False),
        ("unknown == 1 or world == 2", True),
        ("not (unknown == 1)", None),
        ("group is None", True),
        ("world is None", False),
        ("numel(logits) % world == 0", True),
        ("same_shapes(ragged)", False),
        ("same_shapes_but(ragged, 0)", True),
        ("sum(sizes) == 5 and max(sizes) < 4 and distinct(sizes) == 2", True),
        ("prod(sizes) == 6", True),
        ("all_begin(state, 'module.')", True),
        ("labels.dtype == 'int64'", True),
        ("labels.dtype == 3", None),
        ("far.max < 10", None),
        ("has(device, ':')", True),
        ("parts[9].dtype == 'int64'", None),
        ("tested('a is b')", None),
        ("world // 0 == 1", None),
    ],
)
def test_a_demand_is_met_broken_or_unknown(demand, met):
    """What the texts do not say leaves it open."""
    values = scope(
        parts="list of 4 x Tensor[49] int64 1..3",
        world="2",
        labels="Tensor[3] int64 1..3",
        logits="Tensor[3, 2] float32",
        group="None",
        ragged="[Tensor[2] float32, Tensor[3] float32]",
        sizes="[2, 3]",
        state="{'module.a': 1, 'module.b': 2, ...}",
        far="Tensor[2] int64 1..5.026e+04",
        device="'cuda:1'",
    )
    assert is_met(demand, values) is met


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("list of 4 x Tensor[49] int64 1..3", {"kind": "sequence", "length": 4, "whole": True}),
        ("list of 9 x Tensor[49] int64", {"length": 9, "whole": False}),
        ("[1, 2, 3]", {"length": 3, "whole": True}),
        ("(1)", {"name": "tuple", "length": 1}),
        ("list of 9: [1, 2, 3, 4, 5, ...]", {"length": 9, "whole": False}),
        ("[1, 2, Tens", {"length": None, "whole": False}),
        ("Tensor[] float32 2.5", {"shape": (), "low": 2.5, "plain": 2.5}),
        ("Tensor[2, 3] int64, stride (1, 2) 0..5", {"contiguous": False, "high": 5.0, "device": "cpu"}),
        ("Parameter[2] float32 on cuda:0", {"device": "cuda:0", "shape": (2,)}),
        ("DTensor[8, 8] float32 ('Shard', 'Replicate')", {"shape": (8, 8), "device": None, "contiguous": None}),
        ("Tensor[?, 3] float32", {"shape": None, "dtype": "float32"}),
        ("{'lr': 0.1, 'x': Tensor[2] float32, ...}", {"keys": ("lr", "x"), "whole": False}),
        ("{}", {"kind": "mapping", "whole": True}),
        ("<ProcessGroup of 2>", {"kind": "object", "length": 2}),
        ("'it\\'s'", {"plain": "it's", "length": 4}),
        ("'a'...'b'", {"kind": "text", "plain": None}),
        ("torch.float32", {"kind": "type", "dtype": "float32"}),
        ("True", {"name": "bool", "plain": True}),
        ("range(0, 8)", {"length": 8}),
    ],
)
def test_the_text_of_a_value_is_read_back(text, fields):
    """As the account writes it; what it does not say is None."""
    value = read_value(text)
    assert {name: getattr(value, name) for name in fields} == fields


@pytest.mark.parametrize(
    "text", ["", "rubbish here", "Tensor[", "[" * 5000, "{" * 5000, "'" * 5000, "list of 4 x " * 500]
)
def test_other_texts_are_no_values(text):
    """And are refused in linear time, without a deep recursion."""
    value = read_value(text)
    assert value is None or not value.whole


def test_the_wrapped_module_answers_for_its_wrapper():
    """`in_features` of a model inside DDP."""
    values = scope(model="DistributedDataParallel(Linear(in_features=2, out_features=3))")
    assert value_of("model.in_features", values) == 2
    assert value_of("model.name", values) == "DistributedDataParallel"


@pytest.mark.parametrize(
    ("words", "plain"),
    [
        ("[None] * n", 3),
        ("[4] * get_world_size()", 2),
        ("[a for a in b]", None),
        ("[1, n]", 2),
        ("(dist.get_rank(), n)", 2),
    ],
)
def test_an_expression_of_known_values_is_worked_out(words, plain):
    """Its length here; nothing else is."""
    around = {"n": read_value("3"), "__world_size__": read_value("2"), "__rank__": read_value("1")}
    value = work_out(words, around)
    assert (value and value.length) == plain


def account(
    code, api="torch.distributed.all_gather", arguments=(), facts=(("world size", "2"), ("rank", "0")), **refused
):
    refusal = Refusal(api=api, arguments=tuple(NamedValue(*a) for a in arguments), **refused)
    place = Place(file="/w/train.py", line=9, code=code, mark=(0, len(code)))
    return Account(rank=0, place=place, refusal=refusal, facts=tuple(NamedValue(*f) for f in facts))


def test_literals_of_the_line_have_their_values_without_a_frame():
    """As in an account of a printed traceback."""
    found = broken_contract(account("dist.broadcast(x, src=2)", api="torch.distributed.broadcast"))
    assert found is not None
    assert found.contract.id == "source-is-a-rank"


def test_a_group_of_another_size_is_not_the_world():
    """Two outputs are right in a group of two, whatever the world's size."""
    arguments = [("tensor_list", "list of 2 x Tensor[2] float32"), ("tensor", "Tensor[2] float32")]
    world = (("world size", "4"), ("rank", "0"))
    inside = [*arguments, ("group", "<ProcessGroup of 2>")]
    assert broken_contract(account("dist.all_gather(outs, x, group=g)", arguments=inside, facts=world)) is None
    unknown = account("dist.all_gather(outs, x, group=g)", arguments=arguments, facts=world)
    assert broken_contract(unknown) is None
    assert broken_contract(account("dist.all_gather(outs, x)", arguments=arguments, facts=world)) is not None
    assert broken_contract(account("dist.all_gather(*rest)", arguments=arguments, facts=world)) is None


def test_names_of_the_library_are_not_those_of_the_call():
    """`input` of the layer that raised is not `input` of the container that was called."""
    refused = {
        "place": Place(file="/env/site-packages/torch/nn/modules/linear.py", line=1, function="forward",
                       code="return F.linear(input, self.weight, self.bias)"),
        "values": (NamedValue("input", "Tensor[4, 32] float32"), NamedValue("self.weight", "Parameter[3, 32] float32")),
    }  # fmt: skip
    whole = account("net(x)", api="torch.nn.Sequential", arguments=[("input", "Tensor[4, 10] float32")], **refused)
    assert broken_contract(whole) is None


def test_a_method_within_the_library_is_not_the_function_of_that_name():
    """The group's own `send` takes a list; a lost connection breaks no contract."""
    refused = {
        "place": Place(file="/env/site-packages/torch/distributed/distributed_c10d.py", line=1, function="isend",
                       code="return group.send([tensor], group_dst, tag)"),
        "values": (NamedValue("[tensor]", "[Tensor[1] float32 0]"), NamedValue("tensor", "Tensor[1] float32 0")),
    }  # fmt: skip
    arguments = [("tensor", "Tensor[1] float32 0"), ("dst", "1")]
    assert broken_contract(account("dist.send(x, dst=1)", "torch.distributed.send", arguments, **refused)) is None


def test_ranks_that_bring_different_shapes_break_a_contract_together():
    """Each alone breaks none."""
    rows = [
        msgspec.structs.replace(account("dist.all_reduce(x)", "torch.distributed.all_reduce", [("tensor", t)]), rank=n)
        for n, t in enumerate(("Tensor[3] float32", "Tensor[4] float32"))
    ]
    assert [broken_contract(a) for a in rows] == [None, None]
    found = parted_contract(rows)
    assert found is not None
    assert (found.contract.id, found.what) == ("all-reduce-alike", "shape")
    assert parted_contract([rows[0], rows[0]]) is None


def test_a_demand_of_one_backend_is_made_where_that_is_the_backend():
    """NCCL gathers parts of different shapes; the recorded name of a backend is a word without quotes."""
    shapes = ("Tensor[3] float32", "Tensor[4] float32")
    for backend in ("gloo", "nccl", None):
        facts = () if backend is None else (NamedValue("backend", backend),)
        line, api = "dist.all_gather(out, x)", "torch.distributed.all_gather"
        rows = [
            msgspec.structs.replace(account(line, api, [("tensor", t)]), rank=n, facts=facts)
            for n, t in enumerate(shapes)
        ]
        found = parted_contract(rows)
        assert (found and found.contract.id) == ("all-gather-parts-alike" if backend == "gloo" else None)


def test_the_call_of_an_unparsable_line_is_unknown():
    """A line within a call of several lines has no expressions."""
    assert read_call(account("x, y,", arguments=[("tensor", "1")])).expressions == {}


def test_two_contracts_of_one_id_are_refused(tmp_path):
    """And one with both kinds of demand."""
    head = 'family = "x"\n[[reference]]\ntitle = "t"\nurl = "https://x.org"\n'
    one = '[[contract]]\nid = "a"\napi = ["t.f"]\nabout = "x"\ndemand = "x == 1"\nsays = "s"\nfix = "f."\n'
    (tmp_path / "a.toml").write_text(head + one + one)
    with pytest.raises(KnowledgeError, match="second contract"):
        load_contracts(tmp_path)

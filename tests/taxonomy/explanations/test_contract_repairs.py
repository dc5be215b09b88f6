"""Edits that a contract gives: at the call, at the call that made an object, and from the other side of a size."""

import pytest

from dtdebug_taxonomy.explanations.account_edits import of_contract
from dtdebug_taxonomy.inference.contracts import broken_contract
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place, Refusal

FACTS = (NamedValue("world size", "2"), NamedValue("rank", "1"), NamedValue("backend", "gloo"))


def place(line, code, function="main", mark=(0, 0)):
    return Place(file="/w/train.py", line=line, function=function, code=code, mark=mark)


def link(name, text, line, code, how="assigned", depth=0, function="main"):
    return Link(value=NamedValue(name, text), how=how, place=place(line, code, function), depth=depth)


def failed(code, api, arguments=(), links=(), modules=("torch", "dist"), exception="ValueError: x"):
    refusal = Refusal(api=api, arguments=tuple(NamedValue(*a) for a in arguments))
    at = place(20, code, mark=(code.index("= ") + 2 if " = " in code else 0, len(code)))
    return Account(
        rank=1, exception=exception, place=at, refusal=refusal, links=links, facts=FACTS, modules=modules
    )  # fmt: skip


def edited(account):
    edit = of_contract(broken_contract(account), None)
    return (edit.place.line, edit.code) if edit is not None else None


SAMPLER = "torch.utils.data.DistributedSampler"


def test_the_number_of_replicas_is_asked_of_the_group():
    """By the name that the file has for the module; none is made up."""
    arguments = (("dataset", "<Rows>"), ("num_replicas", "1"), ("rank", "1"))
    code = "s = DistributedSampler(rows, num_replicas=n, rank=dist.get_rank())"
    now = "s = DistributedSampler(rows, num_replicas=dist.get_world_size(), rank=dist.get_rank())"
    assert edited(failed(code, SAMPLER, arguments)) == (20, now)
    assert edited(failed(code, SAMPLER, arguments, modules=("", ""))) is None


DDP = "torch.nn.parallel.DistributedDataParallel"


@pytest.mark.parametrize(
    ("code", "now"),
    [
        ("net = DDP(model, device_ids=[local])", "net = DDP(model)"),
        ("net = DDP(model, device_ids=[local], static_graph=True)", "net = DDP(model, static_graph=True)"),
        ("net = DDP(device_ids=[local], module=model)", "net = DDP(module=model)"),
        ("net = DDP(model, [local])", None),
    ],
)
def test_an_argument_is_left_out(code, now):
    """Only one that is passed by its name: the others move up."""
    arguments = (("module", "Linear(in_features=2)"), ("device_ids", "[0]"), ("self.device_type", "'cpu'"))
    found = edited(failed(code, DDP, arguments))
    assert found == (now and (20, now))


def test_the_call_that_made_an_object_gets_an_argument():
    """The call that fails is right: the wrapper was made without it."""
    unused = "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one."
    made = link("net", "DistributedDataParallel(Net())", 7, "net = DDP(Net())")
    account = failed("out = net(x)", DDP, links=(made,), exception=unused)
    assert edited(account) == (7, "net = DDP(Net(), find_unused_parameters=True)")
    again = link("net", "DistributedDataParallel(Net())", 7, "net = DDP(Net(), find_unused_parameters=True)")
    assert edited(failed("out = net(x)", DDP, links=(again,), exception=unused)) is None
    assert broken_contract(failed("out = net(x)", DDP, links=(made,), exception="RuntimeError: other")) is None


def test_a_size_is_made_from_the_other_side_of_the_comparison():
    """Where what it names is known above that line, and one expression alone gives the wrong number."""
    code = "dist.all_to_all_single(out, rows, take.tolist(), give.tolist())"
    arguments = (
        ("output", "Tensor[8, 3] float32"),
        ("input", "Tensor[8, 3] float32"),
        ("output_split_sizes", "[4, 5]"),
        ("input_split_sizes", "[5, 3]"),
    )

    def links(line, made):
        return (
            link("take", "Tensor[2] int64 4..5", line, "take = torch.empty_like(give)"),
            link("out", "Tensor[8, 3] float32", 15, made),
            link("rows", "Tensor[8, 3] float32", 10, "def main(rows):", "passed"),
        )

    api = "torch.distributed.all_to_all_single"
    made = "out = rows.new_empty(len(rows), rows.shape[1])"
    now = "out = rows.new_empty(sum(take.tolist()), rows.shape[1])"
    assert edited(failed(code, api, arguments, links(12, made))) == (15, now)
    assert edited(failed(code, api, arguments, links(17, made))) is None
    assert edited(failed(code, api, arguments, links(12, "out = make(rows)"))) is None


def test_a_literal_that_stood_for_the_number_of_ranks_is_replaced():
    """With it for the group's size the demand would hold: the values were made for four ranks, and there are two."""
    links = (
        link("self.part", "Tensor[6] float32", 8, "self.part = torch.zeros(size // shards)", "attribute"),
        link("size", "24", 14, "Parts(24, shards=4)", "literal", 1),
        link("shards", "4", 14, "Parts(24, shards=4)", "literal", 1),
    )
    code = "dist.reduce_scatter_tensor(self.part, flat)"
    api, sizes = "torch.distributed.reduce_scatter_tensor", ("Tensor[6] float32", "Tensor[24] float32")
    arguments = tuple(zip(("output", "input"), sizes, strict=True))
    assert edited(failed(code, api, arguments, links)) == (14, "Parts(24, shards=2)")

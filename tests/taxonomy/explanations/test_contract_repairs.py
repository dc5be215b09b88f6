"""Edits that a contract gives: at the call, at the call that made an object, and from the other side of a size."""

import pytest
from msgspec.structs import replace

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


def test_an_option_taken_for_the_number_of_ranks_stays_as_it_is():
    """It may be read elsewhere: the line that multiplies by it asks for the number of ranks."""
    links = (
        link("everything", "Tensor[24, 8] float32", 12, "everything = x.new_empty(rows * self.accumulation, 8)"),
        link("rows", "6", 11, "rows, width = x.shape", depth=1),
        link("self.accumulation", "4", 6, "self.accumulation = accumulation", "attribute", 1, "__init__"),
        link("args.accumulation", "4", 3, 'parser.add_argument("--accumulation", type=int, default=4)', "option", 2),
    )
    api, sizes = "torch.distributed.all_gather_into_tensor", ("Tensor[24, 8] float32", "Tensor[6, 8] float32")
    arguments = tuple(zip(("output_tensor", "input_tensor"), sizes, strict=True))
    account = failed("dist.all_gather_into_tensor(everything, x)", api, arguments, links)
    assert edited(account) == (12, "everything = x.new_empty(rows * dist.get_world_size(), 8)")


def test_a_view_of_a_layer_that_is_split_over_the_ranks_leaves_the_heads_open():
    """Only if the tensor has exactly a rank's part of the elements."""
    code = "y = x.view(batch, length, self.heads, self.size)"

    def viewed(last):
        links = [link(n, t, 5, f"{n} = {t}") for n, t in (("batch", "2"), ("length", "6"), ("self.heads", "4"))]
        arguments = (("self", f"Tensor[2, 6, {last}] float32"),)
        links = (*links, link("self.size", "8", 6, "self.size = width // heads"))
        return failed(code, "torch.Tensor.view", arguments, links)

    assert edited(viewed(16)) == (20, "y = x.view(batch, length, -1, self.size)")
    assert edited(viewed(24)) is None


def test_the_rank_that_gathers_is_named_as_the_program_names_it():
    api, arguments = "torch.distributed.gather", (("tensor", "Tensor[3] int64"), ("dst", "0"))
    arguments = (*arguments, ("gather_list", "list of 2 x Tensor[3] int64"))
    found = edited(failed("dist.gather(mine, parts, dst=root)", api, arguments))
    assert found == (20, "dist.gather(mine, parts if dist.get_rank() == root else None, dst=root)")


def test_another_argument_of_a_call_is_no_substitute():
    """`received` would fit by its size, and is where the call writes."""
    code = "dist.all_to_all_single(received, tokens, sizes, sizes)"
    api, sizes = "torch.distributed.all_to_all_single", "list of 2 x 16"
    arguments = (("output", "Tensor[32, 8] float32"), ("input", "Tensor[24, 8] float32"))
    arguments = (*arguments, ("output_split_sizes", sizes), ("input_split_sizes", sizes))
    tokens = link("tokens", "Tensor[24, 8] float32", 8, "tokens = order(rows)")
    account = failed(code, api, arguments, (tokens, link("sizes", sizes, 9, "sizes = [capacity] * world")))
    beside = (link("received", "Tensor[32, 8] float32", 10, "received = torch.empty(32, 8)"),)
    account = replace(account, beside=beside)
    assert broken_contract(account) is not None
    assert edited(account) is None

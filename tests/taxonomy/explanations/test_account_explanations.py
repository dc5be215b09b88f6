"""Explanations from accounts: the sentence, its deciding line, the fix of the user's file, the ranks side by side."""

import ast

import msgspec
import pytest

from dtdebug.account.printed import swallowed
from dtdebug.check.stack_files import sourced_snapshot
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations import origin
from dtdebug_taxonomy.explanations.account_words import Edit, diff_of, replace_expression
from dtdebug_taxonomy.inference.ranks_apart import with_partings
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place, Refusal
from dtdebug_taxonomy.model.answer import Answer, Fix
from dtdebug_taxonomy.model.ranks import CallSite, Frame, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Excerpt, Snapshot, SourceFinding
from dtdebug_taxonomy.presentation.account_spots import spots_of, spots_of_all
from dtdebug_taxonomy.presentation.answer_text import to_short_text

FILE = "/w/train.py"


def place(line, code, mark=(0, 0)):
    return Place(file=FILE, line=line, code=code, mark=mark)


def link(name, text, how, line, code, depth=0):
    return Link(value=NamedValue(name, text), how=how, place=place(line, code), depth=depth)


def failed(code, exception="ValueError: x", rank=0, *, api="", arguments=(), links=(), root=-1, **refused):
    values = tuple(NamedValue(*v) for v in refused.pop("values", ()))
    refusal = Refusal(api=api, arguments=tuple(NamedValue(*a) for a in arguments), values=values, **refused)
    facts = (NamedValue("world size", "2"), NamedValue("rank", str(rank)), NamedValue("backend", "gloo"))
    return Account(rank=rank, exception=exception, place=place(23, code, (0, len(code))), refusal=refusal, links=links,
                   root=root, facts=facts)  # fmt: skip


def excerpt(*lines, first=1):
    return Excerpt(file=FILE, first=first, lines=lines)


def first_cause(*accounts, excerpts=()):
    output = "".join(
        f'[rank{a.rank}]: Traceback (most recent call last):\n[rank{a.rank}]:   File "{FILE}", line 23, in main\n'
        f"[rank{a.rank}]:     {a.place.code}\n[rank{a.rank}]: {a.exception}\n"
        for a in accounts
    )
    found = diagnose(load(), Snapshot(output=output, accounts=accounts, excerpts=excerpts))
    return next(iter(found.advice), None)


def scattered(rank=0, parts=4):
    return failed(
        "dist.reduce_scatter(mine, pieces)",
        rank=rank,
        api="torch.distributed.reduce_scatter",
        arguments=[("output", "Tensor[49] int64"), ("input_list", f"list of {parts} x Tensor[49] int64")],
        links=(
            link("pieces", f"list of {parts} x Tensor[49] int64", "assigned", 22, "pieces = list(grad.chunk(shards))"),
            link("shards", str(parts), "passed", 37, "main(args.shards)", 1),
            link("args.shards", str(parts), "option", 11, f"parser.add_argument('--shards', default={parts})", 2),
        ),
        root=2,
    )


def test_a_broken_contract_leads_with_values_and_the_deciding_line():
    """Measured, whatever the message says; the diff is of the user's own file."""
    shown = excerpt("import torch", "if x:", "    parser.add_argument('--shards', default=4)", "print()", first=9)
    cause = first_cause(scattered(0), scattered(1), excerpts=(shown,))
    assert cause.title == (
        "`reduce_scatter` needs one part per rank: `pieces` has 4, the group has 2 ranks; "
        "`--shards` defaults to 4 (train.py:11)"
    )
    assert (cause.cause, cause.grade, cause.band) == ("one-part-per-rank", "measured", "likely")
    assert cause.fix == "Pass `--shards 2`, or edit train.py:11: make `pieces` a list of 2 parts."
    assert "Ranks 0-1 failed with the same values" in cause.why
    assert cause.diff_of == "yours"
    assert (
        "-    parser.add_argument('--shards', default=4)\n+    parser.add_argument('--shards', default=2)" in cause.diff
    )
    assert "@@ -9,4 +9,4 @@" in cause.diff


def test_without_the_file_there_is_no_diff():
    """And none if the line has changed since it ran."""
    assert first_cause(scattered()).diff == ""
    changed = excerpt("parser.add_argument('--shards', default=8)", first=11)
    assert first_cause(scattered(), excerpts=(changed,)).diff == ""


def test_without_values_the_source_alone_shows_it():
    """An account of a printed traceback has the literals of the line."""
    account = failed("dist.broadcast(x, src=2)", api="torch.distributed.broadcast")
    cause = first_cause(msgspec.structs.replace(account, with_values=False))
    assert (cause.cause, cause.grade) == ("source-is-a-rank", "source")


def test_ranks_with_other_values_are_told_apart():
    """Each value with its rank."""
    cause = first_cause(scattered(0, 4), scattered(1, 3))
    assert "4 on rank 0, 3 on rank 1" in cause.why
    shapes = [
        failed("dist.all_reduce(x)", rank=n, api="torch.distributed.all_reduce", arguments=[("tensor", t)])
        for n, t in enumerate(("Tensor[3] float32", "Tensor[4] float32"))
    ]
    cause = first_cause(*shapes)
    assert cause.title == (
        "`all_reduce` needs the same shape on all ranks: `x` has [3] on rank 0, [4] on rank 1 (train.py:23)"
    )


def test_a_rank_that_breaks_it_alone_is_named():
    """The others raised something else."""
    cause = first_cause(failed("dist.barrier()", "RuntimeError: Connection closed by peer", 0), scattered(1))
    assert cause.title.startswith("Rank 1: `reduce_scatter` needs one part per rank")


@pytest.mark.parametrize(
    ("code", "was", "now"),
    [
        ("dist.all_gather([torch.zeros(2)] * 3, x)", "[torch.zeros(2)] * 3", "dist.get_world_size()"),
        ("dist.all_gather([z] * (dist.get_world_size() + 1), x)", "", "[z] * dist.get_world_size(), x"),
    ],
)
def test_the_number_at_the_call_is_replaced(code, was, now):
    """By the world size, for there the group is set up."""
    account = failed(
        code, api="torch.distributed.all_gather", arguments=[("tensor_list", "list of 3 x Tensor[2] float32")]
    )
    cause = first_cause(account, excerpts=(excerpt(f"    {code}", first=23),))
    added = next(line for line in cause.diff.splitlines() if line.startswith("+    "))
    assert now in added
    ast.parse(added[1:].strip())


def test_the_guard_is_told_with_its_operands():
    """Where no contract is known."""
    account = failed(
        "layer.prune(ratio)", "ValueError: no", api="sparse.Layer.prune",
        tests=(("amount > self.limit", True),), values=[("amount", "0.9"), ("self.limit", "0.5")],
        place=Place(file="/env/site-packages/sparse/layer.py", line=7, function="prune", code="raise ValueError("),
        links=(link("ratio", "0.9", "literal", 4, "ratio = 0.9"),), root=0,
    )  # fmt: skip
    cause = first_cause(account)
    assert cause.title == (
        "Rank 0: `prune` raises where `amount > self.limit`: `amount` is 0.9, `self.limit` is 0.5; "
        "`ratio = 0.9` (train.py:4)"
    )
    assert "does not hold" in cause.fix


def test_a_guard_without_telling_operands_says_nothing():
    """A flag repeats the test; an object has no value that was read."""
    flag = failed("f(x)", api="sparse.f", tests=(("not ok", True),), values=[("ok", "False")])
    assert first_cause(flag) is None or first_cause(flag).cause != "refused-by-a-test"
    bare = failed(
        "f(x)", api="sparse.f", values=[("work", "<Work>")], root=0, links=(link("n", "2", "literal", 4, "n = 2"),)
    )
    assert first_cause(bare) is None or first_cause(bare).cause != "call-failed"


CONFIG = link("config", "{'LR': 0.1, 'steps': 10}", "literal", 4, 'config = {"LR": 0.1, "steps": 10}')


@pytest.mark.parametrize(
    ("code", "exception", "values", "links", "said"),
    [
        ('lr = config["lr"]', "KeyError: 'lr'", [("config", "{'LR': 0.1, 'steps': 10}")], (CONFIG,),
         "`config` has no key 'lr': it has 'LR', 'steps'"),
        ('load(ckpt["model"])', "KeyError: 'model'", [("ckpt", "{'epoch': 1, 'model_state': <OrderedDict>}")], (),
         "`ckpt` has no key 'model': it has 'epoch', 'model_state'"),
        ("sched.step()", "AttributeError: 'NoneType' object has no attribute 'step'", [("sched", "None")],
         (link("sched", "None", "called", 8, "sched = make(opt)"),),
         "`sched` is None; `sched = make(opt)` (train.py:8)"),
        ("n = args.batchsize", "AttributeError: 'Namespace' object has no attribute 'batchsize'",
         [("args", "Namespace(batch_size=8, lr=0.1)")], (), "it has `batch_size`"),
        ("model.head(x)", "AttributeError: 'DistributedDataParallel' object has no attribute 'head'",
         [("model", "DistributedDataParallel(Net())")], (), "`model` is Net wrapped in DistributedDataParallel"),
        ("for x in batch:", "TypeError: 'NoneType' object is not iterable", [("batch", "None")], (), "`batch` is None"),
        ("f = open(path)", "FileNotFoundError: [Errno 2] No such file or directory: 'a/b.pt'", [("path", "'a/b.pt'")],
         (link("path", "'a/b.pt'", "assigned", 5, "path = join(a, b)"),), "`path` is 'a/b.pt', which does not exist"),
        ('f = open(path, "w")', "FileNotFoundError: [Errno 2] No such file or directory: 'a/b.pt'",
         [("path", "'a/b.pt'")], (), "The folder 'a' does not exist, and `f = open(path, \"w\")` makes a file in it"),
        ('f = open("wx")', "FileNotFoundError: [Errno 2] No such file or directory: 'wx'", [("'wx'", "'wx'")], (),
         "`'wx'` is 'wx', which does not exist"),
        ("host = HOSTS[rank]", "IndexError: list index out of range", [("HOSTS", "['a']"), ("rank", "1")], (),
         "`HOSTS` has 1 element, and `rank` is 1"),
        ("mean = total / count", "ZeroDivisionError: division by zero", [("total", "1.0"), ("count", "0")], (),
         "`count` is 0, and the line divides by it"),
        ("n = int(text)", "ValueError: invalid literal for int() with base 10: '4x'", [("text", "'4x'")], (),
         "`text` is '4x', which is no number"),
    ],
)  # fmt: skip
def test_the_value_of_a_python_error_is_named(code, exception, values, links, said):
    """With where it was made, and a near name where there is one."""
    cause = first_cause(failed(code, exception, values=values, links=links))
    assert cause.cause == "value-of-an-error"
    assert said in cause.title


@pytest.mark.parametrize(
    ("code", "exception", "values"),
    [
        ('lr = config["lr"]', "KeyError: 'lr'", [("config", "<Config>")]),
        ('lr = a["lr"] + b["lr"]', "KeyError: 'lr'", [("a", "{'x': 1}"), ("b", "{'y': 1}")]),
        ("x = a.b.c", "AttributeError: 'NoneType' object has no attribute 'c'", [("a", "<A>")]),
        ("x = a[0] + b[0]", "TypeError: 'NoneType' object is not subscriptable", [("a", "None"), ("b", "None")]),
        ("h = HOSTS[rank]", "IndexError: list index out of range", [("HOSTS", "['a', 'b']"), ("rank", "1")]),
        ("m = total / len(x)", "ZeroDivisionError: division by zero", [("x", "[1]")]),
    ],
)
def test_what_the_values_do_not_show_is_not_said(code, exception, values):
    """Two readings are none."""
    cause = first_cause(failed(code, exception, values=values))
    assert cause is None or cause.cause != "value-of-an-error"


def test_a_program_of_one_process_is_explained_too():
    """Its account is as good as that of a rank."""
    facts = (NamedValue("world size", "1"),)
    account = msgspec.structs.replace(
        failed('x = config["lr"]', "KeyError: 'lr'", links=(CONFIG,)), rank=None, facts=facts
    )
    output = f"Traceback (most recent call last):\n  File \"{FILE}\", line 23, in main\n    x = y\nKeyError: 'lr'\n"
    found = diagnose(load(), Snapshot(output=output, accounts=(account,)))
    assert "it has 'LR'" in found.advice[0].title


def test_an_edit_that_does_not_parse_is_none():
    """Nor one that would change nothing, or lies outside the line."""
    at = place(1, "f(a, 3)")
    assert replace_expression(at, (5, 6), "2") == Edit(at, "f(a, 2)")
    assert replace_expression(at, (5, 6), "3") is None
    assert replace_expression(at, (5, 6), "2)") is None
    assert replace_expression(at, (5, 6), "2); g(") is None
    assert replace_expression(at, (5, 60), "2") is None
    assert replace_expression(place(1, "f(a,"), (2, 3), "b") is None
    assert diff_of(Edit(at, "f(a, 2)"), ()) == ""


def test_lines_around_the_places_are_read_from_disk(tmp_path):
    """Those that hold what looks like a secret are not kept; a file that is gone is no error."""
    file = tmp_path / "train.py"
    lines = [f"x{n} = {n}" for n in range(1, 30)]
    lines[19] = 'api_key = "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"'
    file.write_text("\n".join(lines), encoding="utf-8")

    def at(line, path=file):
        return Place(file=str(path), line=line, code=f"x{line} = {line}")

    far = Link(value=NamedValue("x"), how="literal", place=at(19))
    gone = Link(value=NamedValue("x"), how="literal", place=at(3, tmp_path / "gone.py"))
    account = Account(place=at(10), links=(far, gone))
    found = sourced_snapshot(Snapshot(accounts=(account,))).excerpts
    assert [(e.first, e.lines) for e in found] == [(7, tuple(lines[6:13]))]


def test_spots_are_the_deciding_and_the_raising_line():
    """Ranks with equal values stand together."""
    decided, raised = spots_of(scattered())
    assert (raised.line, raised.code, raised.mark) == (23, "dist.reduce_scatter(mine, pieces)", (0, 33))
    assert ("pieces", "list of 4 x Tensor[49] int64") in raised.values
    assert (decided.line, decided.values) == (11, (("args.shards", "4"),))
    assert [s.ranks for s in spots_of_all((scattered(0), scattered(1)))] == [(0, 1), (0, 1)]
    apart = spots_of_all((scattered(0), scattered(1, 3)))
    assert [s.line for s in apart] == [11, 11, 23], "the option's line reads otherwise on the two"
    told = "list of 4 x Tensor[49] int64 on rank 0; list of 3 x Tensor[49] int64 on rank 1"
    assert ("pieces", told) in apart[-1].values
    assert spots_of(Account(exception="x")) == ()


def test_a_value_is_shown_at_the_first_of_the_lines_that_have_it():
    """The line that decided it is above the one that raised, of the same ranks."""
    labels = link("labels", "Tensor[2] int64 0..2", "loop", 9, "for x, labels in loader:")
    account = failed(
        "loss(y, labels)", "IndexError: x", links=(labels, link("y", "Tensor[2, 2]", "call", 8, "y = f()")), root=0
    )
    decided, raised = spots_of_all((account,))

    assert ("labels", "Tensor[2] int64 0..2") in decided.values
    assert raised.values == (("y", "Tensor[2, 2]"),)


def test_a_place_shows_whole_sentences_of_its_message():
    """A message that is too long for a line ends with a sentence, not within one."""
    words = "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. "
    (spot,) = spots_of(
        failed("loss.backward()", exception=f"{words}This error indicates that your module has parameters")
    )

    assert spot.state == f"raised {words.strip()}"


# Ranks that do not fit together, and Python's own errors


@pytest.mark.parametrize(("words", "line"), [('self.folder / f"epoch_{epoch}.pt"', 23), ('self.folder / "last.pt"', 9)])
def test_a_file_is_named_where_its_name_is_made(words, line):
    """A name that is made of a value is more likely wrong than its folder; one that is written down says nothing."""
    path = "out/epoch_3.pt" if "epoch" in words else "out/last.pt"
    cause = first_cause(
        failed(
            f"torch.load({words})",
            f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'",
            values=[(words.replace('"', "'"), f"Path('{path}')")],
            links=(link("self.folder", "Path('out')", "attribute", 9, "self.folder = Path(folder)"),),
            root=0,
        )
    )
    assert cause.fix.startswith(f"Edit train.py:{line}: name a file that exists"), cause.fix


def sharded(rank, words, exception="RuntimeError: [1]: sizes [7, 8] appear not to match those in process 0"):
    return failed(
        "ddp = DDP(model)",
        exception,
        rank,
        api="torch.nn.parallel.DistributedDataParallel",
        links=(
            link("model", "Net()", "called", 38, "model = Net(len(words))"),
            link("words", f"list of {words}", "assigned", 36, "words = WORDS[rank::world]", 1),
            link("WORDS", "list of 12", "literal", 9, "WORDS = [...]", 2),
            link("rank", str(rank), "called", 35, "rank = dist.get_rank()", 2),
        ),
        root=2,
    )


def test_value_that_differs_from_rank_to_rank_leads():
    """The deepest value that differs is the origin; its own number is not."""
    told = with_partings((sharded(0, 7), sharded(1, 5)), None)
    assert [a.root for a in told] == [1, 1]
    cause = first_cause(*told)
    assert cause.title == (
        "`len(words)` is 7 on rank 0, 5 on rank 1: `words = WORDS[rank::world]` (train.py:36) is made of what each rank"
        " has of its own"
    )
    assert "`all_gather_object` and the union" in cause.fix, "a list of words is not padded"
    assert (cause.file, cause.line) == (FILE, 36)


def test_a_map_whose_length_differs_is_shown_where_it_was_made():
    """The line that reads a rank's own file is the ordinary way to share out data: what is made of it is at fault."""
    long = ", ".join(f"'label number {n}': {n}" for n in range(6))
    links = (
        link(
            "data.ids", f"dict of 8: {{{long}, ...}}", "attribute", 9, "self.ids = {n: i for i, n in enumerate(seen)}"
        ),
        link("path", "", "passed", 17, "data = Notes(f'notes-{rank}.txt')", 1),
    )
    failure = "RuntimeError: [1]: params[0] in this process with sizes [8, 2] appear not to match those in process 0"
    account = failed("DDP(Head(len(data.ids)))", failure, 1, api="torch.nn.parallel.DistributedDataParallel",
                     links=links, root=1)  # fmt: skip
    told = msgspec.structs.replace(account, by_rank=1)
    cause = first_cause(*with_partings((told,), None))
    assert cause.title == (
        "`len(data.ids)` is not the same on every rank (8 on rank 1): `self.ids = {n: i for i, n in enumerate(seen)}`"
        " (train.py:9) is made of what each rank has of its own (train.py:17)"
    )
    assert (cause.line, cause.fix.startswith("Edit train.py:9: make it of a fixed list")) == (9, True)
    assert ("data.ids", "dict of 8") in spots_of(told, (FILE, 9))[0].values


def loaded_into(*links):
    test = "any((p_len != s_len for p_len, s_len in zip(param_lens, saved_lens, strict=True)))"
    return failed(
        "adam.load_state_dict(old)", api="torch.optim.Adam.load_state_dict", links=links, tests=((test, True),),
        place=Place(file="/env/site-packages/torch/optim/optimizer.py", line=9, function="load_state_dict"),
        values=[("param_lens", "[2, 5]"), ("saved_lens", "list of 2 x 1")],
    )  # fmt: skip


def test_groups_of_an_optimizer_are_told_by_their_sizes_and_the_tests_that_chose_them():
    made = link("adam", "<Adam>", "called", 20, "adam = make(net)")
    chosen = (
        link("w.requires_grad", "", "tested", 7, "[w for w in net.parameters() if w.requires_grad]", 1),
        link("warm", "False", "tested", 14, "if warm:", 1),
    )
    cause = first_cause(loaded_into(made, *chosen))
    said = "Rank 0: `load_state_dict`: groups of [1, 1] parameters were saved, `adam` has [2, 5]; "
    assert cause.title == f"{said}`w.requires_grad` (train.py:7), `warm` (train.py:14)"
    assert (cause.line, cause.settled) == (23, False)
    assert first_cause(loaded_into(made)).title == f"{said}`adam = make(net)` (train.py:20)"


def test_a_fix_is_settled_only_where_a_literal_or_option_that_is_compared_was_given():
    """A line that computes the number is where it came from, not what has to be changed."""
    for how, settled in (("option", True), ("assigned", False)):
        links = (link("places", "2", how, 11, "parser.add_argument('--places', default=2)"),)
        account = failed(
            "DistributedSampler(data, num_replicas=places, rank=9)", links=links, root=0,
            api="torch.utils.data.DistributedSampler", arguments=[("num_replicas", "2"), ("rank", "9")],
        )  # fmt: skip
        assert first_cause(account).settled is settled, how


def test_the_one_part_of_a_shape_that_is_computed_is_shown():
    links = (
        link("groups", "3", "assigned", 15, "groups = world // width + 2"),
        link("width", "2", "passed", 22, "mesh_of(options.width)"),
    )
    account = failed(
        "init_device_mesh('cpu', (groups, width))", links=links, root=0,
        api="torch.distributed.device_mesh.init_device_mesh", arguments=[("mesh_shape", "(3, 2)")],
    )  # fmt: skip
    cause = first_cause(account)
    assert cause.title.endswith("the world size is 2; `groups = world // width + 2` (train.py:15)")
    assert cause.settled is False, "the line may be right, and the launch wrong"


def test_only_failures_that_compare_ranks_are_about_their_difference():
    """Without another rank in the message the root stays; a `recv` may differ from its `send`."""
    plain = sharded(1, 5, "ValueError: too many words")
    assert with_partings((sharded(0, 7), plain), None)[1].root == 2
    one = msgspec.structs.replace(sharded(1, 5), by_rank=1)
    assert with_partings((one,), None)[0].root == 1
    refusal = msgspec.structs.replace(one.refusal, api="torch.distributed.recv")
    assert with_partings((msgspec.structs.replace(one, refusal=refusal),), None)[0].root == 2


def test_results_unpacked_in_another_order_are_put_in_order():
    """The names are those of the arguments: the diff is their order."""
    made = "model, loader, optimizer = accelerator.prepare(model, optimizer, loader)"
    account = failed(
        "for x, y in loader:",
        "TypeError: 'AcceleratedOptimizer' object is not iterable",
        links=(link("loader", "<AcceleratedOptimizer>", "called", 2, made),),
        values=(("loader", "<AcceleratedOptimizer>"),),
    )
    cause = first_cause(account, excerpts=(excerpt("import x", made, "y = 1"),))
    assert cause.title.startswith("`loader` is of AcceleratedOptimizer, which is not iterable")
    assert "+model, optimizer, loader = accelerator.prepare(model, optimizer, loader)" in cause.diff


def test_certainty_over_a_fix_that_nothing_proves_speaks_of_the_cause():
    """A contract says what the value has to be; an error of Python only where it came from."""
    proven = Answer(headline="x", sure="certain", fix=Fix(text="y"))
    unproven = Answer(headline="x", sure="certain", fix=Fix(text="y", proven=False))
    assert to_short_text(proven).splitlines()[-1].startswith("Certain ")
    assert to_short_text(unproven).splitlines()[-1].startswith("The cause is certain, the fix is not proven")


def test_handler_that_goes_on_is_the_way_around_a_call(tmp_path):
    """The rank is past a `try` in which its peers wait; a handler that raises again is no way around."""
    file = tmp_path / "train.py"
    text = "def main():\n    try:\n        step()\n    except Exception:\n        {}\n    last()\n"
    verdict = Verdict(kind="skipped", culprits=(1,), waiting=(0,), confidence=0.9, summary="")
    states = [
        RankState(rank=rank, world_size=2, host="h", pid=rank + 9, stack=(Frame(str(file), line, "main"),))
        for rank, line in ((0, 3), (1, 6))
    ]
    file.write_text(text.format("pass"))
    found = swallowed(states, verdict)
    assert (found.branch.place.line, found.text, found.sides[0].ranks) == (4, "step()", (1,))
    file.write_text(text.format("raise"))
    assert swallowed(states, verdict) is None


@pytest.mark.parametrize("before", ["", "        if not row:\n            continue\n"])
def test_handler_that_ends_a_pass_takes_a_rank_around_a_call_that_comes_later(tmp_path, before):
    """Unless a test can have ended the pass as well."""
    file = tmp_path / "train.py"
    file.write_text(f"""\
def main(rows):
    for row in rows:
{before}        try:
            value = score(row)
        except ValueError:
            continue
        reduce(value)
    barrier()
""")
    last = file.read_text().splitlines().index("        reduce(value)") + 1
    verdict = Verdict(kind="extra", culprits=(1,), waiting=(0,))
    states = [
        RankState(rank=rank, world_size=2, alive=True, stack=(Frame(str(file), line, "main"),))
        for rank, line in ((0, last), (1, last + 1))
    ]

    found = swallowed(states, verdict)

    if before:
        assert found is None
    else:
        assert (found.branch.place.line, found.text, found.branch.leaves) == (5, "reduce(value)", "continue")


def test_key_of_a_table_did_not_make_the_number_in_it():
    """From text alone the error says what the only divisor was; its way back is the table's."""
    account = failed(
        "return self.sums[name] / self.counts[name]",
        "ZeroDivisionError: float division by zero",
        links=(
            link("name", "'loss'", "literal", 26, 'print(meter.mean("loss"))'),
            link("self.counts", "", "attribute", 15, "self.counts[name] = self.counts.get(name, 0)"),
        ),
        root=0,
    )
    cause = first_cause(msgspec.structs.replace(account, with_values=False))
    assert cause.title.startswith("`self.counts[name]` is 0, and the line divides by it; `self.counts[name] = ")
    assert (cause.line, cause.grade) == (15, "source")


def shared_out(code, size="6", about="out"):
    """Return the account of an output for `reduce_scatter_tensor` that one line makes of 12 elements on 2 ranks."""
    return failed(
        f"dist.reduce_scatter_tensor({about}, flat)",
        api="torch.distributed.reduce_scatter_tensor",
        arguments=[("output", f"Tensor[{size}] float32"), ("input", "Tensor[12] float32")],
        links=(
            link(about, f"Tensor[{size}] float32", "called", 22, code),
            link("flat", "Tensor[12] float32", "called", 20, "flat = torch.ones(12)", 1),
            link("world", "2", "called", 21, "world = dist.get_world_size()", 1),
        ),
        root=0,
    )


@pytest.mark.parametrize(
    ("code", "size", "added"),
    [
        ("out = torch.empty(flat.numel() // (world + 1))", 4, "out = torch.empty(flat.numel() // world)"),
        ("out = torch.empty(flat.size(0) // (world - 1))", 12, "out = torch.empty(flat.size(0) // world)"),
        ("out = torch.empty(len(flat) // world + 1)", 7, "out = torch.empty(len(flat) // world)"),
        ("out = torch.empty(1 + flat.numel() // world + 1)", 8, ""),
        ("out = torch.empty(numbers // (world + 1))", 4, ""),
        ("out = torch.empty(flat.numel() // (world + 1))", 5, ""),
    ],
)
def test_a_constant_too_much_is_left_out_if_the_demand_is_met_without_it(code, size, added):
    """Proven by working out the expression; no diff where its numbers are not known or do not agree."""
    cause = first_cause(shared_out(code, size), excerpts=(excerpt(code, first=22),))
    rows = [row[1:] for row in cause.diff.splitlines() if row.startswith("+") and not row.startswith("+++")]
    assert rows == ([added] if added else [])


def sampled(*options):
    """Return the account of a sampler whose number of replicas comes of options, and whose rank is the launcher's."""
    code = f"replicas = {' * '.join(options)}"
    made = [link(o, "1", "option", 9 + n, f'parser.add_argument("--{o}", default=1)', 1) for n, o in enumerate(options)]
    asked = "loader = make_loader(args, dist.get_rank())"
    given = Link(value=NamedValue("rank", "1"), how="passed", place=place(25, asked, (27, 42)))
    return failed(
        "sampler = DistributedSampler(data, num_replicas=replicas, rank=rank)",
        rank=1,
        api="torch.utils.data.distributed.DistributedSampler",
        arguments=[("dataset", "<TensorDataset>"), ("num_replicas", "1"), ("rank", "1")],
        links=(link("replicas", "1", "assigned", 17, code), *made, given),
        root=1,
    )


@pytest.mark.parametrize(("options", "line"), [(("nodes",), 9), (("nodes", "per_node"), 17)])
def test_what_the_launcher_gave_is_not_blamed_and_of_several_options_the_line_that_combines_them_is(options, line):
    """The rank is what the rest of the job says; which of two options is wrong can't be known."""
    cause = first_cause(sampled(*options))
    assert (FILE, line) == (cause.file, cause.line)
    assert f"(train.py:{line})" in cause.title
    assert "train.py:25" not in cause.title


def labelled(*links):
    return failed(
        "F.cross_entropy(net(x), y)", "IndexError: Target 11 is out of bounds.",
        api="torch.nn.functional.cross_entropy",
        arguments=[("input", "Tensor[4, 10] float32"), ("target", "Tensor[4] int64 1..11")],
        links=(link("y", "Tensor[4] int64 1..11", "loop", 20, "for x, y in loader:"), *links),
    )  # fmt: skip


def test_the_number_of_outputs_is_found_where_the_labels_come_from_data():
    """By its value on the way back of the model; not where two lines have it."""
    model = link("net", "Net()", "called", 12, "net = Net(config)")
    width = link("config['classes']", "10", "literal", 4, "config = {'classes': 10}", 1)
    assert first_cause(labelled(model, width)).line == 4
    other = link("size", "10", "default", 6, "def make(size=10):", 1)
    assert first_cause(labelled(model, width, other)).line == 20


def test_sizes_of_a_last_batch_are_told_with_the_loader():
    """A gather of batches of a loader without `drop_last`; with it, the sizes do not come from there."""
    for kept, said in (("", True), (", drop_last=True", False)):
        code = f"score(DataLoader(data, 32, sampler=Part(rank){kept}))"
        links = (
            link("parts", "", "assigned", 9, "parts = [empty_like(x)]"),
            link("x", "", "loop", 8, "for x in loader:", 1),
            link("loader", "", "passed", 20, code, 2),
        )
        found = origin._loader_of(Account(links=links, root=2, by_rank=2))
        assert said == (found is not None)


def test_a_zero_leads_to_the_division_that_lost_it():
    """The numbers that are divided are fine: the default of 1 is not what the call refuses."""
    links = (
        link("self.share", "0", "attribute", 9, "self.share = config.batch // self.world"),
        link("config.batch", "1", "default", 4, "batch: int = 1", 1),
    )
    message = "RuntimeError: split_size can only be 0 if dimension size is 0, but got dimension size of 4"
    raised_in = msgspec.structs.replace(place(9, ""), file="/venv/site-packages/torch/_tensor.py")
    cause = first_cause(
        failed("parts = x.split(self.share)", message, api="torch.Tensor.split", links=links, root=1, place=raised_in,
               values=[("split_size", "0")], arguments=[("split_size", "0")]),
    )  # fmt: skip

    assert "train.py:9" in cause.fix
    assert "self.share = config.batch // self.world" in cause.title


def test_a_list_for_the_ranks_gets_an_item_for_each():
    """The number that the program took is not known to the answer, what the list came to is."""
    line = "parts = [torch.zeros_like(scores) for _ in range(torch.cuda.device_count() or 1)]"
    account = failed(
        "dist.all_gather(parts, scores)",
        "RuntimeError: ProcessGroupGloo::allgather: invalid output tensor list",
        api="torch.distributed.all_gather",
        arguments=[("tensor_list", "[Tensor[10] float32]"), ("tensor", "Tensor[10] float32")],
        links=(
            link("parts", "[Tensor[10] float32]", "assigned", 8, line),
            link("scores", "Tensor[10] float32", "assigned", 7, "scores = torch.rand(10)"),
        ),
        root=0,
    )
    cause = first_cause(msgspec.structs.replace(account, modules=("torch", "dist")), excerpts=(excerpt(line, first=8),))
    assert "+parts = [torch.zeros_like(scores) for _ in range(dist.get_world_size())]" in cause.diff


@pytest.mark.parametrize("guarded", [True, False])
def test_a_line_that_only_some_ranks_reach_compares_nothing(guarded):
    """An aborted rank has no exception: where a check finds its call under a test of the rank, that is what is told."""
    account = failed(
        "dist.all_reduce(score)",
        "",
        api="torch.distributed.all_reduce",
        links=(link("score", "", "assigned", 9, "score = model(torch.randn(4, 8)).mean()"),),
        root=0,
    )
    verdict = Verdict(
        kind="wrong_size",
        sites=(CallSite(rank=0, file=FILE, line=23, function="main"),),
        confidence=0.4,
        summary="Rank 0 was aborted by gloo: it expected 4 bytes and was sent 20.",
    )
    check = SourceFinding(
        file=FILE, line=23, check="DT101", near="line", rank=0, message="all_reduce() runs only on rank 0"
    )
    snapshot = Snapshot(
        accounts=(msgspec.structs.replace(account, by_rank=0),),
        verdict=verdict,
        source_findings=(check,) if guarded else (),
    )
    first = diagnose(load(), snapshot).advice[0]
    assert (first.cause, "not the same on every rank" in first.title) == (
        ("collective-under-rank-guard", False) if guarded else ("value-parts-by-rank", True)
    )

"""The test or loop at which ranks of a hang part: what a living stack shows, and how the ranks' views are compared."""

import threading
import time
from contextlib import suppress

import msgspec
import pytest

from dtdebug.account.branches import branches_of
from dtdebug.check.stack_files import sourced_snapshot
from dtdebug.process.thread_frames import frames_of
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.inference.parting import find_parting
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.account import Branch, NamedValue, Parting, Place, Side
from dtdebug_taxonomy.model.claims import Claim, Record
from dtdebug_taxonomy.model.ranks import CallSite, CollectiveRef, Frame, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer
from dtdebug_taxonomy.presentation.answer_text import to_short_text

HEAD = """\
if False:
    import torch as t
    import torch.distributed as dist
class Stop:
    def __init__(self, patience):
        self.patience, self.bad = patience, 0
    @property
    def done(self):
        return self.bad >= self.patience
    def add(self, value):
        self.bad = self.bad + 1 if value > 1 else 0
        return self.bad >= self.patience
class Rows:
    def __init__(self, size):
        self.rows = list(range(size))
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        if i >= len(self.rows):
            raise IndexError(i)
        return self.rows[i]
"""


def run(code, world):
    with suppress(SystemExit):
        exec(code, world)


class Program:
    """Ranks of one program, each a thread that stops where it calls `wait`."""

    def __init__(self, folder, body):
        self.file = folder / "train.py"
        self.file.write_text(HEAD + body)
        self.code = compile(self.file.read_text(), str(self.file), "exec")
        self.free = threading.Event()

    def line(self, words):
        return next(n for n, each in enumerate(self.file.read_text().splitlines(), 1) if words in each)

    def state(self, rank, **given):
        stopped = threading.Event()

        def wait(*_):
            stopped.set()
            self.free.wait(20)
            raise SystemExit

        world = {"__name__": "train", "wait": wait, "rank": rank, **given}
        thread = threading.Thread(target=run, args=(self.code, world), daemon=True)
        thread.start()
        assert stopped.wait(20)
        time.sleep(0.01)
        frames = frames_of(thread.ident)[::-1]
        own = [f for f in frames if f.f_code.co_filename == str(self.file)]
        stack = tuple(Frame(str(self.file), f.f_lineno, f.f_code.co_name) for f in own)
        return RankState(
            rank=rank, world_size=2, pid=rank + 1, alive=True, backend="gloo", stack=stack,
            branches=branches_of(own, seconds=5),
        )  # fmt: skip


@pytest.fixture
def program(tmp_path):
    made = []

    def make(body):
        made.append(Program(tmp_path, body))
        return made[-1]

    yield make
    for each in made:
        each.free.set()


def parted(program, one, other, kind="skipped"):
    """Return the parting of two ranks, of which the first is waited for."""
    sites = tuple(
        CallSite(rank=s.rank, file=s.stack[-1].file, line=s.stack[-1].line, function=s.stack[-1].function)
        for s in (one, other)
    )
    verdict = Verdict(kind=kind, culprits=(one.rank,), waiting=(other.rank,), sites=sites, confidence=0.95,
                      summary="Rank 1 never called all_reduce #1; rank 0 waits for it.")  # fmt: skip
    found = find_parting((one, other), verdict)
    return found, verdict


def answer(found, verdict, states):
    bare = tuple(msgspec.structs.replace(s, branches=()) for s in states)
    snapshot = sourced_snapshot(Snapshot(verdict=verdict, ranks=bare, parting=found))
    return build_answer(diagnose(load(), snapshot), snapshot)


EARLY = """\
def main(values):
    stop = Stop(2)
    for epoch in range(9):
        wait() if epoch == len(values) else None
        value = values[epoch]
        if stop.add(value):
            break
    wait()
main(values)
"""


def test_a_state_of_an_object_that_differs_is_the_parting(program):
    ranks = program(EARLY)
    one, other = ranks.state(1, values=[2, 2]), ranks.state(0, values=[2, 0])
    found, verdict = parted(ranks, one, other)
    assert (found.branch.place.line, found.sure) == (ranks.line("if stop.add"), True)
    assert [(s.ranks, s.result) for s in found.sides] == [((1,), True), ((0,), False)]
    assert ("self.bad", "2") in [(v.name, v.text) for v in found.sides[0].values]
    said = answer(found, verdict, (one, other))
    assert said.headline.startswith("`stop.add(value)` is True on rank 1 (self.bad = 2")
    assert "+        agreed = t.tensor(float(bool(stop.add(value))))" in said.fix.diff.splitlines()
    assert (said.fix.line, said.sure) == (ranks.line("if stop.add"), "certain")


POLLS = """\
def main():
    if rank == 0:
        note = "written"
    else:
        wait()
    wait()
main()
"""


def test_a_rank_that_waits_as_its_rank_demands_took_the_else_and_the_cause_stays_open(program):
    """That it stands there is sure; the test asks for the rank, so it was meant to: the cause is what it waits for."""
    ranks = program(POLLS)
    one, other = ranks.state(1), ranks.state(0)
    found, verdict = parted(ranks, one, other, kind="not_arrived")
    said = answer(found, verdict, (one, other))
    assert found.detour
    assert said.headline.startswith("Rank 1 took the `else` of `if rank == 0:`")
    assert said.sure != "certain"


def test_a_value_of_another_pass_is_not_compared(program):
    ranks = program("""\
for step in range(6):
    if step == 2:
        wait() if rank == 0 else None
wait()
""")
    found, _ = parted(ranks, ranks.state(1), ranks.state(0))
    assert found is None or "step" not in found.text


def test_of_several_parts_the_one_that_no_pass_changes_is_named(program):
    ranks = program("""\
def main():
    for step in range(6):
        if step % 2 == 1 and rank == 0:
            wait()
    wait()
main()
""")
    one, other = ranks.state(1), ranks.state(0)
    found, verdict = parted(ranks, one, other)
    assert found.text == "rank == 0"
    said = answer(found, verdict, (one, other))
    assert "+        if step % 2 == 1:" in said.fix.diff.splitlines()


def test_a_method_that_one_rank_has_left_is_read_with_its_arguments(program):
    ranks = program("""\
class Saver:
    def __init__(self, rank):
        self.rank = rank
    @property
    def is_main(self):
        return self.rank == 0
    def save(self):
        if not self.is_main:
            return
        wait()
def main(saver):
    saver.save()
    wait()
main(Saver(rank))
""")
    found, _ = parted(ranks, ranks.state(1), ranks.state(0))
    assert found.branch.place.line == ranks.line("if not self.is_main")
    assert [(s.ranks, s.result) for s in found.sides] == [((1,), True), ((0,), False)]


def test_a_loop_over_a_data_set_of_the_program_has_its_length(program):
    ranks = program("""\
def main(rows):
    for row in rows:
        wait() if row == last else None
    wait()
main(Rows(size))
""")
    one, other = ranks.state(1, size=3, last=-1), ranks.state(0, size=4, last=3)
    found, verdict = parted(ranks, one, other)
    assert [(s.ranks, s.result) for s in found.sides] == [((1,), 3), ((0,), 4)]
    said = answer(found, verdict, (one, other))
    assert said.headline.startswith("`rows` has 3 passes on rank 1, 4 passes on rank 0 (")


def test_the_only_way_around_is_likely_and_not_certain(program):
    ranks = program("""\
def main(rows):
    for row in rows:
        if row[0] > 1:
            continue
        if row is rows[-1]:
            wait()
    wait()
main(rows)
""")
    one, other = ranks.state(1, rows=[[0], [5]]), ranks.state(0, rows=[[0], [1]])
    found, _ = parted(ranks, one, other)
    assert found.branch.place.line == ranks.line("if row[0] > 1")


@pytest.mark.parametrize(
    ("kind", "rows", "is_named"),
    [("skipped", ["a c", "b"], True), ("skipped", ["a c", "b", "b"], False), ("extra", ["a c", "b"], False)],
)
def test_a_rank_behind_a_loop_of_as_many_passes_has_gone_around_a_call_before(program, kind, rows, is_named):
    """Its last pass went like the others': only an earlier one can have left out the call, where passes are equal."""
    ranks = program("""\
def main(rows, last):
    for number, row in enumerate(rows):
        words = row.split()
        if len(words) > 1:
            continue
        (len, wait)[number == last](row)
    wait()
main(rows, last)
""")
    one, other = ranks.state(1, rows=rows, last=9), ranks.state(0, rows=["a", "b"], last=1)
    found, _ = parted(ranks, one, other, kind=kind)
    at = found.branch.place.line if found is not None else 0
    assert is_named is (at == ranks.line("if len(words)"))
    assert not is_named or (found.sides[0].result, found.sides[1].result) == (None, False)


def test_ranks_at_equal_values_have_no_parting(program):
    ranks = program("""\
def main():
    if size > 2:
        wait()
main()
""")
    assert parted(ranks, ranks.state(1, size=3), ranks.state(0, size=4))[0] is None


def test_a_job_that_runs_has_no_parting(program):
    ranks = program(EARLY)
    one, other = ranks.state(1, values=[2, 2]), ranks.state(0, values=[2, 0])
    assert parted(ranks, one, other, kind="none")[0] is None


def test_no_code_of_the_program_runs_where_a_stack_is_read(program):
    ranks = program("""\
ran = []
class Trap:
    def __bool__(self):
        ran.append("bool")
        return True
    def __len__(self):
        ran.append("len")
        return 3
    def __eq__(self, other):
        ran.append("eq")
        return True
    def __getattr__(self, name):
        ran.append(name)
        return 1
    @property
    def ready(self):
        ran.append("ready")
        return len(ran)
    __hash__ = None
def main(trap):
    while True:
        wait()
        if trap or trap == 1 or trap.size > 2 or len(trap) > 1 or trap.ready:
            pass
        for each in trap:
            pass
world.append(ran)
main(Trap())
""")
    world = []
    state = ranks.state(0, world=world)
    assert world == [[]]
    tests = [b for b in state.branches if b.place.function == "main"]
    assert len(tests) == 3


def test_a_loop_that_is_broken_off_says_nothing_of_its_test(program):
    """A rank behind it may have left by the `break`."""
    ranks = program("""\
def main(on, stop):
    while on:
        if stop():
            break
        wait()
    wait()
main(True, stop)
""")
    one, other = (ranks.state(rank, stop=lambda rank=rank: rank == 1) for rank in (1, 0))
    found, _ = parted(ranks, one, other, kind="extra")
    assert found is None or found.text != "on"


def test_reading_is_bounded(program):
    tests = "".join(f"    if values[{n}] > {n}:\n        pass\n" for n in range(300))
    ranks = program(f"def main(values):\n{tests}    wait()\nmain([0] * 300)\n")
    assert 0 < len(ranks.state(0).branches) <= 16


@pytest.mark.parametrize("test", ["loss.item() > 40", "torch.isnan(loss)"])
def test_where_only_the_source_shows_how_ranks_part_its_line_is_told_and_not_a_class(tmp_path, monkeypatch, test):
    """The rank has left the loop since, so that no stack stands at the test: that it went there is not measured."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text(f"""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def main(loader):
    dist.init_process_group("gloo")
    net = DDP(torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in loader:
        loss = net(batch).sum()
        if {test}:
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()

main([])
""")
    sites = (CallSite(1, str(file), 16, "main"), CallSite(0, str(file), 14, "main"))
    summary = "Rank 1 never called all_reduce #5 of world; rank 0 waits for it in backward()."
    verdict = Verdict(kind="skipped", culprits=(1,), waiting=(0,), sites=sites, confidence=0.95, summary=summary)
    states = tuple(
        RankState(rank=s.rank, world_size=2, alive=True, stack=(Frame(s.file, s.line, "main"),)) for s in sites
    )
    said = answer(None, verdict, states)
    assert said.fix is not None
    assert said.fix.line == 11
    assert said.why.startswith("This rank alone decides to skip the step")
    assert said.sure in {"possible", "likely"}


def test_a_test_for_the_rank_is_said_once_and_takes_the_diff_of_the_check_at_the_call(tmp_path, monkeypatch):
    """Three ranks hold three numbers and go one way."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text("""\
import torch
import torch.distributed as dist

def save(loss):
    if dist.get_rank() == 0:
        torch.save(loss, "checkpoint.pt")
        dist.barrier()

dist.init_process_group("gloo")
loss = torch.ones(1)
for step in range(100):
    dist.all_reduce(loss)
    if step % 50 == 49:
        save(loss)
""")
    sites = (CallSite(0, str(file), 7, "save"), *(CallSite(rank, str(file), 12, "<module>") for rank in (1, 2)))
    claims = (
        Claim(
            what="called",
            record=Record(source="dump", rank=0),
            ranks=(0,),
            op="barrier",
            seq=51,
            file=str(file),
            line=7,
        ),
        Claim(
            what="waits",
            record=Record(source="dump", rank=1),
            ranks=(1, 2),
            op="all_reduce",
            seq=51,
            file=str(file),
            line=12,
        ),
    )
    verdict = Verdict(kind="replaced", culprits=(0,), waiting=(1, 2), sites=sites, confidence=0.95, claims=claims,
                      summary="Rank 0 called barrier #51 of world where no other rank does.")  # fmt: skip
    sides = tuple(
        Side(ranks=(rank,), result=rank == 0, values=(NamedValue("dist.get_rank()", str(rank)),)) for rank in range(3)
    )
    place = Place(file=str(file), line=5, code="if dist.get_rank() == 0:")
    branch = Branch(place=place, kind="if", held=((6, 7),))
    states = tuple(
        RankState(rank=s.rank, world_size=3, alive=True, stack=(Frame(s.file, s.line, s.function),)) for s in sites
    )

    said = answer(Parting(branch=branch, text="dist.get_rank() == 0", sides=sides), verdict, states)

    assert said.headline == "Only rank 0 passes `dist.get_rank() == 0` (train.py:5)."
    assert not said.event
    assert said.fix is not None
    assert said.fix.line == 7
    assert "-        dist.barrier()\n+    dist.barrier()" in said.fix.diff
    assert "more place" not in to_short_text(said)


@pytest.mark.parametrize(
    ("leaves", "kind", "claims"),
    [
        ("", "replaced", [("called", 0, "group 1"), ("called", 1, "group 2")]),
        ("raise", "extra", [("raised", 0, ""), ("called", 1, "world")]),
    ],
)
def test_a_test_for_the_rank_is_no_cause_where_both_ways_communicate_or_one_raises(leaves, kind, claims):
    """Of two groups in other orders no call is to be dropped; of an exception the test is only the reason."""
    claims = tuple(
        Claim(what=what, record=Record(source="dump", rank=rank), ranks=(rank,), op="all_reduce", seq=1, group=group)
        for what, rank, group in claims
    )
    branch = Branch(place=Place(file="/w/train.py", line=9, code="if rank == 0:"), held=((10, 10),), leaves=leaves)
    sides = tuple(Side(ranks=(n,), result=n == 0, values=(NamedValue("rank", str(n)),)) for n in (0, 1))
    verdict = Verdict(kind=kind, culprits=(0,), waiting=(1,), confidence=0.5, claims=claims, summary="They differ.")

    said = answer(Parting(branch=branch, text="rank == 0", sides=sides), verdict, ())

    assert "Only rank 0 passes" not in said.headline


def test_a_rank_that_passed_a_test_whose_operands_its_body_changes_went_the_other_way(program):
    """The body of the test has changed its operand on one rank, so that values do not say how it went: the calls do."""
    ranks = program("""\
class Trainer:
    def __init__(self):
        self.best = 10
    def train(self, losses):
        for epoch in range(9):
            wait() if epoch == len(losses) else None
            loss = losses[epoch]
            if loss < self.best:
                self.best = loss
                wait() if saves else None
Trainer().train(losses)
""")
    one, other = ranks.state(0, losses=[3], saves=True), ranks.state(1, losses=[12], saves=False)
    found, verdict = parted(ranks, one, other, kind="extra")
    assert found is not None
    assert (found.branch.place.line, found.sure) == (ranks.line("if loss < self.best"), False)
    assert [(s.ranks, s.result) for s in found.sides] == [((0,), True), ((1,), False)]
    said = answer(found, verdict, (one, other))
    assert said.headline.startswith("`loss < self.best` is True on rank 0 (loss = 3), False on rank 1 (loss = 12)")
    assert said.sure == "likely"
    later = ranks.state(1, losses=[12, 12], saves=False)
    assert parted(ranks, one, later, kind="extra")[0] is None
    assert parted(ranks, one, other, kind="not_arrived")[0] is None


@pytest.mark.parametrize(("test", "named"), [("rank == 0", True), ("len(ROWS) > 1", False)])
def test_a_rank_that_ended_without_the_call_did_not_pass_the_test_for_the_rank(program, test, named):
    """Of the rank that ended no test is known; those that wait stand behind one that asks for the rank, or for nothing
    of the kind.
    """
    body = f"ROWS = [1, 2]\ndef main():\n    first = {test}\n    if first and {test}:\n        wait()\nmain()\n"
    made = program(body)
    states = (made.state(0), RankState(rank=1, world_size=2, pid=2, alive=False))
    site = CallSite(rank=0, file=str(made.file), line=made.line("wait()"), function="main")
    verdict = Verdict(kind="left", culprits=(1,), waiting=(0,), sites=(site,), confidence=0.95,
                      summary="Rank 1 finished the program without calling all_gather #4.")  # fmt: skip

    found = find_parting(states, verdict)

    assert named is (found is not None)
    if found is not None:
        assert "Only rank 0 passes" in answer(found, verdict, states).headline


ROLES = """\
class Role:
    def __init__(self, ranks):
        self.ranks = ranks
    @property
    def active(self):
        return rank in self.ranks
def main(role):
    if role.active:
        wait()
    wait()
main(Role([0, 2]))
"""


def test_ranks_that_part_by_their_role_are_not_told_to_agree(program):
    """What the others would run then is no part of their work."""
    ranks = program(ROLES)
    one, other = ranks.state(1), ranks.state(0)
    found, verdict = parted(ranks, one, other)
    said = answer(found, verdict, (one, other))
    assert "role.active" in said.headline
    assert said.fix is not None
    assert not said.fix.diff


def test_the_test_for_the_main_module_parts_nobody(program):
    ranks = program("""\
def main():
    wait()
if __name__ == "train":
    main()
""")
    assert ranks.line("if __name__") not in [each.place.line for each in ranks.state(0).branches]


@pytest.mark.parametrize(("ways", "is_named"), [("", True), ("    if rows[0] > 7:\n        return\n", False)])
def test_of_a_rank_that_ended_well_the_only_return_of_the_main_function_is_told(program, ways, is_named):
    ranks = program(f"def main(rows):\n    if not rows:\n        return\n{ways}    wait()\nmain(rows)\n")
    stays = ranks.state(0, rows=[1])
    site = CallSite(rank=0, file=str(ranks.file), line=stays.stack[-1].line, function="main")
    verdict = Verdict(kind="left", culprits=(1,), waiting=(0,), sites=(site,), confidence=0.95,
                      summary="Rank 1 finished without calling all_reduce #1.")  # fmt: skip
    found = find_parting((stays,), verdict)
    assert (found is not None) is is_named
    if found is not None:
        said = answer(found, verdict, (stays,))
        at = ranks.line("if not rows")
        assert said.headline.startswith(f"Rank 1 left, and only `not rows` (train.py:{at}) leads there")


@pytest.mark.parametrize("op", ["send", "recv"])
def test_two_ranks_that_wait_for_each_other_in_one_call_are_told(program, op):
    ranks = program("""\
def main(column):
    first = column % 2 == 0
    if first:
        wait()
    wait()
main(column)
""")
    one, two, other = (ranks.state(rank, column=column) for rank, column in ((0, 0), (2, 0), (1, 1)))
    at = {"file": str(ranks.file), "line": one.stack[-1].line, "function": "main"}
    claims = tuple(
        Claim(what="waits", record=Record(source="stack", rank=rank), ranks=(rank,), of=(peer,), op=op, **at)
        for rank, peer in ((0, 2), (2, 0))
    )
    verdict = Verdict(
        kind="skipped", culprits=(0, 2), waiting=(1,), confidence=0.8, claims=claims, summary="Ranks 0,2 wait.",
        collective=CollectiveRef(op=op, seq=None), sites=tuple(CallSite(rank=s.rank, file=s.stack[-1].file,
        line=s.stack[-1].line, function="main") for s in (one, two, other)),
    )  # fmt: skip
    found = find_parting((one, two, other), verdict)
    said = answer(found, verdict, (one, two, other))
    line = ranks.line("first = column")
    assert said.headline.startswith(f"Ranks 0 and 2 both wait in {op} for the other: `first` is True on both")
    assert said.fix is not None
    assert (said.fix.line, said.fix.diff) == (line, "")

"""The answer to a failure has a diff of the user's own file, or the line of it to edit; never another program's.

`own/KIND` has a program in the form that people write, what its ranks print if they fail, and the diff.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest
from msgspec.structs import replace
from places import TESTS

from dtdebug.check.fixes import fix_file
from dtdebug.check.stack_files import sourced_snapshot
from dtdebug.cli import main
from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.ranks import CallSite, Frame, Verdict
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot
from dtdebug_taxonomy.presentation.text import to_text
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.parameters import parameters_of

OWN = TESTS / "own"
KINDS = sorted(f.name for f in OWN.iterdir() if f.is_dir())
PRINTED = [k for k in KINDS if (OWN / k / "log").exists()]
ASKED = {
    "backend-of-an-option",
    "checkpoint-of-other-devices",
    "layer-never-used",
    "unused-head",
    "unused-head-by-task",
}
"""What a message asks for, and no check sees before the run."""
DDP = "torch.nn.parallel.DistributedDataParallel"


def changed(diff):
    """The lines that a diff changes."""
    return [line for line in diff.splitlines() if line[:1] in {"+", "-"} and not line.startswith(("+++", "---"))]


def answer(kind, monkeypatch):
    """The diagnosis of what a program printed, in its own folder."""
    monkeypatch.chdir(OWN / kind)
    return diagnose(load(), sourced_snapshot(Snapshot(output=(OWN / kind / "log").read_text())))


@pytest.mark.parametrize("kind", PRINTED)
def test_the_first_cause_has_the_diff_of_the_own_file(kind, monkeypatch):
    found = answer(kind, monkeypatch)
    first = found.advice[0]
    assert (first.diff_of, changed(first.diff)) == ("yours", changed((OWN / kind / "fix.diff").read_text()))
    assert (OWN / kind / first.file).is_file()
    assert first.line > 0
    assert "example" not in {a.diff_of for a in found.advice}
    assert "in your file:" in to_text(found)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ASKED and (OWN / k / "fix.diff").exists()])
def test_fix_shows_the_same_diff_before_the_run(kind, monkeypatch, capsys):
    monkeypatch.chdir(OWN / kind)
    assert main.main(["fix", "."]) == 1
    wanted = changed((OWN / kind / "fix.diff").read_text())
    shown = changed(capsys.readouterr().out)
    assert [line for line in wanted if line not in shown] == []


@pytest.mark.parametrize("kind", [k for k in KINDS if (OWN / k / "fix.diff").exists()])
def test_what_the_diff_makes_parses_and_has_no_warning_that_was_not_there(kind):
    file = OWN / kind / "train.py"
    before = {h.check.id for h in examine(Code(file.read_text(), path="train.py")) if h.severity == "warning"}
    for done in fix_file(file):
        ast.parse(done.after)
        after = {h.check.id for h in examine(Code(done.after, path="train.py")) if h.severity == "warning"}
        assert after <= before


def test_what_has_no_proven_diff_names_the_line(monkeypatch, tmp_path):
    """The condition is the rank's own, so lifting the barrier would put another deadlock in."""
    program = (OWN / "barrier-under-rank-and-step" / "train.py").read_text()
    (tmp_path / "train.py").write_text(
        program.replace("step % args.save_every == args.save_every - 1", "loss.item() < 0.5")
    )
    monkeypatch.chdir(tmp_path)
    found = diagnose(load(), sourced_snapshot(Snapshot(verdict=waiting(32))))
    first = found.advice[0]
    assert (first.cause, first.file, first.line, first.diff) == ("collective-under-rank-guard", "train.py", 32, "")
    assert "    fix: edit train.py:32: " in to_text(found)
    assert "example" not in to_text(found)


def waiting(line):
    """The verdict on a rank that waits alone in a line."""
    sites = (CallSite(rank=0, file="train.py", line=line, function="run"),)
    return Verdict(kind="extra", culprits=(0,), waiting=(1,), sites=sites, confidence=0.9, summary="Rank 0 waits.")


def test_a_waiting_rank_gets_the_diff_of_the_line_it_waits_in(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text((OWN / "barrier-under-rank-and-step" / "train.py").read_text())
    first = diagnose(load(), sourced_snapshot(Snapshot(verdict=waiting(32)))).advice[0]
    assert (first.cause, first.file, first.line, first.diff_of) == (
        *("collective-under-rank-guard", "train.py", 32),
        "yours",
    )
    assert "+        if step % args.save_every == args.save_every - 1:" in first.diff
    assert "+            dist.barrier()" not in first.diff  # it stays where it is, and only the rest is guarded


def test_hints_bear_on_a_failure_only_on_its_line(monkeypatch):
    """The learning rate is seen in the function that failed, and says nothing of a sampler."""
    found = answer("shuffle-beside-sampler", monkeypatch)
    assert "DT509" in {
        f.check
        for f in sourced_snapshot(Snapshot(output=(OWN / "shuffle-beside-sampler/log").read_text())).source_findings
    }
    assert "DT509" not in to_text(found)
    assert "source-learning-rate-unscaled" not in {r.evidence for s in found.symptoms for r in s.why}


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("unused-head", "backbone.0 backbone.2 head aux"),
        ("reentrant-checkpoint", "stem blocks.0.inner.0 blocks.1.inner.0 blocks.2.inner.0 out"),
    ],
)
def test_parameters_are_named_in_their_order(file, names):
    code = Code((OWN / file / "train.py").read_text())
    found = parameters_of(code, code.calls(DDP)[0].args[0])
    assert [p.name for p in found] == [f"{n}.{kind}" for n in names.split() for kind in ("weight", "bias")]


@pytest.mark.parametrize(
    "change",
    [
        ("self.aux = nn.Linear(width, classes)", "self.aux = make(width)"),
        ("self.aux = nn.Linear(width, classes)", "self.aux = nn.Linear(width, classes, bias=biased)"),
        (
            "self.aux = nn.Linear(width, classes)",
            "if torch.cuda.is_available():\n            self.aux = nn.Linear(2, 2)",
        ),
        ("self.aux = nn.Linear(width, classes)", "self.add_module('aux', nn.Linear(2, 2))"),
        ("self.aux = nn.Linear(width, classes)", "self.aux = self.head"),
        ("class Classifier(nn.Module)", "class Classifier(Base)"),
        (
            "model = DDP(Classifier())",
            "net = Classifier()\n    net.head.weight.requires_grad = False\n    model = DDP(net)",
        ),
    ],
)
def test_parameters_that_are_not_certain_are_not_named(change, monkeypatch, tmp_path):
    """The line to edit is told all the same."""
    program = (OWN / "unused-head" / "train.py").read_text()
    assert change[0] in program
    (tmp_path / "train.py").write_text(program.replace(*change))
    monkeypatch.chdir(tmp_path)
    snapshot = sourced_snapshot(Snapshot(output=(OWN / "unused-head" / "log").read_text()))
    first = diagnose(load(), snapshot).advice[0]
    assert ("unused-parameters", "train.py", "") == (first.cause, first.file, first.diff)
    assert "DDP(" in (tmp_path / "train.py").read_text().splitlines()[first.line - 1]
    assert "aux" not in first.title
    assert f"edit train.py:{first.line}: " in to_text(diagnose(load(), snapshot))


def test_an_output_that_never_enters_the_loss_is_no_case_for_a_search(monkeypatch, tmp_path):
    """It is computed in each forward, where DistributedDataParallel finds it in use."""
    program = (OWN / "unused-head" / "train.py").read_text()
    program = program.replace(
        "        if with_aux:\n            return logits, self.aux(features)\n        return logits\n",
        "        return logits, self.aux(features)\n",
    )
    (tmp_path / "train.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    first = diagnose(load(), sourced_snapshot(Snapshot(output=(OWN / "unused-head" / "log").read_text()))).advice[0]
    assert (first.title, first.diff) == ("aux.weight, aux.bias got no gradient", "")
    assert "self.aux(features)" in program.splitlines()[first.line - 1]


@pytest.mark.ranks
@pytest.mark.parametrize("kind", ["unused-head", "unused-head-by-task", "layer-never-used", "reentrant-checkpoint"])
def test_the_names_are_those_that_torch_gives(kind):
    code = Code((OWN / kind / "train.py").read_text())
    model = code.calls(DDP)[0].args[0]
    made = model if isinstance(model, ast.Call) else code.values(model)[0]
    name = code.source_of(made)
    program = f"import json, train; print(json.dumps([n for n, _ in train.{name}.named_parameters()]))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=OWN / kind, capture_output=True, check=True, text=True, timeout=120
    )
    assert [p.name for p in parameters_of(code, model)] == json.loads(done.stdout.splitlines()[-1])


CELLS = (
    "import torch.distributed as dist",
    'def setup(backend="gloo"):\n    dist.init_process_group(backend=backend)\n    return dist.get_rank()',
)
NO_RANK = (
    "Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set"
)


def _no_rank(**more):
    frames = (Frame("cell In[5]", 1, "<module>", "rank = setup()"),)
    raised = ExceptionInfo(type="ValueError", message=NO_RANK, frames=frames)
    return sourced_snapshot(Snapshot(cell="rank = setup()", cells=CELLS, exception=raised, **more))


def test_an_edit_in_an_earlier_cell_names_that_cell():
    first = diagnose(load(), _no_rank(cell_numbers=(1, 4, 5))).advice[0]
    assert (first.file, first.line, first.diff_of) == ("cell In[4]", 2, "yours")
    assert first.diff.startswith("--- In[4]\n+++ In[4]\n")
    assert changed(first.diff) == [
        "-    dist.init_process_group(backend=backend)",
        "+    dist.init_process_group(backend=backend, store=dist.HashStore(), rank=0, world_size=1)",
    ]


@pytest.mark.parametrize("launcher", ["%%px\n", "notebook_launcher(setup)\n", "import os\nos.environ['RANK'] = '0'\n"])
def test_cells_that_something_launches_get_no_group_of_one(launcher):
    snapshot = replace(_no_rank(), source_findings=(), cells=(*CELLS, launcher))
    assert [] == [a.diff for a in diagnose(load(), sourced_snapshot(snapshot)).advice if "HashStore" in a.diff]


def test_a_function_of_an_earlier_cell_that_failed_gets_its_diff():
    """Its check needs the import of another cell; the line is known by the number of the cell, or by its text."""
    cells = ("import torch.distributed as dist", 'def go():\n    dist.init_process_group("gloo", timeout=30)')
    frames = (Frame("cell In[7]", 1, "<module>", "go()"), Frame("cell In[3]", 2, "go"))
    raised = ExceptionInfo(type="TypeError", message="Expected timeout argument", frames=frames)
    found = diagnose(load(), Snapshot(cell="go()", cells=cells, cell_numbers=(2, 3, 7), exception=raised))
    first = found.advice[0]
    assert (first.file, first.line, first.diff_of) == ("cell In[3]", 2, "yours")
    assert first.diff.startswith("--- In[3]\n+++ In[3]\n")
    assert "timeout=timedelta(seconds=30)" in first.diff


def test_spawn_in_a_cell_becomes_forks_unless_the_kernel_used_its_device():
    cells = (
        "import torch.multiprocessing as mp",
        "def worker(rank, n):\n    print(rank)",
    )
    cell = "mp.spawn(worker, args=(2,), nprocs=2)"
    frames = (Frame("cell In[3]", 1, "<module>", cell),)
    raised = ExceptionInfo(
        type="ProcessExitedException", message="process 0 terminated with exit code 1", frames=frames
    )
    snapshot = Snapshot(
        cell=cell, cells=cells, cell_numbers=(1, 2, 3), exception=raised,
        output="AttributeError: Can't get attribute 'worker' on <module '__main__' (built-in)>",
    )  # fmt: skip
    first = diagnose(load(), snapshot).advice[0]
    assert '+mp.start_processes(worker, args=(2,), nprocs=2, start_method="fork")' in first.diff.splitlines()
    used = replace(snapshot, cells=("import torch", "x = torch.ones(2).cuda()", *cells), cell_numbers=(1, 2, 3, 4, 5))
    assert "start_processes" not in diagnose(load(), used).advice[0].diff


def test_the_line_by_which_a_rank_left_leads_where_the_others_only_lost_it(monkeypatch):
    """What they print is the end of a connection, whose causes do not include a loop that was left."""
    monkeypatch.chdir(OWN / "early-stop-on-one-rank")
    verdict = replace(waiting(35), kind="left", sites=(CallSite(0, "train.py", 35, "main"),))
    output = "[rank1]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:23983"
    found = diagnose(load(), sourced_snapshot(Snapshot(output=output, verdict=verdict))).advice
    assert ("each-rank-decides-for-itself", "train.py", 40) == (found[0].cause, found[0].file, found[0].line)
    assert changed(found[0].diff) == changed((OWN / "early-stop-on-one-rank" / "fix.diff").read_text())
    assert found[0].diff not in [a.diff for a in found[1:]]

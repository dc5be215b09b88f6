"""`dtdebug run --resume-check` names what a resumed run does not take up again, and the line."""

import json
import math
import os
import subprocess
import sys
import types

import pytest
from places import TESTS

from dtdebug.cli import main
from dtdebug.experiments.resume import repair, resume_option
from dtdebug.experiments.resume.answer import Wording
from dtdebug.experiments.resume.compare import compare
from dtdebug.experiments.resume.inside import save_calls, training_state
from dtdebug.experiments.resume.records import Load, RankNotes, Step
from dtdebug.experiments.resume.runs import Runs

PROGRAMS = TESTS / "resumed"
LOAD = '        self.{0} = snap["{0}"]\n'
FAULTS = {
    "epochs": ("epochs", {}),
    # https://github.com/PolymathicAI/the_well/pull/63
    "scheduler": (
        "epochs",
        {
            ', "scheduler": scheduler.state_dict()})': "})",
            '        scheduler.load_state_dict(checkpoint["scheduler"])\n': "",
        },
    ),
    # https://github.com/pytorch/examples/issues/1029
    "strict": ("epochs", {
        '"state_dict": model.state_dict()': '"state_dict": net.state_dict()',
        'load_state_dict(checkpoint["state_dict"])': 'load_state_dict(checkpoint["state_dict"], strict=False)',
    }),
    # https://github.com/modelscope/ms-swift/issues/10050
    "sampler": ("epochs", {"set_epoch(epoch)": "set_epoch(epoch - args.start_epoch)"}),
    "atomic": (
        "epochs",
        {"torch.save(state, filename)": "torch.save(state, 'new'); os.replace('new', filename)"},
    ),
    # https://github.com/allenai/allennlp/pull/1650
    "early": (
        "epochs",
        {
            "        scheduler.step()\n        best": "        best",
            "        dist.barrier()\n": "        dist.barrier()\n        scheduler.step()\n",
        },
    ),
    # https://github.com/lightly-ai/lightly-train/pull/892
    "warming": (
        "snapshots",
        {
            "        self.decay = decay\n": "        self.decay, self.count = decay, 0\n",
            "    def update(self, model):\n": "    def update(self, model):\n        self.count += 1\n"
            "        d = min(self.decay, self.count / (self.count + 9))\n",
            "mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)": "mul_(d).add_(p.detach(), alpha=1 - d)",
        },
    ),
    # https://github.com/Lightning-AI/pytorch-lightning/pull/866
    "epoch": ("epochs", {'"epoch": epoch + 1': '"epoch": epoch'}),
    "snapshots": ("snapshots", {}),
    # https://github.com/ai2cm/ace/issues/349
    "ema": ("snapshots", {
        '"ema": self.ema.shadow,\n                    ': "", '        self.ema.shadow = snap["ema"]\n': "",
    }),
    "step": ("snapshots", {LOAD.format("global_step"): ""}),
    # https://github.com/OpenNMT/OpenNMT-py/issues/38
    "optimizer": ("snapshots", {
        "            self.load()\n": "            self.load()\n            "
        "self.opt = torch.optim.AdamW(self.model.parameters())"
        "\n"
    }),
    # https://github.com/EvolvingLMMs-Lab/OneVision-Encoder/pull/65
    "moments": ("snapshots", {'        self.opt.load_state_dict(snap["opt"])\n': ""}),
    # https://github.com/ai2cm/ace/issues/690
    "random": ("snapshots", {', "rng": torch.get_rng_state()': "", '        torch.set_rng_state(snap["rng"])\n': ""}),
    "nothing": ("snapshots", {"if os.path.exists(path):": "if False:"}),
    "unsaved": ("snapshots", {"            self.save()\n": ""}),
    "last": ("snapshots", {
        "            self.save()\n            self.epoch += 1": "            self.epoch += 1\n        self.save()",
    }),
    "sharded": ("sharded", {}),
    "sharded scheduler": ("sharded", {'        self.sched.load_state_dict(state["sched"])\n': ""}),
    "outside": ("snapshots", {'path="snapshot.pt"': 'path="/tmp/dtdebug-no-such-folder/snapshot.pt"'}),
}  # fmt: skip


@pytest.fixture
def check(tmp_path):
    """Check some of these programs, in one process that has imported torch."""

    def run(*names):
        jobs = {}
        for name in names:
            program, changes = FAULTS[name]
            text = (PROGRAMS / f"{program}.py").read_text(encoding="utf-8")
            for before, after in changes.items():
                assert before in text
                text = text.replace(before, after)
            folder = tmp_path / name
            folder.mkdir()
            (folder / "train.py").write_text(text, encoding="utf-8")
            words = ["torchrun", "--nproc-per-node", "2"] if program != "snapshots" else ["python"]
            jobs[name] = [str(folder), [*words, "train.py"]]
        done = subprocess.run(
            [sys.executable, str(TESTS / "forked_jobs.py")], input=json.dumps(jobs), capture_output=True, text=True,
            timeout=500, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        for name in names:  # the user's own folder stays as it was
            assert [p.name for p in (tmp_path / name).iterdir()] == ["train.py"]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def line_of(found, place=0):
    """The source line of a place."""
    return found["spots"][place]["code"]


@pytest.mark.ranks
def test_what_is_lost_is_named_and_a_healthy_twin_is_not_blamed(check):
    """Of a program that resumes well nothing is said; what is not saved, or not put back, is named with its line."""
    found = check("snapshots", "ema", "step", "unsaved")
    assert found["snapshots"]["kinds"] == []
    assert found["snapshots"]["text"].startswith("It goes on where it stopped: weights, optimizer state")
    assert found["ema"]["kinds"] == ["copy"]
    assert "`self.ema.shadow`" in found["ema"]["headline"]
    assert line_of(found["ema"]).startswith("torch.save({")
    assert found["step"]["kinds"][:2] == ["counter", "settings"]
    assert "`self.global_step` is 0, without interruption 4" in found["step"]["headline"]
    assert "nothing was saved" in found["unsaved"]["refused"]
    assert all(len(f["text"].splitlines()) <= 12 for f in found.values() if "text" in f)


@pytest.mark.ranks
def test_more_that_is_lost_is_named_with_its_line(check):
    """An optimizer that is made anew, moments and random state that are not restored, a program that never loads."""
    found = check("optimizer", "moments", "random", "nothing", "last", "outside")
    assert found["optimizer"]["kinds"][0] == "moments"
    assert "not the one which steps" in found["optimizer"]["why"]
    assert line_of(found["optimizer"]) == 'self.opt.load_state_dict(snap["opt"])'
    assert "never put into the optimizer" in found["moments"]["why"]
    assert {"samples", "random"} <= {*found["random"]["kinds"]}
    assert "get_rng_state" in found["random"]["fix"]["text"]
    assert "reads nothing that it saved" in found["nothing"]["headline"]
    assert "only after its last step (16)" in found["last"]["refused"]
    assert "outside of its folder" in found["outside"]["refused"]


@pytest.mark.ranks
def test_ranks_that_resume_in_part_are_named(check):
    """Of two ranks: a scheduler that is not saved, names that match nothing, and the epoch of sampler and loop."""
    found = check("epochs", "scheduler", "strict", "sampler", "epoch")
    assert found["epochs"]["kinds"] == []
    assert found["scheduler"]["headline"].startswith("After resuming, CosineAnnealingLR is at last_epoch 0")
    assert found["scheduler"]["why"].startswith("It is not saved: checkpoint.pth.tar holds epoch, arch")
    assert "strict=False" in line_of(found["strict"])
    assert found["sampler"]["kinds"][0] == "samples"
    assert "The sampler is in epoch 0, without interruption in 1" in found["sampler"]["why"]
    assert found["epoch"]["kinds"][0] == "counter"


@pytest.mark.ranks
def test_a_save_that_is_renamed_and_what_steps_after_it_are_followed(check):
    """A program that writes to another name first is resumed from the last one; a count that was not saved is named."""
    found = check("atomic", "early", "warming")
    assert found["atomic"]["kinds"] == []
    assert found["early"]["kinds"][0] == "scheduler"
    assert found["early"]["why"].startswith("It was saved at 0, and stepped after the save")
    assert found["warming"]["kinds"] == ["copy"]
    assert "`self.ema.shadow` is updated otherwise" in found["warming"]["headline"]
    assert "`self.ema.count` is" in found["warming"]["why"]


def test_state_in_a_form_of_its_own_is_seen_to_be_saved():
    """By its values: a list of tensors, say, of which no key tells what it is."""
    torch = pytest.importorskip("torch")
    state = training_state.TrainingState(torch)
    state.patch_makers(lambda function: function, lambda _: ("t.py", 1))
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    own = [{k: v.clone() for k, v in s.items()} for s in optimizer.state.values()]
    assert state.holds_moments({"mine": own})
    assert not state.holds_moments(model.state_dict())


def test_an_optimizer_with_the_state_of_another_rank_is_named():
    """Its moments are those that this rank had without interruption."""

    def notes(rank, moments):
        step = Step(n=0, o=0, object=1, made=("t.py", 1), site=("t.py", 9), weights={"w": f"w{rank}"},
                    moments={"exp_avg": {"w": moments}})  # fmt: skip
        return RankNotes(rank, 2, steps=[step], loads=[Load(path=f"/h/{moments}.pt", site=("t.py", 5))])

    runs = Runs(
        first={r: notes(r, f"m{r}") for r in (0, 1)}, second={r: notes(r, f"m{r}") for r in (0, 1)},
        resumed={0: notes(0, "m0"), 1: notes(1, "m0")}, saved_at=0, saves=(), command=(), option=None, said="",
        status=None, home="/h", seconds=1.0,
    )  # fmt: skip
    found = compare(runs)
    assert [(d.kind, d.ranks, d.of_rank) for d in found.differences] == [("moments", (1,), 0)]
    answer = Wording(runs, found, "/h", lambda *_: "").answer()
    assert answer.headline == "After resuming, the optimizer of rank 1 has the state of rank 0."


@pytest.mark.ranks
def test_a_sharded_model_with_a_distributed_checkpoint_is_followed(check):
    """The step by which torch sets up an optimizer's state is none of training; states in the checkpoint are known."""
    found = check("sharded", "sharded scheduler")
    assert found["sharded"]["kinds"] == []
    assert "optimizer state, scheduler" in found["sharded"]["text"]
    assert found["sharded scheduler"]["kinds"] == ["scheduler"]
    assert "It is saved (saved), and never put into the scheduler" in found["sharded scheduler"]["why"]


@pytest.mark.parametrize(
    ("source", "saved", "words"),
    [
        ('p.add_argument("--resume", action="store_true")', ["c.pt"], ["--resume"]),
        ('p.add_argument("--resume", default="")', ["c.pt"], ["--resume", "c.pt"]),
        ('p.add_argument("--lr")\np.add_argument("--resume-from-checkpoint")', ["o/a.pt", "o/b.pt"],
         ["--resume-from-checkpoint", "o"]),
        ('@click.option("--resume_dir")\ndef f(): pass', ["o/a.pt"], ["--resume_dir", "o"]),
    ],
)  # fmt: skip
def test_the_option_to_resume_is_found_in_the_source(tmp_path, source, saved, words):
    """The option is read, not tried: a flag, a path, or the folder of several files."""
    script = tmp_path / "train.py"
    script.write_text(source)
    assert resume_option.arguments(resume_option.find(script), saved) == words


def test_a_program_without_such_an_option_gets_none(tmp_path):
    """Options that only sound alike are left alone."""
    script = tmp_path / "train.py"
    script.write_text(
        'p.add_argument("--load-workers")\np.add_argument("--restore-best", action="store_true")\nbroken('
    )
    assert resume_option.find(script) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--resume-steps", "0"], "run --resume-steps 0: 1 to 10000 steps"),
        (["--resume-timeout", "-1"], "run --resume-timeout -1: more than 0 seconds"),
        (["--resume-args", "'a"], "run --resume-args 'a: No closing quotation"),
        ([], "run --resume-check: no-such-command: command not found"),
    ],
)
def test_wrong_usage_is_one_line(capsys, words, said):
    """What can't be meant is one line, and exit status 2."""
    command = "no-such-command" if not words else sys.executable
    assert main.main(["run", "--resume-check", *words, "--", command, "train.py"]) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_a_best_loss_that_is_infinite_and_modules_leave_the_notes_readable(tmp_path):
    """Numbers that JSON has not would make all steps unreadable; `import os` is not a variable of the program."""
    kinds = types.SimpleNamespace(
        nn=types.SimpleNamespace(Module=types.FunctionType), Tensor=types.BuiltinFunctionType,
        optim=types.SimpleNamespace(Optimizer=types.FunctionType),
    )  # fmt: skip
    own = types.ModuleType("state")
    own.__file__, own.epoch, own.os = str(tmp_path / "state.py"), 3, os
    walk = training_state._Walk(kinds, [])
    program = {"best": math.inf, "worst": math.nan, "huge": 1 << 70, "step": 4, "lr": 0.1, "os": os, "state": own}
    for name, value in program.items():
        walk.visit(name, value, 4)
    assert walk.numbers == {"step": 4, "lr": 0.1, "state.epoch": 3}
    saved = {}
    save_calls._contents({"best": -math.inf, "step": 4, "meta": {"loss": math.nan, "epoch": 2}}, saved)
    assert saved == {"step": 4, "meta.epoch": 2}


def test_a_scaler_that_was_restored_is_the_one_that_was_saved():
    """The scale that counts, whatever it was made with: https://github.com/ultralytics/ultralytics/pull/22189."""
    trained = types.SimpleNamespace(_scale=2048.0, _growth_tracker=1, _init_scale=1024.0, _init_growth_tracker=0)
    restored = types.SimpleNamespace(_scale=None, _growth_tracker=None, _init_scale=2048.0, _init_growth_tracker=1)
    anew = types.SimpleNamespace(_scale=None, _growth_tracker=None, _init_scale=1024.0, _init_growth_tracker=0)
    assert training_state._scaler(trained) == training_state._scaler(restored)
    assert training_state._scaler(trained) != training_state._scaler(anew)


_TRAINER = """\
class Trainer:
    def __init__(self):
        self.sched = CosineAnnealingLR(self.opt, 9)

    def state(self):
        return {
            "opt_state_dict": self.opt.state_dict(),
        }

    def save(self):
        torch.save(self.state(), "last.pt")

    def load(self):
        ck = torch.load("last.pt")
        if ck:
            self.opt.load_state_dict(ck["opt_state_dict"])
"""
_SCRIPT = """\
def main():
    s = torch.optim.lr_scheduler.StepLR(opt, 3)
    ck = torch.load("last.pt")
    opt.load_state_dict(ck["opt"])
    torch.save(dict(opt=opt.state_dict()), "last.pt")
"""


@pytest.mark.parametrize(
    ("source", "kind", "added"),
    [
        (
            _TRAINER,
            "CosineAnnealingLR",
            [
                '"sched_state_dict": self.sched.state_dict(),',
                'self.sched.load_state_dict(ck["sched_state_dict"])',
            ],
        ),
        (
            _SCRIPT,
            "StepLR",
            ['s.load_state_dict(ck["s"])', "torch.save(dict(opt=opt.state_dict(), s=s.state_"],
        ),
        (
            _SCRIPT.replace("dict(opt", "dict(s=s.state_dict(), opt"),
            "StepLR",
            ['s.load_state_dict(ck["s"])'],  # it is saved
        ),
        (_SCRIPT, "CosineAnnealingLR", []),
        (_SCRIPT + "    t = StepLR(other, 3)\n", "StepLR", []),  # which of them?
        (_SCRIPT.replace("    ck = ", "def resume(opt):\n    ck = "), "StepLR", []),  # there it has no name
        (_SCRIPT.replace("dict(opt=opt.state_dict())", "everything"), "StepLR", []),
    ],
)
def test_the_patch_saves_and_restores_what_was_left_out(tmp_path, monkeypatch, source, kind, added):
    """Beside the others and in their manner; none where the source does not show the names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.py").write_text(source)
    rows = source.splitlines()
    saved, loaded = (next(n for n, row in enumerate(rows, 1) if mark in row) for mark in ("torch.save(", "torch.load("))
    patch = repair.patch("t.py", saved, loaded, (kind,))
    rows = [row[1:].strip() for row in patch.splitlines() if row.startswith("+") and not row.startswith("+++")]
    assert len(rows) == len(added)
    assert all(any(row.startswith(each) for row in rows) for each in added)
    if patch:
        (tmp_path / "p").write_text(patch)
        subprocess.run(["patch", "-p1", "-i", "p"], check=True, capture_output=True, timeout=20)
        compile((tmp_path / "t.py").read_text(), "t.py", "exec")

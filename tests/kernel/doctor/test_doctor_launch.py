"""What doctor reads from a launch command: dialects, scripts, and sizes only where their meaning is certain."""

import json
import os
import socket
import subprocess
import sys
import time

import msgspec
import pytest

from dtdebug.cli.main import main
from dtdebug.doctor import after_failure
from dtdebug.doctor.examine import examine
from dtdebug.doctor.judge import attendance, parallel_sizes
from dtdebug.doctor.judge import report as judge_report
from dtdebug.doctor.launch import read_launch
from dtdebug.doctor.render import closing_line
from dtdebug.doctor.types import HostReport, Launch, Meeting
from dtdebug.storage import doctor_result
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.case_json import of_text


def read(text, **variables):
    return read_launch.read_launch(text.split(), variables)


def launch_of(path, *arguments):
    return read_launch.read_launch(["bash", str(path), *arguments], {})


def problems(arguments, ranks=8, **more):
    return [p.id for p in parallel_sizes.judge(Launch(per_node=ranks, arguments=tuple(arguments.split()), **more))[0]]


@pytest.mark.parametrize(
    ("text", "nodes", "ranks", "program", "endpoint"),
    [
        (
            "mpirun -np 8 -H a:4,b:4 -x MASTER_ADDR=b -x MASTER_PORT=7 -bind-to none -mca pml ob1 python -u t.py -v 1",
            2,
            8,
            "t.py",
            "b:7",
        ),
        ("mpirun -np 2 -H a,b torchrun --nnodes 2 --nproc-per-node 4 --master-addr a t.py", 2, 8, "t.py", "a:29500"),
        ("mpiexec -n 8 -ppn 4 -genv A 1 python t.py", 1, 8, "t.py", ""),
        ("deepspeed --include localhost:0,2,3 t.py", 1, 3, "t.py", ""),
        ("horovodrun -np 4 -H localhost:4 python t.py --lr 1", 1, 4, "t.py", ""),
        ("tune run --nproc_per_node 4 lora --config c", 1, 4, "lora", "127.0.0.1:29500"),
        ("composer -n 8 t.py", 1, 8, "t.py", "127.0.0.1:29500"),
        ("composer -n 8 --world_size 16 --node_rank 1 --master_addr b t.py", 2, 16, "t.py", "b:29500"),
        (
            "fabric run --num-nodes=2 --devices=4 --node-rank=1 --main-address=b --accelerator=cuda t.py --devices 9",
            2,
            8,
            "t.py",
            "b:29500",
        ),
    ],
)
def test_dialects(text, nodes, ranks, program, endpoint):
    """Options with one dash, variables that are handed on, a launcher within a launcher."""
    found = read(text)
    assert (found.nodes, found.ranks, found.program, found.endpoint) == (nodes, ranks, program, endpoint)


def test_a_script_is_read_with_what_is_set_on_this_host(tmp_path):
    """Constants of the script first, then variables, then defaults; an argument of the script; a product."""
    path = tmp_path / "run.sh"
    path.write_text(
        'GPUS=4\nDIST="--nproc_per_node $GPUS --nnodes ${NODES:-2} --node_rank $RANK_OF --master_addr ${HEAD}"\n'
        'ARGS=(\n  --micro-batch-size 1\n  --global-batch-size $((16*8))\n)\ntorchrun $DIST train.py "${ARGS[@]}" $1\n'
    )
    found = read_launch.read_launch(["bash", str(path), "--last"], {"RANK_OF": "1", "HEAD": "10.0.0.9"})
    assert (found.nodes, found.ranks, found.node, found.endpoint) == (2, 8, 1, "10.0.0.9:29500")
    assert found.arguments == ("--micro-batch-size", "1", "--global-batch-size", "128", "--last")
    assert read_launch.read_launch(["bash", str(path)], {"NODES": "3", "HEAD": "h", "RANK_OF": "0"}).nodes == 3
    assert "HEAD" in read_launch.read_launch(["bash", str(path)], {"RANK_OF": "0"}).problems[0]


SLURM = {"SLURM_JOB_NODELIST": "n[07-08]", "SLURM_NNODES": "2", "SLURM_NODEID": "1"}
LIST = '$(scontrol show hostnames "$SLURM_JOB_NODELIST"'


@pytest.mark.parametrize(
    "text",
    [
        (
            "export MASTER=`scontrol show hostname $SLURM_NODELIST | head -n1`\nW=$(({N} * SLURM_NNODES))\n"
            "export CMD='accelerate launch --num_machines $SLURM_NNODES --num_processes $W "
            "--machine_rank $SLURM_NODEID --main_process_ip $MASTER --main_process_port 7'\nsrun $CMD train.py"
        ),
        (
            f"nodes=( {LIST} ) )\nall=($nodes)\nhead=${{all[0]}}\n"
            'ip=$(srun --nodes=1 -w "$head" hostname --ip-address)\n: "${PORT:=7}"\n'
            "srun torchrun --nnodes 2 --nproc_per_node {N} --rdzv_backend c10d --rdzv_endpoint $ip:$PORT train.py"
        ),
        f"srun bash -c \"torchrun --nnodes=2 --nproc_per_node={{N}} --rdzv_endpoint='{LIST} | head -1)':7 train.py\"",
        (
            'M=${M:-"train.py"}\nsrun torchrun --nnodes 2 --nproc-per-node ${MINE:="{N}"} --master-addr $(hostname) '
            "--master-port 7 ${M}"
        ),
    ],
)
def test_hosts_and_sums_of_a_batch_script_are_worked_out(text, tmp_path):
    """As scripts of Slurm write them: the first host in four ways, counts in three."""
    path = tmp_path / "run.sbatch"
    path.write_text(text.replace("{N}", "4") + "\n")
    found = read_launch.read_launch(["bash", str(path)], SLURM)
    assert (found.nodes, found.ranks, found.endpoint, found.program) == (2, 8, "n07:7", "train.py")


def test_the_folder_of_a_script_and_its_arguments_are_put_in(tmp_path):
    """`here` in two ways; what is left of the arguments after `shift`."""
    path = tmp_path / "run.sh"
    path.write_text(
        'root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &> /dev/null && pwd -P)\nme=$(realpath $0)\n'
        'N=$1\nshift\ntorchrun --nproc_per_node=$((N*3)) $root/train.py --here $(dirname $me) "$@"\n'
    )
    found = read_launch.read_launch(["bash", str(path), "4", "--last"], {})
    assert (found.ranks, found.program) == (12, f"{tmp_path}/train.py")
    assert found.arguments == ("--here", str(tmp_path), "--last")


def test_what_torchrun_would_refuse_is_said():
    """A value that is none; no program."""
    found = read("torchrun --nnodes two --master-addr h0 t.py")
    assert (found.nodes, found.refused) == (1, ("--nnodes two: torchrun takes a number, or MIN:MAX",))
    (told,) = attendance.judge_command(found, HostReport(host="h0", launch=found))
    assert (told.id, told.severity) == ("DR212", "fault")
    assert read("torchrun --nproc_per_node 2").problems == ("the command names no program to run",)
    assert read("torchrun --nnodes 1:4 --nproc_per_node gpu t.py").problems == ()


def test_launchers_that_are_told_by_variables():
    """They start torchrun themselves."""
    said = {"NNODES": "2", "NODE_RANK": "1", "NPROC_PER_NODE": "4", "MASTER_ADDR": "b", "MASTER_PORT": "7"}
    for text in ("llamafactory-cli train a.yaml", "swift sft --model q"):
        found = read(text, **said)
        assert (found.nodes, found.ranks, found.node, found.endpoint) == (2, 8, 1, "b:7")
    alone = read("llamafactory-cli train a.yaml")
    assert (alone.launcher, alone.nodes, alone.ranks) == ("torchrun", 1, None)  # as many as there are devices


@pytest.mark.parametrize(
    ("text", "launcher", "ranks", "program"),
    [
        ("python prepare.py\nray job submit --address x -- python3 -m v trainer.nnodes=2 trainer.n_gpus_per_node=8\n",
         "ray", 16, "v"),
        ("python3 -m verl.trainer trainer.nnodes=2 trainer.n_gpus_per_node=4\n", "ray", 8, "verl.trainer"),
        ("colossalai run --nproc_per_node $((2*2)) --host a,b t.py --x 1\n", "colossalai run", 8, "t.py"),
        ("NNODES=2 NPROC_PER_NODE=4 MASTER_ADDR=b llamafactory-cli train a.yaml\n", "torchrun", 8, "llamafactory-cli"),
        ("lightning run model --devices 2 --num-nodes 2 t.py\n", "torchrun", 4, "t.py"),
        ("mpirun -np 2 echo\nmpirun -np 4 -H a:2,b:2 python t.py\n", "mpirun", 4, "t.py"),
        ("#SBATCH --nodes=2 --x\n#SBATCH --ntasks-per-node=4\npython get.py\nMASTER_ADDR=b srun python -u t.py\n",
         "variables", 8, "t.py"),
    ],
)  # fmt: skip
def test_a_script_is_searched_for_each_launcher(text, launcher, ranks, program, tmp_path):
    """What surely starts ranks counts, not what comes before it."""
    (tmp_path / "run.sh").write_text(text)
    found = launch_of(tmp_path / "run.sh", "cfg.py")
    assert (found.launcher, found.ranks, found.program) == (launcher, ranks, program)


@pytest.mark.parametrize(
    "text",
    [
        """L=(--nnodes ${HOSTS:-2}); L+=(--nproc_per_node 4)
           CMD="torchrun ${L[@]} t.py"
           [ -n "$CMD" ] && eval $CMD""",
        "source ./more.env\ntorchrun --nnodes ${PAIR:-1} --nproc_per_node=4 t.py",
        "main() { torchrun --nnodes 2 --nproc_per_node ${N:-4} t.py; }\nif [ $# -gt 0 ]; then main; fi",
        "if false_or_not; then N=9; fi\nbash inner.sh 4",
        'N=4\nsrun bash -c "torchrun --nnodes 2 --nproc_per_node $N --node_rank \\$SLURM_PROCID t.py"',
    ],
)
def test_texts_and_files_that_a_script_starts_are_read(text, tmp_path, monkeypatch):
    """Arrays, `eval`, functions, sourced and started files, `bash -c`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(text + "\n")
    (tmp_path / "more.env").write_text("PAIR=2\n")
    (tmp_path / "inner.sh").write_text("torchrun --nnodes 2 --nproc_per_node $1 t.py\n")
    found = read_launch.read_launch(["bash", "run.sh", "--n", "4"], {"SLURM_PROCID": "1"})
    assert (found.nodes, found.per_node, found.program, found.problems) == (2, 4, "t.py", ())


def test_files_are_found_where_the_script_goes(tmp_path, monkeypatch):
    """The program and what it and the launcher are given; another program of this folder is not meant."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "t.py").touch()
    (tmp_path / "sub" / "t.py").touch()
    (tmp_path / "sub" / "c.yaml").write_text("num_machines: 2\nnum_processes: 8\n")
    (tmp_path / "run.sh").write_text(
        'cd "$(dirname "$0")/sub" && accelerate launch --config_file=c.yaml t.py c.yaml x\n'
    )
    monkeypatch.chdir(tmp_path)
    found = launch_of("run.sh")
    assert (found.nodes, found.ranks) == (2, 8)
    assert (found.program, found.arguments) == ("sub/t.py", ("sub/c.yaml", "x"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("if [ -z $N ]; then N=2; else N=4; fi", "N is set in `if`"),
        ("for N in 4 8; do echo; done", "N is changed by `for`"),
        ("case $1 in --n) N=$2; shift 2;; esac", "N is set in `case`"),
        ("while [[ $# -gt 0 ]]; do N=$1; shift; done", "N is set in `while`"),
        ('[ -z "$N" ] && N=4', "N is set after `&&`"),
        ("read -r N <<< 4", "N is changed by `read`"),
        ("N=$(nvidia-smi -L | wc -l)", "N comes from `nvidia-smi -L | wc -l`"),
        ("N=`some_program`", "N comes from `some_program`"),
        ("N=$(( 8 / 2 ))", "N comes from `$(( 8 / 2 ))`"),
        ("N=${DEVICES%,*}", "`DEVICES%,*` is not worked out"),
        ("N=$OTHER", "OTHER is not set"),
        ("N=$((1x * 2))", "N comes from `$((1x * 2))`"),
        ("N=${A²}", "`A²` is not worked out"),
    ],
)
def test_what_a_script_does_not_tell_is_said(text, why, tmp_path):
    """Branches and loops are not decided, and commands are not run: the value is unknown, also if it was set before."""
    path = tmp_path / "run.sh"
    for before in ("", "N=1\n"):
        path.write_text(f"{before}{text}\ntorchrun --nnodes 2 --master-addr h0 --nproc_per_node $N t.py\n")
        found = launch_of(path)
        assert (found.nodes, found.per_node) == (2, None)
        assert found.problems == (f"{why}: not known here; give the launch command after --",)


def test_an_address_that_would_have_to_be_asked_for_is_said(tmp_path):
    """Outside of the job; a value of this host's environment does not stand for it. Inside it is known."""
    path = tmp_path / "run.sbatch"
    path.write_text(f"export MASTER_ADDR={LIST} | head -n 1)\nexport MASTER_PORT=7\nsrun python t.py\n")
    found = read_launch.read_launch(["sbatch", str(path)], {"MASTER_ADDR": "elsewhere"})
    assert found.endpoint == ""
    assert found.problems[-1] == (
        'MASTER_ADDR comes from `scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1`: not known here; '
        "give the launch command after --, or run inside the job"
    )
    assert read_launch.read_launch(["bash", str(path)], SLURM).endpoint == "n07:7"


@pytest.mark.parametrize(
    "text",
    [
        "N=x\n" + "N=$N$N\n" * 20_000,
        "A=(x)\n" + "A+=(${A[@]} ${A[@]})\n" * 5_000,
        "bash run.sh\n" * 30_000,
        'eval "$0" $(cat $0)\n' * 10_000,
        "N=" + "$(" * 100_000,
        "N=" + "${A:-" * 60_000,
        "N=$(scontrol show hostnames n[1-4000] | head -1)\n" * 7_000,
    ],
)
def test_a_script_that_grows_without_end_is_left(text, tmp_path, monkeypatch):
    """Doubled texts, a script that starts itself, brackets that are never closed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(f"{text[:390_000]}\ntorchrun --nnodes $N t.py\n")
    start = time.process_time()
    read_launch.read_launch(["bash", "run.sh"], {})
    assert time.process_time() - start < 20  # without a limit they would grow for ever


@pytest.mark.parametrize(
    "text",
    [
        "deepspeed --hostfile {} --num_gpus 4 t.py",
        "mpirun -np 8 --hostfile {} python t.py",
        "srun torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint h0:1 t.py",
    ],
)
def test_hosts_that_the_command_itself_starts_are_not_missed(text, tmp_path):
    """Nobody comes where doctor was started here alone: that is said, and is no fault; with a number it is one."""
    (tmp_path / "hosts").write_text("h0 slots=4\nh1 slots=4\n")
    found = read(text.format(tmp_path / "hosts"))
    assert found.starts
    report = judge_report.alone(HostReport(host="h9", launch=found), Meeting(result="timeout", words="x", tries=3))
    assert not [f for f in report.findings if f.area == "launch"]
    assert "starts the other hosts" in next(u.why for u in report.not_examined if u.id == "launch")
    numbered = read_launch.read_launch(text.format(tmp_path / "hosts").split(), {}, node=1)
    report = judge_report.alone(HostReport(host="h1", launch=numbered), Meeting(result="timeout", words="x", tries=3))
    assert [f.id for f in report.findings if f.area == "launch"] == ["DR204"]


@pytest.mark.parametrize(
    "arguments",
    [
        "--train_batch_size=1 --gradient_accumulation_steps=4",
        "--train.global_batch_size 32 --train.micro_batch_size 3",
        "--tensor_parallel_size 3",
        "rollout.tensor_model_parallel_size=3",
        "--pipeline-model-parallel-size 4 --num-layers 62 --account-for-embedding-in-pipeline-split",
        "--tensor-model-parallel-size 8 --num-query-groups 4 --group-query-attention",
        "--tensor-model-parallel-size 2 --global-batch-size 6 --micro-batch-size 1 --rampup-batch-size 2 2 100",
        "--tensor-model-parallel-size 2 --num-query-groups 3",
        "--tensor-model-parallel-size 4 --expert-model-parallel-size 4 --num-experts 8 --expert-tensor-parallel-size 1",
        "--tensor-model-parallel-size 2 --global-batch-size 6 --micro-batch-size 1 --decrease-batch-size-if-needed",
        "--pipeline-model-parallel-size 4 --num-layers 62 --hybrid-override-pattern M-M*",
        "--parallelism.tensor_parallel_degree 2 --parallelism.expert_parallel_degree 8",
        "--config other.yaml",
    ],
)
def test_a_word_that_may_mean_something_else_is_no_fault(arguments, tmp_path, monkeypatch):
    """One rank's batch under a whole batch's name, an engine of inference, options that change the rule."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.yaml").write_text("a: {num_layers: 7, num_attention_heads: 7, train_batch_size: 3}\n")
    assert problems(arguments) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--tensor-model-parallel-size 8 --num-query-groups 3 --group-query-attention", ["DR703"]),
        ("--pipeline-model-parallel-size 4 --num-layers 62", ["DR703"]),
        ("--pipeline-model-parallel-size 2 --expert-model-parallel-size 8 --num-experts 8", ["DR702"]),
        ("--tensor-model-parallel-size 4 --expert-model-parallel-size 4 --num-experts 8", ["DR702"]),
        ("--tensor-model-parallel-size 2 --context-parallel-size 4 --seq-length 4100", ["DR703"]),
        ("--parallelism.tensor_parallel_degree 2 --parallelism.data_parallel_shard_degree 8", ["DR702"]),
        ("--parallelism.data_parallel_replicate_degree 4 --parallelism.expert_parallel_degree 8", ["DR702"]),
        ("--parallelism.tensor_parallel_degree 2 --training.local_batch_size 3 --training.global_batch_size 32",
         ["DR701"]),
    ],
)  # fmt: skip
def test_what_the_framework_refuses_is_a_fault(arguments, expected):
    """Each by the rule of its own framework."""
    assert problems(arguments) == expected


def test_deepspeed_is_judged_only_where_every_rank_has_its_own_data(tmp_path, monkeypatch):
    """A pipeline, in the options or in the program, makes the number of copies unknown; accelerate's file is read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds.json").write_text(json.dumps({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,
                                                  "gradient_accumulation_steps": 4}))  # fmt: skip
    (tmp_path / "t.py").write_text("net = PipelineModule(layers)\n")
    assert problems("--deepspeed_config ds.json") == ["DR701"]
    assert problems("--deepspeed_config ds.json --pipe_parallel_size 2") == []
    assert problems("--deepspeed_config ds.json", program="t.py") == []
    found = read("accelerate launch --num_processes 8 --deepspeed_config_file ds.json train.py")
    assert [p.id for p in parallel_sizes.judge(found)[0]] == ["DR701"]


def diagnosed(output, summary=""):
    snapshot = Snapshot(output=output)
    case = of_text(snapshot, diagnose(load(), snapshot))
    verdict_ = msgspec.structs.replace(case.verdict, kind="not_understood", summary=summary or case.verdict.summary)
    return msgspec.structs.replace(case, verdict=verdict_)


REFUSED = (
    "RuntimeError: The client socket has failed to connect to any network address of (h0.lab, 29510). The client "
    "socket has failed to connect to h0.lab:29510 (errno: 111 - Connection refused)."
)

UNFIT = "AssertionError: world size (4) is not divisible by 3"


@pytest.mark.parametrize(
    ("output", "command", "expected"),
    [
        (REFUSED, "torchrun --nnodes 2 --master-addr h0.lab --master-port 29510 t.py", "DR203"),
        (REFUSED, "torchrun --nnodes 2 --master-addr other --master-port 29777 t.py", ""),
        (REFUSED, "torchrun --nproc-per-node 2 t.py", ""),
        (UNFIT, "torchrun --nproc-per-node 4 t.py --tensor-model-parallel-size 3", "DR702"),
        (UNFIT, "torchrun --nproc-per-node 4 t.py", ""),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory.", "torchrun --nnodes 2 --master-addr h0.lab t.py", ""),
    ],
)  # fmt: skip
def test_the_check_that_would_have_told_is_named_only_where_the_failure_says_so(output, command, expected):
    """By this command's own endpoint, or measured again on this host; of other failures nothing is said."""
    said = after_failure.foreseen_line(diagnosed(output, output[:120]), command.split(), {}, output)
    assert (expected in said) if expected else not said


@pytest.mark.ranks
def test_a_run_whose_port_is_taken_is_told_of_the_check(tmp_path):
    """A real job that fails for its port: the cause is named, and in full the check, with the process that holds it."""
    pytest.importorskip("torch")
    (tmp_path / "t.py").write_text("pass\n")
    with socket.create_server(("", 0)) as held:
        port = held.getsockname()[1]
        job = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            "2",
            "--master-port",
            str(port),
            "t.py",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "dtdebug", "run", "--full", "--folder", str(tmp_path / "run"), "--", *job],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert "The master port is used by another process" in done.stderr
    line = next(row for row in done.stderr.splitlines() if "before the run" in row)
    assert "DR202" in line
    assert f"process {os.getpid()}" in line


def test_what_was_examined_answers_questions(tmp_path, monkeypatch, capsys):
    """Kept for a run of the same command and for `diagnose --doctor`; what is old is not taken."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path))
    command = ["torchrun", "--nnodes", "2", "--node-rank", "0", "--master-addr", "h0", "t.py"]
    assert main(["doctor", "--host-only", "--format", "nagios", "--", *command]) in (0, 2)  # as plug-ins of Nagios end
    measured = doctor_result.of_run(command)
    assert measured["nodes"][0] == "multiple"
    assert measured["launcher"][0] == "torchrun"
    assert not doctor_result.of_run([*command, "more"])
    capsys.readouterr()
    main(["diagnose", "--doctor", "--format", "json", "--situation", "it hangs in init_process_group"])
    known = {k["key"]: k["source"] for k in json.loads(capsys.readouterr().out)["diagnosis"]["known"]}
    assert known["nodes"] == "measured"
    monkeypatch.setattr(doctor_result, "_LIFE", 0.0)
    assert main(["diagnose", "--doctor", "--situation", "it hangs"]) == 2
    assert "within the last hour" in capsys.readouterr().err


POD = """
          containers:
          - name: log
            command: [tail, -f, /var/log/x]
          - name: main
            env: [{{name: HEAD, value: j-0.j}}, {{name: N, value: "{nodes}"}}]
            command: [bash, -c]
            args:
            - |
              set -e; pip install -r requirements.txt
              torchrun --nnodes $N --nproc-per-node 4 {more} --master-addr $(HEAD) train.py --batch 2
            resources: {{limits: {{nvidia.com/gpu: {devices}}}}}
"""
INDEXED = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  parallelism: 2\n  completionMode: Indexed\n"
ELASTIC = """
kind: PyTorchJob
metadata: {name: e}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 4, nProcPerNode: 2, rdzvBackend: c10d}
  pytorchReplicaSpecs:
    Worker: {replicas: 3, template: {spec: {containers: [{command: [PROGRAM, train.py]}]}}}
"""
STATIC = """
kind: Service
metadata: {name: s}
spec: {clusterIP: None}
---
kind: PyTorchJob
metadata: {name: s}
spec:
  nprocPerNode: 8
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{command: [torchrun, train.py]}]}}}
    Worker: {replicas: COUNT, template: {spec: {containers: [{command: [torchrun, train.py]}]}}}
"""
MPI = """
kind: MPIJob
metadata: {name: m}
spec:
  slotsPerWorker: 4
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{command: [mpirun, -np, "RANKS", python, train.py]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{image: i}]}}}
"""


def indexed(nodes=2, devices=4, more="--node-rank $JOB_COMPLETION_INDEX"):
    return INDEXED + "  template:\n    spec:" + POD.format(nodes=nodes, devices=devices, more=more)


@pytest.mark.parametrize(
    ("text", "hosts", "ranks", "endpoint", "found"),
    [
        (indexed(), 2, 8, "j-0.j:29500", []),
        (indexed(nodes=3), 2, 12, "j-0.j:29500", ["DR201"]),
        (indexed(devices=2), 2, 8, "j-0.j:29500", ["DR601"]),
        (indexed(more="--node-rank 0"), 2, 8, "j-0.j:29500", ["DR207"]),
        (ELASTIC.replace("PROGRAM", "torchrun"), 3, 8, "e-worker-0:23456", []),
        (ELASTIC.replace("PROGRAM", "python"), 3, None, "", ["DR209"]),
        (STATIC.replace("COUNT", "3"), 4, 32, "s-master-0:23456", []),
        (STATIC.replace("COUNT", '"${WORKERS}"'), 2, 8, "s-master-0:23456", []),
        (MPI.replace("RANKS", "8"), 2, 8, "", []),
        (MPI.replace("RANKS", "16"), 2, 16, "", ["DR208"]),
    ],
)
def test_a_manifest_of_kubernetes_is_read(tmp_path, text, hosts, ranks, endpoint, found):
    """Pods, what their operator tells them, and what can't come together; the pods themselves are not examined."""
    (path := tmp_path / "job.yaml").write_text(text)
    for command in (["kubectl", "apply", "-f", str(path)], [str(path)]):
        answer = examine(command, {})
        report = answer.report
        assert (len(report.hosts), report.ranks, answer.look.launch.endpoint) == (hosts, ranks, endpoint)
        assert [f.id for f in report.findings] == found
        assert not any(row.came for row in report.hosts)
        assert {"names", "network", "hosts"} <= {row.id for row in report.not_examined}
        assert "Ready" not in closing_line(report)


def test_manifests_that_can_not_be_read(tmp_path, capsys):
    """One line each: no pods, a template, broken YAML with its line."""
    path = tmp_path / "job.yaml"
    for text, says in (
        ("kind: Service\nspec: {a: 1}\n", "describes no pods"),
        ("a: {{ .Values.x }}\nb: [\n", "is a template"),
        ("a: 1\nb: [\n", "job.yaml:3: is not valid YAML"),
    ):
        path.write_text(text)
        assert main(["doctor", "--", str(path)]) == 2
        assert says in capsys.readouterr().err
    assert main(["doctor", "--", "kubectl", "apply", "-f", str(tmp_path / "none.yaml")]) == 2


def test_a_launcher_behind_a_wrapper_that_nobody_knows_is_found():
    """But what a program is given is no launcher."""
    assert read("neuron_parallel_compile torchrun --nproc_per_node=8 t.py").ranks == 8
    assert read("python t.py --launcher torchrun").launcher == ""
    text = "export N=3; torchrun --nproc-per-node $N t.py"
    assert read_launch.read_launch(["bash", "-c", text], {}).ranks == 3

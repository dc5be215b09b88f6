"""Files that are no Python are read with exact places, whatever is in them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.config.tree import UNKNOWN, number
from dtdebug_taxonomy.source.deepspeed import configurations
from dtdebug_taxonomy.source.kinds import parse_file
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.requirements import Dockerfile, Requirements, installed_packages
from dtdebug_taxonomy.source.shell.launch import launches
from dtdebug_taxonomy.source.shell.script import Script, script_of


def _variables(source):
    return {v.name: v.value for v in source.variables if v.is_set}


# -- which reader ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("train.py", "", "python"),
        ("launch/run.sh", "", "shell"),
        ("job.sbatch", "", "shell"),
        ("a.slurm", "", "shell"),
        (".env", "A=1", "shell"),
        ("prod.env", "A=1", "shell"),
        ("run", "#!/usr/bin/env bash\ntrue", "shell"),
        ("tool", "#!/usr/bin/env python3\n", "python"),
        ("Dockerfile", "FROM x", "dockerfile"),
        ("docker/Dockerfile.gpu", "FROM x", "dockerfile"),
        ("gpu.dockerfile", "FROM x", "dockerfile"),
        ("Containerfile", "FROM x", "dockerfile"),
        ("requirements.txt", "torch", "requirements"),
        ("requirements-dev.txt", "torch", "requirements"),
        ("requirements/gpu.txt", "torch", "requirements"),
        ("ds_config.json", "{}", "config"),
        ("conf/zero3.json", '{"zero_optimization": {}}', "config"),
        ("default_config.yaml", "a: 1", "config"),
        ("C:\\work\\run.sh", "", "shell"),
    ],
)
def test_a_file_is_read_by_its_name_or_first_line(path, text, kind):
    assert kind == parse_file(path, text).kind


@pytest.mark.parametrize(
    ("path", "text"), [("notes.txt", "torch"), ("package.json", '{"name": 1}'), ("x", "text"), ("a.md", "")]
)
def test_other_files_are_left_alone(path, text):
    assert parse_file(path, text) is None


# -- shell ----------------------------------------------------------------------------------------


def test_words_keep_their_places_over_continued_lines_and_quotes():
    script = Script('torchrun \\\n  --nnodes=2 \'my "train.py\' "a b"c # comment\necho')

    words = script.commands[0].words

    assert ["torchrun", "--nnodes=2", 'my "train.py', "a bc"] == [w.text for w in words]
    assert ["torchrun", "--nnodes=2", "'my \"train.py'", '"a b"c'] == [script.cut(w.span) for w in words]
    assert ["torchrun", "--nnodes=2", 'my "train.py', '"a b"c'] == [script.cut(w.inner) for w in words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export A=1 B='x y'", {"A": "1", "B": "x y"}),
        ("A=1 torchrun t.py", {"A": "1"}),
        ("A=$X", {"A": None}),
        ("declare -x A=1", {"A": "1"}),
        ("env A=1 python t.py", {"A": "1"}),
        ("setenv A 1", {"A": "1"}),
        ("docker run -e A=1 image", {"A": "1"}),
        ("mpirun -np 2 -x A=1 -x B python t.py", {"A": "1"}),
        ("srun --export=ALL,A=1 t.py", {"A": "1"}),
        ("cat <<EOF\nA=1\nEOF\nB=2", {"B": "2"}),
        ("sbatch <<'EOF'\n#!/bin/bash\nA=1\nEOF", {"A": "1"}),
        ("x=$(A=1 hostname)", {"x": None, "A": "1"}),
        ("bash -c 'export A=1; torchrun t.py'", {"A": "1"}),
        ("# A=1", {}),
    ],
)
def test_variables_are_found_however_a_script_sets_them(text, expected):
    assert expected == _variables(Script(text))


def test_batch_directives_are_read_with_and_without_an_equals_sign():
    script = Script("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH -n 8  # tasks\n#PBS -l select=1\n## SBATCH --x=1\n")

    assert [("SBATCH", "--nodes", "2"), ("SBATCH", "-n", "8"), ("PBS", "-l", "select=1")] == [
        (d.system, d.name, d.value) for d in script.directives
    ]
    assert "2" == script.cut(script.directive("--nodes").value_span)


def test_a_launch_is_put_together_from_variables_and_arrays():
    text = 'N=8\nARGS=(\n --nproc_per_node $N\n --nnodes 2 # two\n)\nL="python -m torch.distributed.run ${ARGS[@]}"\n'
    script = Script(text + "srun $L train.py --lr 1 2>&1 | tee log")

    (launch,) = launches(script)

    assert "torchrun" == launch.launcher
    assert 8 == launch.number(script, "--nproc-per-node")
    assert 2 == launch.number(script, "--nnodes")
    assert "train.py" == launch.program.text
    assert ["--lr", "1"] == [w.text for w in launch.arguments]
    assert ["srun"] == [w.text for w in launch.before]


def test_a_variable_that_depends_on_a_condition_is_not_known():
    script = Script("N=8\nif x; then M=4; fi\nK=1\nK=2\ntorchrun --nproc_per_node $M t.py")

    assert "8" == script.constant("N").text
    assert script.constant("M") is None
    assert script.constant("K") is None
    assert [None] == [launch.number(script, "--nproc-per-node") for launch in launches(script)]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.sh", "$PYTHON -u -m torch.distributed.launch --nproc_per_node=4 t.py"),
        ("a.sh", "srun --ntasks=1 bash -c 'torchrun --nproc_per_node 4 t.py'"),
        ("a.sh", "CUDA_VISIBLE_DEVICES=0 nohup /opt/bin/torchrun --nproc-per-node 4 t.py > log 2>&1 &"),
        ("a.sh", "accelerate launch --num_processes 4 t.py"),
        ("a.sh", "deepspeed --num_gpus=4 t.py --deepspeed ds.json"),
        ("a.sh", "horovodrun -np 4 python t.py"),
        ("a.yaml", "command: [torchrun, --nproc_per_node=4, t.py]"),
        ("a.yaml", "args:\n  - torchrun\n  - --nproc_per_node\n  - '4'\n  - t.py\n"),
        ("Dockerfile", 'ENTRYPOINT ["torchrun", "--nproc_per_node=4", "t.py"]'),
    ],
)
def test_the_number_of_processes_is_found_however_they_are_started(path, text):
    script = script_of(parse_file(path, text))

    (launch,) = launches(script)

    options = ("--nproc-per-node", "--num_processes", "--num_gpus", "--num-proc")
    assert 4 == launch.number(script, *options)


@pytest.mark.parametrize("text", ["echo torchrun t.py", "pip install torchrun", "which deepspeed", "# torchrun t.py"])
def test_what_only_names_a_launcher_starts_nothing(text):
    assert [] == list(launches(Script(text)))


# -- configuration --------------------------------------------------------------------------------


def test_json_with_comments_commas_and_placeholders_keeps_exact_places():
    text = '// for zero\n{"fp16": {"enabled": true,}, "a": {{ lr }}, "train_batch_size": ${B}, "x": "é😀", "n": -1e3,}'
    document = Config(text)

    root = document.roots[0]

    assert document.problem is None
    assert root.get("fp16.enabled").value is True
    assert UNKNOWN is root.get("a").value
    assert UNKNOWN is root.get("train_batch_size").value
    assert -1000.0 == number(root.get("n"))
    assert "é😀" == document.cut(root.get("x").inner)
    assert "train_batch_size" == document.cut(root.entry("train_batch_size").key_span)


@pytest.mark.parametrize("text", ['{"a": 1 "b": 2}', '{"a": ', '{"a": 1', "[1, 2", '{"a" 1}', '{"a": "x', "{} {}"])
def test_broken_json_says_where_and_gives_the_rest(text):
    document = Config(text)

    assert document.problem is not None
    assert 0 <= document.problem.span.start <= len(text)


def test_a_missing_comma_does_not_hide_what_follows():
    assert 2 == Config('{"a": 1\n "b": 2}').roots[0].get("b").value


def test_yaml_gives_places_variables_and_commands():
    text = (
        "env:\n  - name: A\n    value: '1'\nrun: |\n  export B=2\n  torchrun --nnodes 1 t.py\nenvironment: {C: true}\n"
    )
    document = parse_file("job.yaml", text)

    assert {"A": "1", "B": "2", "C": "true"} == _variables(document)
    assert ["A", "B", "C"] == sorted(document.cut(v.span) for v in document.variables)
    assert ["t.py"] == [x.program.text for x in launches(document.script)]


def test_yaml_aliases_are_not_multiplied():
    """What they would make of a bomb is counted, and the file is said not to be read."""
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    document = parse_file("bomb.yaml", "\n".join(lines))
    small = parse_file("small.yaml", "\n".join(lines[:5]))

    assert "aliases stand for more than" in str(document.unread)
    assert 5 == len(small.roots[0].entries)


def test_a_mapping_that_holds_itself_ends():
    assert parse_file("loop.yaml", "a: &a {b: *a, env: {NCCL_DEBUG: INFO}}").entries


@pytest.mark.parametrize("text", ["a: [1", "a: 'x", "\t a: b", "a: b: c", "*x", "a: \x01"])
def test_broken_yaml_is_a_problem_not_an_error(text):
    assert parse_file("a.yaml", text).problem is not None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.json", '{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 3}}'),
        (
            "a.yaml",
            "trainer:\n  deepspeed:\n    train_micro_batch_size_per_gpu: 4\n    zero_optimization: {stage: 3}\n",
        ),
        (
            "a.sh",
            'cat <<EOF > ds.json\n{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 3}}\nEOF\n',
        ),
        ("a.py", "c = {'train_micro_batch_size_per_gpu': 4, 'zero_optimization': {'stage': 3}}"),
    ],
)
def test_a_deepspeed_configuration_is_found_wherever_it_stands(path, text):
    source = parse_file(path, text)

    (root,) = configurations(source)

    assert 3 == number(root.get("zero_optimization.stage"))
    assert "4" == source.cut(root.get("train_micro_batch_size_per_gpu").inner)


def test_what_a_program_changes_later_in_a_configuration_is_not_known():
    text = "c = {'zero_optimization': {'stage': 3}, 'train_batch_size': 8}\nc['zero_optimization']['stage'] = stage\n"

    (root,) = configurations(Code(text))

    assert UNKNOWN is root.get("zero_optimization.stage").value
    assert 8 == number(root.get("train_batch_size"))


# -- packages -------------------------------------------------------------------------------------


def test_requirements_are_packages_with_places():
    source = Requirements(
        "torch>=2  # x\n-r more.txt\n\nhorovod[pytorch]==0.28; python_version>'3'\ngit+https://a/b.git\n"
    )

    assert ["torch", "horovod"] == [r.name for r in installed_packages(source)]
    assert [">=2", "==0.28"] == [r.rest for r in installed_packages(source)]
    assert ["torch>=2", "horovod[pytorch]==0.28; python_version>'3'"] == [
        source.cut(r.span) for r in installed_packages(source)
    ]


def test_a_dockerfile_gives_variables_and_commands_over_comments():
    source = Dockerfile(
        "FROM x\nENV A=1 \\\n  # why\n  B=2\nENV C 3\nRUN pip install torch \\\n # then\n  apex && D=4 torchrun t.py\n"
        'CMD ["torchrun", "t.py"]\n'
    )

    assert {"A": "1", "B": "2", "C": "3", "D": "4"} == _variables(source)
    assert ["torch", "apex"] == [r.name for r in installed_packages(source)]
    assert ["t.py", "t.py"] == [x.program.text for x in launches(source.script)]


# -- programs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.environ['A_B'] = '1'",
        "from os import environ\nenviron['A_B'] = str(1)",
        "import os\nos.environ.setdefault('A_B', '1')",
        "import os\nos.environ.update({'A_B': '1'})",
        "import os\nos.environ.update(A_B='1')",
        "import os\nos.environ |= {'A_B': '1'}",
        "import os\nos.putenv('A_B', '1')",
        "import os, subprocess\nenv = os.environ.copy()\nenv['A_B'] = '1'",
        "import os, subprocess\nsubprocess.run(['x'], env={**os.environ, 'A_B': '1'})",
        "import os, subprocess\nsubprocess.run(['x'], env=dict(os.environ, **{'A_B': '1'}))",
        "import ray\nray.init(runtime_env={'env_vars': {'A_B': '1'}})",
        "def test_x(monkeypatch):\n    monkeypatch.setenv('A_B', '1')",
        "import os\nvalue = '1'\nos.environ['A_B'] = value",
    ],
)
def test_variables_are_found_however_a_program_sets_them(text):
    code = Code(text)

    (variable,) = [v for v in code.variables if v.is_set]

    assert ("A_B", "1") == (variable.name, variable.value)
    assert "A_B" == code.cut(variable.span)


def test_computed_values_are_not_known_and_readings_set_nothing():
    code = Code("import os\nos.environ['A'] = f'{x}'\nos.environ['B']\nos.getenv('C')\nos.environ.get('D', '1')")

    assert [("A", None, True), ("B", None, False), ("C", None, False), ("D", None, False)] == [
        (v.name, v.value, v.is_set) for v in code.variables
    ]


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.system('torchrun --nproc_per_node 4 t.py')",
        "import subprocess\nsubprocess.run(['torchrun', '--nproc_per_node', '4', 't.py'])",
        "import subprocess as s\nm = 'torch.distributed.run'\ns.run(['python', '-m', m, '--nproc-per-node=4', 't.py'])",
    ],
)
def test_commands_are_found_in_a_program(text):
    script = script_of(Code(text))

    (launch,) = launches(script)

    assert 4 == launch.number(script, "--nproc-per-node")
    assert "t.py" == script.cut(launch.program.inner)


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("deepspeed.py", "import deepspeed\nif __name__ == '__main__':\n    deepspeed.x()", ["DT912"]),
        ("pkg/torch.py", "import argparse\nfrom torch import nn\nargparse.ArgumentParser()", ["DT912"]),
        ("pkg/torch.py", "import torch\nfrom . import x\nif __name__ == '__main__':\n    x()", []),
        ("pkg/deepspeed.py", "import deepspeed\nx = deepspeed.y()", []),
        ("train.py", "import torch\nif __name__ == '__main__':\n    torch.x()", []),
    ],
)
def test_a_program_that_hides_a_package_by_its_name_is_told_by_its_path(path, text, expected):
    found = examine(parse_file(path, text), Settings(select=("DT912",)))

    assert expected == [f.check.id for f in found]


# -- whatever is in them --------------------------------------------------------------------------

PIECES = st.lists(
    st.sampled_from(
        [
            *"\"'`$(){}[]<>|&;=#\\:,-*!. \n\r\t\f\0\x85\ufeff",
            *(
                "${",
                "$(",
                "$((",
                "))",
                "<<<",
                "&&",
                "||",
                "<<EOF\n",
                "EOF\n",
                "A=1 ",
                "x",
                "A=(",
                "{{",
                "//",
                "/*",
                "é😀",
            ),
            *("torchrun ", "bash -c ", "--nnodes=2 ", "if ", "fi\n", "export ", "#SBATCH -N 2\n", "RUN ", "ENV A=1 "),
            *(
                "CUDA_VISIBLE_DEVICES=0 ",
                "--nproc_per_node 4 ",
                "t.py ",
                "MASTER_ADDR=localhost\n",
                "srun ",
                "$A ",
                "apex ",
            ),
            *(
                "NCCL_DEBGU=1 ",
                "TORCH_DISTRIBUTED_DEBUG=x ",
                "--rdzv_backend=c10d ",
                '"zero_optimization": {',
                '"stage": 2,',
            ),
            *(
                '"fp16": {"enabled": true}',
                '"bf16": {"enabled": true}',
                '"offload_param": {"device": "cpu"}',
                "#!/bin/sh\n",
            ),
            *("&a ", "*a ", '"train_batch_size":', "env:\n", "- ", "pip install "),
        ]
    ),
    max_size=60,
).map("".join)
PATHS = ("a.sh", "Dockerfile", "requirements.txt", "ds_config.json", "a.yaml", "a.py")


@settings(max_examples=300, deadline=None)
@given(path=st.sampled_from(PATHS), text=PIECES | st.text(max_size=200))
def test_any_text_is_read_and_every_place_lies_in_it(path, text):
    source = parse_file(path, text)
    spans = [v.span for v in source.variables] + [v.value_span for v in source.variables if v.value_span]
    script = script_of(source)
    for command in script.commands if script else ():
        spans += [command.span, *(w.span for w in command.words), *(w.inner for w in command.words)]
        script.expand_words(command)
    if script:
        spans += [launch.at.span for launch in launches(script)] + [d.span for d in script.directives]
    spans += [e.key_span for _, e in getattr(source, "entries", ())]
    spans += [r.span for r in installed_packages(source)]
    spans += [root.span for root in configurations(source)]

    found = examine(source, Settings(select=("DT7", "DT9")))
    spans += [f.span for f in found] + [e.span for f in found if f.fix for e in f.fix.edits]

    assert [] == [s for s in spans if not 0 <= s.start <= s.end <= len(source.text)]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.sh", "$(" * 50_000),
        ("a.sh", '"$(' * 20_000),
        ("a.sh", "`$(" * 20_000),
        ("a.sh", "'" * 100_001),
        ("a.sh", "cat <<A\n" * 20_000),
        ("a.sh", "${" * 50_000),
        ("a.sh", "A=$A\nB=$B torchrun $A $B\n" * 500),
        ("a.json", "[" * 100_000),
        ("ds_config.json", '{"a":' * 50_000),
        ("ds_config.json", '"' * 100_000),
        ("a.yaml", "[" * 5_000),
        ("a.yaml", "- " * 5_000),
        ("Dockerfile", "RUN a \\\n" * 5_000),
        ("Dockerfile", "RUN <<E\n" * 5_000),
    ],
)
def test_hostile_text_ends(path, text):
    source = parse_file(path, text)
    script = script_of(source) if source else None

    for command in script.commands if script else ():
        script.expand_words(command)
    assert source is None or isinstance(source.variables, tuple)

"""Descriptions in other languages, failures of which only the last line is there, and outputs that name no failure."""

# ruff: noqa: RUF001, ISC004 - marks of other scripts are tested; long rows are tuples

import pytest

from dtdebug.presentation.diagnosis_card import to_html
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.collect import collect
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.text import to_text
from dtdebug_taxonomy.text.pattern_matcher import clip_lines
from dtdebug_taxonomy.text.phrase_table import in_english, phrases, spoken_phrases

KNOWLEDGE = load()


def of(output="", situation=""):
    return diagnose(KNOWLEDGE, Snapshot(output=output, situation=situation))


@pytest.mark.parametrize(
    ("situation", "code", "words"),
    [
        ("两张卡训练到第5步就卡死，没有报错", "D.2.1", "卡死"),
        ("双机训练，初始化的时候一直卡着不动", "B.2", "一直卡"),
        ("8卡微调爆显存", "D.1.2", "爆显存"),
        ("2ノードで学習するとハングします。1ノードでは正常に動きます", "D.2.1", "ハング"),
    ],
)
def test_what_is_said_in_another_language_is_read_and_quoted_as_it_stands(situation, code, words):
    d = of(situation=situation)
    assert d.verdict != "unknown"
    assert code in [s.code for s in d.symptoms[:3]]
    assert words in [r.words for s in d.symptoms[:3] for r in s.why]


def test_what_is_denied_in_another_language_is_no_error():
    assert [row.english for row in spoken_phrases("一直卡住，也不报错")] == ["it hangs", "there is no error message"]
    said = collect(KNOWLEDGE, Incident(Snapshot(situation="单卡没问题，多卡训练卡住，没有报错")))
    assert ("works_with_one_process", ("yes",)) in [(f.evidence, f.values) for f in said]
    assert ("manifestation", ("exception",)) not in [(f.evidence, f.values) for f in said]


def test_a_text_in_english_is_left_alone():
    assert in_english("it hangs on 2 nodes") == ""
    assert spoken_phrases("naïve café: loss is nan") == ()


def test_every_phrase_is_read_by_the_knowledge_or_names_circumstances():
    """English that no pattern reads would be a row that does nothing."""
    signs = ("distributed training", "training", "on several nodes", "with several GPUs", "while installing")
    unread = [
        p.english
        for p in phrases()
        if p.english not in signs
        and not any(not f.scores for f in collect(KNOWLEDGE, Incident(Snapshot(situation=f"{clip_lines(p.english)}."))))
    ]
    assert unread == []


@pytest.mark.parametrize(
    ("line", "title"),
    [
        (
            "ValueError: Number of devices 16 must be equal to the product of mesh_shape",
            "must be equal to the product of mesh_shape",
        ),
        (
            "(LLMRayActor pid=146238) loading\n(LLMRayActor pid=146238) loading\n(LLMRayActor pid=146238) ready\n"
            "(LLMRayActor pid=146238) ValueError: placement group bundle index 6 is invalid. Valid indexes: 0-4",
            "placement group bundle index 6 is invalid",
        ),
        (
            "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key:"
            " store_based_barrier_key:1 (world_size=8, worker_count=6, timeout=0:10:00)",
            "Only 6 of 8 ranks came",
        ),
        ("(worker_count) world_size=4, worker_count=5", ""),
    ],
)
def test_an_exception_without_its_traceback_is_told_and_says_what_is_wrong(line, title):
    d = of(f"starting on 8 GPUs\n{line}\n")
    if not title:
        assert not d.recognised
        return
    assert d.recognised
    assert title in d.advice[0].title
    assert d.happened.startswith(("ValueError: ", "RuntimeError: "))


def test_nothing_is_asked_below_a_cause_that_the_output_names():
    d = of("starting 8 workers\nValueError: Number of devices 16 must be equal to the product of mesh_shape\n")
    assert d.question is not None  # the wizard may go on
    assert d.asks_nothing
    assert "next question" not in to_text(d)
    assert d.question.ask not in to_html(d)


def test_a_check_that_refuses_what_it_allows_is_a_defect_and_no_advice():
    log = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/w/train.py", line 4, in <module>\n[rank1]:     T()\n'
        '[rank1]:   File "/x/site-packages/trl/trainer/t.py", line 60, in __init__\n[rank1]:     raise ValueError(m)\n'
        "[rank1]: ValueError: mode must be either 'server' or 'colocate', got 'server'.\n"
    )
    assert "it refuses 'server', which it names as allowed" in of(log).advice[0].title
    other = of(log.replace("got 'server'", "got 'servr'"))
    assert "must be either" in other.advice[0].title


def test_what_the_user_does_already_is_no_advice():
    line = "ValueError: the model is empty; please call model.fill_weights() before training on 8 ranks\n"
    assert "fill_weights" in of(line).advice[0].title
    assert not any("fill_weights" in a.title for a in of(line, "I call model.fill_weights() on all 8 ranks").advice)


@pytest.mark.parametrize(
    ("output", "situation"),
    [
        ("Run ruff check .\nError: Process completed with exit code 1.\n", "CI job on the multi-gpu runner failed"),
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error.\n", "training multi gpu llama"),
        (
            "WARNING - `ddp_find_unused_parameters` needs to be set as False for LoRA in DDP training.\n"
            "Process rank: 1, device: cuda:1\n{'loss': 1.2, 'epoch': 0.1}\n",
            "",
        ),
    ],
)
def test_an_output_that_names_no_failure_gets_no_story(output, situation):
    d = of(output, situation)
    assert not d.recognised
    assert d.verdict == "unknown"
    assert d.advice == ()


def test_a_shape_error_in_a_program_of_ddp_is_no_cut_layer():
    log = (
        'Traceback (most recent call last):\n  File "/w/net.py", line 40, in <module>\n    out = model(x)\n'
        '  File "/w/net.py", line 21, in forward\n    return self.fc(x)\n'
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x356 and 344x512)\n"
    )
    d = of(log, "I run my DDP script on 2 GPUs")
    assert not any("sharded over devices" in a.title for a in d.advice)


def test_one_host_beside_a_setting_is_what_makes_the_difference():
    said = "on 1 node with NCCL_P2P_LEVEL=XGMI everything works fine, with 2 nodes it fails with a connection error"
    assert not any("makes the difference" in a.title for a in of(situation=said).advice)

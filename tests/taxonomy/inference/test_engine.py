"""Properties of the inference, whatever the knowledge holds."""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import TESTS

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference import questions
from dtdebug_taxonomy.inference import ranking as inference_ranking
from dtdebug_taxonomy.inference.collect import collect
from dtdebug_taxonomy.inference.decision_tree import tree
from dtdebug_taxonomy.inference.finding import Finding, likelihood_ratios
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot

KNOWLEDGE = load()
SAMPLES = TESTS / "samples"
MESSAGES = sorted(e.id for e in KNOWLEDGE.evidence.values() if e.symptoms and e.role != "advice")
ANSWERS = sorted((o.key, v.value) for o in KNOWLEDGE.observations.values() for v in o.value)

messages = st.sampled_from(MESSAGES).map(lambda e: Finding(evidence=e, source="printed", line=1))
answers = st.sampled_from(ANSWERS).map(lambda kv: Finding(evidence=kv[0], values=(kv[1],), source="answered"))
several = st.lists(st.one_of(messages, answers), max_size=8, unique_by=lambda f: f.evidence)
few = settings(max_examples=60)


def best(finding):
    """The code that a finding speaks for most."""
    ratios = likelihood_ratios(KNOWLEDGE, finding)
    return max(ratios, key=lambda code: ratios[code])


@few
@given(several, st.randoms())
def test_the_order_of_findings_does_not_matter(found, random):
    """The same findings in any order give the same probabilities."""
    shuffled = list(found)
    random.shuffle(shuffled)
    a, b = inference_ranking.rank(KNOWLEDGE, found), inference_ranking.rank(KNOWLEDGE, shuffled)

    assert a.symptoms == pytest.approx(b.symptoms)


@few
@given(several)
def test_probabilities_sum_to_one(found):
    """Symptoms, the causes of each with "none of these", and fix patterns are distributions."""
    ranking = inference_ranking.rank(KNOWLEDGE, found)
    patterns = inference_ranking.fix_patterns(KNOWLEDGE, ranking)

    assert pytest.approx(math.fsum(ranking.symptoms.values())) == 1
    assert pytest.approx(math.fsum(patterns.values())) == 1
    for row in ranking.causes.values():
        assert pytest.approx(math.fsum(p for _, p in row)) == 1
    assert list(ranking.symptoms.values()) == sorted(ranking.symptoms.values(), reverse=True)


@few
@given(several, st.one_of(messages, answers))
def test_more_evidence_for_a_symptom_never_lowers_it(found, new):
    """A finding that speaks most for one symptom raises it or leaves it."""
    others = [f for f in found if f.evidence != new.evidence]
    code = best(new)
    before = inference_ranking.rank(KNOWLEDGE, others).symptoms[code]
    after = inference_ranking.rank(KNOWLEDGE, [*others, new]).symptoms[code]

    assert after >= before - 1e-9


@few
@given(several, st.sampled_from(sorted(KNOWLEDGE.observations)))
def test_an_unknown_answer_changes_nothing(found, key):
    """ "I don't know" leaves every probability; the question is not asked again."""
    told = {f.evidence: f.values[0] for f in found if f.values and f.evidence != key}
    a = diagnose(KNOWLEDGE, Snapshot(), told)
    b = diagnose(KNOWLEDGE, Snapshot(), told, unknown=(key,))

    assert a.symptoms == b.symptoms
    assert b.question is None or b.question.key != key


def test_nothing_known_gives_the_published_shares():
    """Without findings the prior stands, and dtdebug says that it does not know."""
    ranking = inference_ranking.rank(KNOWLEDGE, [])
    total = sum(s.counts["tosem23"].faults + 0.5 for s in KNOWLEDGE.symptoms.values())

    assert ranking.symptoms["B.1"] == pytest.approx(85.5 / total)
    assert diagnose(KNOWLEDGE, Snapshot()).verdict == "unknown"


def test_a_question_that_can_not_pay_is_not_asked():
    """With everything settled but one observation, only what saves minutes is asked."""
    told = {o.key: o.value[0].value for o in KNOWLEDGE.observations.values()}

    assert diagnose(KNOWLEDGE, Snapshot(), told).question is None


@few
@given(several)
def test_questions_are_ordered_by_what_they_save(found):
    """The first question saves most, and each saves more than it costs."""
    ranking = inference_ranking.rank(KNOWLEDGE, found)
    rows = questions.worthwhile(KNOWLEDGE, ranking, found)

    assert rows == sorted(rows, key=lambda q: (-q.saves, q.key))
    assert all(q.saves > 0 for q in rows)


def test_a_cascade_does_not_beat_a_root_of_the_same_run():
    """The launcher's boilerplate after an import error leaves the import error first."""
    text = (
        "[rank1]: ModuleNotFoundError: No module named 'horovod'\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
        "[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout\n"
    )
    d = diagnose(KNOWLEDGE, Snapshot(output=text))

    assert d.symptoms[0].code == "A.2"
    assert d.culprits == (1,)


def test_two_symptoms_that_can_not_be_told_apart_are_both_shown_with_a_question():
    """A hang that is not dated may be in set-up or in training: that is asked."""
    found = [Finding(evidence="manifestation", values=("hang",), source="answered")]
    ranking = inference_ranking.rank(KNOWLEDGE, found)
    d = diagnose(KNOWLEDGE, Snapshot(), {"manifestation": "hang"})

    assert {"B.2", "D.2.1"} == set(list(ranking.symptoms)[:2])
    assert d.verdict == "apart"
    assert d.question is not None
    assert d.question.key in ("activity", "any_step_completed")


def test_each_finding_of_an_answer_is_explained():
    """A contribution names the words and the line that it came from."""
    d = diagnose(KNOWLEDGE, Snapshot(output="step 1\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"))
    (reason,) = [r for r in d.symptoms[0].why if r.source == "printed" and "memory" in r.words.lower()][:1]

    assert d.symptoms[0].code == "D.1.2"
    assert reason.line == 2
    assert reason.weight > 0


def test_many_answers_come_with_the_likeliest_first():
    """What hangs in training is asked for training before installing; few answers keep their order."""
    ranking = inference_ranking.rank(
        KNOWLEDGE, collect(KNOWLEDGE, Incident(Snapshot(situation="it hangs after the second epoch")))
    )
    activity, nodes = KNOWLEDGE.observations["activity"], KNOWLEDGE.observations["nodes"]
    ordered = questions.likeliest_first(KNOWLEDGE, ranking, activity)
    assert ordered[0].value == "training"
    assert {v.value for v in ordered} == {v.value for v in activity.value}
    assert questions.likeliest_first(KNOWLEDGE, ranking, nodes) == list(nodes.value)


def test_the_tree_is_derived_from_the_same_policy():
    """Its first question is the one that the wizard asks first."""
    findings = collect(KNOWLEDGE, Incident(Snapshot()))
    first = questions.best_question(KNOWLEDGE, inference_ranking.rank(KNOWLEDGE, findings), findings)

    assert first is not None
    assert f"[{first.key}]" in tree(KNOWLEDGE, 1).splitlines()[0]


def test_what_a_check_sees_in_the_failed_cell_counts_for_its_cause():
    """The source tells which of the causes of an echo it is; alone it is no failure."""
    cell = (
        "import torch.distributed as dist\n"
        "def train(x):\n"
        "    if dist.get_rank() == 0:\n"
        "        dist.all_reduce(x)\n"
        "train(x)\n"
    )
    timeout = ExceptionInfo(type="RuntimeError", message="Timed out waiting 1800000ms for recv operation to complete")

    with_source = diagnose(KNOWLEDGE, Snapshot(cell=cell, exception=timeout))
    without = diagnose(KNOWLEDGE, Snapshot(exception=timeout))
    alone = diagnose(KNOWLEDGE, Snapshot(cell=cell, exception=ExceptionInfo(type="NameError", message="name 'x'")))

    assert "collective-under-rank-guard" == with_source.advice[0].cause
    assert not without.advice  # an echo alone points at no cause
    assert ("checked", 4) in {(r.source, r.line) for r in with_source.advice[0].because}
    assert not alone.recognised


def test_the_source_that_a_traceback_shows_is_no_message():
    """A line that would print a known message is only code; the same words printed are a message."""
    code = '    raise RuntimeError("NCCL error: unhandled system error, NCCL version 2.21.5")'
    frames = f'Traceback (most recent call last):\n  File "/w/t.py", line 7, in f\n{code}\n'
    text = "[rank1]: RuntimeError: NCCL error: unhandled system error, NCCL version 2.21.5\n"
    shown, printed = (
        {f.evidence for f in collect(KNOWLEDGE, Incident(Snapshot(output=output))) if f.source == "printed"}
        for output in (f"{frames}ValueError: bad shard\n", frames + text)
    )

    assert not {name for name in shown if "nccl" in name}
    assert {name for name in printed if "nccl" in name}


def test_answers_leave_the_cause_that_the_output_names():
    """Whatever is answered: it stays first, and after three questions there is a cause or the next step."""
    for place, file in enumerate(sorted(SAMPLES.glob("*/*.txt"))):
        text = file.read_text("utf-8")
        snapshot = Snapshot(output=text) if ".said." not in file.name else Snapshot(situation=text)
        answers: dict[str, str] = {}
        first = found = diagnose(KNOWLEDGE, snapshot) if place % 9 == 0 or "unreachable" in file.name else None
        while found is not None and found.question is not None and len(answers) < 3:
            values = found.question.values
            answers[found.question.key] = values[(place + len(answers)) % len(values)][0]
            found = diagnose(KNOWLEDGE, snapshot, answers)
        if found is not None and first is not None and not found.ordinary:
            assert found.advice or found.next, (file.name, answers)
            assert len(answers) < 3 or found.question is None, (file.name, answers)
            if first.advice and first.advice[0].named and first.advice[0].because[0].source == "printed":
                assert first.advice[0].cause == found.advice[0].cause, (file.name, answers)


def test_an_answer_does_not_rule_out_what_the_output_names():
    """ "host=worker-1 was not reachable via ssh" counts for more than that there is one machine."""
    output = (SAMPLES / "setup-failure" / "deepspeed-host-unreachable.txt").read_text("utf-8")

    assert (
        diagnose(KNOWLEDGE, Snapshot(output=output), {"nodes": "single"}).advice[0].cause
        == diagnose(KNOWLEDGE, Snapshot(output=output)).advice[0].cause
    )


def test_the_same_words_count_once_in_the_ranking_of_causes():
    """What the user says is one record, though it is an indicator and answers a question too."""
    said = Snapshot(situation="Training on 8 GPUs is slower than on 1.")
    both = collect(KNOWLEDGE, Incident(said))
    apart = [msgspec.structs.replace(f, words=f"{f.words} {place}", line=place) for place, f in enumerate(both)]
    symptom = KNOWLEDGE.symptoms["D.2.3"]

    def surest(findings):
        return max(
            p
            for cause, p in inference_ranking.rank_hypotheses(KNOWLEDGE, symptom, findings).causes
            if cause is not None
        )

    assert len({f.evidence for f in both if f.source == "said"}) > 2
    assert surest(both) < surest(apart)
    assert all(a.band != "likely" for a in diagnose(KNOWLEDGE, said).advice)


def test_what_the_user_has_said_is_not_asked_next():
    """The throughput is told in the first sentence."""
    found = diagnose(KNOWLEDGE, Snapshot(situation="Training on 8 GPUs is slower than on 1."))

    assert found.next is not None
    assert found.next.kind != "ask"

"""What only words point at is a guess below "not known"; what was printed, compared or answered is a cause."""

import json

import msgspec
import pytest

from dtdebug.presentation.diagnosis_card import small, to_html
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.explanations.process_count import compare_counts
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.case_json import contract, of_text
from dtdebug_taxonomy.presentation.text import GUESS, NOT_KNOWN, to_markdown, to_text

KNOWLEDGE = load()
SLOW = "Training with 3 GPUs is slower than with one GPU."
AGREED = "too-little-work-per-device"
EPOCH = "My 16 GPU job hangs after the first epoch"
GUESSED = "uneven-batches"


def of(said="", output="", answers=None):
    """The diagnosis of words and output."""
    return diagnose(KNOWLEDGE, Snapshot(situation=said, output=output), answers)


def test_words_alone_are_a_guess_below_a_step_that_would_tell():
    """It is never called likely, and stands behind the measurement."""
    d = of(EPOCH)
    text = to_text(d)

    assert () == d.advice
    assert GUESSED == d.guesses[0].cause
    assert "likely" not in {a.band for a in d.guesses}
    assert "measure" == d.next.kind
    assert text.index(NOT_KNOWN) < text.index(d.next.text.rstrip(".")) < text.index(f"{GUESS}: {d.guesses[0].title}")
    assert d.guesses[0].fix in text


def test_every_front_end_says_that_it_is_a_guess():
    """HTML, Markdown, a saved notebook, programs."""
    d = of(EPOCH)
    title = d.guesses[0].title
    read = contract(of_text(Snapshot(situation=EPOCH), d))

    assert (GUESSED, {True}) == (read["advice"][0]["cause"], {row["guess"] for row in read["advice"]})
    for page in (to_html(d), to_markdown(d)):
        assert page.lower().index(GUESS) < page.index(title)
    assert GUESSED == small(d)["guesses"][0]["cause"]


def test_statements_that_agree_name_a_cause_that_is_possible():
    """It is likely by them, but words alone have not earned that word."""
    d = of(SLOW)

    assert (AGREED, "possible", ()) == (d.advice[0].cause, d.advice[0].band, d.guesses)


def test_an_answer_makes_a_cause_of_a_guess():
    """Who was asked has looked."""
    d = of(EPOCH, answers={"equal_work_per_rank": "no"})

    assert GUESSED == d.advice[0].cause
    assert () == d.guesses


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("Training hangs on 4 GPUs. With NCCL_P2P_DISABLE=1 it works.", "peer-to-peer-blocked"),
        ("It hangs with torch 2.1, with torch 2.0 it works.", "release-changed"),
        ("It dies: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000", "processes-see-wrong-devices"),
    ],
)
def test_a_pair_of_runs_and_a_quoted_message_are_no_guesses(said, cause):
    """They are more than a way of putting it."""
    d = of(said)

    assert cause == d.advice[0].cause
    assert () == d.guesses


def test_what_was_printed_comes_before_words():
    """The user's words stand below it, and are not called likely there."""
    said = f"{SLOW} Then it ends."
    output = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's"
    d = of(said, f"{output} workers are out of shared memory.")

    assert "shared-memory-too-small" == d.advice[0].cause
    assert () == d.guesses


def test_a_common_message_that_is_only_quoted_is_no_advice():
    """Out of memory says nothing of why, and in the user's words not even where."""
    said = "When I resume with 4 GPUs I get CUDA out of memory. Training from scratch works."
    d = of(said)

    assert () == d.advice


def test_what_is_done_already_is_no_advice():
    """A message may tell to set what is set."""
    output = "RuntimeError: Dataset not found or corrupted. You can use download=True to download it"
    d = of("Training on 8 GPUs with download=True for CIFAR10 fails now and then.", output)

    assert "all-ranks-prepare-the-same-files" == d.advice[0].cause
    assert "message-says-so" not in {a.cause for a in d.advice}


def test_a_machine_has_the_devices_that_it_is_said_to_have():
    """A run with one GPU does not say how many there are."""
    command = "torchrun --nproc_per_node 8 train.py"

    assert compare_counts(f"With one GPU it works. {command} fails.", "") is None
    assert 1 == compare_counts(f"I have a machine with one GPU. {command} fails.", "").gpus


@pytest.mark.parametrize(
    "said", ["I run it in TF 2.2 on two hosts and it fails.", "I train with torch 2.1 and it hangs."]
)
def test_one_release_is_no_pair(said):
    """Nothing is said of another release."""
    d = of(said)

    assert "release-changed" not in {a.cause for a in (*d.advice, *d.guesses)}


def test_what_makes_a_pair_may_be_installed():
    """The word before the release is a deed, no package."""
    d = of("jax hangs on a pod with jax 0.3.5. This does not happen if I install 0.3.4.")

    assert "jax 0.3.4" in d.advice[0].title


def test_likelier_causes_stand_above_unlikely_ones():
    """However cheap the unlikely ones are to try."""
    d = of(output="NCCL version 1.0\nNCCL failure all_reduce.cu:95 'unhandled cuda error'\n")
    bands = [a.band for a in d.advice if not a.named]

    assert bands == sorted(bands, key=["likely", "possible", "unlikely"].index)


def test_slow_hosts_are_measured_at_the_network():
    """One step that says over which card it goes; several devices of one host are counted in samples first."""
    assert "NCCL_DEBUG=INFO" in of("Training on 2 nodes is much slower than on 1 node.").next.command
    assert "samples per second" in of(SLOW).next.text


def test_older_diagnoses_have_no_guesses():
    """What a notebook has saved before is still read."""
    data = {k: v for k, v in json.loads(msgspec.json.encode(of(EPOCH))).items() if k != "guesses"}

    assert () == msgspec.convert(data, type(of(EPOCH))).guesses


def test_a_message_that_names_two_releases_comes_first():
    """What is asked for and what is installed is the whole fault."""
    output = "ImportError: deepspeed>=0.5.7 is required for a normal functioning of this module, but found"
    first = of("After the upgrade training with deepspeed fails.", f"{output} deepspeed==0.5.3.").advice[0]

    assert "message-says-so" == first.cause
    assert "deepspeed>=0.5.7" in first.title


def test_two_visible_devices_are_several():
    """Then a number that does not exist is no ordinary error of the program."""
    frame = '  File "train.py", line 162, in main\n    torch.cuda.set_device(device)'
    d = of("CUDA_VISIBLE_DEVICES=2,3 ./train.sh", f"{frame}\nRuntimeError: CUDA error: invalid device ordinal")

    assert "" == d.ordinary
    assert "C.5" == d.advice[0].symptom

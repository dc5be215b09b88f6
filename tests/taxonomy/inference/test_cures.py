"""A message that names one library, version or setting gives its own advice; two facts together give another one."""

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.inference.message_cures import cure_of, problems
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.knowledge.schema import Cure, Evidence
from dtdebug_taxonomy.model.snapshot import Snapshot

KNOWLEDGE = load()
MISSING = Evidence(
    id="tool-missing",
    means="A tool is not found.",
    cure=(
        Cure(
            cause="no-tool",
            when=r"(?P<tool>nvcc|cmake): not found",
            title="{tool} is not installed",
            fix="Install {tool}.",
        ),
        Cure(cause="no-path", title="PATH is wrong", fix="Set it."),
    ),
)


def first(situation="", output=""):
    """The first cause for these words and this output, be it a guess."""
    d = diagnose(KNOWLEDGE, Snapshot(situation=situation, output=output))
    return (d.advice or d.guesses)[0]


def test_a_cure_takes_its_names_from_the_words():
    """The title and the fix name the tool that was seen, not a list of tools."""
    cure = cure_of(MISSING, "no-tool", "sh: 1: CMake: not found")

    assert cure is not None
    assert (cure.title, cure.fix) == ("CMake is not installed", "Install CMake.")


def test_only_the_first_cure_that_fits_speaks():
    """A message names one cause for its words."""
    assert cure_of(MISSING, "no-path", "nvcc: not found") is None
    assert cure_of(MISSING, "no-path", "ninja is missing") == MISSING.cure[1]


def test_a_cure_for_a_cause_that_its_symptoms_do_not_have_is_a_problem():
    """And so is a name that `when` does not find."""
    odd = Cure(cause="no-tool", when="(?P<tool>nvcc)", title="{other} is absent", fix="Install it.")

    found = problems(Evidence(id="x", means="X.", cure=(odd,)), frozenset())

    assert any("no cause" in line for line in found)
    assert any("no group" in line for line in found)


def test_the_host_and_port_of_a_connection_stand_in_the_title():
    """What the user has to open is what the message names."""
    advice = first(
        "horovodrun on two instances.",
        "ssh not successful for host 10.0.1.7:\nssh: connect to host 10.0.1.7 port 12345: Connection timed out",
    )

    assert advice.title.startswith("10.0.1.7 does not answer on port 12345")


def test_a_launcher_and_a_setting_together_name_a_cause():
    """CUDA_VISIBLE_DEVICES beside DeepSpeed's launcher, which sets it itself."""
    advice = first("I set CUDA_VISIBLE_DEVICES=2,3 and start with deepspeed train.py, but it uses GPUs 0 and 1.")

    assert advice.cause == "visible-devices-overwritten"
    assert "--include" in advice.fix


def test_one_of_two_facts_is_not_enough():
    """Slurm alone names no cause; with Lightning and a hang it does."""
    alone = diagnose(KNOWLEDGE, Snapshot(situation="My job under srun hangs at the start."))

    assert not any("Lightning" in a.title for a in (*alone.advice, *alone.guesses))
    assert "Lightning" in first("My Lightning job under srun hangs at the start.").title

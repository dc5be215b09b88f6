"""What the renderer in `extension/shared` has from Python: schema, types and the HTML that it is compared with."""

import json
import runpy

import msgspec
import pytest
from places import ROOT

from dtdebug.presentation.diagnosis_card import card, small
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis, diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot

SHARED = ROOT / "extension" / "shared"
SAMPLES = sorted((SHARED / "test" / "samples").glob("*.json"))
GENERATE = runpy.run_path(str(SHARED / "generate.py"))


@pytest.mark.parametrize(("path", "text"), GENERATE["files"]().items(), ids=lambda each: getattr(each, "name", ""))
def test_what_is_generated_is_committed(path, text):
    """If not, run extension/shared/generate.py."""
    assert text == path.read_text(encoding="utf-8")


def test_the_samples_show_every_verdict():
    """Each is what a notebook has saved: a diagnosis that this version reads."""
    verdicts = {msgspec.json.decode(path.read_bytes(), type=Diagnosis).verdict for path in SAMPLES}

    assert {"settled", "leaning", "apart", "echo", "unknown"} == verdicts


def test_what_a_notebook_saves_has_the_fields_of_the_schema():
    """The short form leaves entries out, never fields."""
    saved = small(diagnose(load(), Snapshot(output="RuntimeError: NCCL error in: ProcessGroupNCCL.cpp")))
    schema = json.loads((GENERATE["SCHEMAS"] / "diagnosis.schema.json").read_text(encoding="utf-8"))

    assert set(schema["$defs"]["Diagnosis"]["properties"]) == set(saved)
    assert saved == msgspec.json.decode(msgspec.json.encode(msgspec.convert(saved, Diagnosis)))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "readonly (number | null)[]"),
        ({"type": "array", "items": {"$ref": "#/$defs/Reason"}}, "readonly Reason[]"),
        ({"enum": ["a", "b"]}, '"a" | "b"'),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}, "readonly [string, number]"),
    ],
)
def test_types_are_written_as_typescript(schema, expected):
    """The forms that msgspec writes."""
    text = GENERATE["typescript"]({"$defs": {"X": {"description": "D.", "properties": {"x": schema}}}})

    assert f"  readonly x?: {expected};\n" in text


def test_a_form_of_schema_that_nobody_thought_of_is_an_error():
    """Better than a wrong type."""
    with pytest.raises(KeyError):
        GENERATE["typescript"]({"$defs": {"X": {"description": "D.", "properties": {"x": {"type": "object"}}}}})


def test_a_notebook_keeps_the_cause_and_the_question_of_a_long_path():
    """Of a card that has little room the reasons of its symptom go first."""
    for length in range(0, 281, 20):
        frames = (Frame(f"/job/{'x' * length}/ranks.py", 8, "work", "torch.ones(2, 3) @ torch.ones(2, 3)"),)
        message = "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"
        snapshot = Snapshot(exception=ExceptionInfo(type="RuntimeError", message=message, frames=frames, rank=1))
        diagnosis = diagnose(load(), snapshot)
        saved = small(card(diagnosis, snapshot))

        assert diagnosis.question is not None
        assert saved["question"]["key"] == diagnosis.question.key
        assert saved["advice"][0]["cause"] == diagnosis.advice[0].cause

"""Writes what the renderer has from Python: the JSON schemas, the types, the static HTML to be compared with.

Run it after a change of `dtdebug_taxonomy.diagnosis.diagnose`, `dtdebug_taxonomy.model.ranks_view` or
`dtdebug.presentation.diagnosis_card`; a test says when that was forgotten. What a notebook saves is a `Card` whose
rankings are cut short, so one schema holds for both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

import dtdebug_taxonomy
from dtdebug.presentation.diagnosis_card import Card, to_html
from dtdebug_taxonomy.model.ranks_view import View

HERE = Path(__file__).parent
SCHEMAS = Path(dtdebug_taxonomy.__file__).parent / "schema"
FORMS: dict[str, type[msgspec.Struct]] = {"diagnosis": Card, "view": View}
"""What crosses to front ends, by the name of its schema and of the module that has its types."""
SAMPLES = HERE / "test" / "samples"
"""Diagnoses as notebooks have saved them; beside each what the static HTML says of it."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_HEAD = "// Made from {}.schema.json by extension/shared/generate.py: change neither by hand.\n"


def files() -> dict[Path, str]:
    """What is to be written where."""
    made: dict[Path, str] = {}
    for name, form in FORMS.items():
        schema = {"$schema": _DIALECT, **msgspec.json.schema(form)}
        made[SCHEMAS / f"{name}.schema.json"] = json.dumps(schema, indent=2) + "\n"
        made[HERE / "src" / f"{name}.ts"] = _HEAD.format(name) + typescript(schema)
    pages = {
        path.with_suffix(".html"): to_html(msgspec.json.decode(path.read_bytes(), type=Card)) + "\n"
        for path in sorted(SAMPLES.glob("*.json"))
    }
    return made | pages


def typescript(schema: dict[str, Any]) -> str:
    """One interface for each definition; a property that may be left out is optional."""
    return "".join(_interface(name, each) for name, each in schema["$defs"].items())


def _interface(name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = [
        f"  readonly {key}{'' if key in required else '?'}: {_type(each)};\n"
        for key, each in schema["properties"].items()
    ]
    return f"\n/** {schema['description']} */\nexport interface {name} {{\n{''.join(rows)}}}\n"


def _type(schema: dict[str, Any]) -> str:
    """The TypeScript type of the few forms that msgspec writes; another form is a KeyError."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(each) for each in schema["anyOf"])
    if "prefixItems" in schema:
        return f"readonly [{', '.join(_type(each) for each in schema['prefixItems'])}]"
    if schema["type"] == "array":
        item = _type(schema["items"])
        return f"readonly ({item})[]" if " " in item else f"readonly {item}[]"
    return {"boolean": "boolean", "integer": "number", "null": "null", "number": "number", "string": "string"}[
        schema["type"]
    ]


if __name__ == "__main__":
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)

"""Edits that contracts declare: each program that breaks one runs with the edited line."""

import importlib.util
import sys

import pytest
from places import TESTS

from dtdebug.account.capture import capture
from dtdebug_taxonomy.explanations.account_edits import of_contract
from dtdebug_taxonomy.inference.contracts import broken_contract
from dtdebug_taxonomy.knowledge.contracts import load_contracts

TRACE = BaseException.__dict__["__traceback__"]
ALONE = TESTS / "contracts" / "programs" / "alone.py"
DECLARED = {c.id: c for c in load_contracts().all if c.instead or c.repair}


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


THROUGH_A_HELPER = {"one-number-of-micro-steps"}
"""Its program passes the argument on as `**given`: no line has it."""
ALONE_HAS = {name.removeprefix("breaks_").replace("_", "-") for name in dir(loaded(ALONE))}


@pytest.mark.parametrize("contract", sorted((ALONE_HAS & set(DECLARED)) - THROUGH_A_HELPER))
def test_the_program_runs_with_the_edit_of_its_contract(tmp_path, contract):
    """Not only does the line parse: what broke the contract no longer raises."""
    name = f"breaks_{contract.replace('-', '_')}"
    path = tmp_path / "alone_edited.py"
    path.write_text(ALONE.read_text())
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each raises its own
        getattr(loaded(path), name)()
    error = caught.value
    TRACE.__set__(error, TRACE.__get__(error).tb_next)
    found = broken_contract(capture(error, seconds=5))
    assert found.contract.id == contract
    edit = of_contract(found, None)
    assert edit is not None
    rows = path.read_text().split("\n")
    at = edit.place.line - 1
    assert rows[at].strip() == edit.place.code
    rows[at] = rows[at].replace(edit.place.code, edit.code)
    path.write_text("\n".join(rows))
    getattr(loaded(path), name)()

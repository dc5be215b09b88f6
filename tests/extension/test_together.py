"""Two people edit one notebook together, by jupyter-collaboration: what one of them runs, the other is told too."""

import json
from importlib.util import find_spec

import notebooks as nb
import pytest

playwright = pytest.importorskip("playwright.sync_api")
# looked for, not imported: that takes seconds of each worker of the tests
MISSING = nb.what_is_missing() or (
    None if find_spec("jupyter_server_ydoc") else "jupyter-collaboration is not installed"
)
pytestmark = [pytest.mark.browser, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]

REDUCER = (
    "Expected to have finished reduction in the prior iteration before starting a new one. You can enable unused "
    "parameter detection by passing find_unused_parameters=True to torch.nn.parallel.DistributedDataParallel"
)
FAILS = f"raise RuntimeError({json.dumps(REDUCER)})"
EXECUTE = "command => window.jupyterapp.commands.execute(command)"


def test_a_failure_is_told_in_both_pages_and_changes_neither(opened):
    """Also in the one that has not run it: the button, the card, the wizard and the history."""
    text = nb.notebook("%load_ext dtdebug", FAILS)
    pages = [opened("lab", each, beside="together") for each in (text, None)]
    page, other = pages
    for each in pages:
        each.evaluate(EXECUTE, "dtdebug:open-panel")
    nb.run(page, 1)
    for each in pages:
        nb.cell(each, 1).get_by_role("button", name="Diagnose").wait_for()

    nb.run(page, 0)
    nb.run(page, 1)
    for each in pages:
        nb.cell(each, 1).locator(".dtd-card").wait_for()
        playwright.expect(nb.cell(each, 1).get_by_role("button", name="Diagnose")).to_be_hidden()
        panel = each.locator("#dtdebug-panel")
        panel.get_by_role("button", name="Guide me from cell [3]").wait_for()
        playwright.expect(panel.locator(".dtdp-entry")).to_have_count(2)  # loading it answered for the first failure
    nb.shoot(other, "together")
    assert nb.sources(page) == nb.sources(other)
    assert 2 == len(nb.sources(page)), "nothing of the notebook is changed without a click"

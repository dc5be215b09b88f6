"""What users of jupyterlab-lsp see in the real JupyterLab: python-lsp-server with our plugin in it."""

from importlib.metadata import entry_points
from importlib.util import find_spec

import notebooks as nb
import pytest

for module in ("jupyter_lsp", "pylsp", "pygls"):
    if find_spec(module) is None:  # importing them here would cost each worker two seconds
        pytest.skip(f"{module} is not installed", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")
MISSING = nb.what_is_missing()
pytestmark = [
    pytest.mark.browser,
    pytest.mark.editors,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]

CELLS = (
    "import torch.distributed as dist",
    "%matplotlib inline\nif dist.get_rank() == 0:\n    dist.barrier()",
)


def test_python_lsp_server_finds_the_plugin():
    assert ["dtdebug_lsp.pylsp_plugin"] == [e.value for e in entry_points(group="pylsp", name="dtdebug")]


def test_a_mistake_is_underlined_in_a_notebook_and_in_a_file(tmp_path):
    """The import stands in another cell; pointing at the mistake tells what follows from it."""
    server = nb.Jupyter("lab", tmp_path, extension=False, beside="lsp")
    (server.work / "train.ipynb").write_text(nb.notebook(*CELLS))
    (server.work / "train.py").write_text("\n".join(CELLS).replace("%matplotlib inline\n", ""))
    with server, playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=nb.CHROMIUM, headless=True, args=nb.FLAGS)
        for name in ("train.ipynb", "train.py"):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(2 * nb.SECONDS * 1_000)
            page.goto(f"{server.url}lab/tree/{name}?reset&token=t0k")
            line = page.locator(".cm-lintRange", has_text="barrier").first
            line.wait_for()
            line.hover()
            tip = page.locator(".cm-tooltip", has_text="other ranks never call it").first
            tip.wait_for()

            assert "DT101" in tip.inner_text()
            nb.shoot(page, f"lsp-{name}")
            page.close()
        browser.close()

"""Failed `%%px` cells: the engines tell their exceptions with values, and their cells are named as in the notebook."""

import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from dtdebug.notebook.engine_accounts import Told, _failed_engines, _named, bodies_of, body_with
from dtdebug.notebook.failed_cell import _on_engines
from dtdebug_taxonomy.logs.open_traceback import ENGINE_CELL
from dtdebug_taxonomy.model.account import Account, Link, NamedValue, Place
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.model.snapshot import ExceptionInfo

CELLS = ("%%px\nimport torch\n\ndef f(x):\n    return x + []", "f(1)", "# on all\n%%px --noblock\nf(1)\n", "%%px\nf(1)")
BODIES = bodies_of(("", *CELLS[:2], "", *CELLS[3:]), [f"cell In[{n}]" for n in range(5)])
KERNEL = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python3", cwd=sys.argv[1])
def cell(source):
    shown = []
    def take(message):
        shown.append(message["content"].get("data", {}).get("text/plain", ""))
    client.execute_interactive(source, timeout=120, allow_stdin=False, output_hook=take)
    return "".join(shown)
try:
    cell("%load_ext dtdebug")
    cell("import ipyparallel as ipp; cluster = ipp.Cluster(n=2, log_level=40)")
    cell("rc = cluster.start_and_connect_sync(activate=True)")
    cell("%%px\\nparts = [1, 2, 3]\\ndef share(count):\\n    return len(parts) / count")
    print(cell("%%px\\nimport torch.distributed as dist\\ncount = 0\\nshare(count)"))
    cell("rc.shutdown(hub=True); cluster.stop_cluster_sync()")
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""


def test_only_cells_whose_first_line_is_the_magic_ran_on_the_engines():
    assert [("cell In[4]", 1), ("cell In[1]", 1)] == [(body.name, body.above) for body in BODIES]
    assert ("cell In[2]", 3) == bodies_of(("\n\n%%px\nf()",), ["cell In[2]"])[0][:2]


def test_a_frame_of_an_engine_is_named_by_the_line_that_it_shows():
    """The function may stand in another cell than the one that failed; a line that no cell has is left."""
    frames = (Frame(ENGINE_CELL, 1, "<module>", "f(1)"), Frame(ENGINE_CELL, 4, "f", "return x + []"))
    inner = ExceptionInfo(type="TypeError", frames=(*frames, Frame(ENGINE_CELL, 9, "g", "lost")), rank=0)
    (found,) = _on_engines(ExceptionInfo(type="CompositeError", causes=(inner,)), BODIES).causes

    assert [("cell In[4]", 2), ("cell In[1]", 5), (ENGINE_CELL, 9)] == [(f.file, f.line) for f in found.frames]
    assert body_with(BODIES, 1, "") is None


def test_all_places_of_an_engines_account_get_the_names_of_the_notebook():
    """By the whole text of its cells, whose numbers and files are its own."""
    body = BODIES[1].text
    link = Link(value=NamedValue("x", "1"), how="assigned", place=Place(file="/tmp/ipykernel_9/1.py", line=3))
    account = Account(rank=1, place=Place(file="/tmp/ipykernel_9/1.py", line=4), links=(link,))
    named = _named(Told(account, {"/tmp/ipykernel_9/1.py": f"{body}\n"}), BODIES)

    assert ("cell In[1]", 5, "cell In[1]", 4) == (
        named.place.file, named.place.line, named.links[0].place.file, named.links[0].place.line,
    )  # fmt: skip
    assert account == _named(Told(account, {"/tmp/ipykernel_9/1.py": "other"}), BODIES)


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_engines_that_failed_are_those_of_the_exception(wrapped):
    """A client that has shown the errors raises another exception around them."""
    rows = [("TypeError", "", "", {"engine_id": 1}), ("TypeError", "", "", "engine 0"), ("E", "", "")]
    error = SimpleNamespace(elist=rows)

    assert [1] == _failed_engines(SimpleNamespace(original_error=error) if wrapped else error)
    assert [] == _failed_engines(ValueError("x"))


@pytest.mark.ranks
@pytest.mark.skipif(find_spec("ipyparallel") is None, reason="ipyparallel is not installed")
def test_a_failed_cell_of_engines_shows_their_values(tmp_path):
    """Asked for when it has failed: an engine keeps its last exception."""
    command = [sys.executable, "-c", KERNEL, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    shown = " ".join(ran.stdout.split())

    assert "`count = 0` (cell In[5], line 3)" in shown, ran.stderr[-2000:]
    assert "cell In[4], line 4" in shown
    assert "return len(parts) / count" in shown
    assert "count = 0" in shown

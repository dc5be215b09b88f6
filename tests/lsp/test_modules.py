"""The modules around a text are read again when one of them, or a file that was missing, is there or has changed."""

from pathlib import Path

import pytest

from dtdebug_lsp.modules import Modules
from dtdebug_taxonomy.source.python.code import Code

TEXT = "import pkg.late\npkg.late.f()\n"


@pytest.fixture
def around(tmp_path):
    opened: dict[str, str] = {}
    (tmp_path / "train.py").write_text(TEXT)
    modules = Modules(str(tmp_path / "train.py"), lambda: opened)
    code = Code(TEXT, path=str(tmp_path / "train.py"))

    def module() -> str | None:
        found, _ = modules.project.module(code, "pkg.late.f")
        return str(found.text) if found is not None else None

    return tmp_path, opened, modules, module


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_nothing_is_read_again_while_nothing_changes(around):
    folder, _, modules, module = around
    assert module() is None
    (folder / "other.txt").write_text("of no matter")

    assert not modules.refresh()
    assert not modules.refresh()


@pytest.mark.parametrize("name", ["pkg/late.py", "pkg/late/__init__.py"])
def test_a_module_in_a_new_folder_is_found(around, name):
    folder, _, modules, module = around
    assert module() is None
    (folder / name).parent.mkdir(parents=True)
    modules.refresh()
    write(folder / name, "def f(): ...\n")

    assert modules.refresh()
    assert module() == "def f(): ...\n"


def test_a_module_that_is_only_in_the_editor_is_found_and_goes_with_it(around):
    folder, opened, modules, module = around
    assert module() is None
    opened[str(folder / "pkg/late.py")] = "def f(): return 1\n"
    assert modules.refresh()
    assert module() == "def f(): return 1\n"

    opened.clear()
    assert modules.refresh()
    assert module() is None


def test_a_module_that_changes_or_goes_is_noticed(around):
    folder, _, modules, module = around
    write(folder / "pkg/late.py", "def f(): ...\n")
    assert module() == "def f(): ...\n"
    assert modules.read(str(folder / "pkg/late.py"))
    write(folder / "pkg/late.py", "def f(): return 22\n")
    assert modules.refresh()
    assert module() == "def f(): return 22\n"

    (folder / "pkg/late.py").unlink()
    assert modules.refresh()
    assert module() is None

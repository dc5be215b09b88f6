"""Modules that a package takes from its own folder."""

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.project import Project


def test_module_beside_is_found() -> None:
    """`from . import helper` names the module beside, not one a folder above."""
    files = {"pkg/helper.py": "def average(x):\n    return x\n"}
    code = Code("from . import helper\nhelper.average(1)\n", path="pkg/main.py")
    found = Project(files.get).find_definition(code, code.imports["helper"] + ".average")
    assert found is not None
    assert found.code.path == "pkg/helper.py"

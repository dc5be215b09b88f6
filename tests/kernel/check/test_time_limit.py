"""Hostile programs cost no more than their bound, and nothing of a check that was interrupted is kept."""

from pathlib import Path

import pytest

from dtdebug.check import examine_file, time_limit
from dtdebug.check.examine_file import Selection
from dtdebug.storage import budget
from dtdebug_taxonomy.source.python.project import Project

HEAD = "import torch.distributed as dist\nrank = dist.get_rank()\n"


def test_a_file_that_takes_too_long_is_left_out_and_the_next_one_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = budget.Budget()
    spent.seconds = 0.2
    monkeypatch.setattr(budget, "_running", [spent])
    monkeypatch.setattr(time_limit, "_SECONDS", 0.1)
    examine = examine_file._examine_text

    def endless(text: str, path: str, *rest: object, **options: object) -> object:
        while "slow" in path:
            try:
                sum(range(1000))
            except Exception:
                continue
        return examine(text, path, *rest, **options)

    for name in ("slow.py", "quick.py"):
        (tmp_path / name).write_text(f"{HEAD}if rank == 0:\n    dist.barrier()\n")
    examine_file.examine_file(tmp_path / "quick.py", Selection())  # loads the checks
    spent.seconds = 0.2
    monkeypatch.setattr(examine_file, "_examine_text", endless)
    around = examine_file.project()
    slow = examine_file.examine_file(tmp_path / "slow.py", Selection(), around)
    monkeypatch.setattr(time_limit, "_SECONDS", 5.0)
    quick = examine_file.examine_file(tmp_path / "quick.py", Selection(), around)

    assert slow.unread == (f"{tmp_path}/slow.py: takes too long to check, skipped",)
    assert slow.findings == ()
    assert [found.id for found in quick.findings] == ["DT101"]
    assert spent.seconds < 0.1


@pytest.mark.parametrize("calls", [1, 3])
def test_calls_are_followed_deeper_than_pythons_own_stack(tmp_path: Path, calls: int) -> None:
    deep = 1500
    body = [f"def f{n}():\n" + f"    f{n + 1}()\n" * calls for n in range(deep)]
    (tmp_path / "a.py").write_text(
        f"{HEAD}{''.join(body)}def f{deep}():\n    dist.barrier()\nif rank == 0:\n    f0()\n"
    )
    found = examine_file.examine_file(tmp_path / "a.py", Selection(select=("DT101",)))

    assert found.problems == ()
    assert found.unread == ()
    assert [one.id for one in found.findings] == ["DT101"]


def test_a_name_of_many_parts_is_looked_for_nowhere() -> None:
    looked: list[str] = []

    def read(path: str) -> str | None:
        looked.append(path)
        return (
            f"import {'.'.join('a' * 5000)} as far\nfrom .near import near\nfar.f()\nnear()\n"
            if path == "m.py"
            else None
        )

    project = Project(read)
    code = project.file("m.py")
    assert code is not None
    assert project.module(code, ".".join("a" * 5000)) == (None, [])
    assert project.module(code, ".near.near") == (None, [])
    assert looked[0] == "m.py"
    assert 0 < len(looked) < 50


@pytest.mark.parametrize("encoding", ["punycode", "idna", "unicode_escape", "raw-unicode-escape", "rot13"])
def test_encodings_of_names_and_literals_are_refused(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.py").write_text(f"# coding: {encoding}\n{'a' * 300_000}-{'9' * 300_000}\n")
    found = examine_file.examine_file(tmp_path / "a.py", Selection())

    assert len(found.problems) == 1
    assert "not an encoding of text" in found.problems[0]

"""Learning notebooks that come with the package."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import msgspec

_HOME = Path(__file__).parent


class LearningNotebook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Learning notebook; `notebooks.toml` lists them in the intended reading order."""

    id: str
    number: int
    title: str
    summary: str

    @property
    def stem(self) -> str:
        """Name of its files without their extensions."""
        return f"{self.number:02}_{self.id.replace('-', '_')}"

    @property
    def file(self) -> str:
        """File name of the notebook that readers get."""
        return f"{self.stem}.ipynb"


def list_notebooks() -> tuple[LearningNotebook, ...]:
    """Return the notebooks in the intended reading order."""
    data = (_HOME / "notebooks.toml").read_bytes()
    found: list[LearningNotebook] = msgspec.toml.decode(data, type=dict[str, list[LearningNotebook]])["notebook"]
    return tuple(found)


def notebook_file(id: str) -> tuple[str, bytes]:  # noqa: A002 - users call it that
    """Return the name of a notebook's file and its content; raises KeyError if there is no such notebook."""
    notebook = next((n for n in list_notebooks() if id in (n.id, str(n.number), n.file, n.stem)), None)
    if notebook is None:
        raise KeyError(f"no notebook {id!r}; there are: {', '.join(n.id for n in list_notebooks())}")
    return notebook.file, (_HOME / "notebooks" / notebook.file).read_bytes()


def copy(id: str, folder: Path) -> Path:  # noqa: A002 - users call it that
    """Copy a notebook into a folder, which is created; return its path.

    Never overwrites a file: the copy gets another name if its own is taken.

    Raises:
        KeyError: there is no such notebook.
        OSError: it can't be written there.

    """
    name, data = notebook_file(id)
    folder.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        path = folder / (name if number == 1 else f"{Path(name).stem}-{number}.ipynb")
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            continue
        return path
    raise AssertionError  # count() has no end

"""Reads which files each rank says that it reads: a rank that fails on its data often names them long before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.text.lazy_re import lazy_re

_RANK = lazy_re(r"(?i)(?<![\w-])(?:global[ _])?rank[ _:=#\[]{0,3}(?P<rank>\d{1,6})\b")
_NAME = lazy_re(r"(?<![\w./+=:@-])[\w./+=-]{3,300}(?![\w/(])")
_KEY = lazy_re(r"^[A-Za-z]\w*=")
_DIGITS = lazy_re(r"\d+")
_DATA = frozenset((
    "arrow", "avro", "bin", "bz2", "csv", "feather", "gz", "h5", "hdf5", "idx", "jpeg", "jpg", "json", "jsonl", "mdb",
    "mds", "mp3", "mp4", "npy", "npz", "orc", "parquet", "pickle", "pkl", "png", "rec", "tar", "tfrecord", "tfrecords",
    "tgz", "tsv", "txt", "wav", "webm", "xz", "zip", "zst",
))  # fmt: skip
"""Ends of names of data files; modules, hosts and programs have dots too."""
_LINES, _MOST = 50_000, 64
_FRAME = '  File "'


class RankFile(NamedTuple):
    """A file that one rank alone names."""

    rank: int
    file: str
    line: int
    words: str


def files_of_ranks(lines: Iterable[Line]) -> dict[int, RankFile]:
    """Return the last file that each rank alone names, of names that differ in their numbers from rank to rank."""
    named: dict[str, dict[int, RankFile]] = defaultdict(dict)
    for number, line in enumerate(lines):
        if number >= _LINES:
            break
        if "." not in line.body or _FRAME in line.body:
            continue
        found = _RANK.search(line.body)
        rank = int(found["rank"]) if found is not None else line.rank
        if rank is None:
            continue
        for match, _ in zip(_NAME.finditer(line.body), range(_MOST), strict=False):
            file = _KEY.sub("", match[0].rstrip("."))
            if file.rpartition(".")[2].lower() in _DATA and _DIGITS.search(file):
                named[file][rank] = RankFile(rank, file, line.number, line.body.strip())
    shapes: dict[str, dict[int, RankFile]] = defaultdict(dict)
    for file, ranks in named.items():
        if len(ranks) == 1:
            shapes[_DIGITS.sub("0", file)] |= ranks
    best = max(shapes.values(), key=len, default={})
    return best if len(best) > 1 else {}

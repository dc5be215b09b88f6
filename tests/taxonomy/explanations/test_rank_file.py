"""The data file that a rank has named is joined to the error that it raises later."""

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot

TRACE = """
[rank{r}]: Traceback (most recent call last):
[rank{r}]:   File "/exp/train.py", line 30, in <module>
[rank{r}]:     for batch in loader:
[rank{r}]:   File "/exp/data.py", line 12, in __iter__
[rank{r}]:     for line in f:
[rank{r}]: {error}
"""
GZIP = "EOFError: Compressed file ended before the end-of-stream marker was reached"
TAR = "tarfile.ReadError: unexpected end of data"
IN_WORKER = """[rank3]: Traceback (most recent call last):
[rank3]:   File "/exp/train.py", line 30, in <module>
[rank3]:     for batch in loader:
[rank3]:   File "/opt/lib/python3.11/site-packages/torch/_utils.py", line 794, in reraise
[rank3]:     raise exception
[rank3]: EOFError: Caught EOFError in DataLoader worker process 0.
[rank3]: Original Traceback (most recent call last):
[rank3]:   File "/exp/data.py", line 12, in __iter__
[rank3]:     for line in f:
[rank3]: EOFError: Compressed file ended before the end-of-stream marker was reached
"""
LINES = {
    "words": "12:00:00 INFO rank {r} reads ['corpus/part-0000{r}.jsonl.gz']",
    "prefix": "[rank{r}]: opening /data/shards/train-{r:06d}.tar",
    "pair": "rank={r} shard=s3/c4/en.0000{r}.json.zst docs=1200",
}


def log(line, rank, error):
    return "\n".join(LINES[line].format(r=r) for r in (2, 0, 3, 1)) + TRACE.format(r=rank, error=error)


@pytest.mark.parametrize(
    ("line", "error", "file", "check"),
    [
        ("words", GZIP, "corpus/part-00003.jsonl.gz", "gzip -t"),
        ("prefix", TAR, "/data/shards/train-000003.tar", "tar -tf"),
        ("pair", GZIP, "s3/c4/en.00003.json.zst", "zstd -t"),
    ],
)
def test_the_file_of_the_failing_rank_is_named(line, error, file, check) -> None:
    d = diagnose(load(), Snapshot(output=log(line, 3, error)))
    first = d.advice[0]
    assert first.title.startswith(f"{file}, which rank 3 alone names")
    assert f"`{check} {file}`" in first.fix
    assert not any(a.cause == "all-ranks-prepare-the-same-files" for a in d.advice)


def test_without_a_file_of_its_own_the_candidates_stay() -> None:
    d = diagnose(load(), Snapshot(output=f"rank 0 reads data/all-1.jsonl.gz\n{IN_WORKER}"))
    assert d.advice[0].title == "A data file is cut off, or is still being written"
    assert any(a.cause == "all-ranks-prepare-the-same-files" for a in d.advice)


@pytest.mark.parametrize(
    "text",
    [
        "rank 0 reads data/a-1.tar\nrank 1 reads data/a-1.tar",  # one file for all
        "rank 0 on node1.cluster.local\nrank 1 on node2.cluster.local",
        "rank 0 torch 2.10.1\nrank 1 torch 2.10.2",
        'rank 0:   File "a1.txt", line 1\nrank 1:   File "a2.txt", line 1',
    ],
)
def test_what_is_no_file_of_one_rank(text) -> None:
    assert Incident(Snapshot(output=text)).files_of_ranks == {}

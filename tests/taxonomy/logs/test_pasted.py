"""What a person wrote and what a program printed, in one text."""

import json

import pytest

from dtdebug.cli.main import main
from dtdebug_taxonomy.logs.split_post import only_words, split_prose

ISSUE = """\
Hi, my job dies on 4 nodes.

```
[rank3]: ValueError: x
step 1 loss 0.2
```
It works on a single node.
torch==2.6.0
"""


def test_a_sentence_that_speaks_of_nccl_or_an_error_is_somebodys():
    """Only as NCCL or a logger prints them are such words a program's."""
    text = (
        "Unequal data causes an NCCL timeout, and I get an ERROR after it.\n"
        "I ran it with NCCL_DEBUG=INFO: nothing.\n```\nnode:1:2 NCCL INFO a\n```\n"
    )

    said, printed = split_prose(text)

    assert said.startswith("Unequal data")
    assert said.endswith("NCCL_DEBUG=INFO: nothing.")
    assert "NCCL INFO a" in printed


def test_a_post_in_the_third_person_is_somebodys():
    """Sentences that tell what the run does, in a text with Markdown; what a program printed below a line is not."""
    told = "The script hangs at step 0 inside `engine.step()` on both ranks."

    said, printed = split_prose(f"## Hang\n\n{told}\n\n[rank0]: ValueError: x\nand then it fails with a code\n")

    assert said == f"## Hang\n\n{told}", "the heading is the title"
    assert "ValueError" in printed
    assert "and then it fails" in printed


def test_what_stands_between_two_ticks_over_several_lines_is_a_fence():
    """Lines stay where they are, and a quotation of a message in a sentence makes no line a program's."""
    text = (
        "I get this:\n`[rank3]: ValueError: x\n[rank3]: exit`\nHow is it solved?\n"
        "It says \u201cERROR: End of file.\u201d and my run ends.\n"
    )

    said, printed = split_prose(text)

    assert said.splitlines() == [
        "I get this:", "", "How is it solved?", "It says \u201cERROR: End of file.\u201d and my run ends.",
    ]  # fmt: skip
    assert printed.splitlines()[1:3] == ["[rank3]: ValueError: x", "[rank3]: exit"]
    assert split_prose("Set `a and I see it.\n")[0] == "Set `a and I see it."


def test_three_ticks_around_one_line_are_no_fence():
    """What follows is somebody's again; what stands between them was printed."""
    said, printed = split_prose("My command is\n``` python -m multiproc train.py ```\nand it hangs at the start.\n")

    assert said.split("\n\n") == ["My command is", "and it hangs at the start."]
    assert printed.split("\n") == ["", "python -m multiproc train.py", "", ""]


def test_what_follows_a_colon_in_a_paragraph_is_what_was_printed():
    """Unless a person goes on, or its lines are sentences."""
    shown = "step 1\nCUDA status: file: a.c : () : line: 36\nCUDA Error: invalid device ordinal"
    said, printed = split_prose(f"I train on 5 cards; then this shows up:\n{shown}")

    assert said == "I train on 5 cards; then this shows up:"
    assert printed == f"\n{shown}"
    assert split_prose(f"I train as it says here:\n{shown}\nand my loss is 3.")[1].strip() == ""


@pytest.mark.parametrize("last", ["However, it only uses one card.", "And it never gets to the first step."])
def test_where_nothing_looks_printed_all_sentences_are_somebodys(last):
    text = f"I ran it as the guide says:\n\n`accelerate launch train.py`\n\n{last}"

    assert split_prose(text)[0].endswith(last)
    assert last in split_prose(f"[rank0]: start\n{text}")[1]


def test_outside_of_fences_a_person_speaks_and_lines_stay_where_they_are():
    words, output = split_prose(ISSUE)

    assert words.splitlines() == [
        "Hi, my job dies on 4 nodes.",
        "",
        "It works on a single node.",
        "torch==2.6.0",
    ]
    assert "[rank3]: ValueError: x" == output.splitlines()[3]


@pytest.mark.parametrize(
    "log",
    [
        "step 1 loss 0.2\nstep 2 loss 0.1\n",
        "INFO: we wait for my peers\n[rank0]: I am here\n",
        "Traceback (most recent call last):\n    I = my(x)\nValueError: can I go on?\n",
        "I0101 10:00:00.1 12 a.cc:3] ready\n",
    ],
)
def test_of_a_log_nothing_is_taken_away(log):
    assert ("", log) == split_prose(log)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Job hangs at the first batch on all ranks, forever.", True),
        ("step 1 loss 0.2", False),
        ("the job waits for the other ranks\n" * 20, False),
    ],
)
def test_a_description_is_short_and_speaks_in_sentences(text, kept):
    assert kept == bool(only_words(text)[0])


@pytest.mark.parametrize(
    ("text", "symptom"),
    [
        ("Job hangs at the end of the first epoch on all ranks, no error.", "D.2.1"),
        ("After upgrading torch from 2.5.1 to 2.6.0, DDP training is 3x slower. 4x A100, batch 32 per GPU.", "D.2.3"),
        ("Hi, my job hangs on 2 nodes after building the model. NCCL_DEBUG=INFO shows nothing.", "C.4"),
        ('We see "NCCL WARN Cuda failure 700 an illegal memory access" on one node, the rest are fine.', "D.1.3"),
        ("训练在第一个 epoch 结束时卡住了, 8 张卡, 其中 rank 3 的 GPU 利用率是 0%, 其它都是 100%", "D.2.1"),
    ],
)
def test_a_file_with_a_description_is_read_as_one(text, symptom, tmp_path, capsys):
    """As a maintainer pastes it: not only as the output of a program."""
    (tmp_path / "issue.txt").write_text(text)
    main(["diagnose", str(tmp_path / "issue.txt"), "--format", "json"])

    assert symptom == json.loads(capsys.readouterr().out)["diagnosis"]["symptoms"][0]["code"]


@pytest.mark.parametrize(
    ("row", "words", "output"),
    [
        (
            "My run on 2 nodes is slow. It is slower than on one. NCCL INFO NET/Socket : Using [0]eth0",
            "My run on 2 nodes is slow. It is slower than on one.",
            "NCCL INFO NET/Socket : Using [0]eth0",
        ),
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB. It is only on GPU 0 of my job; why?",
            "It is only on GPU 0 of my job; why?",
            "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB.",
        ),
    ],
)
def test_words_before_or_behind_a_message_in_one_line_are_somebodys(row, words, output):
    """What a program printed stays on its line."""
    said, printed = split_prose(f"Hello,\n{row}\n")

    assert said.endswith(words)
    assert output == printed.splitlines()[1].strip()


def test_an_exception_in_quotes_was_printed():
    """It ends a traceback that is cut off; where the output has an exception of its own, that one counts."""
    said = "Hi, on two GPUs I get `RuntimeError: Requested AllReduce not implemented on GPU` at once."
    cut = '```\nTraceback (most recent call last):\n  File "train.py", line 8, in <module>\n    step(1)\n```'
    error = "RuntimeError: Requested AllReduce not implemented on GPU"

    assert error == split_prose(said)[1].strip()
    assert split_prose(f"{said}\n\n{cut}\n")[1].strip().endswith(f"    step(1)\n{error}")
    assert error not in split_prose(f"{said}\n\n```\nValueError: x\n```\n")[1]
    assert said in split_prose(said)[0]


def test_a_class_of_an_error_alone_is_no_message():
    assert "" == split_prose("Hi, why do I get a `RuntimeError` on two GPUs?")[1].strip()


SAMPLES = (
    "Ann buys 3 pens and pays 6 coins. How many coins does a pen cost?\n",
    "I think that she pays 2 coins for my pen, and that works well.\n",
    "**Step by step:**\n\nThe job is slow, and the train never stops: it hangs at the station.\n",
)


@pytest.mark.parametrize("fence", ["", "```python\nprint(2)\n```\n"])
def test_what_a_trained_model_says_is_no_report_of_its_user(fence, tmp_path, capsys):
    """Questions and answers between the lines of a loop are printed by the program."""
    rows = "".join(
        f"[timing] sample processed in {n * 3.7:.2f}s\n\n{SAMPLES[n % 3]}{fence}\nstep {n} loss {3 - n / 50:.3f}\n"
        for n in range(40)
    )
    assert split_prose(rows)[0] == ""
    mine = "I train a model on 2 GPUs, and my loss does not fall. What is wrong?\n\n"
    assert split_prose(mine + rows)[0].strip() == mine.strip()
    (tmp_path / "train.log").write_text(rows + "training completed\n")
    assert main([str(tmp_path / "train.log")]) == 0
    assert "completed" in capsys.readouterr().out


def test_a_person_may_paste_the_same_lines_several_times():
    """Two logs of one program, with words between them."""
    log = "".join(f"step {n} | loss {3 - n / 50:.3f}\n" for n in range(20))
    words, printed = split_prose(
        f"My run hangs.\n\n{log}\nThen I tried gloo, and it works well.\n\n{log}\nAny ideas?\n"
    )
    assert words.split("\n\n") == ["My run hangs.", "Then I tried gloo, and it works well.", "Any ideas?"]
    assert printed.count("loss") == 40

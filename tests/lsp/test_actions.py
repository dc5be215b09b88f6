"""Where a comment that silences a check can stand, and what "fix all" makes of a text."""

import pytest
from lsprotocol import types as t

from dtdebug_lsp.actions import fix_all, suppression
from dtdebug_lsp.checking import problems
from dtdebug_lsp.documents import Document
from dtdebug_taxonomy.checks.run.settings import Settings

HEAD = "import torch\nimport torch.distributed as dist\n"


def opened(text, name="train.py", language="python"):
    return Document(t.TextDocumentItem(f"file:///job/{name}", language, 1, text))


def changed(document, change):
    text = str(document.text)
    return text[: change.span.start] + change.text + text[change.span.end :]


def silenced(text, name="train.py", language="python", check="DT101"):
    """The text with the comment, and what the check still sees in it."""
    document = opened(text, name, language)
    found = next(p for p in problems(document, Settings()) if p.check.id == check)
    change = suppression(document, found)
    if change is None:
        return None, None
    after = changed(document, change)
    return after, [p for p in problems(opened(after, name, language), Settings()) if p.check.id == check]


@pytest.mark.parametrize(
    "body",
    [
        "    dist.barrier()",
        "    dist.barrier()  # all of them",
        "    dist.barrier()   ",
        "    dist.barrier(  # dtdebug: ignore[DT999]\n    )",
        "    dist.barrier(\n        async_op=False,\n    )",
        "    x = dist.broadcast_object_list([\n        '''a\n        b'''], 0)",
        "    x = 1, \\\n        dist.barrier()",
        "    x = dist.barrier(), \\\n        1",
        "    dist.barrier()  # dtdebug: ignore[]",
    ],
)
def test_the_comment_silences_the_check_and_leaves_the_program_as_it_is(body):
    text = f"{HEAD}if dist.get_rank() == 0:\n{body}\n"

    after, left = silenced(text)

    assert [] == left
    assert "ignore[DT101]" in after or ", DT101]" in after
    compile(after, "train.py", "exec")


def test_json_gets_a_comment_only_where_there_are_some():
    plain = (
        '{\n  "train_batch_size": 8,\n  "zero_optimization": {"stage": 2},\n'
        '  "fp16": {"enabled": true},\n  "bf16": {"enabled": true}\n}\n'
    )
    assert (None, None) == silenced(plain, "ds_config.json", "json", "DT704")

    after, left = silenced(f"// our settings\n{plain}", "ds_config.json", "json", "DT704")

    assert "// dtdebug: ignore[" in after
    assert [] == left


def test_all_safe_fixes_are_made_in_one_edit_and_the_rest_of_the_text_is_untouched():
    first = "def f(x, world):\n    parts = [torch.zeros_like(x)] * world  # kept\n    dist.all_gather(parts, x)\n"
    text = HEAD + first + "# between\n" + first.replace("def f", "def g")
    document = opened(text)

    after = changed(document, fix_all(document, Settings(select=("DT401",))))

    assert text.count("] * world") == 2
    assert after.count("] * world") == 0
    assert after.count("# kept") == 2
    assert [] == [p for p in problems(opened(after), Settings()) if p.check.id == "DT401"]
    assert HEAD == after[: len(HEAD)]


def test_a_text_without_mistakes_is_not_changed():
    document = opened(HEAD)

    assert HEAD == changed(document, fix_all(document, Settings()))

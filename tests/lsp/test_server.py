"""The language server over its real protocol, as each recorded client speaks it."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from importlib.metadata import entry_points

import msgspec
import pytest
import pytest_asyncio
from lsprotocol import types as t
from places import TESTS
from pygls.protocol import default_converter
from pytest_lsp import client_capabilities, make_test_lsp_client

from dtdebug_taxonomy.checks import SITE
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.presentation.editor_marks import FILE, Failure, Failures, Mark

RECORDED = TESTS / "editors"
SHIPPED = (
    "neovim@v0.6.1",
    "neovim@v0.7.0",
    "neovim@v0.8.0",
    "neovim@v0.9.1",
    "neovim@v0.10.0",
    "neovim@v0.11.0",
    "emacs@v29.1",
    "visual-studio-code@v1.65.2",
)
VSCODE, JUPYTERLAB = "vscode_1.139", "jupyterlab_lsp_5.3.0"
UNITS = {"emacs@v29.1": "utf-32", "neovim@v0.11.0": "utf-8", VSCODE: "utf-16", JUPYTERLAB: "utf-16"}
"""What they prefer, of what a client has said that it can count in."""
PULLS = {"neovim@v0.10.0", "neovim@v0.11.0", VSCODE}
SECONDS = 60

HANG = 'import torch.distributed as dist\ns = "é😀"\nif dist.get_rank() == 0:\n    x = "é😀"; dist.barrier()\n'
"""The mistake stands after characters that each encoding counts in another way."""
LINE = 3
GATHER = (
    "import torch\nimport torch.distributed as dist\n\ndef f(x, world):\n"
    "    parts = [torch.zeros_like(x)] * world\n    dist.all_gather(parts, x)\n"
)


def capabilities(profile):
    file = RECORDED / f"{profile}.json"
    if file.is_file():
        return default_converter().structure(json.loads(file.read_text()), t.ClientCapabilities)
    return client_capabilities(profile)


FILTER = (
    str | t.NotebookDocumentFilterNotebookType | t.NotebookDocumentFilterScheme | t.NotebookDocumentFilterPattern | None
)
"""lsprotocol does not say how to read it."""


class Editor:
    """A client with a server of its own; every wait is bounded."""

    def __init__(self, folder):
        self.folder = folder
        self.client = make_test_lsp_client()
        converter = self.client.protocol._converter
        converter.register_structure_hook_func(lambda kind: kind == FILTER, lambda value, _: value)
        for method in (t.CLIENT_REGISTER_CAPABILITY, t.WORKSPACE_CODE_LENS_REFRESH):
            self.client.feature(method)(lambda *_: None)

    async def start(self, profile, *, module="dtdebug_lsp", options=None, environment=None):
        state = os.environ | {"DTDEBUG_STATE": str(self.folder / "state")} | (environment or {})
        command = (sys.executable, "-m", module)
        await self.client.start_io(*command, env=state, start_new_session=True, cwd=self.folder)
        self.capabilities = capabilities(profile)
        (self.folder / "work").mkdir(exist_ok=True)
        params = t.InitializeParams(
            capabilities=self.capabilities,
            root_uri=self.uri(""),
            workspace_folders=[t.WorkspaceFolder(self.uri(""), "work")],
            initialization_options=options,
        )
        self.told = await self.within(self.client.initialize_session(params))
        return self

    async def within(self, waiting, seconds=SECONDS):
        return await asyncio.wait_for(waiting, seconds)

    async def until(self, condition, what):
        for _ in range(SECONDS * 50):
            if condition():
                return
            await asyncio.sleep(0.02)
        pytest.fail(f"no {what} within {SECONDS} s")

    def uri(self, name):
        return (self.folder / "work" / name).as_uri()

    def open(self, name, text, language="python", version=1):
        uri = name if ":" in name else self.uri(name)
        self.client.diagnostics.pop(uri, None)
        self.client.text_document_did_open(
            t.DidOpenTextDocumentParams(t.TextDocumentItem(uri, language, version, text))
        )
        return uri

    def change(self, uri, version, *edits):
        changes = [t.TextDocumentContentChangePartial(t.Range(t.Position(*a), t.Position(*b)), s) for a, b, s in edits]
        identifier = t.VersionedTextDocumentIdentifier(version, uri)
        self.client.diagnostics.pop(uri, None)
        self.client.text_document_did_change(t.DidChangeTextDocumentParams(identifier, changes))

    def replace(self, uri, version, text):
        identifier = t.VersionedTextDocumentIdentifier(version, uri)
        self.client.diagnostics.pop(uri, None)
        whole = t.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(t.DidChangeTextDocumentParams(identifier, [whole]))

    def close(self, uri):
        self.client.text_document_did_close(t.DidCloseTextDocumentParams(t.TextDocumentIdentifier(uri)))

    async def pushed(self, uri):
        await self.until(lambda: uri in self.client.diagnostics, f"diagnostics of {uri}")
        return self.client.diagnostics[uri]

    async def diagnostics(self, uri):
        """As this client gets them: asked for, or pushed."""
        if self.capabilities.text_document.diagnostic is None:
            return await self.pushed(uri)
        params = t.DocumentDiagnosticParams(t.TextDocumentIdentifier(uri))
        return (await self.within(self.client.text_document_diagnostic_async(params))).items

    async def ask(self, method, params):
        return await self.within(self.client.protocol.send_request_async(method, params))

    async def hover(self, uri, line, column):
        params = t.HoverParams(t.TextDocumentIdentifier(uri), t.Position(line, column))
        found = await self.ask(t.TEXT_DOCUMENT_HOVER, params)
        return found.contents.value if found else ""

    async def actions(self, uri, where, only=None):
        params = t.CodeActionParams(t.TextDocumentIdentifier(uri), where, t.CodeActionContext([], only))
        return await self.ask(t.TEXT_DOCUMENT_CODE_ACTION, params) or []

    async def command(self, name, *arguments):
        return await self.ask(t.WORKSPACE_EXECUTE_COMMAND, t.ExecuteCommandParams(name, list(arguments)))

    @property
    def units(self):
        """What columns are counted in."""
        chosen = self.told.capabilities.position_encoding
        return str(getattr(chosen, "value", chosen))

    def width(self, text):
        """The columns that a text takes in this session."""
        return (
            len(text.encode(f"{self.units}-le" if self.units != "utf-8" else self.units))
            // {"utf-8": 1, "utf-16": 2, "utf-32": 4}[self.units]
        )

    async def stop(self):
        process = self.client._server
        with suppress(Exception):
            await asyncio.wait_for(self.client.shutdown_session(), 10)
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        with suppress(Exception):
            await asyncio.wait_for(self.client.stop(), 10)


@pytest_asyncio.fixture
async def editor(tmp_path):
    """Starts clients; all of them are stopped."""
    editors = []

    async def start(profile=VSCODE, **how):
        editors.append(Editor(tmp_path))
        return await editors[-1].start(profile, **how)

    yield start
    for one in editors:
        await one.stop()


pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("profile", [*SHIPPED, VSCODE, JUPYTERLAB])
async def test_every_client_gets_a_mistake_at_its_place_and_a_clean_slate_at_the_end(editor, profile):
    """Open, read, edit, close: places in the units that this client counts in."""
    e = await editor(profile)
    assert UNITS.get(profile, e.units) == e.units
    uri = e.open("train.py", HANG)
    prefix = '    x = "é😀"; '

    (found,) = [d for d in await e.diagnostics(uri) if d.code == "DT101"]

    assert t.Position(LINE, e.width(prefix)) == found.range.start
    assert t.Position(LINE, e.width(prefix + "dist.barrier()")) == found.range.end
    assert found.source == "dtdebug"
    assert found.code_description.href == f"{SITE}/checks/DT101/"
    assert "barrier" in await e.hover(uri, LINE, e.width(prefix) + 6)

    e.change(uri, 2, ((0, 0), (0, 0), '# "😀"\n'))

    (moved,) = [d for d in await e.diagnostics(uri) if d.code == "DT101"]
    assert t.Position(LINE + 1, e.width(prefix)) == moved.range.start

    e.change(uri, 3, ((3, 0), (3, 99), "if True:"))

    assert [] == list(await e.diagnostics(uri))
    e.close(uri)


async def test_a_closed_text_has_no_diagnostics_left(editor):
    e = await editor(JUPYTERLAB)
    uri = e.open("train.py", HANG)
    assert ["DT101"] == [d.code for d in await e.pushed(uri)]

    e.client.diagnostics.pop(uri)
    e.close(uri)

    assert [] == list(await e.pushed(uri))


async def test_a_call_is_followed_into_another_module_as_the_editor_has_it(editor, tmp_path):
    """From disk while it is closed; once it is open and saved, what stands there counts, without an edit here."""
    e = await editor(JUPYTERLAB)
    module = "import torch.distributed as dist\n\ndef sync():\n    dist.barrier()\n"
    (tmp_path / "work" / "helpers.py").write_text(module)
    text = "import torch.distributed as dist\nfrom helpers import sync\n\nif dist.get_rank() == 0:\n    sync()\n"
    uri = e.open("train.py", text)
    (found,) = await e.pushed(uri)
    assert "sync(), which calls barrier() in helpers.py," in found.message

    other = e.open("helpers.py", module)
    e.client.diagnostics.pop(uri)
    e.replace(other, 2, module.replace("dist.barrier()", "pass"))
    e.client.text_document_did_save(t.DidSaveTextDocumentParams(t.TextDocumentIdentifier(other)))

    assert [] == list(await e.pushed(uri))


SCRIPT = "torchrun --nproc-per-node=2 train.py --batch_size 64\n"
PROGRAM = (
    "import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--batch-size', type=int)\n"
    "args = parser.parse_args()\n"
)


@pytest.mark.parametrize("profile", ["neovim@v0.9.1", VSCODE, "neovim@v0.11.0"])
async def test_a_launch_script_is_checked_again_when_only_its_program_changes(editor, tmp_path, profile):
    e = await editor(profile)
    mended = PROGRAM.replace("batch-size", "batch_size")
    (tmp_path / "work" / "train.py").write_text(mended)
    program, script = e.uri("train.py"), e.open("run.sh", SCRIPT, "shellscript")
    assert [] == list(await e.diagnostics(script))

    async def again(act, codes):
        told = e.client.diagnostic_refresh_count
        e.client.diagnostics.pop(script, None)
        act()
        if profile == VSCODE:
            await e.until(lambda: e.client.diagnostic_refresh_count > told, "refresh")
        assert codes == [d.code for d in await e.diagnostics(script)]

    await again(lambda: e.open("train.py", PROGRAM), ["DT917"])
    await again(lambda: e.replace(program, 2, mended), [])
    await again(lambda: e.replace(program, 3, PROGRAM), ["DT917"])
    await again(lambda: e.close(program), [])
    (tmp_path / "work" / "train.py").write_text(PROGRAM + "# another editor\n")
    event = t.FileEvent(program, t.FileChangeType.Changed)
    await again(lambda: e.client.workspace_did_change_watched_files(t.DidChangeWatchedFilesParams([event])), ["DT917"])


async def test_a_launch_script_is_checked_again_when_only_its_configuration_changes(editor, tmp_path):
    e = await editor("neovim@v0.9.1")
    configuration = tmp_path / "work" / "acc.yaml"
    configuration.write_text("distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 2\n")
    script = e.open("run.sh", "CUDA_VISIBLE_DEVICES=0,1 accelerate launch --config_file acc.yaml t.py\n", "shellscript")
    assert [] == list(await e.diagnostics(script))

    configuration.write_text("distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 4\n")
    e.client.diagnostics.pop(script, None)
    event = t.FileEvent(e.uri("acc.yaml"), t.FileChangeType.Changed)
    e.client.workspace_did_change_watched_files(t.DidChangeWatchedFilesParams([event]))
    assert ["DT904"] == [d.code for d in await e.diagnostics(script)]


async def test_while_a_statement_is_typed_what_was_found_elsewhere_stays(editor):
    e = await editor(JUPYTERLAB)
    uri = e.open("train.py", HANG + "y = 1\n")
    assert ["DT101"] == [d.code for d in await e.pushed(uri)]

    e.change(uri, 2, ((0, 0), (0, 0), "import os\n"), ((5, 0), (5, 5), "y = f(((\n"))
    (kept,) = await e.pushed(uri)
    assert LINE + 1 == kept.range.start.line

    e.change(uri, 3, ((LINE + 1, 0), (LINE + 1, 40), "    pass"))
    assert [] == list(await e.pushed(uri))


async def test_a_notebook_is_checked_as_one_program_and_its_cells_are_pushed(editor):
    """An import in one cell, the mistake in another; a cell that is fixed gets an empty list."""
    e = await editor(VSCODE)
    first, second, text = (f"vscode-notebook-cell:/job/train.ipynb#{n}" for n in ("a", "b", "c"))
    cells = [t.NotebookCell(t.NotebookCellKind.Code, first), t.NotebookCell(t.NotebookCellKind.Code, second)]
    notebook = e.uri("train.ipynb")
    items = [
        t.TextDocumentItem(first, "python", 1, "%load_ext dtdebug\nimport torch.distributed as dist"),
        t.TextDocumentItem(second, "python", 1, "if dist.get_rank() == 0:\n    dist.barrier()"),
    ]
    e.client.notebook_document_did_open(
        t.DidOpenNotebookDocumentParams(t.NotebookDocument(notebook, "jupyter-notebook", 1, cells), items)
    )

    assert ["DT101"] == [d.code for d in await e.pushed(second)]
    assert [] == list(await e.pushed(first))
    assert 1 == e.client.diagnostics[second][0].range.start.line
    assert [] == list(await e.diagnostics(second)), "what is pushed is not answered too"
    offered = await e.actions(second, e.client.diagnostics[second][0].range)
    assert "dtdebug: ignore DT101 on this line" in [a.title for a in offered]

    e.client.diagnostics.clear()
    edit = t.TextDocumentContentChangePartial(t.Range(t.Position(0, 0), t.Position(0, 24)), "if True:")
    content = t.NotebookDocumentCellContentChanges(t.VersionedTextDocumentIdentifier(2, second), [edit])
    change = t.NotebookDocumentChangeEvent(cells=t.NotebookDocumentCellChanges(text_content=[content]))
    identifier = t.VersionedNotebookDocumentIdentifier(2, notebook)
    e.client.notebook_document_did_change(t.DidChangeNotebookDocumentParams(identifier, change))
    assert [] == list(await e.pushed(second))

    e.client.diagnostics.clear()
    added = t.TextDocumentItem(text, "python", 1, "if dist.get_rank() == 0: dist.barrier()")
    array = t.NotebookCellArrayChange(0, 1, [])
    structure = t.NotebookDocumentCellChangeStructure(array, did_close=[t.TextDocumentIdentifier(first)])
    gone = t.NotebookDocumentChangeEvent(cells=t.NotebookDocumentCellChanges(structure=structure))
    e.client.notebook_document_did_change(t.DidChangeNotebookDocumentParams(identifier, gone))
    array = t.NotebookCellArrayChange(0, 0, [t.NotebookCell(t.NotebookCellKind.Code, text)])
    structure = t.NotebookDocumentCellChangeStructure(array, did_open=[added])
    more = t.NotebookDocumentChangeEvent(cells=t.NotebookDocumentCellChanges(structure=structure))
    e.client.notebook_document_did_change(t.DidChangeNotebookDocumentParams(identifier, more))
    assert [] == list(await e.pushed(text)), "the import went with its cell"

    e.client.notebook_document_did_close(
        t.DidCloseNotebookDocumentParams(
            t.NotebookDocumentIdentifier(notebook), [t.TextDocumentIdentifier(second), t.TextDocumentIdentifier(text)]
        )
    )
    assert await e.command("dtdebug.symptoms")


def applied(e, text, edit):
    """The text after a workspace edit of one document."""
    (edits,) = [c.edits for c in edit.document_changes] if edit.document_changes else edit.changes.values()
    lines = text.split("\n")
    starts = [sum(len(line) + 1 for line in lines[:n]) for n in range(len(lines))]
    for one in sorted(edits, key=lambda x: (x.range.start.line, x.range.start.character), reverse=True):
        a, b = (starts[p.line] + p.character for p in (one.range.start, one.range.end))
        text = text[:a] + one.new_text + text[b:]
    return text


async def test_a_quick_fix_mends_and_a_comment_silences(editor):
    e = await editor(VSCODE)
    uri = e.open("gather.py", GATHER)
    (found,) = [d for d in await e.diagnostics(uri) if d.code == "DT401"]

    offered = {a.title: a for a in await e.actions(uri, found.range, [t.CodeActionKind.QuickFix])}
    fix = offered[found.data["fix"]["title"]]
    fixed = applied(e, GATHER, fix.edit)
    silenced = applied(e, GATHER, offered["dtdebug: ignore DT401 on this line"].edit)

    assert ["DT401"] == [d.code for d in fix.diagnostics]
    for version, text in enumerate((fixed, silenced), 2):
        assert GATHER != text
        e.replace(uri, version, text)
        assert [] == [d.code for d in await e.diagnostics(uri) if d.code == "DT401"]
    assert f"Explain D.2.4: {load().symptoms['D.2.4'].title}" in offered


async def test_all_safe_fixes_come_at_once_and_only_when_asked_for(editor):
    """The edit is made when it is resolved, where the client can wait for that."""
    e = await editor(VSCODE)
    text = GATHER + GATHER.replace("def f", "def g")
    uri = e.open("gather.py", text)
    found = [d for d in await e.diagnostics(uri) if d.code == "DT401"]
    assert 2 == len(found)

    (offer,) = await e.actions(uri, found[0].range, ["source.fixAll"])
    assert offer.edit is None
    resolved = await e.ask(t.CODE_ACTION_RESOLVE, offer)

    assert text.count("] * world") == 2
    assert applied(e, text, resolved.edit).count("] * world") == 0
    assert [] == await e.actions(uri, found[0].range, ["refactor"])


async def test_hovers_know_keywords_and_the_class_of_an_object(editor):
    """A keyword by its call; a method that another class has too says nothing."""
    e = await editor(VSCODE)
    text = (
        "import torch\nfrom accelerate import Accelerator\nacc = Accelerator(mixed_precision='bf16')\n"
        "acc.load_state('x')\nscheduler.load_state_dict(state)\n"
    )
    uri = e.open("keywords.py", text)

    assert "Accelerator(mixed_precision=...)" in await e.hover(uri, 2, 20)
    assert "needs a folder that exists" in await e.hover(uri, 3, 6)
    assert "" == await e.hover(uri, 4, 14)


async def test_hovers_explain_names_variables_codes_and_comments(editor):
    e = await editor(VSCODE)
    text = (
        "import os\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model)\n"
        'os.environ["NCCL_DEBUG"] = "INFO"\n# dtdebug: ignore[DT101] see D.2.1\nbarrier = 1\n'
    )
    uri = e.open("hover.py", text)

    assert "DistributedDataParallel" in await e.hover(uri, 2, 9)
    assert "NCCL_DEBUG" in await e.hover(uri, 3, 15)
    assert "DT101" in await e.hover(uri, 4, 20)
    assert "637 faults" in await e.hover(uri, 4, 33)
    assert "" == await e.hover(uri, 5, 2), "a name of the user's own"
    assert "" == await e.hover(uri, 99, 2)

    script = e.open("run.sh", "export NCCL_DEBUG=INFO\ntorchrun \\\n  --nproc_per_node 2 train.py\n", "shellscript")
    assert "NCCL_DEBUG" in await e.hover(script, 0, 9)
    assert "nproc" in await e.hover(script, 2, 6)

    config = e.open("ds_config.json", '{\n  "zero_optimization": {"stage": 3}\n}\n', "json")
    assert "stage" in await e.hover(config, 1, 26)


async def test_names_that_are_easily_misspelt_are_completed(editor):
    e = await editor(VSCODE)

    async def labels(name, language, text):
        uri = e.open(name, text, language)
        line = text.count("\n")
        position = t.Position(line, len(text.split("\n")[-1]))
        found = await e.ask(t.TEXT_DOCUMENT_COMPLETION, t.CompletionParams(t.TextDocumentIdentifier(uri), position))
        return [i.label for i in found or []]

    assert "NCCL_SOCKET_IFNAME" in await labels("a.py", "python", 'import os\nos.environ["NCCL_SO')
    assert "NCCL_DEBUG" in await labels("b.py", "python", "import os\nos.getenv('NCCL_D")
    assert [] == await labels("c.py", "python", "NCCL_D")
    assert "NCCL_DEBUG" in await labels("d.sh", "shellscript", "export NCCL_DE")
    assert "zero_optimization" in await labels("ds_config.json", "json", '{\n  "train_batch_size": 8,\n  "zero')
    assert "stage" in await labels("ds_zero3.json", "json", '{"zero_optimization": {"st')
    accelerate = "distributed_type: FSDP\nfsdp_config:\n"
    assert "fsdp_offload_params" in await labels("a.yaml", "yaml", f"{accelerate}  fsdp_off")
    assert "mixed_precision" in await labels("b.yaml", "yaml", f"{accelerate}mixed")
    assert [] == await labels("c.yaml", "yaml", "name: x\nmixed")
    assert [] == await labels("package.json", "json", '{"name": "x", "zero')


async def test_comments_link_to_pages_and_issues(editor):
    e = await editor(VSCODE)
    uri = e.open("links.py", '# dtdebug: ignore[DT101] D.2.1, see pytorch/pytorch#54059\nx = "a/b#1"  # 3.1.4\n')

    found = await e.ask(t.TEXT_DOCUMENT_DOCUMENT_LINK, t.DocumentLinkParams(t.TextDocumentIdentifier(uri)))

    assert [
        f"{SITE}/checks/DT101/",
        f"{SITE}/symptoms/D.2.1/",
        "https://github.com/pytorch/pytorch/issues/54059",
    ] == [link.target for link in found]


async def test_the_numbers_of_a_batch_are_worked_out_where_all_are_known(editor):
    e = await editor(VSCODE)
    config = '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}'
    program = (
        "import torch.multiprocessing as mp\nfrom torch.utils.data import DataLoader, DistributedSampler\n"
        "def train(rank):\n    DataLoader(data, batch_size=32, sampler=DistributedSampler(data))\n"
        "    DataLoader(data, batch_size=size, sampler=DistributedSampler(data))\nmp.spawn(train, nprocs=4)\n"
    )

    async def labels(name, language, text):
        uri = e.open(name, text, language)
        whole = t.Range(t.Position(0, 0), t.Position(99, 0))
        return [
            h.label
            for h in await e.ask(t.TEXT_DOCUMENT_INLAY_HINT, t.InlayHintParams(t.TextDocumentIdentifier(uri), whole))
            or []
        ]

    assert ["= 4 x 8 x 2 ranks"] == await labels("ds_config.json", "json", config)
    assert [] == await labels("ds_config2.json", "json", config.replace("64", '"auto"').replace("8}", '"auto"}'))
    assert ["x 4 ranks = 128"] == await labels("loader.py", "python", program)
    assert [] == await labels("unknown.py", "python", program.replace("nprocs=4", "nprocs=n"))


async def test_settings_come_from_the_project_the_editor_and_change_while_it_runs(editor, tmp_path):
    e = await editor(JUPYTERLAB)
    project = tmp_path / "work" / "pyproject.toml"
    project.write_text('[tool.dtdebug]\nseverity = { DT101 = "error" }\n')
    uri = e.open("train.py", HANG)
    assert [t.DiagnosticSeverity.Error] == [d.severity for d in await e.pushed(uri)]

    e.client.diagnostics.clear()
    project.write_text('[tool.dtdebug]\nignore = ["DT101"]\nwrong = 1\n')
    e.client.workspace_did_change_watched_files(
        t.DidChangeWatchedFilesParams([t.FileEvent(project.as_uri(), t.FileChangeType.Changed)])
    )
    assert [] == list(await e.pushed(uri))

    e.client.diagnostics.clear()
    project.write_text("not TOML [")
    settings = {"dtdebug": {"severity": {"DT101": "hint"}, "ignore": []}}
    e.client.workspace_did_change_configuration(t.DidChangeConfigurationParams(settings))
    assert [t.DiagnosticSeverity.Hint] == [d.severity for d in await e.pushed(uri)]

    e.client.diagnostics.clear()
    e.client.workspace_did_change_configuration(t.DidChangeConfigurationParams({"dtdebug": {"enable": False}}))
    assert [] == list(await e.pushed(uri))
    assert "" == await e.hover(uri, LINE, 20)


async def test_a_client_that_is_to_be_asked_for_settings_is_asked(editor, tmp_path):
    e = Editor(tmp_path)
    e.client.set_configuration({"ignore": ["DT101"], "interpreter": "", "trace": {"server": "off"}}, section="dtdebug")
    try:
        await e.start(VSCODE)
        uri = e.open("train.py", HANG)
        assert [] == list(await e.diagnostics(uri))
    finally:
        await e.stop()


async def test_commands_answer_with_data(editor):
    e = await editor(JUPYTERLAB)

    symptoms = await e.command("dtdebug.symptoms")
    assert "D.2.1" in [s["code"] if isinstance(s, dict) else s.code for s in symptoms]
    assert (await e.command("dtdebug.explain", "D.2.1")).startswith("# D.2.1")
    assert (await e.command("dtdebug.explain", "DT101")).startswith("# DT101")
    assert "is not a symptom" in await e.command("dtdebug.explain", "nonsense")
    assert "Python" in await e.command("dtdebug.printDebugInformation")
    assert await e.command("dtdebug.dismissFailure") is False


async def test_the_workspace_is_checked_with_progress_and_open_texts_keep_their_own(editor, tmp_path):
    e = await editor(VSCODE)
    work = tmp_path / "work"
    (work / "closed.py").write_text(HANG)
    (work / "latin.py").write_bytes(HANG.encode("utf-16"))
    (work / "node_modules").mkdir()
    (work / "node_modules" / "other.py").write_text(HANG)
    (work / "gone.py").symlink_to(work / "nowhere.py")
    uri = e.uri("closed.py")

    told = await e.command("dtdebug.checkWorkspace")

    assert {"files": 3, "problems": 1} == (told if isinstance(told, dict) else vars(told))
    assert ["DT101"] == [d.code for d in await e.pushed(uri)]
    assert e.client.progress_reports
    e.open("closed.py", "x = 1\n")
    assert [] == list(await e.pushed(uri))


async def test_checking_the_workspace_can_be_stopped(editor, tmp_path):
    e = await editor(VSCODE)
    folder = tmp_path / "work"
    for number in range(3_000):
        (folder / f"{number}.py").write_text(HANG)
    asked = asyncio.create_task(e.command("dtdebug.checkWorkspace"))
    await e.until(lambda: e.client.progress_reports, "progress")
    (token,) = e.client.progress_reports

    e.client.window_work_done_progress_cancel(t.WorkDoneProgressCancelParams(token))

    told = await asked
    assert 3_000 > (told if isinstance(told, dict) else vars(told))["files"]


async def test_without_pygls_it_says_what_to_install(tmp_path):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import sys; sys.modules['pygls'] = None; from dtdebug_lsp.__main__ import main; main([])",
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), SECONDS)

    assert 2 == process.returncode
    assert b'pip install "dtdebug[lsp]"' in said


def failure(file, line, words, **more):
    marks = (Mark(file=file, line=line, says="rank 0 stopped here", words=words), *more.pop("others", ()))
    known = {
        "id": "1.0",
        "job": "train",
        "time": 1.0,
        "code": "D.2.1",
        "title": "Training hangs",
        "message": "Rank 0 waits.",
    }
    return Failure(**{**known, **more}, marks=marks)


async def test_a_failed_run_is_shown_at_its_lines_until_it_is_over(editor, tmp_path):
    """Moved with its line, stale when the line is another, gone when it is dismissed or the run succeeds."""
    e = await editor(VSCODE)
    state, work = tmp_path / "state", tmp_path / "work"
    state.mkdir(exist_ok=True)  # the server may have kept something there
    (work / "train.py").write_text(HANG)
    (work / "other.py").write_text("a = 1\nb = 2\n")
    words = HANG.split("\n")[LINE].strip()
    other = Mark(file=str(work / "other.py"), line=2, says="rank 1 waits here", words="b = 2")
    failed = failure(str(work / "train.py"), LINE + 1, words, others=(other,))
    (state / FILE).write_bytes(msgspec.json.encode(Failures(failures=(failed,))))
    uri = e.uri("train.py")

    (shown,) = await e.pushed(uri)
    assert ("D.2.1", t.DiagnosticSeverity.Error, LINE) == (shown.code, shown.severity, shown.range.start.line)
    assert [(e.uri("other.py"), 1, "rank 1 waits here")] == [
        (r.location.uri, r.location.range.start.line, r.message) for r in shown.related_information
    ]

    e.open("train.py", "# one more\n" + HANG)
    await e.until(lambda: [LINE + 1] == [d.range.start.line for d in e.client.diagnostics.get(uri, ())], "moved mark")
    lenses = await e.ask(t.TEXT_DOCUMENT_CODE_LENS, t.CodeLensParams(t.TextDocumentIdentifier(uri)))
    assert ["Explain D.2.1", "Dismiss this failure"] == [x.command.title for x in lenses]

    e.change(uri, 2, ((LINE + 1, 0), (LINE + 1, 40), "    pass"))
    (stale,) = await e.pushed(uri)
    assert t.DiagnosticSeverity.Hint == stale.severity
    assert [t.DiagnosticTag.Unnecessary] == list(stale.tags)
    assert stale.message.startswith("stale:")

    e.client.diagnostics.clear()
    assert await e.command("dtdebug.dismissFailure") is True
    assert [] == list(await e.pushed(uri))
    assert ["1.0"] == json.loads((state / "dismissed.json").read_bytes())

    e.client.diagnostics.clear()
    again = failure(str(work / "train.py"), 1, "import torch.distributed as dist", id="2.0")
    (state / FILE).write_bytes(msgspec.json.encode(Failures(failures=(again,))))
    assert ["D.2.1"] == [d.code for d in await e.pushed(uri)]

    e.client.diagnostics.clear()
    (state / FILE).write_bytes(msgspec.json.encode(Failures()))
    assert [] == list(await e.pushed(uri))


async def test_a_client_that_says_what_it_must_not_is_no_end_of_the_server(editor, tmp_path):
    """Unknown texts, wrong ranges, files that are gone, damaged state, huge texts, bytes that are no message."""
    e = await editor(JUPYTERLAB)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE).write_text("{")
    e.change("file:///nowhere.py", 5, ((0, 0), (1, 0), "x"))
    e.close("file:///nowhere.py")
    identifier = t.VersionedNotebookDocumentIdentifier(1, "file:///no.ipynb")
    e.client.notebook_document_did_change(
        t.DidChangeNotebookDocumentParams(identifier, t.NotebookDocumentChangeEvent())
    )
    assert "" == await e.hover("file:///nowhere.py", 0, 0)
    for uri in ("untitled:Untitled-1", "", "http://[", "file:///a%00b.py", "file:///" + "x" * 5_000 + ".py"):
        e.client.text_document_did_open(t.DidOpenTextDocumentParams(t.TextDocumentItem(uri, "python", 1, HANG)))
        assert ["DT101"] == [d.code for d in await e.pushed(uri)], uri
    huge = e.open("huge.py", "x = 1\n" * 300_000)
    assert [] == list(await e.pushed(huge))
    uri = e.open("train.py", HANG)
    e.change(uri, 2, ((9, 9), (2, 1), "\0\f\u2028😀"), ((4_000_000, 0), (4_000_000, 2**31 - 1), "\r"))
    await e.pushed(uri)
    writer = e.client._server.stdin
    for body in (
        b"{",
        b"[]",
        b'{"jsonrpc": "2.0", "id": 7, "method": 5}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didOpen"}',
    ):
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    assert "Python" in await e.command("dtdebug.printDebugInformation")
    assert [] == e.client.messages, "nothing pops up"


async def test_python_lsp_server_shows_what_the_plugin_sees(editor, tmp_path):
    """Diagnostics, quick fixes, and hovers beside those of other plugins."""
    if not any(e.name == "dtdebug" for e in entry_points(group="pylsp")):
        plugin = tmp_path / "plugin-0.dist-info"
        plugin.mkdir()
        (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 0\n")
        (plugin / "entry_points.txt").write_text("[pylsp]\ndtdebug = dtdebug_lsp.pylsp_plugin\n")
    # jedi reads what other processes write to the user's cache, while they write it
    own = {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    e = await editor(JUPYTERLAB, module="pylsp", environment=own)
    text = GATHER + 'x = "😀"; import os; os.getenv("NCCL_DEBUG")\n'
    uri = e.open("gather.py", text)

    found = {d.code: d for d in await e.pushed(uri)}
    offered = await e.actions(uri, found["DT401"].range)
    where = await e.hover(uri, 6, 35)
    known = await e.hover(uri, 5, 12)

    assert t.Position(4, 12) == found["DT401"].range.start
    assert found["DT401"].data["fix"]["title"] in [a.title for a in offered]
    assert "dtdebug: ignore DT401 on this line" in [a.title for a in offered]
    assert "How much NCCL prints" in where
    assert "all_gather" in known


async def test_what_the_server_imports_is_light(editor):
    """Neither torch nor IPython: an editor starts it for every window."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import sys, dtdebug_lsp.server as s; s.create();"
        "print([m for m in ('torch', 'IPython', 'rich', 'dtdebug') if m in sys.modules])",
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await asyncio.wait_for(process.communicate(), SECONDS)

    assert b"[]" == printed.strip()


async def test_what_is_printed_in_the_server_does_not_reach_the_client(editor, tmp_path):
    noisy = tmp_path / "sitecustomize.py"
    noisy.write_text(
        "import os, sys, threading, time\n"
        "def shout():\n"
        "    while 'dtdebug_lsp.server' not in sys.modules: time.sleep(0.01)\n"
        "    for _ in range(50): print('noise', flush=True); os.write(1, b'noise'); time.sleep(0.02)\n"
        "threading.Thread(target=shout, daemon=True).start()\n"
    )
    e = await editor(JUPYTERLAB, environment={"PYTHONPATH": str(tmp_path)})

    for _ in range(10):
        assert "Python" in await e.command("dtdebug.printDebugInformation")
        await asyncio.sleep(0.05)
    assert e.client.error is None


async def test_a_message_that_is_no_json_is_a_line_in_the_log(tmp_path):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dtdebug_lsp"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"DTDEBUG_STATE": str(tmp_path)},
        start_new_session=True,
    )
    try:
        known = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}'
        sent = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in (b"{bad}", known))
        answer, said = await asyncio.wait_for(process.communicate(sent), SECONDS)

        assert b'"id": 1' in answer, "it goes on"
        assert 1 == len(said.splitlines()), said
        assert b"Expecting property name" in said
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def test_headers_that_nobody_reads_and_a_client_that_does_not_say_who_it_is_are_held(tmp_path):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dtdebug_lsp"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"DTDEBUG_STATE": str(tmp_path)},
        start_new_session=True,
    )
    try:
        early = b'{"jsonrpc": "2.0", "method": "initialized", "params": {}}'
        known = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}'
        headers = b"X: y\r\n" * 5_000 + b"X: " + b"y" * 100_000 + b"\r\n"
        sent = b"".join(b"%sContent-Length: %d\r\n\r\n%s" % (headers, len(body), body) for body in (early, known))
        answer, said = await asyncio.wait_for(process.communicate(sent), SECONDS)

        assert b'"id": 1' in answer
        assert b"Traceback" not in said
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def test_the_server_ends_with_its_client(tmp_path):
    """An editor that crashed says no goodbye: its end of the pipe is closed, that is all."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dtdebug_lsp"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"DTDEBUG_STATE": str(tmp_path)},
        start_new_session=True,
    )
    try:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}).encode()
        process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        assert b"Content-Length" in await asyncio.wait_for(process.stdout.readline(), SECONDS)

        process.stdin.close()

        assert 0 == await asyncio.wait_for(process.wait(), SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

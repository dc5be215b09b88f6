import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import { learn } from "../src/learn";
import { answers, done, folder as newFolder, memory, reset } from "./vscode";

const LABS = [
  { id: "late", title: "Comes second", symptom: "D.1.10", difficulty: "hard" },
  { id: "early", title: "Comes first", symptom: "D.1.9" },
];
const NOTEBOOKS = [{ id: "hang", title: "Nothing happens", summary: "Two ranks wait." }];

/** A program that answers as an interpreter with dtdebug does, and notes how it was called. */
function python(folder: string): string {
  const path = join(folder, "python");
  const script = `#!/bin/sh
echo "$*" >> ${folder}/calls
case "$*" in
  "-c "*) exit 0;;
  "-m dtdebug lab list --format json") echo '${JSON.stringify({ labs: LABS })}';;
  "-m dtdebug learn --format json") echo '${JSON.stringify({ notebooks: NOTEBOOKS })}';;
  "-m dtdebug learn hang "*) touch "$5/03_hang.ipynb";;
  *) exit 2;;
esac
`;
  writeFileSync(path, script);
  chmodSync(path, 0o755);
  return path;
}

describe("learning by breaking", () => {
  let workspace: string;
  beforeEach(() => {
    reset();
    workspace = newFolder();
    answers.folders = [workspace];
    answers.settings = { "dtdebug.interpreter": python(workspace) };
  });

  it("lists notebooks in their order and labs by symptom", async () => {
    await learn(memory());
    const [pick] = done;
    const shown = pick?.slice(1).map((row) => {
      const { label, description, detail } = row as Record<string, string | undefined>;
      return [label, description ?? detail];
    });
    assert.deepEqual(
      [
        ["notebooks", undefined],
        ["Nothing happens", "Two ranks wait."],
        ["labs", undefined],
        ["Comes first", "D.1.9"],
        ["Comes second", "D.1.10, hard"],
      ],
      shown,
    );
    assert.equal(1, done.length, "nothing is begun unless a row is taken");
  });

  it("starts a lab in a terminal in a new folder and opens the script that comes there", async () => {
    const folder = join(workspace, "dtdebug-lab-late-2");
    mkdirSync(join(workspace, "dtdebug-lab-late"));
    answers.picked = "Comes second";
    answers.shell = () => {
      writeFileSync(join(folder, "nccl.h"), "");
      writeFileSync(join(folder, "train.py"), "");
    };
    await learn(memory());
    assert.deepEqual(
      [
        ["ask", folder],
        ["environment", { PATH: `${workspace}:${process.env["PATH"]}` }],
        ["run", `${join(workspace, "python")} -P -m dtdebug lab start late .`],
        ["show", join(folder, "train.py")],
      ],
      done.slice(1),
    );
  });

  it("opens no script that was in the folder before", async () => {
    const folder = join(workspace, "mine");
    mkdirSync(folder);
    writeFileSync(join(folder, "a.py"), "");
    answers.picked = "Comes first";
    answers.typed = ` ${folder} `;
    answers.shell = () => writeFileSync(join(folder, "train.py"), "");
    await learn(memory());
    assert.deepEqual(["show", join(folder, "train.py")], done.at(-1));
  });

  it("copies a notebook and opens it", async () => {
    answers.picked = "Nothing happens";
    await learn(memory());
    const notebook = join(workspace, "dtdebug-notebook-hang", "03_hang.ipynb");
    assert.deepEqual(["command", "vscode.open", notebook], done.at(-1)?.map(fileOf));
  });

  it("runs nothing in a workspace that is not trusted", async () => {
    answers.trusted = false;
    await learn(memory());
    assert.equal("message", done[0]?.[0]);
    assert.match(String(done[0]?.[1]), /do not trust/);
    assert.equal(1, done.length);
    assert.throws(() => readFileSync(join(workspace, "calls")), /ENOENT/);
  });

  it("names the interpreter that has no dtdebug, however often it is asked", async () => {
    const bare = join(workspace, "bare");
    writeFileSync(bare, "#!/bin/sh\nexit 11\n");
    chmodSync(bare, 0o755);
    answers.settings = { "dtdebug.interpreter": bare };
    const kept = memory();
    await learn(kept);
    await learn(kept);
    assert.equal(2, done.length);
    assert.match(String(done[1]?.[1]), new RegExp(`^dtdebug\\[lsp\\] is not installed for ${bare}`));
  });

  it("tells in one line that a folder can't be made", async () => {
    answers.picked = "Nothing happens";
    answers.typed = join(workspace, "python", "below"); // in a file
    await learn(memory());
    assert.equal("error", done.at(-1)?.[0]);
    assert.match(String(done.at(-1)?.[1]), /^ENOTDIR/);
  });

  it("tells in one line why dtdebug does not answer", async () => {
    const complains = `[ "$1" = -c ] || { echo "a warning" >&2; echo "invalid choice: lab" >&2; exit 2; }`;
    writeFileSync(join(workspace, "python"), `#!/bin/sh\n${complains}\n`);
    await learn(memory());
    assert.deepEqual([["error", "invalid choice: lab"]], done);
  });
});

const fileOf = (word: unknown) => (typeof word === "object" ? (word as { fsPath: string }).fsPath : word);

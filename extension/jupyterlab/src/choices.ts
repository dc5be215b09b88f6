/** What can be done about ranks that hang. Nothing of it is done before the user has chosen it. */

import { Dialog, showDialog } from "@jupyterlab/apputils";
import type { Cell } from "@jupyterlab/cells";
import { PathExt } from "@jupyterlab/coreutils";
import { NotebookActions, type NotebookPanel } from "@jupyterlab/notebook";
import type { Contents } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

import { button, make, status } from "../../shared/src/dom.js";
import type { Row } from "../../shared/src/view.js";
import type { Line } from "./ask.js";
import type { Means } from "./means.js";
import { type Look, endRanks } from "./requests.js";
import type { Watch } from "./watch.js";

/** What the choices are about. */
export interface Matter {
  readonly panel: NotebookPanel;
  readonly watch: Watch;
  /** The cell that runs, where this page has sent it. */
  readonly cell: () => Cell | null;
}

/** Buttons that stay while what they are about changes. */
export class Choices {
  readonly node: HTMLElement;

  readonly #wait: HTMLButtonElement;
  readonly #dump: HTMLButtonElement;
  readonly #interrupt: HTMLButtonElement;
  readonly #end: HTMLButtonElement;
  readonly #again: HTMLButtonElement;
  readonly #told = status();
  readonly #why = make("p", "dtd-soft");
  #rerun: Cell | null = null;

  constructor(
    private readonly matter: Matter,
    private readonly means: Means,
    private readonly contents: Contents.IManager,
  ) {
    const { trans } = means;
    this.#wait = button(trans.__("Keep waiting"), () => this.#keepWaiting());
    this.#wait.title = trans.__("Says no more of this for five minutes");
    this.#dump = button(trans.__("Dump all"), () => void this.#save());
    this.#dump.title = trans.__("Saves all that was seen as a file beside the notebook");
    this.#interrupt = button(trans.__("Interrupt …"), () => void this.#stop());
    this.#end = button(trans.__("End the ranks only …"), () => void this.#endRanks());
    this.#end.title = trans.__("The kernel keeps its variables");
    this.#again = button(trans.__("Run the cell again"), () => this.#runAgain());
    const row = make("div", "dtd-feedback", this.#wait, this.#dump, this.#interrupt, this.#end, this.#again, this.#told);
    this.node = make("div", "dtdebug-choices", row, this.#why);
    this.update();
  }

  update(): void {
    const { watch, cell } = this.matter;
    const { stands, runs, seen } = watch;
    const why = seen ? whyNotEnd(seen, this.means.trans) : "";
    this.#wait.hidden = !stands;
    this.#dump.hidden = !seen;
    this.#interrupt.hidden = !runs || !(stands || watch.isPatient);
    this.#end.hidden = this.#interrupt.hidden || why !== "";
    this.#why.textContent = this.#interrupt.hidden ? "" : why;
    this.#why.hidden = this.#why.textContent === "";
    if (this.#rerun && runs && cell() !== this.#rerun) {
      this.#rerun = null;
    }
    this.#again.hidden = !this.#rerun || this.#rerun.isDisposed || runs;
  }

  #keepWaiting(): void {
    const { trans } = this.means;
    this.matter.watch.keepWaiting();
    this.#say(trans.__("dtdebug is quiet for five minutes."));
  }

  /** The contents manager writes as the server does: with the rights that new files of it have. */
  async #save(): Promise<void> {
    const { trans } = this.means;
    const { seen } = this.matter.watch;
    if (!seen) {
      return;
    }
    const name = `dtdebug-report-${stamp(new Date())}.md`;
    const path = PathExt.join(PathExt.dirname(this.contents.localPath(this.matter.panel.context.path)), name);
    try {
      await this.contents.save(path, { type: "file", format: "text", content: seen.report || report(seen, trans) });
      this.#say(trans.__("Saved as %1; read it before you hand it on.", path));
    } catch (error) {
      this.#say(trans.__("%1 could not be saved: %2", path, String(error)));
    }
  }

  async #stop(): Promise<void> {
    const { trans } = this.means;
    const kernel = this.matter.panel.sessionContext.session?.kernel;
    const sure = await confirmed(
      trans.__("Interrupt the kernel?"),
      trans.__(
        "SIGINT goes to the kernel and to the ranks that it has started, as by the stop button. It ends Python code; a collective that waits in C goes on waiting, and so does a rank or a cell that is in one. “End the ranks only” ends those.",
      ),
      trans.__("Interrupt"),
      trans,
    );
    if (!sure || !kernel) {
      return;
    }
    try {
      await kernel.interrupt();
      this.#say(trans.__("SIGINT was sent."));
    } catch (error) {
      this.#say(trans.__("The kernel could not be interrupted: %1", String(error)));
    }
  }

  async #endRanks(): Promise<void> {
    const { trans } = this.means;
    const { panel, watch, cell } = this.matter;
    const rows = endable(watch.seen);
    const sure = await confirmed(
      trans.__("End the ranks only?"),
      trans.__(
        "These processes get SIGTERM, and SIGKILL after three seconds: %1. What they have not saved is lost. The kernel stays and keeps its variables; the cell ends with an error.",
        listed(rows, trans),
      ),
      trans.__("End the ranks"),
      trans,
    );
    if (!sure) {
      return;
    }
    const running = cell();
    this.#say(trans.__("Ending …"));
    const answer = await endRanks(panel.sessionContext.session?.kernel, rows.map(pid), this.means.server, trans);
    if (!("line" in answer)) {
      this.#rerun = running;
    }
    this.#say("line" in answer ? plain(answer) : sentence(answer.text));
    this.update();
  }

  #runAgain(): void {
    const { panel } = this.matter;
    const cell = this.#rerun;
    this.#rerun = null;
    const index = cell ? panel.content.widgets.indexOf(cell) : -1;
    if (index >= 0) {
      panel.content.activeCellIndex = index;
      panel.content.deselectAll();
      this.#say("");
      void NotebookActions.run(panel.content, panel.sessionContext);
    }
    this.update();
  }

  #say(text: string): void {
    this.#told.textContent = text;
  }
}

export async function confirmed(title: string, body: string, accept: string, trans: TranslationBundle): Promise<boolean> {
  const buttons = [Dialog.cancelButton({ label: trans.__("Cancel") }), Dialog.warnButton({ label: accept })];
  return (await showDialog({ title, body, buttons, defaultButton: 0 })).button.accept;
}

/** The kernel or its server ends them, and both know processes of their own machine only. */
function whyNotEnd(seen: Look, trans: TranslationBundle): string {
  return endable(seen).length === 0 && seen.view.rows?.length
    ? trans.__("The ranks alone can't be ended from here: their processes are not known.")
    : "";
}

function endable(seen: Look | null): Row[] {
  return (seen?.view.rows ?? []).filter((row) => typeof row.pid === "number" && row.state !== "gone");
}

function pid(row: Row): number {
  return row.pid ?? 0;
}

function listed(rows: readonly Row[], trans: TranslationBundle): string {
  const most = 16;
  const names = rows.slice(0, most).map((row) => trans.__("rank %1 (pid %2)", row.rank ?? "?", pid(row)));
  return rows.length > most ? `${names.join(", ")}, … (${rows.length})` : names.join(", ");
}

function report(seen: Look, trans: TranslationBundle): string {
  const taken = new Date(1_000 * (seen.view.taken ?? 0)).toISOString();
  const fence = "`".repeat(Math.max(3, ...(seen.text.match(/`+/g) ?? []).map((run) => run.length + 1)));
  return `# dtdebug: ${trans.__("what the ranks did at %1", taken)}\n\n${fence}text\n${seen.text}\n${fence}\n`;
}

/** `20261121-210355`, in local time. */
function stamp(date: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("");
  return `${day}-${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join("")}`;
}

function plain({ line, source }: Line): string {
  return [line, source].filter(Boolean).join(" ");
}

function sentence(text: string): string {
  return text && `${text[0]?.toUpperCase()}${text.slice(1)}.`;
}

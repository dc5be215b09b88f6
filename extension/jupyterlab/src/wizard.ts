/** The wizard beside the notebook: one question after the other, to what fixes it. */

import type { NotebookPanel } from "@jupyterlab/notebook";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";

import type { Actions } from "../../shared/src/actions.js";
import { make } from "../../shared/src/dom.js";
import type { Line } from "./ask.js";
import { Corrupted, type Kept } from "./kept.js";
import type { Ended, Means } from "./means.js";
import { type Place, cellById, failureOf, insertBelow, numberOf, openPlace } from "./place.js";
import { type Answer, type Connection, diagnose } from "./requests.js";
import { type Course, type Step, after, asked, back, begin } from "./steps.js";
import { type Act, type Seen, courseView, startView } from "./wizardview.js";

/** Milliseconds after which a notebook goes without a kernel. */
const FINDS_WITHIN = 5_000;

export class Wizard extends Widget {
  #panel: NotebookPanel | null = null;
  #course: Course | null = null;
  #answer: Answer | null = null;
  #line: Line | null = null;
  #since: Seen["since"] = null;
  /** The course has not been asked about: nobody has looked at it yet. */
  #due = false;
  #latest = 0;
  readonly #inserted = new Set<string>();

  /** `kept` holds the courses by the notebook's path, "" is the one without a notebook. */
  constructor(
    private readonly means: Means,
    private readonly kept: Kept<Course>,
  ) {
    super();
    this.addClass("dtdp-wizard");
    means.ended.connect(this.#ran, this);
  }

  override dispose(): void {
    this.means.ended.disconnect(this.#ran, this);
    super.dispose();
  }

  /** Goes on where this notebook was left. */
  async follow(panel: NotebookPanel | null): Promise<void> {
    const { trans } = this.means;
    const latest = ++this.#latest;
    this.#panel = panel;
    this.#to(null);
    let line = "";
    const course = await this.kept.fetch(this.#path).catch((error: unknown) => {
      line = error instanceof Corrupted ? trans.__("What was kept of the last visit can't be read: the wizard starts anew.") : "";
      return null;
    });
    if (latest === this.#latest && !this.isDisposed) {
      this.#to(course, line);
      await this.#ask();
    }
  }

  /** Begins with a failed cell. */
  async start({ panel, cell }: Place): Promise<void> {
    this.#panel = panel;
    await this.#go(begin({ id: cell.model.id, number: numberOf(cell), ...failureOf(cell.model) }));
  }

  /** Begins anew. */
  async reset(): Promise<void> {
    ++this.#latest;
    this.#to(null);
    await this.kept.remove(this.#path);
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.#draw();
    void this.#ask();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.#draw();
    void this.#ask();
  }

  get #path(): string {
    return this.#panel?.context.path ?? "";
  }

  #to(course: Course | null, line = ""): void {
    this.#course = course;
    this.#answer = null;
    this.#since = null;
    this.#inserted.clear();
    this.#due = course !== null;
    this.#line = line ? { line } : null;
    this.#draw();
  }

  /** Takes a step: keeps it, asks what it changes. */
  async #go(course: Course): Promise<void> {
    if (course.at !== this.#course?.at) {
      this.#to(course);
    }
    this.#course = course;
    this.#due = true;
    ++this.#latest;
    await Promise.all([this.#ask(), this.kept.save(this.#path, course).catch(() => undefined)]);
  }

  async #ask(): Promise<void> {
    const { trans, server } = this.means;
    const course = this.#course;
    if (!this.#due || !course || !this.isVisible) {
      return;
    }
    this.#due = false;
    const latest = ++this.#latest;
    this.#line = { line: trans.__("dtdebug looks at it …") };
    this.#draw();
    for (const old of this.node.querySelectorAll<HTMLElement>(".dtd-question, .dtdp-end")) {
      old.inert = true; // answered, until the next question comes
    }
    const answer = await diagnose(await this.#kernel(), asked(course), server, trans);
    if (latest !== this.#latest || this.isDisposed) {
      return;
    }
    if ("line" in answer) {
      this.#line = answer;
    } else {
      this.#line = answer.note ?? null;
      this.#answer = answer;
      this.#tell(course, answer);
    }
    this.#draw();
    this.#focus();
  }

  /** A page that was just loaded finds its kernel a moment later. */
  async #kernel(): Promise<Connection> {
    const context = this.#panel?.sessionContext;
    if (context && !context.isReady) {
      await Promise.race([context.ready, new Promise((resolve) => setTimeout(resolve, FINDS_WITHIN))]);
    }
    return context?.isDisposed ? null : context?.session?.kernel;
  }

  /** For the history. */
  #tell({ at, subject }: Course, { diagnosis, told }: Answer): void {
    if (told && this.#panel) {
      this.means.diagnosed.emit({ panel: this.#panel, id: at, number: subject?.number ?? "", diagnosis });
    }
  }

  #draw(): void {
    if (this.isDisposed || !this.isVisible) {
      return;
    }
    const isWriting = document.activeElement === this.#act.field;
    const seen: Seen = { panel: this.#panel, course: this.#course, answer: this.#answer, line: this.#line, since: this.#since };
    const view = (this.#course ? courseView : startView)(seen, this.#act, this.means);
    this.node.replaceChildren(...view.filter((each) => each !== null));
    if (isWriting) {
      this.#act.field.focus();
    }
  }

  /** The keyboard goes on where the reader goes on, if it was here. */
  #focus(): void {
    const at = document.activeElement;
    if (at === document.body || (this.node.contains(at) && at !== this.#act.field)) {
      const next = this.node.querySelector<HTMLElement>(".dtd-choices button");
      (next ?? this.node.querySelector<HTMLElement>(".dtd-summary"))?.focus();
    }
  }

  readonly #act: Act = {
    field: make("textarea", "dtdp-field"),
    start: (cell) => void (this.#panel && this.start({ panel: this.#panel, cell })),
    tell: (text) => this.#step({ kind: "told", text }),
    again: () => {
      this.#due = true;
      void this.#ask();
    },
    reset: () => void this.reset().then(() => this.node.querySelector<HTMLElement>("button, textarea")?.focus()),
    back: () => (this.#course?.steps.length ? this.#go(back(this.#course)) : this.reset()),
    reveal: () => void this.#reveal(),
    insert: (source) => this.#insert(source),
    actions: () => this.#actions(),
  };

  async #step(step: Step): Promise<void> {
    await this.#go(after(this.#course ?? begin(null), step));
  }

  /** What the card and the question can do here. */
  #actions(): Actions {
    const question = () => (this.#answer?.diagnosis as { question?: { ask?: unknown; values?: unknown } } | undefined)?.question;
    const ask = () => String(question()?.ask ?? "");
    return {
      answer: async (key, value) => {
        const values = question()?.values;
        const pair: unknown = Array.isArray(values) ? values.find((each: unknown) => Array.isArray(each) && each[0] === value) : null;
        await this.#step({ kind: "answered", key, value, ask: ask(), means: String((Array.isArray(pair) && pair[1]) || value) });
      },
      skip: (key) => this.#step({ kind: "skipped", key, ask: ask() }),
      back: this.#act.back,
      ...this.#places(),
      ...(this.means.keep ? { feedback: this.means.keep } : {}),
    };
  }

  /** Links of the card, where there is a notebook that they lead into. */
  #places(): Actions {
    const panel = this.#panel;
    return panel ? { openPlace: (at) => openPlace(panel, at, { number: null, cell: null }) } : {};
  }

  /** Below the cell that failed; where that is gone, below the one in hand. */
  #insert(source: string): void {
    const panel = this.#panel;
    const cell = panel && ((this.#course?.subject && cellById(panel.content, this.#course.subject.id)) ?? panel.content.activeCell);
    if (!panel || !cell) {
      throw new Error("no cell");
    }
    insertBelow({ panel, cell }, source);
    this.#inserted.add(panel.content.activeCell?.model.id ?? "");
  }

  async #reveal(): Promise<void> {
    const notebook = this.#panel?.content;
    const cell = notebook && this.#course?.subject && cellById(notebook, this.#course.subject.id);
    if (cell) {
      notebook.activeCellIndex = notebook.widgets.indexOf(cell);
      await notebook.scrollToCell(cell);
    }
  }

  /** What has run since tells whether it is fixed, and what may be asked about next. */
  #ran(_: unknown, { notebook, cell, success }: Ended): void {
    if (notebook !== this.#panel?.content) {
      return;
    }
    const { id } = cell.model;
    if (!success) {
      this.#since = { cell, ran: false };
    } else if (id === this.#course?.subject?.id || this.#inserted.has(id)) {
      this.#since = { cell, ran: true };
    } else if (this.#course) {
      return;
    }
    this.#draw();
    this.node.querySelector(".dtdp-since")?.scrollIntoView({ block: "nearest" });
  }
}

/** The lessons and labs that come with dtdebug, to open from here. */

import type { JupyterFrontEnd } from "@jupyterlab/application";
import { MainAreaWidget } from "@jupyterlab/apputils";
import type { Contents } from "@jupyterlab/services";
import { Panel, Widget } from "@lumino/widgets";

import { button, make, status } from "../../shared/src/dom.js";
import { STYLE } from "../../shared/src/style.js";
import { icon } from "./icon.js";
import type { Means } from "./means.js";
import { type Json, get, isRefusal } from "./server.js";
import { SHEET } from "./sheet.js";

const FOLDER = "dtdebug-learn";

interface Row {
  readonly id: string;
  readonly title: string;
  readonly summary: string;
}

export function lessonsWidget(app: JupyterFrontEnd, { trans, server }: Means): MainAreaWidget<Panel> {
  const content = new Panel();
  content.addClass("dtd");
  content.addClass("dtdp");
  const page = make("div", "dtdp-why");
  const title = make("h1", "");
  icon.element({ container: title });
  title.append(trans.__("Learn to debug distributed training"));
  const told = status();
  const say = (text: string) => (told.textContent = text);
  page.append(title, told);
  content.node.prepend(make("style", "", STYLE, SHEET));
  content.addWidget(new Widget({ node: page }));

  const open = async (id: string) => {
    const lesson = await get(server, `lessons/${encodeURIComponent(id)}`);
    if (isRefusal(lesson)) {
      say(trans.__("The lesson could not be loaded: %1", lesson.why));
      return;
    }
    try {
      const path = await save(app.serviceManager.contents, lesson);
      await app.commands.execute("docmanager:open", { path });
    } catch (error) {
      say(trans.__("The lesson could not be saved: %1", String(error)));
    }
  };
  const start = async (id: string) => {
    try {
      const terminal = (await app.commands.execute("terminal:create-new")) as {
        content: { session: { send(message: { type: string; content: string[] }): void } };
      };
      terminal.content.session.send({ type: "stdin", content: [`dtdebug lab start ${id}\n`] });
    } catch {
      say(trans.__("No terminal could be opened here; run this in one: dtdebug lab start %1", id));
    }
  };
  void get(server, "lessons").then((answer) => {
    if (isRefusal(answer)) {
      say(trans.__("The Jupyter server has no lessons: install dtdebug where it runs, and start it again."));
      return;
    }
    page.append(
      list(trans.__("Lessons"), rows(answer["lessons"]), trans.__("Open"), open),
      make("p", "dtd-soft", trans.__("A lesson is a notebook; it is copied into the folder %1.", FOLDER)),
      list(trans.__("Labs: small trainings with one fault each"), rows(answer["labs"]), trans.__("Start"), start),
      make("p", "dtd-soft", trans.__("A lab runs in a terminal: it fails, you fix the file, and “dtdebug lab check” runs it.")),
    );
  });

  const widget = new MainAreaWidget({ content });
  widget.toolbar.hide();
  widget.id = "dtdebug-lessons";
  widget.title.label = trans.__("Lessons");
  widget.title.icon = icon;
  widget.title.closable = true;
  return widget;
}

function list(label: string, rows: readonly Row[], verb: string, act: (id: string) => Promise<void>): HTMLElement {
  const items = rows.map(({ id, title, summary }) =>
    make(
      "li",
      "dtdp-row",
      button(verb, () => void act(id), `${verb}: ${title}`),
      make("span", "", make("b", "", title), summary ? ` ${summary}` : ""),
    ),
  );
  return make("section", "", make("h2", "", label), make("ul", "dtdp-lessons", ...items));
}

/** Through the contents manager, which knows what may be written; what is there already is opened as it is. */
async function save(contents: Contents.IManager, lesson: Json): Promise<string> {
  const path = `${FOLDER}/${String(lesson["file"])}`;
  try {
    await contents.get(path, { content: false });
    return path;
  } catch {
    await contents.save(FOLDER, { type: "directory" });
    await contents.save(path, { type: "notebook", format: "json", content: lesson["content"] });
    return path;
  }
}

function rows(data: unknown): readonly Row[] {
  return (Array.isArray(data) ? data : []).map((each: unknown) => {
    const { id, title, summary } = Object(each) as Partial<Record<keyof Row, unknown>>;
    return { id: String(id ?? ""), title: String(title ?? ""), summary: String(summary ?? "") };
  });
}

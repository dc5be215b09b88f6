/** The entry of a VS Code notebook renderer: output items in, cards out, buttons to the extension as messages. */

import type { Actions, Feedback, Fit } from "./actions.js";
import { render } from "./card.js";
import { trans } from "./trans.js";

/**
 * What a card posts to the extension; only a renderer with `requiresMessaging` can. To `answer` the
 * extension puts a cell below that it does not run: `%dtdebug answer KEY VALUE`. To `apply` it changes the code that the
 * diff fits, and replies with `Applied`.
 */
export type Message =
  | { readonly type: "answer"; readonly key: string; readonly value: string }
  | { readonly type: "apply"; readonly diff: string; readonly id: string }
  | ({ readonly type: "feedback" } & Feedback);

/** What the extension replies to `apply`: whether the diff fitted anything. */
export interface Applied {
  readonly type: "applied";
  readonly id: string;
  readonly done: boolean;
}

/** The part of VS Code's renderer API that is used. */
interface Context {
  postMessage?(message: unknown): void;
  onDidReceiveMessage?(listener: (message: unknown) => void): { dispose(): void };
}

interface OutputItem {
  json(): unknown;
}

export interface Renderer {
  renderOutputItem(item: OutputItem, element: HTMLElement): void;
}

const ALL = ["answer", "apply", "feedback"] as const;

/** `handled` are the messages that the extension acts upon: only for these are there buttons. */
export function activate(context: Context, handled: readonly Message["type"][] = ALL): Renderer {
  const host = actions(context, handled);
  return {
    renderOutputItem(item, element) {
      let data: unknown = null;
      try {
        data = item.json();
      } catch {
        // no JSON at all: the card says that nothing can be shown
      }
      element.replaceChildren(render(data, host));
    },
  };
}

/** Without a way to the extension there are no buttons that need one. */
function actions(context: Context, handled: readonly Message["type"][]): Actions {
  const post = context.postMessage?.bind(context) as ((message: Message) => void) | undefined;
  if (!post) {
    return {};
  }
  const all: Record<Message["type"], Actions> = {
    answer: {
      answer: (key, value) => {
        post({ type: "answer", key, value });
        return trans.__("Run the new cell below to answer.");
      },
    },
    // The card is apart from the notebook's cells: what the diff fits is known when it is asked for.
    apply: context.onDidReceiveMessage ? { fits: (diff) => fitOf(diff, context, post) } : {},
    feedback: { feedback: (about) => post({ type: "feedback", ...about }) },
  };
  return Object.assign({}, ...handled.map((type) => all[type])) as Actions;
}

function fitOf(diff: string, context: Context, post: (message: Message) => void): Fit {
  const apply = () =>
    new Promise<void>((resolve, reject) => {
      const id = crypto.randomUUID();
      const listening = context.onDidReceiveMessage?.((message) => {
        const reply = message as Partial<Applied>;
        if (reply.type === "applied" && reply.id === id) {
          listening?.dispose();
          reply.done ? resolve() : reject(new Error("it fits nowhere any more"));
        }
      });
      post({ type: "apply", diff, id });
    });
  return { where: trans.__("your code"), apply };
}

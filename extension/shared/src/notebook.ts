/** The entry of a VS Code notebook renderer: output items in, cards out, buttons to the extension as messages. */

import type { Actions, Feedback } from "./actions.js";
import { render } from "./card.js";
import { trans } from "./trans.js";

/**
 * What a card posts to the extension; only a renderer with `requiresMessaging` can. To `answer` and to `insertCell` the
 * extension puts a cell below that it does not run: `%dtdebug answer KEY VALUE` or the source.
 */
export type Message =
  | { readonly type: "answer"; readonly key: string; readonly value: string }
  | { readonly type: "insertCell"; readonly source: string }
  | ({ readonly type: "feedback" } & Feedback);

/** The part of VS Code's renderer API that is used. */
interface Context {
  postMessage?(message: unknown): void;
}

interface OutputItem {
  json(): unknown;
}

export interface Renderer {
  renderOutputItem(item: OutputItem, element: HTMLElement): void;
}

const ALL = ["answer", "insertCell", "feedback"] as const;

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
  const all: Required<Pick<Actions, Message["type"]>> = {
    answer: (key, value) => {
      post({ type: "answer", key, value });
      return trans.__("Run the new cell below to answer.");
    },
    insertCell: (source) => post({ type: "insertCell", source }),
    feedback: (about) => post({ type: "feedback", ...about }),
  };
  return Object.fromEntries(handled.map((type) => [type, all[type]]));
}

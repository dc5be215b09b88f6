/** Colours for a canvas, which knows no CSS variables: read once, and again when theme, contrast or zoom change. */

import type { State } from "./read.js";

export interface Theme {
  readonly states: Record<State, string>;
  readonly text: string;
  readonly soft: string;
  readonly ground: string;
  readonly font: string;
  readonly ratio: number;
}

/** Reads what the variables of `style.ts` mean at this element, which must be in the document. */
export function theme(at: HTMLElement): Theme {
  const probe = document.createElement("span");
  probe.hidden = true;
  at.append(probe);
  const style = getComputedStyle(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--dtd-${name})`;
    return style.color;
  };
  const read: Theme = {
    states: {
      culprit: colour("culprit"),
      waits: colour("waits"),
      runs: colour("runs"),
      silent: colour("silent"),
      gone: colour("gone"),
      "": colour("soft"),
    },
    text: colour("text"),
    soft: colour("soft"),
    ground: ground(probe),
    font: style.fontFamily || "sans-serif",
    ratio: Math.max(1, devicePixelRatio),
  };
  probe.remove();
  return read;
}

/** As a background: where the system forces colours, it forces others there. */
function ground(probe: HTMLElement): string {
  probe.style.backgroundColor = "var(--dtd-ground)";
  return getComputedStyle(probe).backgroundColor;
}

const PREFERENCES = "(prefers-color-scheme: dark), (prefers-contrast: more), (forced-colors: active)";

/** Calls after each change of theme, contrast, zoom or screen; what it returns ends that. */
export function watchTheme(changed: () => void): () => void {
  // JupyterLab and VS Code name the theme on the body; VS Code writes its colours to the style of the root.
  const observer = new MutationObserver(changed);
  for (const each of [document.documentElement, document.body]) {
    observer.observe(each, { attributeFilter: ["class", "style", "data-jp-theme-name", "data-vscode-theme-id"] });
  }
  const ended = new AbortController();
  for (const query of PREFERENCES.split(", ")) {
    matchMedia(query).addEventListener("change", changed, { signal: ended.signal });
  }
  watchRatio(changed, ended.signal);
  return () => {
    observer.disconnect();
    ended.abort();
  };
}

/** A query holds for one ratio only, so each change asks anew. */
function watchRatio(changed: () => void, signal: AbortSignal): void {
  const again = (): void => {
    changed();
    watchRatio(changed, signal);
  };
  matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", again, { signal, once: true });
}

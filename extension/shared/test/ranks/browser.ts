/** What linkedom's document has not of a browser: nothing has a size, no theme changes, no canvas draws. */

import "../dom.js";

/** Observers and listeners that are still at work. */
export const alive = new Set<object>();

class Observer {
  observe(): void {
    alive.add(this);
  }

  disconnect(): void {
    alive.delete(this);
  }
}

function matchMedia(): object {
  return {
    addEventListener(_: string, act: object, { signal }: { signal: AbortSignal }) {
      const heard = { act };
      alive.add(heard);
      signal.addEventListener("abort", () => alive.delete(heard));
    },
  };
}

Object.assign(globalThis, { MutationObserver: Observer, ResizeObserver: Observer, matchMedia, devicePixelRatio: 1 });

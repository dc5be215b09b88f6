/** Keeps what readers say of diagnoses in JupyterLab's own state; it is sent nowhere. */

import type { IStateDB } from "@jupyterlab/statedb";

import type { Feedback } from "../../shared/src/actions.js";

export const KEY = "dtdebug:feedback";
const MOST = 200;

export type Keep = (about: Feedback) => Promise<void>;

/** The latest come last; the oldest are dropped. */
export function keeper(state: IStateDB, now: () => Date = () => new Date()): Keep {
  return async (about) => {
    const kept = await state.fetch(KEY);
    const all = Array.isArray(kept) ? kept : [];
    await state.save(KEY, [...all, { ...about, at: now().toISOString() }].slice(-MOST));
  };
}

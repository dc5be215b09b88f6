/** All ways by which the kernel and the server are asked. Nothing rejects: what goes wrong is a line that says what to do. */

import type { Kernel, ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";

import type { View } from "../../shared/src/view.js";
import { type Card, type Line, LOAD, type Question, UPDATE, ask, unfit } from "./ask.js";
import { type Reply, type Silence, request } from "./control.js";
import { type Json, type Refusal, isRefusal, post } from "./server.js";

/** What a diagnosis goes by: `dtdebug.notebook.front_end_api.Asked`. */
export interface Asked extends Question {
  /** The user's words. */
  readonly situation: string;
  /** Questions that were put aside. */
  readonly unknown: readonly string[];
}

export interface Answer extends Card {
  /** Why the kernel itself did not answer, and what helps: this is from the text alone, by the server. */
  readonly note?: Line;
}

/** What was seen of the kernel and its ranks. */
export interface Look {
  readonly view: View;
  /** As the terminal shows it. */
  readonly text: string;
  /** Markdown to hand on; empty where the kernel itself has answered. */
  readonly report: string;
  /** Why the kernel itself did not answer, and what helps. */
  readonly note?: Line;
}

/** The ranks that were ended. */
export interface Ended {
  readonly ended: readonly number[];
  readonly text: string;
}

export type Connection = Kernel.IKernelConnection | null | undefined;

/** Milliseconds; seconds where they are sent. */
const LIMIT = { kernel: 6_500, diagnose: 8_000, end: 10_000, glance: 5_000, server: 15_000 };
const SECONDS = { kernel: 3, server: 5 };

/** The server looks at what costs the kernel nothing; null where the server has no part of ours. */
export async function glance(
  kernel: string,
  server: ServerConnection.ISettings,
  trans: TranslationBundle,
): Promise<Look | Line | null> {
  const answer = await outside(kernel, "glance", server, LIMIT.glance);
  return isRefusal(answer) ? (answer.refused === "off" ? null : { line: why(answer, trans) }) : seen(answer, trans);
}

/** Looks at all ranks: by the kernel's control channel, unless it has not loaded dtdebug, else from outside by the server. */
export async function look(
  kernel: Connection,
  kind: "state" | "hang",
  server: ServerConnection.ISettings,
  trans: TranslationBundle,
  isForeign = false,
): Promise<Look | Line> {
  if (!kernel || kernel.isDisposed) {
    return { line: unfit(kernel, trans) };
  }
  const reply = isForeign ? "unloaded" : await request(kernel, { kind, timeout: SECONDS.kernel }, LIMIT.kernel);
  const found = typeof reply === "string" ? silence(reply, trans) : seen(reply, trans);
  if ("view" in found) {
    return found;
  }
  const answer = await outside(kernel.id, kind, server, LIMIT.server);
  const other = isRefusal(answer) ? null : seen(answer, trans);
  return other && "view" in other ? { ...other, note: found } : { ...found, line: both(found, answer, trans) };
}

/**
 * The kernel's control channel where the extension is loaded (also while a cell runs), else the server, else `ask`.
 * Without a kernel (null) only the server.
 */
export async function diagnose(
  kernel: Connection,
  asked: Asked,
  server: ServerConnection.ISettings,
  trans: TranslationBundle,
): Promise<Answer | Line> {
  const reply = kernel ? await request(kernel, { kind: "diagnose", asked }, LIMIT.diagnose) : "gone";
  const found = typeof reply === "string" ? silence(reply, trans) : card(reply, trans);
  if ("diagnosis" in found) {
    return found;
  }
  const answer = await post(server, "diagnosis", asked, LIMIT.server);
  const other = isRefusal(answer) ? null : card(answer, trans);
  if (other && "diagnosis" in other) {
    return kernel ? { ...other, note: found } : other;
  }
  return reply === "unloaded" && kernel?.status === "idle" ? ask(kernel, asked, trans) : found;
}

/** Ends these ranks and nothing else; the kernel keeps its variables. The server does it where the kernel does not answer. */
export async function endRanks(
  kernel: Connection,
  pids: readonly number[],
  server: ServerConnection.ISettings,
  trans: TranslationBundle,
): Promise<Ended | Line> {
  if (!kernel || kernel.isDisposed) {
    return { line: unfit(kernel, trans) };
  }
  const reply = await request(kernel, { kind: "end_ranks", pids }, LIMIT.end);
  if (typeof reply === "string") {
    const answer = await endOutside(kernel.id, pids, server, trans);
    return "line" in answer ? silence(reply, trans) : answer;
  }
  return reply["status"] === "ok" && Array.isArray(reply["ended"]) ? ended(reply) : failure(reply, trans);
}

/** The same by the server, which knows the ranks of a kernel also after its restart, or its end (null). */
export async function endOutside(
  kernel: string | null,
  pids: readonly number[],
  server: ServerConnection.ISettings,
  trans: TranslationBundle,
): Promise<Ended | Line> {
  const path = kernel === null ? "abandoned" : `kernels/${encodeURIComponent(kernel)}/end`;
  const answer = await post(server, path, { pids }, LIMIT.end);
  return isRefusal(answer) ? { line: why(answer, trans) } : ended(answer);
}

/** Ranks of one earlier cell that still run. */
export interface Left {
  readonly line: string;
  readonly pids: readonly number[];
}

/** Those of a kernel, or of kernels that have ended (null); none where the server can't tell. */
export async function leftBehind(kernel: string | null, server: ServerConnection.ISettings): Promise<readonly Left[]> {
  const path = kernel === null ? "abandoned" : `kernels/${encodeURIComponent(kernel)}/left`;
  const answer = await post(server, path, {}, LIMIT.glance);
  const left = isRefusal(answer) ? null : answer["left"];
  return (Array.isArray(left) ? left : []).map((each: unknown) => {
    const { line, pids } = Object(each) as { line?: unknown; pids?: unknown };
    return { line: text(line), pids: numbers(pids) };
  });
}

function ended(reply: Reply): Ended {
  return { ended: numbers(reply["ended"]), text: text(reply["text"]) };
}

function numbers(data: unknown): number[] {
  return (Array.isArray(data) ? data : []).filter((each) => typeof each === "number");
}

function outside(
  kernel: string,
  kind: "glance" | "state" | "hang",
  server: ServerConnection.ISettings,
  limit: number,
): Promise<Json | Refusal> {
  return post(server, `kernels/${encodeURIComponent(kernel)}/look`, { kind, timeout: SECONDS.server }, limit);
}

/** A look in a reply; the drawing of it takes any data, here it is only told from none. */
function seen(reply: Reply, trans: TranslationBundle): Look | Line {
  const view = reply["view"];
  if (view && typeof view === "object" && !Array.isArray(view)) {
    return { view, text: text(reply["text"]), report: text(reply["report"]) };
  }
  return reply["status"] === "error" ? failure(reply, trans) : old(trans);
}

function card(reply: Reply, trans: TranslationBundle): Card | Line {
  const { diagnosis, loaded, told } = reply;
  return diagnosis && typeof diagnosis === "object"
    ? { diagnosis, loaded: loaded === true, told: told === true }
    : failure(reply, trans);
}

/** An older dtdebug does not know what is asked and says which kinds it knows. */
function failure(reply: Reply, trans: TranslationBundle): Line {
  const [ename, evalue] = [text(reply["ename"]), text(reply["evalue"])];
  if (evalue.startsWith("kind is one of") || reply["status"] === "ok") {
    return old(trans);
  }
  return { line: trans.__("dtdebug could not look at this: %1", [ename, evalue].filter(Boolean).join(": ")) };
}

function old(trans: TranslationBundle): Line {
  return { line: trans.__("The kernel's dtdebug is too old; upgrade it with this line, then restart the kernel:"), source: UPDATE };
}

/** Why the kernel said nothing. */
function silence(silence: Silence, trans: TranslationBundle): Line {
  switch (silence) {
    case "gone":
      return { line: trans.__("The kernel has ended: start it in the menu Kernel.") };
    case "unloaded":
      return { line: trans.__("The kernel has not loaded dtdebug; run this line before the cell that you want to watch:"), source: LOAD };
    case "silent":
      return { line: trans.__("The kernel does not answer: a call in its cell is holding the GIL.") };
    case "late":
      return { line: trans.__("The kernel took too long to answer: try again.") };
  }
}

/** Neither has answered: the kernel's reason, and what would help from outside. */
function both(kernel: Line, refusal: Json | Refusal, trans: TranslationBundle): string {
  if (!isRefusal(refusal) || kernel.source) {
    return kernel.line;
  }
  return `${kernel.line} ${why(refusal, trans)}`;
}

function why(refusal: Refusal, trans: TranslationBundle): string {
  switch (refusal.refused) {
    case "off":
      return trans.__(
        'dtdebug is not in this Jupyter server, which could look from outside: install "dtdebug[lab]" where it runs, and start it again.',
      );
    case "lost":
      return trans.__("The Jupyter server did not answer in time.");
    case "told":
      return trans.__("The Jupyter server could not look: %1", refusal.why);
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

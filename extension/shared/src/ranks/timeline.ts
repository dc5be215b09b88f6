/**
 * The latest collectives: a lane for ranks that called the same, a column for each sequence number. A table, for it is
 * small, can be read out and scrolls by itself.
 */

import { make } from "../dom.js";
import { trans } from "../trans.js";
import { type Column, columns, type Mark, markAt } from "./columns.js";
import { type Piece, setText } from "./keyed.js";
import { mark } from "./marks.js";
import type { ShownCall, ShownLane, ShownTimeline } from "./read.js";
import { elapsed, placeName, stateWord } from "./words.js";

export interface Recorded {
  readonly timeline: ShownTimeline;
  readonly taken: number;
}

export class TimelineTable implements Piece<Recorded> {
  readonly node: HTMLElement;
  readonly #said = make("caption", "dtd-soft");
  readonly #head = make("thead", "");
  readonly #body = make("tbody", "");
  readonly #legend = make("p", "dtd-legend dtd-soft");
  #shown = "";

  constructor() {
    const scroll = make("div", "dtd-scroll", make("table", "dtd-lanes", this.#said, this.#head, this.#body));
    scroll.tabIndex = 0; // so that the keyboard can scroll it
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", trans.__("Time line of collectives"));
    this.node = make("div", "", scroll, this.#legend);
  }

  /** Built anew only for another record: nothing in it folds or has focus, and the scroll is outside. */
  update({ timeline, taken }: Recorded): void {
    const next = JSON.stringify(timeline);
    if (next === this.#shown) {
      return;
    }
    this.#shown = next;
    const shown = columns(timeline);
    setText(
      this.#said,
      timeline.parted === null
        ? trans.__("Group %1: all agree.", timeline.group)
        : trans.__("Group %1: the ranks diverge at #%2.", timeline.group, timeline.parted),
    );
    const first = make("th", "", trans.__("ranks"));
    first.setAttribute("scope", "col");
    this.#head.replaceChildren(make("tr", "", first, ...shown.map((each) => this.#header(each, timeline.parted))));
    this.#body.replaceChildren(
      ...timeline.lanes.map((lane) =>
        make("tr", "", this.#name(lane), ...shown.map((each) => this.#cell(each, lane, timeline.parted, taken))),
      ),
    );
    this.#legend.replaceChildren(...this.#explained(timeline, shown));
  }

  #header(column: Column, parted: number | null): HTMLElement {
    const text = column.kind === "skip" ? `+${column.count}` : `#${column.seq}`;
    const cell = make("th", `dtd-is-${column.kind}`, make("span", "", text));
    cell.setAttribute("scope", "col");
    cell.title =
      column.kind === "skip"
        ? trans._n("%1 alike from #%2 on", "%1 alike from #%2 on", column.count, column.seq)
        : `#${column.seq} ${column.op}`;
    cell.classList.toggle("dtd-parted", column.seq === parted);
    return cell;
  }

  #name(lane: ShownLane): HTMLElement {
    const count = lane.count > 3 ? ` (${lane.count})` : "";
    const cell = make("th", lane.culprit ? "dtd-is-culprit" : "", lane.culprit ? mark("culprit") : null);
    cell.append(lane.ranks + count, lane.culprit ? hidden(stateWord("culprit")) : "");
    cell.setAttribute("scope", "row");
    return cell;
  }

  #cell(column: Column, lane: ShownLane, parted: number | null, taken: number): HTMLElement {
    const cell = make("td", `dtd-is-${column.kind}`);
    cell.classList.toggle("dtd-parted", column.seq === parted);
    if (column.kind === "skip") {
      cell.append("⋯", hidden(trans._n("%1 alike", "%1 alike", column.count)));
      return cell;
    }
    const kind = markAt(lane.calls, column.seq);
    const call = lane.calls.find((each) => each.seq === column.seq);
    const sign = make("span", `dtd-call dtd-call-${kind}`);
    sign.setAttribute("aria-hidden", "true");
    if (column.kind === "alike") {
      cell.append(sign, hidden(call?.op ?? this.#word(kind)));
    } else {
      cell.append(sign, make("span", "dtd-op", call?.op || this.#word(kind)), ...this.#more(call, kind, taken));
    }
    cell.title = call ? [call.op, this.#word(kind), placeName(call.at)].filter(Boolean).join(" · ") : this.#word(kind);
    return cell;
  }

  /** Why this call is marked, and from where it was made. */
  #more(call: ShownCall | undefined, kind: Mark, taken: number): HTMLElement[] {
    if (!call || kind === "done") {
      return [];
    }
    const since = call.open ? elapsed(call.begun, taken) : "";
    const open = since ? trans.__("open for %1", since) : trans.__("open");
    const words = [kind === "odd" ? this.#word(kind) : "", call.open ? open : ""].filter(Boolean).join(", ");
    return [make("span", "dtd-why", words), ...(call.at ? [make("span", "dtd-why", placeName(call.at))] : [])];
  }

  #word(kind: Mark): string {
    switch (kind) {
      case "done":
        return trans.__("done");
      case "open":
        return trans.__("open");
      case "odd":
        return trans.__("differs");
      case "missing":
        return trans.__("not called");
      case "later":
        return trans.__("not yet");
      case "dropped":
        return trans.__("not in the record");
    }
  }

  /** What each mark means, of those that are there. */
  #explained(timeline: ShownTimeline, shown: readonly Column[]): HTMLElement[] {
    const seen = new Set(timeline.lanes.flatMap((lane) => shown.map((each) => markAt(lane.calls, each.seq))));
    return (["done", "open", "odd", "missing", "later", "dropped"] as const)
      .filter((kind) => seen.has(kind))
      .map((kind) => make("span", "", make("span", `dtd-call dtd-call-${kind}`), this.#word(kind)));
  }
}

function hidden(text: string): HTMLElement {
  return make("span", "dtd-hidden", text);
}

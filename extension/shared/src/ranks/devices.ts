/** GPU memory: how much is taken, and by whom. */

import { make } from "../dom.js";
import { trans } from "../trans.js";
import { Keyed, type Piece, setAttribute, setText } from "./keyed.js";
import type { ShownDevice } from "./read.js";
import { bytes } from "./words.js";

type User = readonly [string, number];

export function deviceList(): Keyed<ShownDevice> {
  return new Keyed(
    make("ul", "dtd-devices"),
    (each) => String(each.index),
    () => devicePiece(),
  );
}

function devicePiece(): Piece<ShownDevice> {
  const name = make("strong", "");
  const model = make("span", "dtd-soft");
  const figures = make("span", "dtd-figures");
  const bar = make("div", "dtd-bar");
  bar.setAttribute("role", "img");
  const users = make("p", "dtd-users dtd-soft");
  let total = 0;
  const parts = new Keyed<User>(
    bar,
    ([user]) => user,
    () => {
      const node = make("span", "");
      return {
        node,
        update([user, used]) {
          node.style.width = total > 0 ? `${Math.min(100, (100 * used) / total).toFixed(2)}%` : "0";
          setAttribute(node, "title", `${user} ${bytes(used)}`);
          node.classList.toggle("dtd-unnamed", user === "");
        },
      };
    },
  );
  return {
    node: make("li", "", make("div", "dtd-device", name, model, figures), bar, users),
    update(device) {
      total = Math.max(device.total, device.used);
      const named = device.users.reduce((sum, [, used]) => sum + used, 0);
      const load = device.utilization === null ? "" : trans.__("%1 % busy", device.utilization);
      const memory = trans.__("%1 of %2", bytes(device.used), bytes(device.total));
      setText(name, trans.__("GPU %1", device.index));
      setText(model, device.name);
      setText(figures, [memory, load].filter(Boolean).join(" · "));
      parts.update([...device.users, ["", Math.max(0, device.used - named)]]);
      setText(users, device.users.map(([user, used]) => `${user} ${bytes(used)}`).join(" · "));
      setAttribute(bar, "aria-label", trans.__("GPU %1 memory: %2", device.index, memory));
    },
  };
}

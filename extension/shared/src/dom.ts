/** Makes elements. Text goes in as text nodes only, so no data can become markup. */

export type Child = Node | string | null;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  name: string,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (name) {
    element.className = name;
  }
  element.append(...children.filter((each): each is Node | string => each !== null && each !== ""));
  return element;
}

/** A part of the card that screen readers can jump to; null if nothing is in it. */
export function part(name: string, label: string, ...children: Child[]): HTMLElement | null {
  if (children.every((each) => each === null || each === "")) {
    return null;
  }
  const section = make("section", name, make("div", "dtd-label", label), ...children);
  section.setAttribute("aria-label", label);
  return section;
}

export function button(label: string, act: () => void, description = ""): HTMLButtonElement {
  const element = make("button", "dtd-button", label);
  element.type = "button";
  if (description) {
    element.setAttribute("aria-label", description);
  }
  element.addEventListener("click", act);
  return element;
}

/** A line that tells what a button did, read out by screen readers. */
export function status(): HTMLElement {
  const element = make("span", "dtd-status");
  element.setAttribute("role", "status");
  return element;
}

/** Does it and says so, in the host's words if it has some; a failure of the host is one line too. */
export async function attempt(
  doing: () => void | string | Promise<void | string>,
  told: HTMLElement,
  done: string,
  failed: string,
): Promise<boolean> {
  try {
    told.textContent = (await doing()) || done;
    return true;
  } catch {
    told.textContent = failed;
    return false;
  }
}

/** What is kept of each notebook from one visit to the next, in JupyterLab's own state: it is sent nowhere. */

import { type IStateDB, StateDB } from "@jupyterlab/statedb";

/** Of so many notebooks; those that were not touched for the longest time are forgotten. */
const MOST_NOTEBOOKS = 20;

/** What was kept can't be read. */
export class Corrupted extends Error {}

/** One kind of thing by the notebook's path. */
export class Kept<T> {
  readonly #prefix: string;
  /** One change after the other, so that none is lost. */
  #last: Promise<unknown> = Promise.resolve();

  /** `read` throws on what it can't read. */
  constructor(
    private readonly state: IStateDB,
    private readonly namespace: string,
    private readonly read: (data: unknown) => T,
  ) {
    this.#prefix = `${namespace}:`;
  }

  /** @throws Corrupted */
  async fetch(path: string): Promise<T | null> {
    await this.#last;
    return this.#fetch(path);
  }

  async #fetch(path: string): Promise<T | null> {
    try {
      const found = (await this.state.fetch(this.#prefix + path)) as { kept?: unknown } | undefined;
      return found === undefined ? null : this.read(found.kept);
    } catch {
      throw new Corrupted(this.#prefix + path);
    }
  }

  async save(path: string, value: T): Promise<void> {
    await this.change(path, () => value);
  }

  /** Makes the new value of the old one; what can't be read is none. */
  async change(path: string, make: (before: T | null) => T): Promise<void> {
    await this.#queue(async () => {
      const kept = make(await this.#fetch(path).catch(() => null));
      const entry = { at: new Date().toISOString(), kept };
      await this.state.save(this.#prefix + path, entry as unknown as Parameters<IStateDB["save"]>[1]);
      await this.#forget();
    });
  }

  async remove(path: string): Promise<void> {
    await this.#queue(() => this.state.remove(this.#prefix + path));
  }

  /** The notebook has another name. */
  async move(from: string, to: string): Promise<void> {
    await this.#queue(async () => {
      const found = await this.state.fetch(this.#prefix + from);
      if (found !== undefined) {
        await this.state.save(this.#prefix + to, found);
        await this.state.remove(this.#prefix + from);
      }
    });
  }

  async #forget(): Promise<void> {
    const { ids, values } = await this.state.list(this.namespace);
    const byAge = ids
      .map((id, i) => ({ id, at: String((values[i] as { at?: unknown } | undefined)?.at ?? "") }))
      .sort((a, b) => b.at.localeCompare(a.at));
    await Promise.all(byAge.slice(MOST_NOTEBOOKS).map(({ id }) => this.state.remove(id)));
  }

  async #queue(doing: () => Promise<void>): Promise<void> {
    const done = this.#last.then(doing);
    this.#last = done.catch(() => undefined);
    await done;
  }
}

/** For front ends whose state ends with the page, such as Notebook 7: the browser's own store. */
export function browserState(storage: Storage, base: string): IStateDB {
  const prefix = `dtdebug@${base}:`;
  const all = () => Object.keys(storage).filter((key) => key.startsWith(prefix));
  return new StateDB({
    connector: {
      fetch: async (id: string) => storage.getItem(prefix + id) ?? undefined,
      list: async (namespace = "") => {
        const ids = all()
          .map((key) => key.slice(prefix.length))
          .filter((id) => namespace === "" || id.startsWith(`${namespace}:`));
        return { ids, values: ids.map((id) => storage.getItem(prefix + id) ?? "") };
      },
      remove: async (id: string) => storage.removeItem(prefix + id),
      save: async (id: string, value: string) => storage.setItem(prefix + id, value),
    },
  });
}

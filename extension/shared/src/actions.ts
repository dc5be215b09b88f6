/** What the host of the card can do for its reader; a button whose action is missing is not shown. */
export interface Actions {
  /** Puts text on the clipboard; without it the browser is asked. */
  copy?(text: string): void | Promise<void>;
  /** Where a diff of the user's own code can be applied now, and the way to do it; null if it fits nowhere. */
  fits?(diff: string): Fit | null;
  /** Answers the question `key` by one of its values; may return what to tell the reader. */
  answer?(key: string, value: string): void | string | Promise<void | string>;
  /** Puts the question `key` aside: the reader can't answer it. */
  skip?(key: string): void | string | Promise<void | string>;
  /** Takes the reader's last step back. */
  back?(): void | string | Promise<void | string>;
  /** Goes to a place such as `cell In[3], line 6`. */
  openPlace?(at: string): void | Promise<void>;
  /** Puts a cell with this text below, for the reader to run. */
  insert?(source: string): void;
  /** Goes on step by step beside the notebook. */
  guide?(): void;
  /** The reader's word: this cause was it, or (without a cause) nothing helped. */
  feedback?(about: Feedback): void | Promise<void>;
}

/** A place that a diff fits. */
export interface Fit {
  /** As its reader knows it: `cell [4]`. */
  readonly where: string;
  /** Makes the change; must run nothing. */
  readonly apply: () => void | Promise<void>;
}

export interface Feedback {
  readonly helped: boolean;
  readonly symptom: string;
  readonly cause: string;
}

/** Copies by the host's way or the browser's; rejects if neither may. */
export async function copyText(text: string, host: Actions): Promise<void> {
  await (host.copy ? host.copy(text) : navigator.clipboard.writeText(text));
}

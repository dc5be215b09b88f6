/** Tells without a kernel whether an error is one of distributed training that dtdebug knows. */

import known from "./known.json" with { type: "json" };

export interface Failure {
  readonly ename: string;
  readonly evalue: string;
  readonly traceback: readonly string[];
}

const CLASSES = new Set(known.classes);

/** Code that only programs of several processes run. */
const PLACES = /[\\/](?:torch[\\/](?:distributed|multiprocessing|nn[\\/]parallel)|deepspeed|horovod|colossalai)[\\/]/;

/** What is looked at: the end, where the error is named. */
const MOST = 32_000;
const LONGEST_LINE = 2_000;

/** Below words, parted by blanks, the patterns that can only match where one of them occurs. */
type Patterns = readonly (readonly [words: string, patterns: readonly string[]])[];
let patterns: Promise<Patterns> | undefined;

export async function isKnown(failure: Failure): Promise<boolean> {
  const text = printed(failure);
  if (CLASSES.has(failure.ename) || PLACES.test(text)) {
    return true;
  }
  const lower = text.toLowerCase();
  patterns ??= unpack(known.packed).catch(() => []); // a browser that can't unpack still knows the classes
  return (await patterns).some(
    ([words, each]) =>
      words.split(" ").some((word) => lower.includes(word)) &&
      each.some((pattern) => new RegExp(pattern, "im").test(text)),
  );
}

/** Packed by generate.py. */
async function unpack(packed: string): Promise<Patterns> {
  const bytes = Uint8Array.from(atob(packed), (each) => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const groups = (await new Response(stream).text()).split("\n\n");
  return groups.map((group) => {
    const [words = "", ...each] = group.split("\n");
    return [words, each] as const;
  });
}

/** The error as text without colours, in lines that are cut so that no pattern becomes slow. */
function printed(failure: Failure): string {
  return plain([`${failure.ename}: ${failure.evalue}`, ...failure.traceback].join("\n"))
    .slice(-MOST)
    .split("\n")
    .map((line) => line.slice(0, LONGEST_LINE))
    .join("\n");
}

/** Text without the escapes that colour it. */
export function plain(text: string): string {
  return text.replace(/\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]/g, "");
}

/** Where the cells of a grid stand: as large as the height allows. */

export interface Layout {
  /** full: three lines of text in each cell; short: its number; dots: a mark alone. */
  readonly size: "full" | "short" | "dots";
  readonly columns: number;
  readonly rows: number;
  /** From one cell to the next, gap included, in CSS pixels. */
  readonly width: number;
  readonly height: number;
  readonly gap: number;
}

const TALLEST = 400;
const FULL = { width: 120, height: 58, widest: 200 };
const SHORT = { width: 38, height: 24, widest: 60 };
const OF_A_HOST = 8;
const LARGEST_DOT = 24;

export function layout(count: number, width: number): Layout {
  const full = text("full", count, width, FULL.width, FULL.height, FULL.widest);
  if (full.rows * full.height <= TALLEST) {
    return full;
  }
  const short = text("short", count, width, SHORT.width, SHORT.height, SHORT.widest);
  return short.rows * short.height <= TALLEST ? short : dots(count, width);
}

function text(
  size: "full" | "short",
  count: number,
  width: number,
  least: number,
  height: number,
  widest: number,
): Layout {
  const fitting = Math.max(1, Math.floor(width / least));
  const most = fitting < OF_A_HOST ? fitting : fitting - (fitting % OF_A_HOST);
  const rows = Math.max(1, Math.ceil(count / most));
  const columns = Math.max(1, size === "full" ? Math.ceil(count / rows) : Math.min(most, count));
  return { size, columns, rows, width: Math.min(widest, Math.floor(width / columns)), height, gap: 4 };
}

/** Columns by powers of two, so that the ranks of a host stand beside each other here too. */
function dots(count: number, width: number): Layout {
  let columns = OF_A_HOST;
  for (; ; columns *= 2) {
    const pitch = Math.min(LARGEST_DOT, Math.max(1, Math.floor(width / columns)));
    const rows = Math.ceil(count / columns);
    if (rows * pitch <= TALLEST || pitch <= 2) {
      return { size: "dots", columns, rows, width: pitch, height: pitch, gap: pitch > 2 ? 1 : 0 };
    }
  }
}

/** The cell at a point; null beside all cells. */
export function cellAt(at: Layout, count: number, x: number, y: number): number | null {
  const column = Math.floor(x / at.width);
  const index = Math.floor(y / at.height) * at.columns + column;
  return x >= 0 && y >= 0 && column < at.columns && index < count ? index : null;
}

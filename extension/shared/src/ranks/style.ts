/** The look of the ranks, on top of `../style.ts`; colours by the theme of JupyterLab or VS Code. */
export const RANKS_STYLE = `
.dtd-ranks {
  --dtd-ground: var(--vscode-sideBar-background, var(--vscode-editor-background, var(--jp-layout-color1, Canvas)));
  --dtd-culprit: var(--vscode-charts-red, var(--jp-error-color1, #d32f2f));
  --dtd-waits: var(--vscode-charts-blue, var(--jp-brand-color1, #1976d2));
  --dtd-runs: var(--vscode-charts-green, var(--jp-success-color1, #388e3c));
  --dtd-silent: var(--vscode-charts-purple, #8e5fb0);
  --dtd-gone: var(--dtd-soft);
  margin: 0; max-width: none; min-width: 0; font-size: 12.5px;
}
.dtd-ranks [hidden] { display: none !important; }
.dtd.dtd-ranks ul { padding: 0; list-style: none; }
.dtd-all { display: grid; gap: 12px; }
.dtd-all > * { min-width: 0; }
.dtd-hidden {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
.dtd-mark { flex: none; width: 10px; height: 10px; fill: currentColor; fill-rule: evenodd; }
.dtd-state-culprit { color: var(--dtd-culprit); }
.dtd-state-waits { color: var(--dtd-waits); }
.dtd-state-runs { color: var(--dtd-runs); }
.dtd-state-silent { color: var(--dtd-silent); }
.dtd-state-gone { color: var(--dtd-soft); }
.dtd-state-unknown { display: none; }
.dtd-ranks :is(summary, .dtd-link, .dtd-class) { min-height: 24px; padding-block: 2.5px; }
.dtd-link {
  padding-inline: 0; border: 0; background: none; color: inherit; text-align: start; text-decoration: underline dotted;
  cursor: pointer;
}
.dtd-link:hover { text-decoration-style: solid; }
.dtd-place { font-family: var(--dtd-mono); font-size: .92em; line-height: inherit; }
.dtd-ranks :focus-visible { outline: 2px solid var(--dtd-focus); outline-offset: 1px; }

.dtd-verdict { display: grid; gap: 5px; padding: 8px 10px; border: 1px solid var(--dtd-edge); border-radius: 4px; }
.dtd-verdict.dtd-is-found { border-inline-start: 3px solid var(--dtd-culprit); }
.dtd-line-title { font-size: 1.08em; font-weight: 600; line-height: 1.4; }
.dtd-line-title > .dtd-mark { width: 12px; height: 12px; margin-inline-end: 6px; vertical-align: -1px; }
.dtd-line-title > .dtd-chip { font-size: .8em; font-weight: 400; }
.dtd-where > li, .dtd-cell { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 6px; }
.dtd-lines + .dtd-lines { margin-top: 6px; }
.dtd-lines > ul > li { margin: 2px 0; padding-inline-start: 10px; text-indent: -10px; }
.dtd-lines > ul > li::before { content: "· "; font-weight: 700; }

.dtd-part > summary > .dtd-label { flex: none; margin: 0; }
.dtd-part > summary:hover, .dtd-branch > summary:hover, .dtd-library > summary:hover { background: var(--dtd-tint); }
.dtd-part > summary > .dtd-count { margin-inline-start: 6px; color: var(--dtd-soft); font-size: .88em; }

.dtd-field { position: relative; line-height: 0; }
.dtd-field:focus-visible { outline-offset: 3px; }
.dtd-cells { display: block; transition: opacity .12s; }
.dtd-cells.dtd-dim { opacity: .28; }
.dtd-marks { position: absolute; inset: 0 auto auto 0; pointer-events: none; }
.dtd-cursor {
  position: absolute; inset: 0 auto auto 0; pointer-events: none; border-radius: 4px;
  outline: 2px solid var(--dtd-text); outline-offset: 1px;
}
.dtd-detail { min-height: 1.5em; margin: 5px 0 !important; color: var(--dtd-soft); font-size: .92em; }

.dtd-classes > li { padding: 1px 0; border-top: 1px solid var(--dtd-tint); }
.dtd-classes > li > .dtd-place { margin-inline-start: 20px; color: var(--dtd-soft); }
.dtd-class {
  display: flex; align-items: baseline; gap: 6px; width: 100%; padding-inline: 4px; border: 0; border-radius: 3px;
  background: none; color: inherit; font: inherit; text-align: start; cursor: pointer;
}
.dtd-class:hover { background: var(--dtd-tint); }
.dtd-class[aria-pressed=true] { background: var(--dtd-tint); box-shadow: inset 0 0 0 1px var(--dtd-edge); }
.dtd-class:has(.dtd-state-culprit) { font-weight: 600; }

.dtd-branch > :not(summary) { margin-inline-start: 8px; padding-inline-start: 10px; border-inline-start: 1px solid var(--dtd-edge); }
.dtd-branch.dtd-is-culprit > :not(summary) { border-inline-start: 2px solid var(--dtd-culprit); }
.dtd-branch > summary > .dtd-mark { margin-inline-end: 6px; align-self: center; }
.dtd-branch.dtd-is-culprit > summary { font-weight: 600; }
.dtd-frames > li { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 8px; color: var(--dtd-soft); }
.dtd-frames > li.dtd-own { color: inherit; }
.dtd-frames > li.dtd-own > code { font-weight: 600; }
.dtd-library { font-size: .92em; }
.dtd-library > .dtd-frames { margin-inline-start: 17px; }

.dtd-scroll { overflow-x: auto; padding-bottom: 4px; }
.dtd-lanes { border-spacing: 0; font-size: .92em; line-height: 1.35; }
.dtd-lanes caption { padding-bottom: 4px; text-align: start; }
.dtd-lanes th { font-weight: 400; text-align: start; vertical-align: bottom; color: var(--dtd-soft); }
.dtd-lanes tbody th { position: sticky; left: 0; z-index: 1; background: var(--dtd-ground); color: inherit; vertical-align: top; white-space: nowrap; padding: 5px 8px 5px 0; }
.dtd-lanes tbody th .dtd-mark { margin-inline-end: 4px; color: var(--dtd-culprit); }
.dtd-lanes tbody th.dtd-is-culprit { font-weight: 600; }
.dtd-lanes td { padding: 5px 2px; vertical-align: top; border-top: 1px solid var(--dtd-tint); }
.dtd-lanes tbody th { border-top: 1px solid var(--dtd-tint); }
.dtd-is-alike { width: 15px; text-align: center; }
.dtd-lanes thead .dtd-is-alike span { writing-mode: vertical-rl; font-size: .85em; }
.dtd-lanes thead .dtd-is-skip { padding-inline-end: 4px; white-space: nowrap; }
.dtd-is-skip { color: var(--dtd-soft); }
.dtd-lanes .dtd-is-apart { min-width: 92px; padding-inline: 7px; }
.dtd-lanes td.dtd-is-apart { background: var(--dtd-tint); }
.dtd-lanes td:has(> .dtd-call-missing, > .dtd-call-odd) { background: color-mix(in srgb, var(--dtd-culprit) 14%, transparent); }
.dtd-lanes .dtd-parted { border-inline-start: 2px solid var(--dtd-culprit); }
.dtd-lanes thead .dtd-parted { color: inherit; font-weight: 600; }
.dtd-call { display: inline-block; width: 9px; height: 9px; margin-inline-end: 5px; vertical-align: 0; }
.dtd-is-alike .dtd-call { margin: 0; }
.dtd-call-done { border-radius: 50%; background: var(--dtd-runs); transform: scale(.8); }
.dtd-call-open { border: 2.5px solid var(--dtd-waits); border-radius: 50%; }
.dtd-call-odd { background: var(--dtd-culprit); transform: rotate(45deg) scale(.85); }
.dtd-call-missing { border: 1.5px dashed var(--dtd-culprit); border-radius: 2px; }
.dtd-call-later { border: 1.5px dotted var(--dtd-soft); border-radius: 50%; }
.dtd-call-dropped { border-bottom: 1.5px solid var(--dtd-soft); height: 5px; }
.dtd-why { display: block; margin-inline-start: 14px; color: var(--dtd-soft); font-size: .92em; max-width: 13em; }
.dtd-op { white-space: nowrap; }
.dtd-legend { display: flex; flex-wrap: wrap; gap: 0 14px; font-size: .88em; }

.dtd-devices > li { margin-bottom: 8px; }
.dtd-device { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 6px; }
.dtd-figures { margin-inline-start: auto; }
.dtd-bar { display: flex; height: 9px; margin: 2px 0; overflow: hidden; border: 1px solid var(--dtd-edge); border-radius: 3px; }
.dtd-bar > span { min-width: 0; background: var(--dtd-waits); border-inline-end: 1px solid var(--dtd-ground); }
.dtd-bar > span:nth-child(even) { opacity: .65; }
.dtd-bar > .dtd-unnamed { background: repeating-linear-gradient(45deg, var(--dtd-soft) 0 1px, transparent 1px 5px); opacity: 1; }
.dtd-users { font-size: .92em; }
@media (prefers-reduced-motion: reduce) { .dtd-cells { transition: none; } }
`;

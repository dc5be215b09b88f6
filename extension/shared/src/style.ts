/**
 * The look. Colours come from the theme of VS Code or JupyterLab; what neither names is a shade of grey that shows on
 * light and dark alike. No colour carries a meaning alone.
 */
export const STYLE = `
.dtd {
  --dtd-text: var(--vscode-editor-foreground, var(--jp-content-font-color1, inherit));
  --dtd-soft: var(--vscode-descriptionForeground, var(--jp-content-font-color2, color-mix(in srgb, currentColor 72%, transparent)));
  --dtd-edge: var(--vscode-contrastBorder, var(--vscode-widget-border, var(--jp-border-color2, rgba(127, 127, 127, .35))));
  --dtd-tint: rgba(127, 127, 127, .12);
  --dtd-accent: var(--vscode-editorWarning-foreground, var(--jp-warn-color1, #c77700));
  --dtd-focus: var(--vscode-focusBorder, var(--jp-brand-color1, #1976d2));
  --dtd-added: var(--vscode-diffEditor-insertedLineBackground, rgba(46, 160, 67, .18));
  --dtd-removed: var(--vscode-diffEditor-removedLineBackground, rgba(248, 81, 73, .16));
  --dtd-mono: var(--vscode-editor-font-family, var(--jp-code-font-family, ui-monospace, monospace));
  color: var(--dtd-text);
  font: 13px/1.5 var(--vscode-font-family, var(--jp-ui-font-family, system-ui, sans-serif));
  max-width: 66em; margin: 4px 0; overflow-wrap: anywhere; text-align: start;
}
.dtd *, .dtd *::before { box-sizing: border-box; }
.dtd p, .dtd ul, .dtd pre { margin: 0; }
.dtd code, .dtd pre, .dtd .dtd-words {
  font-family: var(--dtd-mono); font-size: .92em; color: inherit; background: none; padding: 0; border: 0;
}
.dtd-problem { padding: 4px 12px; border-inline-start: 3px solid var(--dtd-edge); }
.dtd-card {
  border: 1px solid var(--dtd-edge); border-inline-start: 3px solid var(--dtd-edge); border-radius: 4px;
}
.dtd-likely > .dtd-card, .dtd-possible > .dtd-card { border-inline-start-color: var(--dtd-accent); }
.dtd .dtd-summary { padding: 8px 12px; }
.dtd summary { display: flex; align-items: baseline; list-style: none; cursor: pointer; }
.dtd summary::-webkit-details-marker { display: none; }
.dtd summary::before { content: "▸"; flex: none; width: 17px; color: var(--dtd-soft); }
.dtd details[open] > summary::before { content: "▾"; }
.dtd-brand { margin-inline-end: 4px; color: var(--dtd-soft); }
.dtd-title { font-size: 1.08em; font-weight: 600; }
.dtd .dtd-command { padding: 4px 8px; background: var(--dtd-tint); white-space: pre-wrap; }
.dtd-symptom { display: block; color: var(--dtd-soft); }
.dtd-symptom .dtd-title { font-size: 1em; font-weight: 400; }
.dtd .dtd-code { color: var(--dtd-soft); white-space: nowrap; }
.dtd-chip {
  display: inline-block; margin-inline-start: 3px; padding: 0 7px; border: 1px solid var(--dtd-edge); border-radius: 9px;
  background: var(--dtd-tint); color: var(--dtd-text); font-size: .88em; white-space: nowrap;
}
.dtd-is-certain, .dtd-is-likely { border-color: var(--dtd-accent); font-weight: 600; }
.dtd-short { display: grid; gap: 4px; padding: 7px 12px; }
.dtd-short > *, .dtd-spot > * { min-width: 0; }
.dtd-lead, .dtd-event, .dtd-reason, .dtd-source, .dtd-fix > p, .dtd-next > p {
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden;
}
.dtd-event { color: var(--dtd-soft); }
.dtd-event, .dtd-with-diff > p { -webkit-line-clamp: 1; }
.dtd-places { display: grid; gap: 2px; }
.dtd-spot > .dtd-soft { font-size: .92em; }
.dtd .dtd-source { padding-inline-start: 12px; border-inline-start: 2px solid var(--dtd-edge); white-space: pre-wrap; }
.dtd .dtd-marked { background: none; color: inherit; text-decoration: underline wavy var(--dtd-accent) 1px; text-underline-offset: 3px; }
.dtd .dtd-link { min-height: 0; padding: 0; border: 0; background: none; color: inherit; text-decoration: underline; font: inherit; }
.dtd-places:has(> :nth-child(3)) .dtd-spot { display: flex; flex-wrap: wrap; gap: 0 10px; }
.dtd-row { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 8px; }
.dtd-row > .dtd-chip { margin-inline-start: auto; }
.dtd-short .dtd-tools { border: 0; padding: 0; }
.dtd .dtd-short .dtd-diff { max-height: 7em; padding: 2px 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.dtd-short .dtd-diff code { width: auto; }
.dtd-short .dtd-line { white-space: pre-wrap; }
.dtd .dtd-short .dtd-command { max-height: 4em; overflow: auto; }
.dtd [hidden] { display: none; }
.dtd-body { display: grid; gap: 12px; padding: 2px 14px 10px 29px; }
.dtd-body > *, .dtd-cause > * { min-width: 0; }
.dtd-label { margin-bottom: 3px; color: var(--dtd-soft); font-size: .88em; font-weight: 600; letter-spacing: .02em; }
.dtd-soft { color: var(--dtd-soft); }
.dtd .dtd-reasons { padding-inline-start: 17px; list-style: disc; }
.dtd-reasons li { margin: 2px 0; padding-inline-start: 2px; }
.dtd-seen { display: flex; flex-wrap: wrap; gap: 0 8px; color: var(--dtd-soft); font-size: .92em; }
.dtd .dtd-words { font-size: .97em; }
.dtd-cause { border-top: 1px solid var(--dtd-edge); }
.dtd-cause:last-of-type { border-bottom: 1px solid var(--dtd-edge); }
.dtd-cause > summary { padding: 6px 0; }
.dtd-cause > summary:hover, .dtd-how > summary:hover { background: var(--dtd-tint); }
.dtd-cause-title { font-weight: 600; }
.dtd-costs { display: block; color: var(--dtd-soft); font-size: .92em; }
.dtd-cause > :not(summary) { margin: 0 0 8px 17px; }
.dtd .dtd-cause > .dtd-reasons { margin-inline-start: 17px; }
.dtd-change { border: 1px solid var(--dtd-edge); border-radius: 3px; overflow: hidden; }
.dtd .dtd-diff { max-height: 22em; padding: 4px 0; overflow: auto; white-space: pre; overflow-wrap: normal; line-height: 1.45; }
.dtd-diff code { display: block; width: max-content; min-width: 100%; }
.dtd-line { display: block; padding: 0 10px; border-inline-start: 3px solid transparent; text-decoration: none; white-space: pre; }
.dtd-added { background: var(--dtd-added); border-color: rgb(46, 160, 67); }
.dtd-removed { background: var(--dtd-removed); border-color: rgb(228, 81, 73); }
.dtd-gap { color: var(--dtd-soft); }
.dtd-tools, .dtd-choices, .dtd-feedback, .dtd-foot, .dtd-answer, .dtd-steps, .dtd-end { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 8px; }
.dtd-tools { padding: 5px 8px; border-top: 1px solid var(--dtd-edge); }
.dtd-button {
  min-height: 26px; padding: 2px 10px; border: 1px solid var(--vscode-contrastBorder, var(--vscode-button-border, var(--jp-border-color1, rgba(127, 127, 127, .55))));
  border-radius: 3px; background: var(--vscode-button-secondaryBackground, var(--jp-layout-color1, transparent));
  color: var(--vscode-button-secondaryForeground, inherit); font: inherit; text-align: start; cursor: pointer;
}
.dtd-button:hover:enabled { background: var(--vscode-button-secondaryHoverBackground, var(--jp-layout-color2, var(--dtd-tint))); }
.dtd-button[aria-pressed="true"] { border-color: var(--dtd-focus); box-shadow: inset 0 0 0 1px var(--dtd-focus); }
.dtd-button:disabled { cursor: default; }
.dtd-button:disabled:not([aria-pressed="true"]) { opacity: .6; }
.dtd-quiet { background: none; color: inherit; }
.dtd :focus-visible { outline: 2px solid var(--dtd-focus); outline-offset: 1px; border-radius: 2px; }
.dtd-diff:focus-visible { outline-offset: -2px; }
.dtd-ask { font-weight: 600; }
.dtd-choices { margin: 6px 0; }
.dtd-choices > details { flex-basis: 100%; }
.dtd-choices > details > button { margin: 6px 8px 0 0; }
.dtd-command:empty { display: none; }
.dtd .dtd-command { padding: 2px 6px; border-radius: 3px; background: var(--dtd-tint); }
.dtd-status { color: var(--dtd-soft); font-size: .92em; }
.dtd-foot { justify-content: space-between; font-size: .92em; }
@media (max-width: 480px) { .dtd-lead { -webkit-line-clamp: 5; } .dtd-body { padding-inline: 12px; } .dtd-cause > :not(summary), .dtd .dtd-cause > .dtd-reasons { margin-inline-start: 0; } }
@media (forced-colors: active) { .dtd-chip { border: 1px solid; } }
`;

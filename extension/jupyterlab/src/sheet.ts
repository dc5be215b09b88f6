/** The look of the panel; its cards and ranks bring their own. */

export const SHEET = `
.dtdp { overflow: auto; padding: 0; color: var(--jp-ui-font-color1); background: var(--jp-layout-color1); }
#jp-left-stack > .dtdp, #jp-right-stack > .dtdp { min-width: min(340px, 45vw) !important; }
.dtdp .dtd { max-width: none; margin: 0; }
.dtdp-section { border-bottom: 1px solid var(--jp-border-color2); }
.dtdp-section > summary {
  position: sticky; top: 0; z-index: 1; padding: 7px 12px; background: var(--jp-layout-color2);
  color: var(--jp-ui-font-color1); font-weight: 600; letter-spacing: .02em; cursor: pointer; list-style: none;
}
.dtdp-section > summary::-webkit-details-marker { display: none; }
.dtdp-section > summary::before { content: "▸"; display: inline-block; width: 17px; color: var(--jp-ui-font-color2); }
.dtdp-section[open] > summary::before { content: "▾"; }
.dtdp-section > summary:focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: -2px; }
.dtdp-body { padding: 10px 12px 14px; }
.dtdp-wizard { display: grid; gap: 12px; }
.dtdp-wizard > * { min-width: 0; }
.dtdp-row, .dtdp-top { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 8px; }
.dtdp-top { padding-bottom: 8px; border-bottom: 1px solid var(--jp-border-color2); }
.dtdp-top > :last-child { margin-inline-start: auto; }
.dtdp-lessons { list-style: none; margin: 4px 0; padding: 0; }
.dtdp-lessons > li { flex-wrap: nowrap; align-items: baseline; padding: 3px 0; }
.dtdp-lessons .dtd-button { flex: none; min-width: 5em; }
.dtdp-ename { color: var(--jp-ui-font-color2) !important; }
.dtdp-told .dtd-status:empty { display: none; }
.dtdp-told:not(:has(button)):has(.dtd-status:empty) { display: none; }
.dtd .dtdp-lead { font-size: 1.08em; }
.dtd .dtdp-main {
  min-height: 32px; padding: 4px 14px; border-color: transparent; background: var(--jp-brand-color0, var(--jp-brand-color1));
  color: var(--jp-ui-inverse-font-color0, #fff); font-weight: 600;
}
.dtd .dtdp-main:hover:enabled { background: var(--jp-brand-color0); filter: brightness(.92); }
.dtdp-wizard .dtd-question { padding: 10px 12px; border: 1px solid var(--jp-border-color2); border-inline-start: 3px solid var(--jp-brand-color1); border-radius: 4px; }
.dtdp-wizard .dtd-question .dtd-ask { font-size: 1.08em; }
.dtdp-wizard .dtd-choices { flex-direction: column; align-items: stretch; gap: 5px; margin: 9px 0 6px; }
.dtdp-wizard .dtd-choices .dtd-button { min-height: 30px; padding: 4px 10px; }
.dtdp-wizard .dtd-steps { margin-bottom: 4px; }
.dtdp-wizard .dtd-answer:not(:has(:not(:empty))) { display: none; }
.dtdp-wizard .dtd-how { margin-top: 4px; }
.dtdp-wizard .dtd-how > :not(summary) { margin: 4px 0 6px 17px; }
.dtd .dtdp-known dl { display: grid; grid-template-columns: auto 1fr; gap: 2px 10px; margin: 4px 0 0 17px; }
.dtd .dtdp-known dt { color: var(--dtd-soft); }
.dtd .dtdp-known dd { margin: 0; }
.dtd .dtdp-trail ol { margin: 4px 0 0 17px; padding-inline-start: 20px; }
.dtdp-trail li { margin: 3px 0; }
.dtdp-wizard .dtd-brand { display: none; }
.dtdp-wizard > .dtd { margin: 0; }
.dtd .dtdp-examples .dtd-button { border-radius: 13px; }
.dtd .dtdp-ran { padding: 6px 10px; border-inline-start: 3px solid var(--jp-success-color1); background: var(--dtd-added); font-weight: 600; }
.dtdp-since { scroll-margin: 44px; }
.dtdp-form label { display: block; }
.dtd .dtdp-field {
  display: block; width: 100%; min-height: 62px; margin: 2px 0 6px; padding: 6px 8px; resize: vertical;
  border: 1px solid var(--jp-border-color1); border-radius: 3px; background: var(--jp-input-background, var(--jp-layout-color1));
  color: inherit; font: inherit;
}
.dtd .dtdp-field::placeholder { color: var(--dtd-soft); opacity: 1; }
.dtdp-entry { border-bottom: 1px solid var(--jp-border-color3, var(--jp-border-color2)); }
.dtdp-entry > summary { padding: 5px 0; }
.dtdp-entry[open] > .dtd { margin: 4px 0 10px; }
.dtdp-entry .dtd-title { font-size: 1em; font-weight: 400; }
.dtdp-entry summary:hover { background: var(--dtd-tint); }
.dtdp-why { max-width: 46em; margin: 0 auto; padding: 28px 24px; }
.dtdp-why > h1 { display: flex; align-items: center; gap: 12px; margin: 0 0 6px; font-size: 1.9em; font-weight: 600; }
.dtdp-why > h1 svg { flex: none; width: 34px; height: 34px; }
.dtdp-why > * { margin-bottom: 16px; }
.dtdp-why .dtdp-field { min-height: 130px; }
.dtdp-why .dtd-command { white-space: nowrap; }
@media (max-width: 480px) { .dtdp-why { padding: 14px 12px; } }
`;

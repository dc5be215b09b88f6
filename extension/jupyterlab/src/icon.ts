/** dtdebug's mark: ranks side by side, of which one has stopped. */

import { LabIcon } from "@jupyterlab/ui-components";

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">
  <g class="jp-icon3" fill="#616161">
    <rect x="1.5" y="2" width="2.6" height="12" rx="1"/>
    <rect x="5" y="2" width="2.6" height="12" rx="1"/>
    <rect x="12" y="2" width="2.6" height="12" rx="1"/>
    <rect x="8.5" y="9.5" width="2.6" height="4.5" rx="1"/>
  </g>
  <circle class="jp-icon-warn0" cx="9.8" cy="5" r="2.1" fill="#ef6c00"/>
</svg>`;

export const icon = new LabIcon({ name: "dtdebug:ranks", svgstr: SVG });

/** "Why did my distributed run fail?": the wizard that needs no notebook and no kernel. */

import { MainAreaWidget } from "@jupyterlab/apputils";
import { Panel, Widget } from "@lumino/widgets";

import { make } from "../../shared/src/dom.js";
import { STYLE } from "../../shared/src/style.js";
import { icon } from "./icon.js";
import type { Means } from "./means.js";
import { SHEET } from "./sheet.js";
import type { Wizard } from "./wizard.js";

export function whyWidget(wizard: Wizard, { trans }: Means): MainAreaWidget<Panel> {
  const content = new Panel();
  content.addClass("dtd");
  content.addClass("dtdp");
  const page = new Panel();
  page.addClass("dtdp-why");
  const title = make("h1", "");
  icon.element({ container: title });
  title.append(trans.__("Why did my distributed run fail?"));
  page.addWidget(new Widget({ node: title }));
  page.addWidget(wizard);
  content.node.prepend(make("style", "", STYLE, SHEET));
  content.addWidget(page);
  const widget = new MainAreaWidget({ content });
  widget.toolbar.hide();
  widget.id = "dtdebug-why";
  widget.title.label = trans.__("Why did it fail?");
  widget.title.icon = icon;
  widget.title.closable = true;
  void wizard.follow(null);
  return widget;
}

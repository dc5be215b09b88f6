export type { Actions, Feedback } from "./actions.js";
export { render } from "./card.js";
export type { Diagnosis } from "./diagnosis.js";
export { type Message, activate as renderNotebook } from "./notebook.js";
export { Grid } from "./ranks/grid.js";
export { RANKS_STYLE } from "./ranks/style.js";
export { type RanksHost, RanksView } from "./ranks/view.js";
export { type Trans, translateBy } from "./trans.js";
export type { View } from "./view.js";

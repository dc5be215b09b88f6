export type { Actions, Feedback } from "./actions.js";
export { render } from "./card.js";
export type { Diagnosis } from "./diagnosis.js";
export { type Message, activate as renderNotebook } from "./notebook.js";

/** `assent/actions/command`: what commands about actions of features that name `actions` in `needs` may use of this one. */
export { completeId } from "./actions.ts";
export { printAction } from "./print-action.ts";

/** `assent/actions/command`: what this feature exports to the commands of features that name `actions` in `needs`. */
export { completeId } from "./actions.ts";
export { printAction } from "./print-action.ts";

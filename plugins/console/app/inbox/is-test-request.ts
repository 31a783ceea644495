/** Recognizes the test request. Separate from the code that sends it, which few people load. */
import type { Action } from "../core/api-types.ts";

export const TOOL = "assent";
export const OPERATION = "test_request";

export function isTestRequest({ tool, operation }: Pick<Action, "tool" | "operation">): boolean {
  return tool === TOOL && operation === OPERATION;
}

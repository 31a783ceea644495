/**
 * What a plugin's command uses, apart from `assent/plugin`, because the service does not need it.
 * @example
 * const { values } = parseArguments(args, { json: { type: "boolean" } });
 */
export {
  colourText,
  EXIT_CODES,
  parseArguments,
  printJson,
  toPrintable,
  usageError,
  type Command,
  type Output,
} from "./cli/command.ts";
export { createClient, createPrivilegedClient, withNames, withServiceErrors } from "./cli/remote.ts";
export { parseFuture } from "./cli/times.ts";
export { parseDuration, toRfc3339 } from "./domain/time.ts";

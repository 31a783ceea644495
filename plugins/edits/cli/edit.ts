/** The command that changes parameters of a pending action. */
import {
  type Command,
  createPrivilegedClient,
  EXIT_CODES,
  parseArguments,
  usageError,
  withServiceErrors,
} from "../../../src/command.ts";
import { completeId, printAction } from "../../actions/cli/api.ts";

export const edit: Command = {
  help: `usage: assent edit ID PATH=VALUE... [--reason TEXT] [--json]

Changes the request before another person approves it (approval.editable in policies). Earlier votes are void. VALUE is JSON,
or an unquoted string.

examples:
  assent edit 019346a0-0000-7000-8000-000000000000 params.amount=90 --reason "the rest was paid already"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { reason: { type: "string" }, json: { type: "boolean" } });
    const [id, ...given] = positionals;
    if (id === undefined || given.length === 0) throw usageError("assent edit takes one action id and PATH=VALUE");
    const changes = Object.fromEntries(given.map(toChange));
    const service = await createPrivilegedClient();
    const action = await withServiceErrors(async () =>
      service.edit(await completeId(service, id), changes, { reason: values.reason }),
    );
    printAction(io, action, values.json === true);
    return EXIT_CODES.ok;
  },
};

function toChange(text: string): [path: string, value: string | number | boolean] {
  const [, path, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (path === undefined || value === undefined)
    throw usageError(`"${text}" is not PATH=VALUE, such as params.amount=90`);
  try {
    const parsed: unknown = JSON.parse(value);
    if (typeof parsed === "string" || typeof parsed === "number" || typeof parsed === "boolean") return [path, parsed];
  } catch {
    // The value is not JSON, so it is a string without quotes.
  }
  return [path, value];
}

import { renderEditorSchema, EDITOR_SCHEMAS, type EditorSchema } from "../config/editor-schemas.ts";
import { standardOptions } from "../runtime/plugins/loader.ts";
import { EXIT_CODES, parseArguments, usageError, type Command } from "./command.ts";

const NAMES: readonly string[] = EDITOR_SCHEMAS;

export const schema: Command = {
  help: `usage: assent schema policy|policy-test|config

Prints a JSON Schema (draft 2020-12). Editors with the YAML language server take it from a line at the top of a file:

  # yaml-language-server: $schema=./policy.schema.json

examples:
  assent schema policy > policy.schema.json
  assent schema config > assent.schema.json`,
  async run(args, io) {
    const { positionals } = parseArguments(args, {});
    const [name] = positionals;
    if (positionals.length !== 1 || name === undefined || !NAMES.includes(name))
      throw usageError(`assent schema takes one of ${NAMES.join(", ")}`);
    io.out(renderEditorSchema(name as EditorSchema, await standardOptions()).trimEnd());
    return EXIT_CODES.ok;
  },
};

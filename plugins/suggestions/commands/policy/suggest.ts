/** `assent policy suggest`. Loads its modules when it runs, because most verbs do not need a service. */
import type { Subcommand } from "../../../../src/command.ts";

const HELP = `usage: assent policy suggest [--since TIME] [--min-approvals N] [--min-people N] [--min-days N] [--json]
                             [--create NAME... | --write FOLDER [NAME...] | --branch FOLDER [NAME...]]

Asks the service for rules that would have allowed what people approved, and prints each with its evidence.
Needs a key with the scopes policies:write and actions:read (ASSENT_URL, ASSENT_API_KEY).

  --since TIME        such as 2026-01-31, or a duration ago such as 30d (90d)
  --min-approvals N   approvals that must support a rule, at most half of them of one agent (20)
  --min-people N      people who must have approved (2)
  --min-days N        days on which they must have approved (3)
  --json              print the service's response
  --create            store the named suggestions as candidates; a person activates them
  --write FOLDER      write the suggestions and their tests to FOLDER, and check them there
  --branch FOLDER     the same on a new git branch, with a commit

examples:
  assent policy suggest
  assent policy suggest --create suggested-3f2a9c1b04de
  assent policy suggest --branch policies`;

export default {
  summary: "suggest rules from what people approved, with evidence",
  help: HELP,
  run: async (args, io) => (await import("../../suggest-command.ts")).policySuggest(args, io),
} satisfies Subcommand;

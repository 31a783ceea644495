/** What is open of one agent or one key is found without a look at what others have open. */
import type { RawBuilder } from "kysely";
import type { SchemaKit } from "../dialect.ts";
import { AGENT, IS_OPEN, OPEN_UNTIL } from "../open-actions.ts";

export function openActions({ db, text, indexesHoldKey }: SchemaKit): string[] {
  const last = indexesHoldKey ? "" : ", decision_seq";
  return [
    db.schema
      .alterTable("actions")
      .addColumn("agent_fold", text as RawBuilder<never>)
      .compile().sql,
    ...[
      ["actions_open_of_agent", `(${AGENT})`],
      ["actions_open_of_key", "submitted_by"],
    ].map(([name, whose]) => `create index "${name}" on "actions" (${whose}, (${OPEN_UNTIL})${last}) where ${IS_OPEN}`),
  ];
}

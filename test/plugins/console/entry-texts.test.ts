/** The console's texts for ledger entries cover every value that the API can return. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { OCCASIONS } from "../../../plugins/console/app/ui/entry-texts.ts";
import { ENTRY_SCHEMAS } from "../../../plugins/actions/entry-schemas.ts";

test("the history of an action has a text for every occasion of a redecision", () => {
  const { anyOf } = ENTRY_SCHEMAS.redecision.properties["occasion"] as unknown as { anyOf: { const: string }[] };
  assert.deepEqual(Object.keys(OCCASIONS).sort(), anyOf.map((each) => each.const).sort());
});

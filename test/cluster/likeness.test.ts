/** Of two processes that know different commands neither does the other's, also while one version follows another. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { executionCommands } from "../../plugins/actions/execution-commands.ts";
import { submitCommand } from "../../plugins/actions/submit-command.ts";
import { likenessOf } from "../../src/cluster/sequencing/likeness.ts";
import { defaultConfig } from "../../src/config/index.ts";
import type { LedgerCommand } from "../../src/contract/commands.ts";
import type { Host } from "../../src/contract/host.ts";
import { sha256, utf8 } from "../../src/domain/hash.ts";

const vault = { mac: (purpose: string, message: Uint8Array) => sha256(utf8(`${purpose} ${message.join()}`)) };
const commands = (): LedgerCommand[] => {
  const { start, result } = executionCommands({} as Host);
  return [submitCommand({} as Host), start, result] as LedgerCommand[];
};
const likeness = (of: readonly LedgerCommand[]): string =>
  likenessOf(vault, defaultConfig({ data: "data", policies: "policies" }), of);

test("processes are alike by what commands they know, with their forms", () => {
  const all = commands();
  assert.equal(likeness(all), likeness(commands()));
  assert.notEqual(likeness(all.slice(0, 1)), likeness(all), "one that sends submissions alone");
  for (const [i, command] of all.entries())
    for (const part of ["payload", "answer"] as const) {
      const other = all.with(i, { ...command, [part]: { ...command[part], title: "another" } });
      assert.notEqual(likeness(other), likeness(all), `${command.name}: ${part}`);
    }
});

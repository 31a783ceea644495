/** `assent policy init` writes an example policy with its test. */
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { listPolicyFiles } from "../../policies/folder.ts";
import { CommandError, EXIT_CODES, parseArguments, usageError, printJson, type Subcommand } from "../command.ts";
import { resolvePolicyFolder } from "./folder-argument.ts";
import { programCommand } from "../invocation.ts";

const POLICY = `# A policy is a list of rules; the first rule that matches applies. Actions that no rule matches are denied.
policy: first
description: Allows reads and small refunds, requires approval for larger refunds, and denies deletion.
rules:
  # Deny first: rules below cannot allow what a rule above has denied.
  - name: deletion
    operation: ["delete*", "drop*", "purge*"]
    effect: deny
    risk: critical
    reason: agents cannot delete data
  - name: reading
    operation: ["get*", "list*", "read*", "search*"]
    effect: allow
    reason: reads change nothing
  - name: small refunds
    tool: payments
    operation: refund
    # CEL. A missing field is an error, and an error denies the action: use has() if a field can be missing.
    when: has(params.amount) && params.amount > 0 && params.amount <= 100
    effect: allow
    risk: low
    reason: refunds of up to 100 are routine
  - name: other refunds
    tool: payments
    operation: refund
    effect: require_approval
    risk: medium
    # Shown to the agent and to the approvers.
    reason: refunds above 100 need an approver
    approval: { quorum: 1, expires_in: 4h }
`;

const TEST = `# Runs with "assent policy test"; the service accepts the folder only if all tests pass.
now: 2026-01-15T10:00:00Z
policies: [first]
cases:
  - name: deletion is denied
    action: { agent_id: my-agent, tool: crm, operation: delete_customer, params: { id: 7 } }
    expect: { effect: deny, rule: deletion }
  - name: a search is allowed
    action: { agent_id: my-agent, tool: crm, operation: search_customers, params: { name: Ada } }
    expect: { effect: allow, rule: reading }
  - name: exactly 100 is a small refund
    action: { agent_id: my-agent, tool: payments, operation: refund, params: { amount: 100 } }
    expect: { effect: allow, rule: small refunds }
  - name: 100.01 requires approval
    action: { agent_id: my-agent, tool: payments, operation: refund, params: { amount: 100.01 } }
    expect: { effect: require_approval, rule: other refunds }
  - name: a refund without an amount requires approval
    action: { agent_id: my-agent, tool: payments, operation: refund }
    expect: { effect: require_approval, rule: other refunds }
  - name: an action that no rule matches is denied
    action: { agent_id: my-agent, tool: payments, operation: payout, params: { amount: 1 } }
    expect: { effect: deny, reason_code: NO_MATCHING_RULE }
`;

export const init: Subcommand = {
  summary: "write a small example policy and its test",
  help: `usage: assent policy init [FOLDER] [--json]

Writes first.yaml and first_test.yaml into FOLDER (./policies) and creates the folder if it does not exist. Fails if the
folder already contains policies: it never overwrites files. --json prints the names of the files as JSON.

examples:
  assent policy init
  assent policy init deploy/policies && assent policy test deploy/policies --min-coverage 100`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, { json: { type: "boolean" } });
    const folder = resolvePolicyFolder("init", positionals);
    try {
      await mkdir(folder, { recursive: true });
      const existing = await listPolicyFiles(folder);
      if (existing.length > 0)
        throw usageError(`${folder} contains ${existing[0]} already; init needs a folder without policies`);
      await write([
        [join(folder, "first.yaml"), POLICY],
        [join(folder, "first_test.yaml"), TEST],
      ]);
    } catch (error) {
      throw error instanceof CommandError
        ? error
        : new CommandError(`${folder} cannot be written: ${(error as Error).message}`);
    }
    const files = [join(folder, "first.yaml"), join(folder, "first_test.yaml")];
    if (values.json === true) printJson(io, { files });
    else io.out(files.join("\n"));
    io.err(`change them, then run "${programCommand()} policy test ${folder} --coverage"`);
    return EXIT_CODES.ok;
  },
};

/** Writes both files or neither. Fails if one of them exists, even if another process creates it at the same time. */
async function write(files: [string, string][]): Promise<void> {
  const written: string[] = [];
  try {
    for (const [path, text] of files) {
      const file = await open(path, "wx");
      written.push(path);
      try {
        await file.writeFile(text);
      } finally {
        await file.close();
      }
    }
  } catch (error) {
    for (const path of written) await rm(path, { force: true });
    throw error;
  }
}

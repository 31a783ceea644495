/** A scenario of a policy test ends each step as the service does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import { parsePolicies, parsePolicyTests } from "../../src/domain/policy/parse/parse.ts";
import { runPolicyTest } from "../../src/domain/policy/test/run-tests.ts";
import { parseDuration } from "../../src/domain/time.ts";
import { makeKey, plainVotes, startService, type Service } from "../support/service.ts";

const POLICY = `policy: pay
history: { per: agent, tool: pay, window: 24h, max: 50 }
limits:
  - { name: a day, tool: pay, sum: params.n, at_most: 1000, window: 24h }
rules:
  - { name: failed twice, tool: pay, when: 'history.count(h, h.status == "failed") >= 2', effect: deny }
  - name: large
    tool: pay
    when: params.n > 100
    effect: require_approval
    approval: { quorum: 2, expires_in: 2h, valid_for: 10m, rejection_holds: 1h }
  - { name: small, tool: pay, effect: allow }
`;

interface Step {
  after?: string;
  submit?: number;
  id?: string;
  approve?: string;
  reject?: string;
  by?: string;
  start?: string;
  finish?: string;
  cancel?: string;
  success?: boolean;
}

const STEPS: Step[] = [
  { submit: 500, id: "one" },
  { approve: "one", by: "grace" },
  { approve: "one", by: "alan" },
  { after: "8m", start: "one" },
  { finish: "one", success: false },
  { submit: 400, id: "two" },
  { submit: 200, id: "beyond the limit" },
  // The service marks an expired action in the background, so a test of both cannot wait for it.
  { cancel: "two" },
  { submit: 200, id: "three" },
  { reject: "three", by: "grace" },
  { submit: 200, id: "rejected before" },
  { submit: 500, id: "four" },
  { cancel: "four" },
  { submit: 50, id: "five" },
  { submit: 20, id: "denied at its start" },
  { submit: 120, id: "denied at a vote" },
  { start: "five" },
  { finish: "five", success: false },
  { submit: 10, id: "the third" },
  { start: "denied at its start" },
  { approve: "denied at a vote", by: "grace" },
  { after: "25h", submit: 90, id: "six" },
  { after: "6m", start: "six" },
];

/** Runs a step against the service. Resolves to the status of its action, and to the code with which it was refused. */
async function perform(
  service: Service,
  keys: Record<string, string>,
  ids: Map<string, string>,
  step: Step,
): Promise<{ status: string; refused?: string }> {
  service.clock.now += step.after === undefined ? 0 : (parseDuration(step.after) ?? 0);
  const key = keys["ada"] ?? "";
  if (step.submit !== undefined) {
    const body = { agent_id: "a", tool: "pay", operation: "o", params: { n: step.submit } };
    const answer = (await service.call("POST", "/v1/actions", { key, body })).body;
    ids.set(step.id ?? "", answer.id as string);
    return { status: answer.status as string };
  }
  const id = ids.get(step.approve ?? step.reject ?? step.start ?? step.finish ?? step.cancel ?? "") ?? "";
  const voter = keys[step.by ?? ""] ?? "";
  const [path, by, body] =
    step.by !== undefined
      ? ["approval", voter, { approve: step.approve !== undefined, token: await tokenOf(service, id, voter) }]
      : step.start !== undefined
        ? ["start", key, {}]
        : step.finish !== undefined
          ? ["result", key, { success: step.success }]
          : ["cancel", service.admin, {}];
  const answer = await service.call("POST", `/v1/actions/${id}/${path as string}`, { key: by as string, body });
  const refused = answer.status === 200 ? undefined : (answer.body.code as string);
  const { status } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
  return { status: status as string, ...(refused === undefined ? {} : { refused }) };
}

async function tokenOf(service: Service, id: string, key: string): Promise<string> {
  return (await service.call("GET", `/v1/actions/${id}`, { key })).body.approval_token as string;
}

test("a scenario ends each step as the service does", async () => {
  const service = await startService({ policy: POLICY, change: plainVotes });
  try {
    const keys: Record<string, string> = {};
    for (const owner of ["ada", "grace", "alan"])
      keys[owner] = (
        await makeKey(service, {
          name: owner,
          owner,
          scopes: ["actions:submit", "actions:read", "actions:execute", "approvals:decide"],
        })
      ).key;
    const ids = new Map<string, string>();
    const steps: object[] = [];
    const statuses: string[] = [];
    for (const step of STEPS) {
      const { status, refused } = await perform(service, keys, ids, step);
      statuses.push(refused ?? status);
      const { submit, ...rest } = step;
      const action =
        submit === undefined
          ? {}
          : {
              submit: { agent_id: "a", tool: "pay", operation: "o", params: { n: submit } },
              principal: { owner: "ada" },
            };
      steps.push({ ...rest, ...action, expect: { status, ...(refused === undefined ? {} : { refused }) } });
    }
    assert.deepEqual(statuses, [
      "pending_approval",
      "pending_approval",
      "approved",
      "executing",
      "failed",
      "pending_approval",
      "denied",
      "cancelled",
      "pending_approval",
      "denied",
      "denied",
      "pending_approval",
      "cancelled",
      "allowed",
      "allowed",
      "pending_approval",
      "executing",
      "failed",
      "denied",
      "NO_LONGER_ALLOWED",
      "NO_LONGER_ALLOWED",
      "allowed",
      "START_EXPIRED",
    ]);
    const text = stringify({ now: "2026-01-15T10:00:00Z", scenarios: [{ name: "as the service", steps }] });
    const { tests, faults } = parsePolicyTests(text, "x_test.yaml");
    assert.deepEqual(faults, []);
    const { documents } = parsePolicies(POLICY, "x.yaml");
    assert.deepEqual(
      tests.flatMap((each) => runPolicyTest(documents, each)).map(({ failure }) => failure),
      [null],
    );
  } finally {
    await service.close();
  }
});

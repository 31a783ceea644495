/** The audit warns of credentials that expired and were never recorded as ended. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCredentialAuditor } from "../../../plugins/credentials/audit.ts";

const HOUR = 3_600_000;
const EXPIRY = Date.parse("2026-01-31T12:00:00Z");

function issued(seq: number, digest: string): Record<string, unknown> {
  const data = { issuer: "reports", digest, expires_at: "2026-01-31T12:00:00.000Z" };
  return { type: "actions:credential_issued", seq, action_id: `action-${seq}`, data };
}

test("a credential that expired more than an hour ago is reported, unless it ended", () => {
  const audit = createCredentialAuditor();
  const fold = (entry: object): void => audit.check?.(entry as never, {} as never);
  fold(issued(1, "a"));
  fold(issued(2, "b"));
  fold({ type: "actions:credential_ended", seq: 3, action_id: "action-1", data: { issuer: "reports", digest: "a" } });
  assert.deepEqual(audit.warnings?.(EXPIRY + HOUR), []);
  const [warning, ...others] = audit.warnings?.(EXPIRY + HOUR + 1) ?? [];
  assert.match(warning ?? "", /credential of reports for the action action-2 \(entry 2\) expired at 2026-01-31T12:00/);
  assert.deepEqual(others, []);
});

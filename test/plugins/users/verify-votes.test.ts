/**
 * `assent verify` checks the passkey's signature of a vote offline, from the proofs of the vote and of the enrolment.
 * @needs provenance, users
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { EXIT_CODES } from "../../../src/cli/command.ts";
import { hashLeaf } from "../../../src/domain/merkle.ts";
import { toHex } from "../../../src/domain/hash.ts";
import { needs } from "../../support/features.ts";
import { assentInProcess, folderWith } from "../../support/cli.ts";
import { addUser, invite, startPeople } from "../../support/people.ts";
import { makeKey, plainVotes } from "../../support/service.ts";
import { signVotes } from "../../support/signed-votes.ts";

const POLICY = `
policy: ask
rules:
  - { name: signed, tool: signed, effect: require_approval, approval: { signature: passkey } }
  - { name: granting, tool: granting, effect: require_approval, approval: { grants: { for: 8h, count: 5 } } }
`;

test(
  "verify checks a signed vote with the enrolment, and rejects another user's",
  needs("grants", "provenance"),
  async (t) => {
    const service = await startPeople({ policy: POLICY, change: plainVotes });
    t.after(() => service.close());
    await addUser(service, { name: "ada" });
    const { key } = await makeKey(service, { name: "adas agent", owner: "ada", preset: "agent", agent_id: "bot" });
    const grace = await invite(service, { name: "Grace", roles: ["approver"] });
    const eve = await invite(service, { name: "Eve", roles: ["approver"] });
    const body = { agent_id: "bot", tool: "signed", operation: "x", params: {} };
    const { id } = (await service.call("POST", "/v1/actions", { key, body })).body;
    assert.equal((await signVotes(grace, [{ action_id: id, approve: true, reason: "checked" }])).status, 200);

    const { id: second } = (await service.call("POST", "/v1/actions", { key, body: { ...body, tool: "granting" } }))
      .body;
    const grant = { for: "1h", count: 5, scope: 'params.repo == "web"' };
    assert.equal(
      (await signVotes(grace, [{ action_id: second, approve: true, grant }])).body.code,
      "VALIDATION_FAILED",
    );
    const granting = { for: "1h", count: 5, scope: "!has(params.repo)" };
    assert.equal((await signVotes(grace, [{ action_id: second, approve: true, grant: granting }])).status, 200);

    const { size } = await service.storage.head();
    const rows = await service.storage.entries(0, size);
    const parsed = rows.map(({ bytes }) => ({ hash: toHex(hashLeaf(bytes)), text: new TextDecoder().decode(bytes) }));
    const proofOf = async (matches: (entry: any) => boolean): Promise<string> => {
      const { hash } =
        parsed.findLast(({ text }) => matches(JSON.parse(text))) ?? assert.fail("there is no such entry");
      return JSON.stringify((await service.call("GET", `/v1/provenance/${hash}/proof`, { key: service.admin })).body);
    };
    const folder = folderWith(t, {
      "vote.json": await proofOf(({ type, grant }) => type === "approval" && grant === null),
      "granting.json": await proofOf(({ type, grant }) => type === "approval" && grant !== null),
      "decision.json": await proofOf(({ type }) => type === "decision"),
      "grace.json": await proofOf(({ type, user }) => type === "user" && user.id === grace.id),
      "eve.json": await proofOf(({ type, user }) => type === "user" && user.id === eve.id),
      "invited.json": await proofOf(
        ({ type, user, change }) => type === "user" && user.id === grace.id && change === "created",
      ),
    });
    const vkey = (await service.call("GET", "/v1/provenance/keys", { key: service.admin })).body.keys[0].vkey;
    const verify = (proof: string, ...more: string[]) =>
      assentInProcess("verify", join(folder, proof), "--key", vkey, ...more);
    const enrolment = (name: string): string[] => ["--enrolment", join(folder, name)];

    const unchecked = await verify("vote.json");
    assert.deepEqual(
      [unchecked.code, /which was not checked; give --enrolment/.test(unchecked.out)],
      [EXIT_CODES.ok, true],
    );
    const checked = await verify("vote.json", ...enrolment("grace.json"));
    assert.equal(checked.code, EXIT_CODES.ok, checked.err);
    assert.match(checked.out, new RegExp(`signed by user:${grace.id} with the passkey ${grace.passkey.id}`));
    const withGrant = await verify("granting.json", ...enrolment("grace.json"));
    assert.equal(withGrant.code, EXIT_CODES.ok, withGrant.err);
    assert.match(
      withGrant.out,
      /the signature covers a grant of up to 5 later actions for 60 minutes, where !has\(params\.repo\)/,
    );
    for (const other of ["eve.json", "invited.json", "decision.json"]) {
      const refused = await verify("vote.json", ...enrolment(other));
      assert.deepEqual([refused.code, /NOT VERIFIED/.test(refused.err)], [EXIT_CODES.unverified, true], other);
    }
    assert.equal((await verify("decision.json", ...enrolment("grace.json"))).code, EXIT_CODES.usage);
  },
);

/**
 * Emergency approvals by one person: who can give them, what they cannot override, and the review.
 * @needs users
 */
import { NO_USERS } from "../../../src/domain/users.ts";
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createBreakGlassAuditor } from "../../../plugins/break-glass/audit.ts";
import { breakGlassState } from "../../../plugins/break-glass/state.ts";
import { hasFeature, needs } from "../../support/features.ts";
import { invite, startPeople, type Person } from "../../support/people.ts";
import { makeKey, type Answer, type Service, addPerson } from "../../support/service.ts";
import { signature } from "../../support/signed-votes.ts";

const rule = (tool: string, approval: string): string =>
  `  - { name: ${tool}, tool: ${tool}, effect: require_approval, approval: ${approval} }\n`;
const POLICY = `
policy: ask
rules:
${rule("plain", "{ quorum: 3 }")}
${rule("signed", "{ quorum: 2, signature: passkey }")}
${rule("own", "{ mode: self_confirm }")}
${rule("granting", "{ grants: { for: 8h, count: 5 } }")}
${rule("changed", "{ editable: [params.n] }")}
`;

let service: Service;
let agent: string;
let bo: Person;
let rex: Person;
let ada: Person;
let n = 0;
before(async () => {
  service = await startPeople({
    policy: POLICY,
    change(config) {
      config.groups = { near: { members: [], tools: ["near"] } };
    },
  });
  bo = await invite(service, { name: "Bo", roles: ["break_glass"] });
  rex = await invite(service, { name: "Rex", roles: ["approver"] });
  ada = await invite(service, { name: "Ada", roles: ["break_glass"] });
  const about = { name: "adas agent", owner: ada.principal, preset: "agent", agent_id: "bot" };
  agent = (await makeKey(service, about)).key;
});
after(() => service.close());

const submit = async (tool = "plain", key = agent): Promise<string> => {
  const body = { agent_id: "bot", tool, operation: "x", params: { n: ++n } };
  return (await service.call("POST", "/v1/actions", { key, body })).body.id as string;
};
async function breakGlass(id: string, who: Person, more: object = {}): Promise<Answer> {
  const { body } = await who.call("GET", `/v1/actions/${id}`);
  const vote = { token: body.approval_token ?? "none", approve: true, break_glass: true, reason: "the shop is down" };
  return who.call("POST", `/v1/actions/${id}/approval`, { ...vote, ...more });
}
const said = ({ status, body }: Answer): unknown[] => [status, body.code ?? body.status];
const openReviews = async (): Promise<any[]> =>
  (await service.call("GET", "/v1/break-glass?status=open", { key: service.admin })).body.break_glass;
const review = (id: string, who: Person, comment = "it was down"): Promise<Answer> =>
  who.call("POST", `/v1/break-glass/${id}/review`, { comment });

test("one person approves with a reason and without a second approver, and the review stays open until another person closes it", async () => {
  const id = await submit();
  assert.equal((await bo.call("GET", `/v1/actions/${id}`)).body.approval_terms.may_break_glass, true);
  const answer = await breakGlass(id, bo);
  assert.deepEqual(said(answer), [200, "approved"]);
  assert.deepEqual([answer.body.approvals[0].break_glass, answer.body.approvals_needed], [true, 3]);
  const start = await service.call("POST", `/v1/actions/${id}/start`, { key: agent, body: {} });
  assert.equal(start.body.status, "executing", "nobody is asked again at the start");
  const [open] = await openReviews();
  assert.deepEqual(
    [open.action_id, open.approver, open.reason, open.status],
    [id, `user:${bo.id}`, "the shop is down", "open"],
  );
  const metrics = await service.runtime.fetch(
    new Request("http://localhost:8000/metrics", { headers: { Authorization: `Bearer ${service.admin}` } }),
  );
  assert.match(await metrics.text(), /assent_break_glass_reviews_open 1/);
  assert.equal((await review(open.id, rex, " ")).body.code, "VALIDATION_FAILED");
  const closed = await review(open.id, rex);
  assert.deepEqual(
    [closed.body.status, closed.body.review.reviewer, closed.body.review.comment],
    ["reviewed", `user:${rex.id}`, "it was down"],
  );
  assert.deepEqual(await openReviews(), []);
  assert.deepEqual(said(await review(open.id, rex)), [409, "BREAK_GLASS_REVIEWED"]);
});

test("neither the break-glass approver nor the person behind the agent can close the review, with any key", async () => {
  await breakGlass(await submit(), bo);
  const [open] = await openReviews();
  const byKey = async (owner: string, maker: Person | null = null): Promise<string> => {
    const body = { name: `key ${++n}`, owner, preset: "approver" };
    const made = maker === null ? await makeKey(service, body) : (await maker.call("POST", "/v1/api-keys", body)).body;
    const sent = { key: made.key as string, body: { comment: "fine" } };
    return (await service.call("POST", `/v1/break-glass/${open.id}/review`, sent)).body.code as string;
  };
  assert.deepEqual(said(await review(open.id, bo)), [403, "REVIEWER_NOT_ELIGIBLE"]);
  assert.deepEqual(said(await review(open.id, ada)), [403, "REVIEWER_NOT_ELIGIBLE"]);
  assert.equal(await byKey(bo.principal), "REVIEWER_NOT_ELIGIBLE");
  assert.equal(await byKey(ada.principal), "REVIEWER_NOT_ELIGIBLE");
  const unowned = { key: service.admin, body: { comment: "fine" } };
  const byAdminKey = await service.call("POST", `/v1/break-glass/${open.id}/review`, unowned);
  assert.deepEqual(said(byAdminKey), [403, "REVIEWER_NOT_ELIGIBLE"], "a key of no person");
  const admin = { key: service.admin, body: { roles: ["break_glass", "key_manager"] } };
  await service.call("PATCH", `/v1/users/${bo.id}`, admin);
  assert.equal(await byKey(await addPerson(service, "Somebody else"), bo), "REVIEWER_NOT_ELIGIBLE");
  assert.equal((await openReviews()).length, 1);
  await review(open.id, rex);
});

test("a break-glass vote needs the role, a session and a reason, must be an approval, and cannot be for one's own agent", async () => {
  const id = await submit();
  assert.deepEqual(said(await breakGlass(id, rex)), [403, "INSUFFICIENT_SCOPE"]);
  assert.deepEqual(said(await breakGlass(id, ada)), [403, "SELF_APPROVAL"]);
  assert.deepEqual(said(await breakGlass(await submit("own"), ada)), [403, "SELF_APPROVAL"], "also with self_confirm");
  assert.deepEqual(said(await breakGlass(id, bo, { reason: "  " })), [422, "VALIDATION_FAILED"]);
  assert.deepEqual(said(await breakGlass(id, bo, { approve: false })), [422, "VALIDATION_FAILED"]);
  const grant = { grant: { for: "1h", count: 1 } };
  assert.deepEqual(said(await breakGlass(await submit("granting"), bo, grant)), [422, "VALIDATION_FAILED"]);
  const ofNobody = await submit("plain", service.agent);
  const { body } = await service.call("GET", `/v1/actions/${ofNobody}`, { key: service.admin });
  const sent = { token: body.approval_token, approve: true, break_glass: true, reason: "x" };
  const byKey = await service.call("POST", `/v1/actions/${ofNobody}/approval`, { key: service.admin, body: sent });
  assert.equal(byKey.body.code, "BREAK_GLASS_NOT_ALLOWED", "an admin key has every scope, and is no person");
  assert.deepEqual(await openReviews(), []);
  const { status } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
  assert.equal(status, "pending_approval");
});

test("a person who changed the request cannot break the glass for it", needs("edits"), async () => {
  const id = await submit("changed");
  const { body } = await bo.call("GET", `/v1/actions/${id}`);
  const change = { token: body.approval_token, changes: { "params.n": 1000 } };
  assert.equal((await bo.call("POST", `/v1/actions/${id}/edit`, change)).status, 200);
  assert.equal((await bo.call("GET", `/v1/actions/${id}`)).body.approval_terms.may_break_glass, false);
  assert.deepEqual(said(await breakGlass(id, bo)), [403, "APPROVER_NOT_ELIGIBLE"]);
  assert.deepEqual(await openReviews(), []);
});

test("where a rule requires a signature, the emergency approval is signed, and the signature says what it is", async () => {
  const id = await submit("signed");
  assert.deepEqual(said(await breakGlass(id, bo)), [403, "VOTE_SIGNATURE_REQUIRED"]);
  const plain = await signature(bo, [{ action_id: id, approve: true, reason: "the shop is down" }]);
  const votes = [{ action_id: id, approve: true, reason: "the shop is down", break_glass: true }];
  const swapped = await bo.call("POST", "/v1/votes", { ...plain, votes });
  assert.equal(swapped.body.code, "VOTE_SIGNATURE_INVALID", "a signed approval is no signed emergency approval");
  const done = await bo.call("POST", "/v1/votes", await signature(bo, votes));
  assert.equal(done.body.results[0].status, "approved", JSON.stringify(done.body));
  await review((await openReviews())[0].id, rex);
});

test("a break-glass approval cannot override a deny, a stop or an earlier vote", async () => {
  if (hasFeature("stop")) await assertNoneWhileStopped();
  const voted = await submit();
  const { body } = await bo.call("GET", `/v1/actions/${voted}`);
  await bo.call("POST", `/v1/actions/${voted}/approval`, { token: body.approval_token, approve: true });
  assert.equal((await breakGlass(voted, bo)).body.code, "TOKEN_MALFORMED", "who has voted gets no token");
  const denied = await submit();
  const definition = { policy: "halt", rules: [{ name: "no", tool: "plain", effect: "deny" }] };
  await service.call("POST", "/v1/policies?activate=true", { key: service.admin, body: definition });
  assert.deepEqual(said(await breakGlass(denied, bo)), [409, "NO_LONGER_ALLOWED"]);
  assert.deepEqual(await openReviews(), []);
});

async function assertNoneWhileStopped(): Promise<void> {
  const stopped = await submit();
  const stop = { key: service.admin, body: { agent: "bot", reason: "calm down" } };
  const placed = await service.call("POST", "/v1/stop", stop);
  assert.deepEqual(said(await breakGlass(stopped, bo)), [409, "STOPPED"]);
  const lifted = await service.call("POST", `/v1/stop/${placed.body.id}/lift`, { key: service.admin, body: {} });
  assert.equal(lifted.status, 200, JSON.stringify(lifted.body));
}

test("a person cannot break the glass for an action that they see only through a delegation", async () => {
  const near = await invite(service, { name: "Near", roles: ["break_glass"], groups: ["near"] });
  const id = await submit("granting");
  const until = new Date(service.runtime.host.clock() + 3_600_000).toISOString();
  await rex.call("POST", `/v1/users/${rex.id}/delegations`, { to: near.id, until });
  assert.equal((await near.call("GET", `/v1/actions/${id}`)).body.approval_terms.may_break_glass, false);
  const refused = await breakGlass(id, near);
  assert.deepEqual(said(refused), [403, "APPROVER_NOT_ELIGIBLE"]);
  assert.match(refused.body.detail as string, /only through a delegation/);
});

test("the audit names entries that contradict each other", async () => {
  const by = { key_id: "u", principal: "user:u", agent_id: null, owner: "user:u" };
  const used = { type: "break_glass", change: "used", use: { id: "1" }, related_action: "a", comment: "c", by };
  const fold = (...bodies: object[]) => {
    const audit = createBreakGlassAuditor();
    const state = (fold: unknown) => (fold === breakGlassState ? breakGlassState.initial : NO_USERS);
    for (const body of bodies) audit.check?.(body as never, { state } as never);
  };
  assert.throws(() => fold(used), /does not follow its vote/);
  const vote = { type: "approval", break_glass: true, delegation: null, action_id: "a", comment: "c", by };
  assert.throws(() => fold(vote, used), /who could not give it/);
  assert.throws(() => fold(vote, { type: "agent" }), /which nothing records/);
});

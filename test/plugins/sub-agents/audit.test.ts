/** The state and the audit find forged, changed and missing entries of authorities, and forget old ones. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { authorityAuditor } from "../../../plugins/sub-agents/audit.ts";
import {
  applyAuthorityEntry,
  type Authorities,
  authorityState,
  resolveAuthority,
} from "../../../plugins/sub-agents/state.ts";
import { RETAINED_ENDED } from "../../../src/plugin.ts";

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 12, minute)).toISOString();
const keyOf = (agent_id: string) => ({ key_id: `key-${agent_id}`, principal: "user:a", agent_id, owner: "user:a" });

let audit: ReturnType<typeof authorityAuditor>;
let state: Authorities;
let seq: number;
beforeEach(() => {
  audit = authorityAuditor();
  state = authorityState.initial;
  seq = 0;
});

interface Terms {
  id: string;
  from: string;
  to: string;
  parent?: string | null;
  until?: string;
  [name: string]: unknown;
}
const entry = ({ id, from, to, parent = null, until = at(50), ...more }: Terms, over: object = {}) => ({
  type: "authority",
  at: at(1),
  change: "created",
  agent_id: to,
  authority: {
    id,
    parent,
    from,
    tools: ["t"],
    operations: ["*"],
    condition: null,
    count: null,
    sum: null,
    until,
    session: null,
    ...more,
  },
  cause: null,
  comment: null,
  by: keyOf(from),
  ...over,
});
const A = { id: "a", from: "boss", to: "worker" };
const B = { id: "b", from: "worker", to: "sub", parent: "a" };
const ended = (terms: Terms, cause: string) => entry(terms, { change: "ended", cause, at: at(5) });
const reader = (time: string) => ({ now: Date.parse(time), state: () => state }) as never;
const fold = (...bodies: object[]): void => {
  for (const body of bodies) {
    const next = { seq: seq++, ...body } as never as { at: string; type: string };
    audit.check?.(next as never, reader(next.at));
    if (next.type === "authority") state = applyAuthorityEntry(state, next as never);
  }
};
const finish = (): string[] => {
  const faults: string[] = [];
  audit.finish?.((fault) => faults.push(fault));
  return faults;
};

test("a chain that ends as a whole is sound, and its decisions record it", () => {
  fold(entry(A), entry(B));
  const authority = resolveAuthority(reader(at(2)), "b", "SUB");
  assert.deepEqual([authority.fault, authority.links.map(({ id }) => id)], [null, ["a", "b"]]);
  fold({ type: "decision", at: at(2), agent_id: "sub", facts: { authority } });
  const wider = { ...authority, links: authority.links.slice(1) };
  for (const facts of [{ authority: wider }, { authority: { ...authority, id: "a" } }])
    assert.throws(
      () => fold({ type: "decision", at: at(2), agent_id: "sub", facts }),
      /differs from that in the ledger/,
    );
  assert.throws(
    () => fold({ type: "redecision", at: at(51), agent_id: "sub", facts: { authority } }),
    /differs from that in the ledger/,
    "after its end",
  );
  fold(ended(A, "revoked"), ended(B, "parent"));
  assert.deepEqual(finish(), []);
  assert.equal(resolveAuthority(reader(at(6)), "b", "sub").fault?.code, "AUTHORITY_ENDED");
});

const forged: [string, RegExp, () => object[]][] = [
  ["twice", /created twice/, () => [entry(A), entry(A)]],
  ["by another agent's key", /not given by the agent/, () => [entry(A, { by: keyOf("eve") })]],
  ["by a key of no agent", /not given by the agent/, () => [entry(A, { by: { ...keyOf("boss"), agent_id: null } })]],
  ["below an unknown one", /was not in force/, () => [entry(B)]],
  ["below an ended one", /was not in force/, () => [entry(A), ended(A, "revoked"), entry(B, { at: at(6) })]],
  ["below one of another agent", /of another agent/, () => [entry(A), entry({ ...B, from: "eve" })]],
  ["beyond the time of the one above", /goes beyond/, () => [entry(A), entry({ ...B, until: at(51) })]],
];
for (const [name, expected, bodies] of forged)
  test(`an authority that is given ${name} is a fault`, () => assert.throws(() => fold(...bodies()), expected));

test("an end with other terms, a second one, one without a reason, and a missing one are faults", () => {
  fold(entry(A), entry(B));
  assert.throws(() => fold(ended(B, "parent")), /none of its ancestors did/);
  assert.throws(() => fold(ended({ ...A, tools: ["*"] }, "revoked")), /other members/);
  fold(ended(A, "revoked"));
  assert.match(finish().join(), /lacks the end of the authority b/);
  assert.throws(() => fold(ended(A, "revoked")), /no authority a to end/);
});

test("a chain of nine authorities is a fault", () => {
  const names = ["boss", "worker"];
  const link = (n: number): Terms => ({
    id: `c${n}`,
    from: names[n % 2] as string,
    to: names[(n + 1) % 2] as string,
    parent: n === 0 ? null : `c${n - 1}`,
  });
  fold(...Array.from({ length: 8 }, (_, n) => entry(link(n))));
  assert.throws(() => fold(entry(link(8))), /goes beyond/);
});

test("old ended authorities are forgotten, and then unknown, so agents cannot fill the memory", () => {
  fold(entry(A), entry(B), ended(A, "revoked"), ended(B, "parent"), entry({ ...A, id: "open" }));
  for (let n = 0; n < 2 * RETAINED_ENDED; n++)
    fold(entry({ ...A, id: `n${n}` }), ended({ ...A, id: `n${n}` }, "revoked"));
  assert.ok(state.all.size <= 2 * RETAINED_ENDED, String(state.all.size));
  assert.equal(resolveAuthority(reader(at(6)), "a", "worker").fault?.code, "AUTHORITY_UNKNOWN");
  assert.equal(resolveAuthority(reader(at(6)), "open", "worker").fault, null);
});

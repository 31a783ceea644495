/** `govern` returns of an output only what rules allow. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createAssent, govern, OutputWithheld, type Assent } from "../../../clients/typescript/index.ts";
import { makeKey, startService, type Service } from "../../support/service.ts";

const POLICY = `policy: work
rules: [{ name: all, effect: allow }]
results:
  - { name: numbers, tool: crm, match: { pattern: '[0-9]{3}-[0-9]{2}-[0-9]{4}' }, effect: redact }
  - { name: internal, tool: crm, match: { pattern: internal }, effect: withhold, reason: internal notes }
`;

let service: Service;
let isDown = false;
let sent: string[] = [];
let assent: Assent;
before(async () => {
  service = await startService({ policy: POLICY });
  const { key } = await makeKey(service, { name: "crm bot", preset: "agent", agent_id: "bot", owner: "ada" });
  assent = createAssent({
    url: "http://service.test",
    apiKey: key,
    retries: 0,
    fetch: (url, init) => {
      const request = new Request(url as string, init);
      const isInspection = new URL(request.url).pathname.endsWith("/inspect");
      if (isInspection) sent.push(request.url);
      return isDown && isInspection ? Promise.reject(new TypeError("down")) : service.runtime.fetch(request, {});
    },
  });
});
after(() => service.close());

let n = 0;
/** Runs a function that returns the value, or throws it if it is an error. */
function run(value: unknown, tool = "crm"): Promise<unknown> {
  const read = (): unknown => {
    if (value instanceof Error) throw value;
    return value;
  };
  return govern(read, { tool, operation: "read", assent })({ n: ++n });
}
const withheld = (value: unknown, words: RegExp): Promise<void> =>
  assert.rejects(run(value), (error: Error) => error instanceof OutputWithheld && words.test(error.message));

test("an output is returned as it is, redacted, or withheld", async () => {
  const same = { name: "Ada" };
  assert.deepEqual(await run(same), same);
  assert.equal(await run(undefined), undefined);
  assert.deepEqual(await run({ ssn: "078-05-1120" }), { ssn: "[redacted]" });
  await withheld("internal: fire Ada", /its output is withheld: internal notes \(action /);
});

test("errors are inspected, too", async () => {
  await assert.rejects(run(new RangeError("no customer")), RangeError);
  await assert.rejects(run(new Error("no 078-05-1120")), { message: "Error: no [redacted]" });
  await withheld(new Error("internal"), /internal notes/);
});

test("of an error, nothing passes that was not inspected, and its report contains nothing that was withheld", async () => {
  await withheld(new Error(`${"x".repeat(9500)} internal`), /internal notes/);
  for (const thrown of [
    Object.assign(new Error("failed"), { stdout: "078-05-1120" }),
    new Error("failed", { cause: "internal" }),
  ])
    await assert.rejects(run(thrown), (error: Error) => {
      assert.deepEqual(
        [error.message, Object.getOwnPropertyNames(error).sort()],
        ["Error: failed", ["message", "stack"]],
      );
      return true;
    });
  const throwObject = govern(
    () => {
      // eslint-disable-next-line typescript/only-throw-error
      throw { data: "internal" };
    },
    { tool: "crm", operation: "read", assent },
  );
  await assert.rejects(throwObject({ n: ++n }), { message: "[object Object]" });
  await assert.rejects(run(new Error("no 078-05-1121")), /no \[redacted\]/);
  await withheld(new Error("internal 2"), /internal notes/);
  const { actions } = (await service.call("GET", "/v1/actions?tool=crm&limit=200", { key: service.admin })).body;
  assert.doesNotMatch(JSON.stringify(actions), /internal 2|078-05-112/);
});

test("of a value, only what was inspected passes", async () => {
  const match = /Ada/.exec("internal: Ada");
  const result = await run(match);
  assert.deepEqual(JSON.stringify(result), '["Ada"]');
  assert.equal((result as { input?: string }).input, undefined);
});

test("an output that JSON cannot represent, or without a verdict, is withheld", async () => {
  await withheld(new Map([["ssn", "078-05-1120"]]), /not plain JSON/);
  await withheld("x".repeat(1_048_577), /no verdict \(/);
  isDown = true;
  await withheld("hello", /no verdict \(UNREACHABLE\)/);
  isDown = false;
});

test("an output to which no rule applies is not sent", async () => {
  sent = [];
  assert.equal(await run("078-05-1120", "files"), "078-05-1120");
  assert.deepEqual(sent, []);
});

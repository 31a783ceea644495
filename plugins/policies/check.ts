/** Routes for policy editors: validate a policy while a person types, and return what a policy can contain. */
import { Type, type Static } from "@sinclair/typebox";
import {
  closed,
  type CoreHost,
  countSchema,
  diffPolicies,
  listFunctions,
  listTools,
  listVariables,
  orNull,
  type PolicyDocument,
  PolicySchema,
  PolicyTestSchema,
  textSchema,
} from "../../src/core.ts";
import { defineRoute } from "../../src/plugin.ts";
import { findUnconfiguredNames } from "./policy-record.ts";
import { VersionChange } from "./schemas.ts";
import { findVersion, parseStoredDocument } from "./stored-policies.ts";

/** Maximum number of changes in a response. Low, because clients send requests while a person types. */
const MAX_CHANGES = 200;

const CheckBody = Type.Object(
  {
    yaml: Type.String({ description: "Policies as YAML, one or more documents. Can be faulty." }),
    tests: Type.Optional(
      Type.String({ description: "Tests of these policies, in the format of a `_test.yaml` file." }),
    ),
  },
  {
    ...closed,
    examples: [{ yaml: "policy: refunds\nrules:\n  - { name: small, tool: stripe, effect: allow }\n" }],
  },
);
type CheckBody = Static<typeof CheckBody>;

const Line = orNull(Type.Integer({ minimum: 1, description: "From 1; null if the fault has no position." }));
const Faults = (description: string) =>
  Type.Array(Type.Object({ line: Line, column: Line, detail: textSchema("One sentence for people.") }, closed), {
    description,
  });
const Named = (description: string) =>
  Type.Array(Type.Object({ name: Type.String(), type: textSchema("Such as `a string or null`.") }, closed), {
    description,
  });
const Tools = Type.Array(
  Type.Object(
    {
      tool: Type.String(),
      operation: orNull(textSchema("Null for every operation.")),
      params: Named("Declared parameters."),
    },
    closed,
  ),
  { description: "Tools that policies declare or name without wildcards." },
);

const Tests = Type.Object(
  {
    faults: Faults("Faults of the tests' text. No test runs if there is a fault."),
    passed: countSchema("Cases that passed."),
    failed: countSchema("Cases that failed."),
    results: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          line: Line,
          column: Line,
          effect: orNull(Type.Union([Type.Literal("allow"), Type.Literal("deny"), Type.Literal("require_approval")])),
          failure: orNull(textSchema("What differs; null if the case passed.")),
        },
        closed,
      ),
      { description: "At most 500 cases, in the order in which the test file lists them." },
    ),
  },
  closed,
);

const Checked = Type.Object(
  {
    faults: Faults("Empty if the policies can be stored."),
    warnings: Faults("The policies can be stored, but probably do not do what their author intended."),
    policies: Type.Array(
      Type.Object(
        {
          policy: Type.String(),
          compared_with: orNull(
            Type.Integer({
              description: "The active version, or the newest if none is active; null for a new policy.",
            }),
          ),
          changes: Type.Array(VersionChange, { description: `At most ${MAX_CHANGES}.` }),
          more_changes: countSchema("Changes that are not listed."),
        },
        closed,
      ),
      { description: "The policies of the text. Empty if it has a fault." },
    ),
    tests: orNull(Tests),
    variables: Named(
      "Named values of the policies (`let`, `data` and `facts`), and the attributes that they declare. Empty if the text has a fault.",
    ),
    tools: Tools,
  },
  {
    ...closed,
    examples: [
      {
        faults: [{ line: 3, column: 30, detail: "unknown key" }],
        warnings: [],
        policies: [],
        tests: null,
        variables: [],
        tools: [],
      },
    ],
  },
);

const Vocabulary = Type.Object(
  {
    schema: Type.Record(Type.String(), Type.Unknown(), { description: "JSON Schema of a policy." }),
    test_schema: Type.Record(Type.String(), Type.Unknown(), { description: "JSON Schema of the tests of policies." }),
    variables: Named("Variables of every condition, and their members."),
    functions: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          method: Type.Boolean({ description: "Called as `value.name()`." }),
          arity: Type.Array(Type.Integer(), { description: "Numbers of arguments that it accepts." }),
        },
        closed,
      ),
      { description: "Functions, methods and macros of conditions." },
    ),
    tools: Tools,
    channels: Type.Array(Type.String(), { description: "Configured channels." }),
    reviewers: Type.Array(Type.String(), { description: "Configured machine reviewers." }),
    fact_sources: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          inputs: Type.Array(Type.String(), { description: "Names of the inputs that a read needs." }),
        },
        closed,
      ),
      { description: "Configured fact sources." },
    ),
  },
  {
    ...closed,
    examples: [
      {
        schema: { type: "object" },
        test_schema: { type: "object" },
        variables: [{ name: "principal.owner", type: "a string or null" }],
        functions: [{ name: "startsWith", method: true, arity: [1] }],
        tools: [{ tool: "stripe", operation: "refund", params: [{ name: "amount", type: "an int" }] }],
        channels: ["ops"],
        reviewers: [],
        fact_sources: [{ name: "crm", inputs: ["id"] }],
      },
    ],
  },
);

/** Returns the routes for editors. */
export function editorRoutes(host: CoreHost, tag: string, bodyLimit: number) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/policies/check",
      tag,
      summary: "Check the text of policies",
      scope: "policies:read",
      body: CheckBody,
      bodyLimit,
      description:
        "Reports every fault and warning with its line and column, compares the policies with the ones that decide now, and runs their tests. Stores nothing. Faults of the text are part of the response, so that editors can request it while a person types.",
      responses: { 200: { description: "What the check found.", schema: Checked } },
      errors: ["TOO_MANY_TRIALS", "TRIAL_TOO_LONG", "TRIAL_LOST"],
      handle: async ({ body, signal }) => ({ status: 200, json: await check(host, body, signal) }),
    }),
    defineRoute({
      method: "GET",
      path: "/v1/policy-vocabulary",
      tag,
      summary: "List what a policy can contain",
      scope: "policies:read",
      description:
        "The schemas of policies and of their tests, the variables and functions of conditions, and the tools that active policies name. For completion in editors.",
      responses: { 200: { description: "The vocabulary.", schema: Vocabulary } },
      async handle() {
        const { compiled } = await host.policies.current();
        return {
          status: 200,
          json: {
            schema: PolicySchema as unknown as Record<string, unknown>,
            test_schema: PolicyTestSchema as unknown as Record<string, unknown>,
            variables: listVariables(),
            functions: listFunctions(),
            tools: listTools(compiled.document.policies.map(({ definition }) => definition)),
            channels: host.channels.names(),
            reviewers: host.reviewers.names(),
            fact_sources: host.factSources.list().map(({ name, inputs }) => ({ name, inputs: [...inputs] })),
          },
        };
      },
    }),
  ];
}

async function check(host: CoreHost, { yaml, tests }: CheckBody, signal: AbortSignal) {
  const found = await host.policies.trials.check({ yaml, tests: tests ?? null }, signal);
  const { documents, faults, warnings } = found;
  const unknown = findUnconfiguredNames(host, documents);
  return {
    faults: faults.map(renderFault),
    warnings: [...warnings, ...unknown.map(({ message }) => ({ detail: message }))].map(renderFault),
    policies: await Promise.all(documents.map((document) => compareWithStored(host, document))),
    tests: found.tests === null ? null : { ...found.tests, faults: found.tests.faults.map(renderFault) },
    variables: found.variables,
    tools: found.tools,
  };
}

function renderFault({ line, column, detail }: { line?: number; column?: number; detail: string }) {
  return { line: line ?? null, column: column ?? null, detail };
}

/** Compares a policy with its active version, or with the newest version if none is active. */
async function compareWithStored({ storage }: CoreHost, document: PolicyDocument) {
  const row = await storage.policyByName(document.policy);
  if (row === null || row.deleted_at !== null)
    return { policy: document.policy, compared_with: null, changes: [], more_changes: 0 };
  const version = await findVersion(storage, row, row.active_version ?? row.latest_version);
  const changes = diffPolicies(parseStoredDocument(version), document);
  return {
    policy: document.policy,
    compared_with: version.version,
    changes: changes.slice(0, MAX_CHANGES),
    more_changes: Math.max(0, changes.length - MAX_CHANGES),
  };
}

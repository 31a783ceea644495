/** Coverage statements, which compare the effects in other systems' logs with the ledger. */
import { type CoreHost, defineCorePlugin, encodeCursor } from "../../src/core.ts";
import {
  type Credential,
  DEFAULT_LIMIT,
  defineRoute,
  defineScopes,
  type Gauge,
  nextLink,
  parseRfc3339,
  Refusal,
} from "../../src/plugin.ts";
import { coverageAuditor } from "./audit.ts";
import { COVERAGE_ENTRY, CoverageStatement } from "./coverage-statement.ts";
import { listExecutions } from "./executions.ts";
import { gapNotice } from "./notice.ts";
import { CoverageOptions } from "./options.ts";
import * as schema from "./schemas.ts";
import { listCurrentStatements, listStatements, recordStatement } from "./statements.ts";

const TAG = "coverage";
const scopes = defineScopes("coverage", ["write"]);

export default defineCorePlugin({
  name: "coverage",
  scopes,
  options: CoverageOptions,
  entries: { [COVERAGE_ENTRY]: CoverageStatement },
  auditors: [coverageAuditor],
  notices: [gapNotice],
  setup: (host) => ({ routes: routes(host), gauges: gauges(host) }),
});

function routes(host: CoreHost) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/coverage",
      tag: TAG,
      summary: "List coverage statements, newest first",
      scope: "provenance:read",
      query: schema.StatementQuery,
      responses: { 200: { description: "A page.", schema: schema.StatementList } },
      errors: ["INVALID_CURSOR", "RECORD_ALTERED"],
      async handle({ query, credential }) {
        assertSeesAll(credential);
        const { limit = DEFAULT_LIMIT, ...rest } = query;
        const { statements, last } = await listStatements(host, { limit, ...rest });
        const next_cursor = last === null ? null : encodeCursor("coverage", last);
        return {
          status: 200,
          json: { statements, next_cursor },
          headers: nextLink("/v1/coverage", query, next_cursor),
        };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/coverage",
      tag: TAG,
      summary: "Record a coverage statement",
      description:
        "`assent reconcile` compares a source's log with the ledger and sends the result. The service counts the successful actions of the window again, and rejects a statement that does not account for each of them.",
      scope: scopes.write,
      body: CoverageStatement,
      responses: { 201: { description: "The statement.", schema: schema.StatementRecord } },
      async handle({ body, credential }) {
        assertSeesAll(credential);
        return { status: 201, json: await recordStatement(host, credential, scopes.write, body) };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/coverage/executions",
      tag: TAG,
      summary: "List starts and results of actions, oldest first",
      description: "With the parameters that ran. For comparing effects in other systems with the ledger.",
      scope: scopes.write,
      query: schema.ExecutionQuery,
      responses: { 200: { description: "A page.", schema: schema.ExecutionList } },
      errors: ["INVALID_CURSOR", "RECORD_ALTERED"],
      async handle({ query, credential }) {
        assertSeesAll(credential);
        if (!credential.hasScope("actions:read"))
          throw new Refusal("INSUFFICIENT_SCOPE", `the key "${credential.key.name}" lacks the scope actions:read`);
        const { limit = 500, ...rest } = query;
        const { executions, next } = await listExecutions(host, { limit, ...rest });
        const next_cursor = next === null ? null : encodeCursor("executions", next);
        return { status: 200, json: { executions, next_cursor } };
      },
    }),
  ];
}

/** Rejects credentials that see only some of the actions, because statements cover all of them. */
function assertSeesAll({ key, visibility }: Credential): void {
  if (!("all" in visibility))
    throw new Refusal(
      "INSUFFICIENT_SCOPE",
      `the key "${key.name}" sees only some of the actions, and coverage statements are about all of them`,
    );
}

function gauges(host: CoreHost): Gauge[] {
  return [
    {
      name: "assent_coverage_effects",
      help: "Effects in the newest coverage statement of each source, and actions without an effect (missing). Unmatched and missing also include other windows of its last day that were not compared again.",
      labels: ["source", "result"],
      async read() {
        return (await listCurrentStatements(host)).flatMap(({ newest: { source, effects }, gaps }) =>
          Object.entries({
            matched: effects.matched,
            unmatched: gaps.reduce((sum, gap) => sum + gap.effects.unmatched, 0),
            unknown: effects.unknown,
            missing: gaps.reduce((sum, gap) => sum + gap.actions.missing, 0),
          }).map(([result, value]) => ({ labels: { source, result }, value })),
        );
      },
    },
    {
      name: "assent_coverage_window_end_seconds",
      help: "End of the window of the newest coverage statement of each source, as a Unix time.",
      labels: ["source"],
      read: async () =>
        (await listCurrentStatements(host)).map(({ newest: { source, to } }) => ({
          labels: { source },
          value: (parseRfc3339(to) ?? 0) / 1000,
        })),
    },
  ];
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    coverage: typeof routes;
  }
}

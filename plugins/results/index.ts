/** Inspects what tools return before the agent gets it, and labels sessions by what they have read. */
import { type CoreHost, defineCorePlugin, type JsonValue, orNull } from "../../src/core.ts";
import { defineRoute, type Fold, Type } from "../../src/plugin.ts";
import { IdParams } from "../actions/api.ts";
import { resultAuditor } from "./audit.ts";
import { INSPECTION, InspectionData, LabelList, LABELS, LabelsData } from "./entry.ts";
import { ERRORS, inspectOutput, resultReaction } from "./inspect.ts";
import { findResultRules, listKeptPaths } from "./judge.ts";
import { findLabels, labelState } from "./state.ts";

/** Maximum size of an output with its envelope. Clients withhold a larger output. */
const BODY_BYTES = 1_048_576;

const Body = Type.Object(
  {
    output: Type.Unknown({ description: "What the tool returned: text or JSON, such as the result of an MCP call." }),
    media_type: Type.Optional(
      Type.String({ maxLength: 200, description: "Media type of the output, if it is known." }),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ output: { content: [{ type: "text", text: "AKIAIOSFODNN7EXAMPLE" }] } }],
  },
);

const Reply = Type.Object(
  {
    verdict: Type.Union([Type.Literal("allow"), Type.Literal("redact"), Type.Literal("withhold")]),
    output: Type.Optional(
      Type.Unknown({
        description: "What the agent may get. Absent if the output is withheld, and if it is unchanged.",
      }),
    ),
    labels: LabelList,
    rule: orNull(
      Type.Object(
        { policy: Type.String(), rule: Type.String() },
        { additionalProperties: false, description: "The rule that decides." },
      ),
    ),
    kept: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          "Members of the output that histories keep (`history.keep`). Report them in `meta` of the result. Absent if there are none.",
      }),
    ),
    reason: orNull(Type.String({ description: "For the agent. Null if the output is passed on unchanged." })),
  },
  {
    title: "Inspection",
    additionalProperties: false,
    examples: [
      {
        verdict: "redact",
        output: { content: [{ type: "text", text: "[redacted]" }] },
        labels: ["external_content"],
        rule: { policy: "outputs", rule: "access keys" },
        reason: 'redacted by rule "access keys" of policy "outputs"',
      },
    ],
  },
);

export default defineCorePlugin({
  name: "results",
  needs: ["actions"],
  errors: ERRORS,
  entries: { [INSPECTION]: InspectionData, [LABELS]: LabelsData },
  folds: [labelState as Fold<unknown>],
  reactions: [resultReaction],
  auditors: [resultAuditor],
  setup: (host) => ({
    routes: routes(host),
    steps: [
      {
        name: "results",
        ruleFacts: (states, _, { agent_id, session }) => {
          const labels = findLabels(states, agent_id, session);
          return labels.length === 0 ? {} : { labels };
        },
        inspectsOutput: (policies, action) =>
          findResultRules(policies, action).length > 0 || listKeptPaths(policies, action).length > 0,
      },
    ],
  }),
});

function routes(host: CoreHost) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/actions/:id/inspect",
      tag: "actions",
      summary: "Inspect an output",
      scope: "actions:execute",
      params: IdParams,
      body: Body,
      bodyLimit: BODY_BYTES,
      queued: true,
      confirmsCredential: true,
      description:
        "For the key that started the action, before it reports the result, if the action has `inspect`. Pass on only what the response contains. If there is no response, or the output is too large, pass nothing on. The service stores a commitment to the output and its size, never the output.",
      responses: { 200: { description: "The verdict.", schema: Reply } },
      errors: [
        "ACTION_NOT_FOUND",
        "ACTION_NOT_STARTED",
        "NOT_THE_EXECUTOR",
        "ACTION_ERASED",
        "RECORD_ALTERED",
        ERRORS.tooMany,
      ],
      async handle({ credential, params: { id }, body }) {
        const sent = { output: body.output as JsonValue, mediaType: body.media_type ?? null };
        const { output, ...inspection } = await inspectOutput(host, credential, id, sent);
        return { status: 200, json: inspection.verdict === "redact" ? { ...inspection, output } : inspection };
      },
    }),
  ];
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    results: typeof routes;
  }
}

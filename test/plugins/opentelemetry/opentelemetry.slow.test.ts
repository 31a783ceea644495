/** Traces of a real service, received by an OTLP/HTTP receiver. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import plugin from "../../../plugins/opentelemetry/index.ts";
import { definePlugin } from "../../../src/plugin.ts";
import { startReceiver, type Receiver } from "../../support/receiver.ts";
import { startService, type Service } from "../../support/service.ts";
import { until } from "../../support/wait.ts";

/** The JSON encoding of OTLP (opentelemetry-proto, trace.proto), as far as the tests read it. */
interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: { stringValue?: string; intValue?: number } }[];
  links?: { traceId: string; spanId: string }[];
  status?: { code?: number };
}

const POLICY = `policy: orders
applies_to: { tools: ["shop"] }
rules:
  - name: small
    when: params.amount < 100
    effect: allow
    reason: small
  - name: large
    effect: require_approval
    reason: large
`;
const AGENT_TRACE = "0af7651916cd43dd8448eb211c80319c";
const AGENT_SPAN = "b7ad6b7169203331";
const PERSON_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const traceparent = (trace: string, span = AGENT_SPAN): string => `00-${trace}-${span}-01`;

const attribute = (span: OtlpSpan, key: string): unknown => {
  const value = span.attributes.find((one) => one.key === key)?.value;
  return value?.stringValue ?? value?.intValue;
};

describe("traces", () => {
  let collector: Receiver;
  let service: Service;
  let resource: OtlpSpan["attributes"] = [];
  before(async () => {
    // The SDK exports every 5 seconds unless told otherwise.
    process.env["OTEL_BSP_SCHEDULE_DELAY"] = "20";
    collector = await startReceiver();
    service = await startService({
      policy: POLICY,
      change: (config) => (config.log.level = "debug"),
      plugins: [
        {
          plugin,
          options: { traces: "otlp", endpoint: `http://127.0.0.1:${collector.port}/v1/traces`, service_name: "gate" },
          origin: "opentelemetry",
        },
      ],
    });
  });
  after(async () => {
    // The receiver also after a failed start, because it keeps the process alive.
    await collector.close();
    await service.close();
  });

  const received = (): OtlpSpan[] =>
    collector.received.flatMap(({ body }) =>
      (JSON.parse(body) as { resourceSpans: any[] }).resourceSpans.flatMap((one) => {
        resource = one.resource.attributes;
        return one.scopeSpans.flatMap(({ spans }: { spans: OtlpSpan[] }) => spans);
      }),
    );
  /** Resolves to the first span that passes, once the batch that contains it was exported. */
  async function span(test: (span: OtlpSpan) => boolean): Promise<OtlpSpan> {
    await collector.next(() => received().some(test));
    return received().find(test) as OtlpSpan;
  }
  const submit = (amount: number, headers: Record<string, string> = {}) =>
    service.call("POST", "/v1/actions", {
      key: service.agent,
      headers,
      body: { agent_id: "bot", tool: "shop", operation: "order", params: { amount } },
    });
  async function approve(id: string, headers: Record<string, string>) {
    const { body: record } = await service.call("GET", `/v1/actions/${id}`, { key: service.admin });
    return service.call("POST", `/v1/actions/${id}/approval`, {
      key: service.admin,
      headers,
      body: { approve: true, token: record.approval_token },
    });
  }

  test("a submission continues the agent's trace, with one span for each stage of the decision", async () => {
    const { body } = await submit(5, { traceparent: traceparent(AGENT_TRACE) });
    const server = await span((one) => attribute(one, "assent.action.id") === body.id);
    assert.equal(server.traceId, AGENT_TRACE);
    assert.equal(server.parentSpanId, AGENT_SPAN);
    assert.equal(server.name, "POST /v1/actions");
    assert.equal(server.kind, 2, "SPAN_KIND_SERVER");
    assert.equal(attribute(server, "http.response.status_code"), 200);
    assert.equal(attribute(server, "assent.decision"), "allow");
    assert.equal(attribute(server, "assent.rule"), "small");
    assert.equal(server.links?.length ?? 0, 0, "the submission links to nothing");
    const stages = received().filter(({ parentSpanId }) => parentSpanId === server.spanId);
    assert.deepEqual(
      stages.map(({ name }) => name),
      ["authenticate", "read_body", "queue", "decide", "commit"].map((stage) => `assent.${stage}`),
    );
    for (const stage of stages) {
      assert.equal(stage.traceId, AGENT_TRACE);
      assert.ok(BigInt(stage.startTimeUnixNano) <= BigInt(stage.endTimeUnixNano));
    }
    assert.ok(
      resource.some(({ key, value }) => key === "service.name" && value.stringValue === "gate"),
      "the resource names the service",
    );
    assert.ok(!JSON.stringify(received()).includes("amount"), "no parameters");
  });

  test("after the wait for an approval, the vote links to the submission, and the execution is in its trace", async () => {
    const { body } = await submit(500, { traceparent: traceparent(AGENT_TRACE) });
    assert.equal(body.status, "pending_approval");
    const vote = await approve(body.id, { traceparent: traceparent(PERSON_TRACE) });
    assert.equal(vote.body.status, "approved", JSON.stringify(vote.body));
    const start = await service.call("POST", `/v1/actions/${body.id}/start`, { key: service.agent, body: {} });
    assert.equal(start.status, 200);
    await service.call("POST", `/v1/actions/${body.id}/result`, { key: service.agent, body: { success: false } });

    const voted = await span((one) => one.name.endsWith("/approval") && attribute(one, "assent.action.id") === body.id);
    assert.equal(voted.traceId, PERSON_TRACE);
    assert.deepEqual(
      voted.links?.map(({ traceId, spanId }) => [traceId, spanId]),
      [[AGENT_TRACE, AGENT_SPAN]],
    );
    const tool = await span((one) => one.name === "execute_tool shop");
    assert.equal(tool.traceId, AGENT_TRACE);
    assert.equal(tool.kind, 1, "SPAN_KIND_INTERNAL");
    assert.equal(attribute(tool, "gen_ai.operation.name"), "execute_tool");
    assert.equal(attribute(tool, "gen_ai.tool.name"), "shop");
    assert.equal(attribute(tool, "gen_ai.agent.id"), "bot");
    assert.equal(attribute(tool, "error.type"), "_OTHER");
    assert.equal(tool.status?.code, 2);
    const reported = await span((one) => one.name === "POST /v1/actions/:id/result");
    assert.equal(tool.links?.[0]?.spanId, reported.spanId);
  });

  test("without a trace of the client, later requests link to the service's own span of the submission", async () => {
    const { body } = await submit(700);
    const server = await span((one) => attribute(one, "assent.action.id") === body.id);
    assert.equal(body.meta.traceparent, traceparent(server.traceId, server.spanId));
    await approve(body.id, {});
    const voted = await span((one) => one.name.endsWith("/approval") && attribute(one, "assent.action.id") === body.id);
    assert.notEqual(voted.traceId, server.traceId);
    assert.equal(voted.links?.[0]?.spanId, server.spanId);
  });

  test("log lines of a traced request have its ids", async () => {
    const trace = "1af7651916cd43dd8448eb211c803199";
    await submit(6, { traceparent: traceparent(trace) });
    const lines = () => service.logged.map((line) => JSON.parse(line) as Record<string, string>);
    // Lines below "warn" are written in a later turn.
    await until("the line of the request is written", () => lines().some((line) => line["trace_id"] === trace));
    const line = lines().find((one) => one["trace_id"] === trace);
    assert.equal(line?.["message"], "request");
    assert.match(line?.["span_id"] ?? "", /^[0-9a-f]{16}$/);
    assert.ok(
      lines().some((one) => one["trace_id"] === undefined),
      "lines that no request caused have no ids",
    );
  });
});

test("a tracer that throws affects no decision", async () => {
  const broken = definePlugin({
    name: "broken-tracer",
    setup: () => ({
      tracer: {
        startRequest: () => {
          const fail = (): never => {
            throw new Error("tracer bug");
          };
          return {
            traceId: "0",
            spanId: "0",
            traceparent: "x",
            addStage: fail,
            describeAction: fail,
            addExecution: fail,
            end: fail,
          };
        },
      },
    }),
  });
  const service = await startService({ plugins: [{ plugin: broken, options: {}, origin: "test" }], policy: POLICY });
  try {
    const { status, body } = await service.call("POST", "/v1/actions", {
      key: service.admin,
      body: { agent_id: "bot", tool: "shop", operation: "order", params: { amount: 1 } },
    });
    assert.deepEqual([status, body.status], [200, "allowed"]);
    assert.ok(service.logged.some((line) => line.includes("tracer bug")));
  } finally {
    await service.close();
  }
});

test("two plugins cannot both contribute a tracer", async () => {
  const plugins = ["first", "second"].map((name) => ({
    plugin: definePlugin({ name, setup: () => ({ tracer: { startRequest: () => null } }) }),
    options: {},
    origin: name,
  }));
  await assert.rejects(startService({ plugins }), /the tracer is already used by plugin "first"/);
});

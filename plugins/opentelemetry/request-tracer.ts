/** Records requests, their stages and the executions of tools as spans. */
import {
  type Attributes,
  type Context,
  createTraceState,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer as SpanTracer,
} from "@opentelemetry/api";
import {
  isTraceparent,
  type RequestTrace,
  type TracedAction,
  type TracedExecution,
  type Tracer,
} from "../../src/plugin.ts";

/** Returns the tracer of the service. The span of a request is a child of the span in the request's `traceparent`. */
export function createRequestTracer(spans: SpanTracer): Tracer {
  return {
    startRequest({ method, headers }) {
      const parent = parseTraceparent(headers.get("traceparent"), headers.get("tracestate"));
      const context = parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
      const span = spans.startSpan(
        method,
        { kind: SpanKind.SERVER, attributes: { "http.request.method": method } },
        context,
      );
      return createRequestTrace(spans, span, parent, method);
    },
  };
}

function createRequestTrace(spans: SpanTracer, span: Span, parent: SpanContext | null, method: string): RequestTrace {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const inside = trace.setSpan(ROOT_CONTEXT, span);
  return {
    traceId,
    spanId,
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`,
    addStage(stage, start, end) {
      spans.startSpan(`assent.${stage}`, { startTime: toEpoch(start) }, inside).end(toEpoch(end));
    },
    describeAction(action) {
      span.setAttributes(actionAttributes(action));
      const link = linkTo(action.submission, [parent, span.spanContext()]);
      if (link !== null) span.addLink(link);
    },
    addExecution: (action, execution) => addExecution(spans, inside, span, action, execution),
    end({ route, status }) {
      span.updateName(route === null ? method : `${method} ${route}`);
      span.setAttribute("http.response.status_code", status);
      if (route !== null) span.setAttribute("http.route", route);
      if (status >= 500) {
        span.setAttribute("error.type", String(status));
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end();
    },
  };
}

/**
 * Adds the span of a tool's execution (GenAI conventions, `execute_tool`). The tool ran between two requests, so the
 * span belongs to the trace of the submission, and links to the request that reported the result.
 */
function addExecution(
  spans: SpanTracer,
  inside: Context,
  reported: Span,
  action: TracedAction,
  { started_at, ended_at, success }: TracedExecution,
): void {
  const submission = parseTraceparent(action.submission, null);
  const context = submission === null ? inside : trace.setSpanContext(ROOT_CONTEXT, submission);
  const span = spans.startSpan(
    `execute_tool ${action.tool}`,
    {
      kind: SpanKind.INTERNAL,
      startTime: started_at,
      attributes: {
        ...actionAttributes(action),
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": action.tool,
        "gen_ai.tool.call.id": action.id,
        "gen_ai.agent.id": action.agent_id,
      },
      links: [{ context: reported.spanContext() }],
    },
    context,
  );
  if (!success) {
    span.setAttribute("error.type", "_OTHER");
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end(ended_at);
}

function actionAttributes({ id, agent_id, tool, operation, ...decided }: TracedAction): Attributes {
  return {
    "assent.action.id": id,
    "assent.agent.id": agent_id,
    "assent.tool": tool,
    "assent.operation": operation,
    "assent.action.status": decided.status,
    "assent.decision": decided.decision,
    "assent.decision.reason_code": decided.reason_code,
    ...(decided.policy === null ? {} : { "assent.policy": decided.policy }),
    ...(decided.rule === null ? {} : { "assent.rule": decided.rule }),
  };
}

/** Returns a link to the span in `traceparent`. Null if the string contains no span, or a span in `except`. */
function linkTo(traceparent: string | null, except: readonly (SpanContext | null)[]): Link | null {
  const context = parseTraceparent(traceparent, null);
  if (context === null) return null;
  const isExcepted = except.some(
    (candidate) => candidate?.traceId === context.traceId && candidate.spanId === context.spanId,
  );
  return isExcepted ? null : { context };
}

function parseTraceparent(text: string | null, state: string | null): SpanContext | null {
  if (text === null || !isTraceparent(text)) return null;
  const [, traceId, spanId, flags] = text.split("-") as [string, string, string, string];
  return {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & 1,
    isRemote: true,
    ...(state === null ? {} : { traceState: createTraceState(state) }),
  };
}

/** Converts a time of `performance.now()` into milliseconds since the epoch. */
function toEpoch(time: number): number {
  return performance.timeOrigin + time;
}

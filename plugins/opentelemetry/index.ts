/**
 * Exports the traces of requests with OpenTelemetry. The SDK is an optional peer dependency, which is loaded only if
 * traces are enabled. With `traces: global`, spans go to the provider that another module registered, for example with
 * `node --import`.
 */
import type { TracerProvider } from "@opentelemetry/api";
import { definePlugin, type Tracer, Type } from "../../src/plugin.ts";
import { createRequestTracer } from "./request-tracer.ts";
import { globalProvider, startProvider } from "./providers.ts";

const Options = Type.Object(
  {
    traces: Type.Union([Type.Literal("off"), Type.Literal("otlp"), Type.Literal("global")], {
      default: "off",
      description:
        "`otlp`: exports with OTLP over HTTP. `global`: uses the tracer provider that another module registered.",
    }),
    endpoint: Type.Optional(
      Type.String({
        pattern: "^https?://",
        maxLength: 2048,
        description:
          "Address that receives traces, such as http://127.0.0.1:4318/v1/traces. Default: OTEL_EXPORTER_OTLP_ENDPOINT.",
      }),
    ),
    service_name: Type.String({ default: "assent", minLength: 1, maxLength: 200 }),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "opentelemetry",
  options: Options,
  async setup(_host, options) {
    if (options.traces === "off") return {};
    if (options.traces === "global") return { tracer: tracerOf(globalProvider()) };
    const { provider, shutdown } = await startProvider(options);
    return { tracer: tracerOf(provider), stop: () => shutdown() };
  },
});

function tracerOf(provider: TracerProvider): Tracer {
  return createRequestTracer(provider.getTracer("assent"));
}

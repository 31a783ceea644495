/** Tracer providers: the plugin's own SDK provider, and a provider that another module registered globally. */
import { trace, type TracerProvider } from "@opentelemetry/api";

/** SDK packages that the operator has to install. */
const SDK_PACKAGES = [
  "@opentelemetry/sdk-trace-base",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
] as const;

/** Maximum wait for the last export, so that an unreachable collector does not delay a shutdown. */
const SHUTDOWN_MS = 5000;

/** Returns the provider that was registered globally. Spans are dropped if there is none. */
export function globalProvider(): TracerProvider {
  return trace.getTracerProvider();
}

/** Creates a provider that exports with OTLP over HTTP. Rejects with a readable Error if the SDK is not installed. */
export async function startProvider(options: {
  endpoint?: string;
  service_name: string;
}): Promise<{ provider: TracerProvider; shutdown(): Promise<void> }> {
  const [base, exporter, resources] = await loadSdk();
  const configured = resources.resourceFromAttributes({ "service.name": options.service_name });
  const provider = new base.BasicTracerProvider({
    // OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME override the configuration.
    resource: configured.merge(resources.detectResources({ detectors: [resources.envDetector] })),
    spanProcessors: [
      new base.BatchSpanProcessor(
        new exporter.OTLPTraceExporter(options.endpoint === undefined ? {} : { url: options.endpoint }),
      ),
    ],
  });
  return { provider, shutdown: () => withinTime(provider.shutdown()) };
}

async function loadSdk() {
  try {
    return await Promise.all([
      import("@opentelemetry/sdk-trace-base"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
    ]);
  } catch (error) {
    throw new Error(`the SDK of OpenTelemetry cannot be loaded; run "npm install ${SDK_PACKAGES.join(" ")}"`, {
      cause: error,
    });
  }
}

async function withinTime(work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, SHUTDOWN_MS);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/**
 * Exports the ledger as OCSF events to files, HTTP collectors and NATS JetStream. Without options, it exports nothing.
 */
import { type CoreHost, defineCorePlugin } from "../../src/core.ts";
import { type Static, Type } from "../../src/plugin.ts";
import { createEventExport } from "./event-export.ts";
import { createFileSink } from "./file-sink.ts";
import { createHttpSink } from "./http-sink.ts";
import { createNatsSink } from "./nats-sink.ts";
import type { Sink } from "./sink.ts";

const Text = Type.String({ minLength: 1, maxLength: 4000 });
const FileExport = Type.Object({ file: Text }, { additionalProperties: false });
const HttpExport = Type.Object(
  {
    url: Type.String({ pattern: "^https?://", maxLength: 2000 }),
    headers: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 4000 }))),
    allow_private: Type.Optional(Type.Boolean()),
    tls_ca_file: Type.Optional(Text),
    timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 600 })),
  },
  { additionalProperties: false },
);
const NatsExport = Type.Object(
  {
    nats: Type.Array(Text, { minItems: 1, maxItems: 20, description: "Addresses of NATS servers." }),
    subject: Type.String({ pattern: "^[^\\s*>]{1,200}$", description: "Subject that a stream of JetStream stores." }),
    user: Type.Optional(Text),
    password: Type.Optional(Text),
    token: Type.Optional(Text),
  },
  { additionalProperties: false },
);
const Options = Type.Object(
  {
    exports: Type.Record(
      Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,62}$" }),
      Type.Union([FileExport, HttpExport, NatsExport]),
      {
        default: {},
        description: "Exports, keyed by name. An export with a new name starts at the first entry of the ledger.",
      },
    ),
  },
  { additionalProperties: false },
);

export default defineCorePlugin({
  name: "ocsf",
  options: Options,
  setup(host: CoreHost, options) {
    const sinks = Object.entries(options.exports).map(([name, one]) => ({ name, sink: createSink(name, one) }));
    let exports: ReturnType<typeof createEventExport>[] = [];
    return {
      gauges: [
        {
          name: "assent_export_lag_entries",
          help: "Ledger entries that the sink of an export has not confirmed.",
          labels: ["export"],
          read: () =>
            Promise.all(exports.map(async ({ name, lag }) => ({ labels: { export: name }, value: await lag() }))),
        },
      ],
      async start() {
        exports = sinks.map(({ name, sink }) => createEventExport(host, name, sink));
        for (const each of exports) each.start();
      },
      async stop() {
        await Promise.all(exports.splice(0).map((each) => each.stop()));
      },
    };
  },
});

type Export = Static<typeof Options>["exports"][string];

function createSink(name: string, options: Export): Sink {
  if ("file" in options) return createFileSink(options.file);
  if ("url" in options) return createHttpSink(name, options);
  const { nats, ...rest } = options;
  return createNatsSink({ servers: nats, ...rest });
}

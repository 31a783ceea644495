import { readFileSync } from "node:fs";
import { Type } from "@sinclair/typebox";
import { definePlugin } from "../../src/plugin.ts";
import { postgresStorage } from "./postgres-storage.ts";

export { postgresStorage, type PostgresStorageOptions } from "./postgres-storage.ts";

export default definePlugin({
  name: "storage-postgres",
  options: Type.Object(
    {
      url: Type.Optional(
        Type.String({
          minLength: 1,
          description: "postgres://user:password@host:port/database. Default: `database_url` of the configuration.",
        }),
      ),
      pool_size: Type.Integer({
        default: 8,
        minimum: 1,
        maximum: 1000,
        description:
          "Number of connections for reads. Three more connections are for writes, for notifications, and for the table of processes.",
      }),
      statement_timeout_ms: Type.Integer({
        default: 30_000,
        minimum: 100,
        maximum: 3_600_000,
        description: "Longest statement.",
      }),
      silence_timeout_ms: Type.Integer({
        default: 2_500,
        minimum: 100,
        maximum: 3_600_000,
        description:
          "Maximum pause between the statements of a transaction. A frozen process blocks the others for at most this time.",
      }),
      lock_timeout_ms: Type.Integer({
        default: 10_000,
        minimum: 100,
        maximum: 3_600_000,
        description: "Timeout for the ledger's lock.",
      }),
      connect_timeout_ms: Type.Integer({
        default: 10_000,
        minimum: 1000,
        maximum: 600_000,
        description: "Timeout for a connection.",
      }),
      accept_unsafe_server: Type.Boolean({
        default: false,
        description:
          "Accepts a server that has `fsync` or `full_page_writes` off. Only for underlying storage that compensates for it.",
      }),
      notify: Type.Boolean({
        default: true,
        description:
          "Notifies the other processes of each commit with NOTIFY. Use `false` for a server without NOTIFY: the processes then poll four times a second.",
      }),
      statement_triggers: Type.Boolean({
        default: true,
        description:
          "`false` for a server that supports only row triggers. Then only the role's rights can prevent a TRUNCATE.",
      }),
      tls: Type.Union(
        [Type.Literal("from-url"), Type.Literal("disable"), Type.Literal("require"), Type.Literal("verify-full")],
        {
          default: "from-url",
          description:
            "`from-url` uses the `sslmode` of the URL. `require` encrypts and trusts any certificate; `verify-full` verifies it.",
        },
      ),
      tls_ca_file: Type.Optional(
        Type.String({
          minLength: 1,
          description:
            "With `verify-full`: PEM file with the certificate of the authority that signed the server's certificate, if the system does not trust it.",
        }),
      ),
    },
    { additionalProperties: false },
  ),
  storage(host, options) {
    const url = options.url ?? host.databaseUrl;
    if (url === null) throw new Error("no address is configured; set database_url, DATABASE_URL, or the option url");
    return postgresStorage({
      url,
      poolSize: options.pool_size,
      statementTimeoutMs: options.statement_timeout_ms,
      silenceTimeoutMs: options.silence_timeout_ms,
      lockTimeoutMs: options.lock_timeout_ms,
      connectTimeoutMs: options.connect_timeout_ms,
      tls: options.tls,
      acceptUnsafeServer: options.accept_unsafe_server,
      notify: options.notify,
      statementTriggers: options.statement_triggers,
      ...(options.tls_ca_file === undefined ? {} : { ca: authority(options.tls_ca_file, options.tls) }),
    });
  },
});

function authority(path: string, tls: string): string {
  if (tls !== "verify-full") throw new Error(`tls_ca_file requires tls: verify-full; got ${tls}`);
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`tls_ca_file cannot be read: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

import { Type, type Static } from "@sinclair/typebox";

/** `assent.yaml`. Every key is optional; the defaults serve one machine from the working folder. */
export const ConfigSchema = Type.Object(
  {
    server: Type.Object(
      {
        host: Type.String({ default: "127.0.0.1", description: "Address to listen on. ASSENT_HOST wins." }),
        port: Type.Integer({ default: 8000, minimum: 0, maximum: 65535, description: "Port; 0 picks a free one and prints it. ASSENT_PORT wins." }),
        public_url: Type.Union([Type.String(), Type.Null()], { default: null, description: "How people reach the service, for links. ASSENT_PUBLIC_URL wins." }),
        max_body_bytes: Type.Integer({ default: 1_048_576, minimum: 1024, maximum: 67_108_864, description: "Largest request body, in bytes." }),
        max_wait_seconds: Type.Integer({ default: 60, minimum: 0, maximum: 3600, description: "Longest wait that `Prefer: wait` and `?wait` are granted." }),
      },
      { default: {}, additionalProperties: false, description: "The HTTP server." },
    ),
    data: Type.String({ default: "./data", description: "Folder of the embedded store and of generated keys. ASSENT_DATA wins." }),
    policies: Type.String({ default: "./policies", description: "Folder that the policy-files plugin loads. ASSENT_POLICIES wins." }),
    database_url: Type.Union([Type.String(), Type.Null()], { default: null, description: "Postgres instead of the embedded store. DATABASE_URL wins." }),
    secret: Type.Union([Type.String({ minLength: 32 }), Type.Null()], { default: null, description: "Secret that approval tokens are derived from, at least 32 characters; generated into the data folder when absent. ASSENT_SECRET wins." }),
    admin_key: Type.Union([Type.String(), Type.Null()], { default: null, description: "Seeds the first admin key of an empty store. ASSENT_ADMIN_KEY wins." }),
    log: Type.Object(
      {
        level: Type.Union([Type.Literal("debug"), Type.Literal("info"), Type.Literal("warn"), Type.Literal("error"), Type.Literal("silent")], { default: "info", description: "Least severe message that is written." }),
      },
      { default: {}, additionalProperties: false, description: "The service's own log, one JSON object a line on standard error." },
    ),
    ledger: Type.Object(
      {
        origin: Type.Union([Type.String({ minLength: 1, maxLength: 255 }), Type.Null()], { default: null, description: "Name of the log in checkpoints. Kept with the store after the first start. ASSENT_LOG_ORIGIN wins." }),
        key: Type.Union([Type.String(), Type.Null()], { default: null, description: "Ed25519 private key that signs checkpoints and permits: PKCS#8 PEM or a file's path; generated into the data folder when absent. ASSENT_LOG_KEY wins." }),
        max_batch: Type.Integer({ default: 256, minimum: 1, maximum: 4096, description: "Most jobs in one transaction." }),
        verify_at_start: Type.Integer({ default: 65_536, minimum: 0, description: "How many of the newest entries are hashed again at start, besides the tree's right edge." }),
      },
      { default: {}, additionalProperties: false, description: "The ledger." },
    ),
    approvals: Type.Object(
      {
        allow_self_approval: Type.Boolean({ default: false, description: "Lets the submitter approve its own action, for working alone. Each such approval is recorded as a self-approval." }),
      },
      { default: {}, additionalProperties: false, description: "Approvals." },
    ),
    permits: Type.Object(
      {
        valid_seconds: Type.Integer({ default: 300, minimum: 1, maximum: 86_400, description: "How long a permit may be used after the action was allowed or approved." }),
      },
      { default: {}, additionalProperties: false, description: "Permits." },
    ),
    plugins: Type.Union(
      [
        Type.Null(),
        Type.Array(
          Type.Union([
            Type.String(),
            Type.Object({ name: Type.String(), options: Type.Optional(Type.Record(Type.String(), Type.Unknown())) }, { additionalProperties: false }),
          ]),
        ),
      ],
      { default: null, description: "Built-in names or module paths (starting with `./`, `../` or `/`), in order. Absent: all built-in ones." },
    ),
  },
  { additionalProperties: false, $id: "assent-config", description: "Configuration of Assent." },
);

/** The typed configuration: file, then environment, then defaults. Paths are absolute. */
export type Config = Static<typeof ConfigSchema>;

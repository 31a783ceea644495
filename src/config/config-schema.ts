/** Schema of `assent.yaml`: every key with its default and meaning. */
import { Type, type Static } from "@sinclair/typebox";
import { MAX_PERMIT_SECONDS } from "../domain/permit.ts";
import { DEFAULT_REJECTION_HOLDS_MS, MAX_REJECTION_HOLDS_MS } from "../domain/policy/parse/bounds.ts";
import { BreakGlassSchema } from "./break-glass-schema.ts";
import { ChannelSchema } from "../contract/channel-settings.ts";
import { GroupsSchema } from "./groups-schema.ts";
import { RotaSchema } from "./rota-schema.ts";
import { ServerSchema } from "./server-schema.ts";

const Rate = Type.Object(
  {
    requests: Type.Integer({
      minimum: 1,
      maximum: 1_000_000_000,
      description: "Maximum number of requests in one window.",
    }),
    seconds: Type.Integer({ minimum: 1, maximum: 86_400, description: "Length of a window." }),
  },
  { additionalProperties: false },
);

/** Schema of `assent.yaml`. Every key is optional. The defaults suit one machine and the working folder. */
export const ConfigSchema = Type.Object(
  {
    server: ServerSchema,
    data: Type.String({
      default: "./data",
      description: "Folder of the embedded store and of generated keys. ASSENT_DATA overrides it.",
    }),
    state: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      description:
        "Folder outside the data folder for a second copy of the newest checkpoint. With this copy, the service detects that the whole data folder was restored from a backup. Default: `assent` in XDG_STATE_HOME, or in .local/state of the home folder if there is one. ASSENT_STATE overrides it.",
    }),
    policies: Type.String({
      default: "./policies",
      description: "Folder that the policy-files plugin loads. ASSENT_POLICIES overrides it.",
    }),
    environment: Type.Union([Type.String({ minLength: 1, maxLength: 64 }), Type.Null()], {
      default: null,
      description:
        "Name of this environment, such as staging. Policies use the values of their shared data for this environment. ASSENT_ENVIRONMENT overrides it.",
    }),
    database_url: Type.Union([Type.String(), Type.Null()], {
      default: null,
      description: "URL of a Postgres database to use instead of the embedded store. DATABASE_URL overrides it.",
    }),
    secret: Type.Union([Type.String({ minLength: 32 }), Type.Null()], {
      default: null,
      description:
        "Secret of at least 32 characters. The service derives from it the approval tokens and links, and the keys that protect sessions and encrypted values. Default: a secret generated in the data folder. ASSENT_SECRET overrides it.",
    }),
    admin_key: Type.Union([Type.String(), Type.Null()], {
      default: null,
      description: "Value of the first admin key of an empty store. ASSENT_ADMIN_KEY overrides it.",
    }),
    log: Type.Object(
      {
        level: Type.Union(
          [
            Type.Literal("debug"),
            Type.Literal("info"),
            Type.Literal("warn"),
            Type.Literal("error"),
            Type.Literal("silent"),
          ],
          { default: "info", description: "Lowest level of messages that are written." },
        ),
      },
      {
        default: {},
        additionalProperties: false,
        description: "The service's log, with one JSON object per line on standard error.",
      },
    ),
    ledger: Type.Object(
      {
        origin: Type.Union([Type.String({ minLength: 1, maxLength: 255 }), Type.Null()], {
          default: null,
          description:
            "Name of the log in checkpoints. The store keeps the name of the first start. ASSENT_LOG_ORIGIN overrides it.",
        }),
        key: Type.Union([Type.String(), Type.Null()], {
          default: null,
          description:
            "Ed25519 private key that signs checkpoints, as PKCS#8 PEM or the path of a file. Default: a key generated in the data folder. ASSENT_LOG_KEY overrides it.",
        }),
        next_key: Type.Union([Type.String(), Type.Null()], {
          default: null,
          description:
            "The next key, for `assent keys rotate-log`. Set the same key at every process before you run the command. It does not sign until then. ASSENT_LOG_NEXT_KEY overrides it.",
        }),
        checkpoint_file: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
          default: null,
          description:
            "File for the newest signed checkpoint outside the store, so that the service detects an older copy of the store at startup. Another disk is better. Default: `checkpoint` in the data folder.",
        }),
        checkpoint_log: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
          default: null,
          description:
            "File to which signed checkpoints are appended, each as one line of JSON. The service never changes the file in any other way, so it can be on append-only storage.",
        }),
        checkpoint_log_seconds: Type.Integer({
          default: 60,
          minimum: 1,
          maximum: 86_400,
          description: "Maximum delay after a decision until the newest checkpoint is appended.",
        }),
        max_batch: Type.Integer({
          default: 256,
          minimum: 1,
          maximum: 4096,
          description: "Maximum number of jobs in one transaction.",
        }),
        max_queue: Type.Integer({
          default: 1000,
          minimum: 1,
          maximum: 1_000_000,
          description:
            "Maximum number of decisions, starts and results that wait for the ledger. Above the limit, requests of agents get 503 with Retry-After; votes are still accepted.",
        }),
        ignored_entries: Type.Array(Type.String({ minLength: 1 }), {
          default: [],
          maxItems: 100,
          description:
            "Types of entries of features that were removed on purpose. The service does not start while decisions depend on an entry that no loaded plugin reads.",
        }),
        verify_at_start: Type.Integer({
          default: 65_536,
          minimum: 0,
          description:
            "Number of newest entries that are rehashed at startup, in addition to the right edge of the tree.",
        }),
      },
      { default: {}, additionalProperties: false, description: "The ledger." },
    ),
    approvals: Type.Object(
      {
        max_pending_per_key: Type.Integer({
          default: 10_000,
          minimum: 1,
          maximum: 1_000_000,
          description: "Maximum number of pending actions of one key. Above the limit, submissions get 429.",
        }),
        rejection_holds_seconds: Type.Integer({
          default: DEFAULT_REJECTION_HOLDS_MS / 1000,
          minimum: 0,
          maximum: MAX_REJECTION_HOLDS_MS / 1000,
          description:
            "Time for which a person's rejection denies the same request of the same agent. 0 disables this. A rule's `approval.rejection_holds` overrides it.",
        }),
        trust_key_makers: Type.Boolean({
          default: false,
          description:
            "If true, only the owners of keys determine which votes count as one person. If false (the default), a key, the key that created it, and all other keys created by that key also count as one person.",
        }),
      },
      { default: {}, additionalProperties: false, description: "Approvals." },
    ),
    groups: GroupsSchema,
    rota: RotaSchema,
    break_glass: BreakGlassSchema,
    channels: Type.Record(Type.String(), ChannelSchema, {
      default: {},
      description: "Channels by name. A policy's `approval.notify` names the channels to notify.",
    }),
    permits: Type.Object(
      {
        valid_seconds: Type.Integer({
          default: 300,
          minimum: 1,
          maximum: MAX_PERMIT_SECONDS,
          description: "Time in which an allowed action can start, and in which a permit can be used.",
        }),
        key: Type.Union([Type.String(), Type.Null()], {
          default: null,
          description:
            "Ed25519 private key that signs permits, as PKCS#8 PEM or the path of a file. Must differ from the ledger's key. Processes that share a database need the same key. Default: a key generated in the data folder. ASSENT_PERMIT_KEY overrides it.",
        }),
      },
      { default: {}, additionalProperties: false, description: "Permits." },
    ),
    idempotency: Type.Object(
      {
        keep_days: Type.Integer({
          default: 30,
          minimum: 1,
          maximum: 36_500,
          description:
            "Deletes idempotency keys this number of days after their request. Keys of actions that may have run are retained, so that a repeated request never runs twice.",
        }),
      },
      { default: {}, additionalProperties: false, description: "Idempotency keys." },
    ),
    agents: Type.Union([Type.Literal("bound"), Type.Literal("any")], {
      default: "bound",
      description:
        "The agents that a key can submit for. `bound`: only the agent that the key is bound to. `any`: a key that is not bound to an agent can submit for any agent. ASSENT_AGENTS overrides it.",
    }),
    require_registered_agents: Type.Boolean({
      default: false,
      description: "Denies the actions of agents that are not registered.",
    }),
    rate_limits: Type.Object(
      {
        per_key: Type.Union([Rate, Type.Null()], {
          default: null,
          description: "Limit for the requests of one API key.",
        }),
        per_address: Type.Union([Rate, Type.Null()], {
          default: null,
          description: "Limit for requests without a valid key from one address (an IPv6 /64 counts as one address).",
        }),
        bad_keys_per_minute: Type.Integer({
          default: 20,
          minimum: 0,
          maximum: 100_000,
          description:
            "Maximum number of invalid keys from one address per minute. Above the limit, requests with an invalid key get 429 with an increasing Retry-After; requests with a valid key are still accepted. 0 disables the limit.",
        }),
      },
      {
        default: {},
        additionalProperties: false,
        description: "Rate limits. Each process counts only its own requests.",
      },
    ),
    plugins: Type.Union(
      [
        Type.Null(),
        Type.Array(
          Type.Union([
            Type.String(),
            Type.Object(
              {
                name: Type.String(),
                core: Type.Optional(
                  Type.Boolean({
                    description:
                      "Grants the privileged API (`assent/core`), with which a plugin can change actions, keys, policies and entries. Default: true for the built-in plugins that need it, false for all others.",
                  }),
                ),
                options: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
              },
              { additionalProperties: false },
            ),
          ]),
        ),
      ],
      {
        default: null,
        description:
          "Plugins in order, as built-in names or module paths (starting with `./`, `../` or `/`). Default: all built-in plugins.",
      },
    ),
  },
  { additionalProperties: false, $id: "assent-config", description: "Configuration of Assent." },
);

/**
 * The typed configuration. Environment variables override the file, and defaults fill the rest. The paths of folders
 * and plugins are absolute.
 */
/** A key of the file that the core does not know: the options of the plugin with this name. */
export interface Section {
  value: unknown;
  /** JSON pointer of the key. */
  pointer: string;
  /** Returns a message with the position in the file for a JSON pointer into the section. */
  describe(pointer: string, message: string): string;
}

export type Config = Static<typeof ConfigSchema> & {
  /** The sections of plugins, by name. */
  sections: ReadonlyMap<string, Section>;
};

/** Schema of `assent.yaml`: every key with its default and meaning. */
import { Type, type Static } from "@sinclair/typebox";
import { MAX_PERMIT_SECONDS } from "../domain/permit.ts";
import { DEFAULT_REJECTION_HOLDS_MS, MAX_REJECTION_HOLDS_MS } from "../domain/policy/parse/bounds.ts";
import { BreakGlassSchema } from "./break-glass-schema.ts";
import { CoverageSchema } from "./coverage-schema.ts";
import { Channel } from "./channel.ts";
import { GroupsSchema } from "./groups-schema.ts";
import { LegalHoldSchema } from "./legal-hold-schema.ts";
import { RotaSchema } from "./rota-schema.ts";
import { ServerSchema } from "./server-schema.ts";
import { StopSchema } from "./stop-schema.ts";

const Rate = Type.Object(
  {
    requests: Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: "Requests in one window." }),
    seconds: Type.Integer({ minimum: 1, maximum: 86_400, description: "Length of a window." }),
  },
  { additionalProperties: false },
);

const RetentionDays = (description: string) =>
  Type.Union([Type.Integer({ minimum: 1, maximum: 36_500 }), Type.Null()], { default: null, description });

/** Schema of `assent.yaml`. Every key is optional. The defaults suit one machine and the working folder. */
export const ConfigSchema = Type.Object(
  {
    server: ServerSchema,
    data: Type.String({
      default: "./data",
      description: "Folder of the embedded store and of generated keys. ASSENT_DATA wins.",
    }),
    state: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      description:
        "Folder outside the data folder where the newest checkpoint is kept, too, so that a data folder that was put back as a whole is noticed. Absent: `assent` in XDG_STATE_HOME, or in .local/state of the home folder where there is one. ASSENT_STATE wins.",
    }),
    policies: Type.String({
      default: "./policies",
      description: "Folder that the policy-files plugin loads. ASSENT_POLICIES wins.",
    }),
    environment: Type.Union([Type.String({ minLength: 1, maxLength: 64 }), Type.Null()], {
      default: null,
      description:
        "Name of this environment, such as staging. Policies use the values that their shared data has for it. ASSENT_ENVIRONMENT wins.",
    }),
    database_url: Type.Union([Type.String(), Type.Null()], {
      default: null,
      description: "Postgres instead of the embedded store. DATABASE_URL wins.",
    }),
    secret: Type.Union([Type.String({ minLength: 32 }), Type.Null()], {
      default: null,
      description:
        "Secret that approval tokens are derived from, at least 32 characters; generated into the data folder when absent. ASSENT_SECRET wins.",
    }),
    admin_key: Type.Union([Type.String(), Type.Null()], {
      default: null,
      description: "Seeds the first admin key of an empty store. ASSENT_ADMIN_KEY wins.",
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
          { default: "info", description: "Least severe message that is written." },
        ),
      },
      {
        default: {},
        additionalProperties: false,
        description: "The service's own log, one JSON object a line on standard error.",
      },
    ),
    ledger: Type.Object(
      {
        origin: Type.Union([Type.String({ minLength: 1, maxLength: 255 }), Type.Null()], {
          default: null,
          description:
            "Name of the log in checkpoints. Kept with the store after the first start. ASSENT_LOG_ORIGIN wins.",
        }),
        key: Type.Union([Type.String(), Type.Null()], {
          default: null,
          description:
            "Ed25519 private key that signs checkpoints: PKCS#8 PEM or a file's path; generated into the data folder when absent. ASSENT_LOG_KEY wins.",
        }),
        next_key: Type.Union([Type.String(), Type.Null()], {
          default: null,
          description:
            "The key that is to follow it, for `assent keys rotate-log`: the same at every process before that is run. Signs nothing until then. ASSENT_LOG_NEXT_KEY wins.",
        }),
        checkpoint_file: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
          default: null,
          description:
            "Where the newest signed checkpoint is kept beside the store, so that an older copy of the store is noticed at start; `checkpoint` in the data folder when absent. Another disk is better.",
        }),
        checkpoint_log: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
          default: null,
          description:
            "A file that signed checkpoints are appended to, a line of JSON each, and that is never changed otherwise: for a place that keeps what it is given.",
        }),
        checkpoint_log_seconds: Type.Integer({
          default: 60,
          minimum: 1,
          maximum: 86_400,
          description: "How soon after a decision the newest checkpoint is appended there.",
        }),
        checkpoint_webhooks: Type.Array(Type.String({ pattern: "^https?://" }), {
          default: [],
          maxItems: 20,
          description: "Addresses that the newest signed checkpoint is posted to, as `{type, origin, size, note}`.",
        }),
        checkpoint_webhook_seconds: Type.Integer({
          default: 60,
          minimum: 1,
          maximum: 86_400,
          description: "How often they get one, where there is a newer one.",
        }),
        witnesses: Type.Array(
          Type.Object(
            {
              url: Type.String({
                pattern: "^https?://",
                description: "Submission prefix of the witness: requests go to `<url>/add-checkpoint`.",
              }),
              vkey: Type.String({ minLength: 1, description: "Its verifier key, as `assent witness` prints it." }),
            },
            { additionalProperties: false },
          ),
          {
            default: [],
            maxItems: 20,
            description:
              "Witnesses that cosign checkpoints (C2SP tlog-witness), so that nobody can be shown another log.",
          },
        ),
        witness_seconds: Type.Integer({
          default: 60,
          minimum: 1,
          maximum: 86_400,
          description: "How often the witnesses are asked.",
        }),
        max_batch: Type.Integer({
          default: 256,
          minimum: 1,
          maximum: 4096,
          description: "Most jobs in one transaction.",
        }),
        max_queue: Type.Integer({
          default: 1000,
          minimum: 1,
          maximum: 1_000_000,
          description:
            "Most decisions, starts and results on their way into the ledger at once. Beyond it what agents send gets 503 with Retry-After; what people decide is still taken.",
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
          description: "Maximum number of pending actions of one key; further ones get 429.",
        }),
        throttle: Type.Object(
          {
            times: Type.Integer({
              default: 10,
              minimum: 0,
              maximum: 1000,
              description:
                "How many times its usual hourly number of requests for approval a key may make in one hour; further ones get 429. 0: no throttling.",
            }),
            minimum: Type.Integer({
              default: 60,
              minimum: 1,
              maximum: 10_000,
              description: "Requests for approval in one hour that are never throttled.",
            }),
          },
          { default: {}, additionalProperties: false, description: "Throttling of unusually many requests." },
        ),
        rejection_holds_seconds: Type.Integer({
          default: DEFAULT_REJECTION_HOLDS_MS / 1000,
          minimum: 0,
          maximum: MAX_REJECTION_HOLDS_MS / 1000,
          description:
            "How long a person's rejection refuses the same request of the same agent; 0: not at all. A rule's `approval.rejection_holds` wins.",
        }),
        trust_key_makers: Type.Boolean({
          default: false,
          description:
            "Counts votes by the owners of keys alone. Otherwise whoever made a key stands behind its votes: keys that one key made, and that key, count as one person.",
        }),
      },
      { default: {}, additionalProperties: false, description: "Approvals." },
    ),
    groups: GroupsSchema,
    rota: RotaSchema,
    stop: StopSchema,
    break_glass: BreakGlassSchema,
    coverage: CoverageSchema,
    legal_hold: LegalHoldSchema,
    channels: Type.Record(Type.String(), Channel, {
      default: {},
      description: "Who is told when a policy's `approval.notify` names the channel.",
    }),
    deliveries: Type.Object(
      {
        timeout_seconds: Type.Integer({
          default: 30,
          minimum: 1,
          maximum: 600,
          description: "Longest attempt of a notifier.",
        }),
        keep_days: Type.Integer({
          default: 30,
          minimum: 4,
          maximum: 3650,
          description: "How long deliveries that are over are listed.",
        }),
      },
      { default: {}, additionalProperties: false, description: "Messages to people and to other programs." },
    ),
    permits: Type.Object(
      {
        valid_seconds: Type.Integer({
          default: 300,
          minimum: 1,
          maximum: MAX_PERMIT_SECONDS,
          description: "How long an allowed action may start, and how long a permit may be used.",
        }),
        key: Type.Union([Type.String(), Type.Null()], {
          default: null,
          description:
            "Ed25519 private key that signs permits, another than the ledger's: PKCS#8 PEM or a file's path; generated into the data folder when absent. Processes that share a database need the same. ASSENT_PERMIT_KEY wins.",
        }),
      },
      { default: {}, additionalProperties: false, description: "Permits." },
    ),
    retention: Type.Object(
      {
        request_days: RetentionDays(
          "Erases an action's parameters, context and everything else so many days after its decision; absent: never. The decision, who decided and the proof stay.",
        ),
        result_days: RetentionDays(
          "Erases the results that tools reported so many days after the decision; absent: with the request.",
        ),
        meta_days: RetentionDays(
          "Erases the metadata of requests so many days after the decision; absent: with the request.",
        ),
        questions_days: RetentionDays(
          "Erases approvers' questions and the agents' answers so many days after the decision; absent: with the request.",
        ),
        idempotency_days: Type.Integer({
          default: 30,
          minimum: 1,
          maximum: 36_500,
          description:
            "Forgets idempotency keys so many days after their request. Those of actions that may have run stay, so that a request sent again never runs twice.",
        }),
      },
      {
        default: {},
        additionalProperties: false,
        description: "How long parameters, results and idempotency keys are kept.",
      },
    ),
    agents: Type.Union([Type.Literal("bound"), Type.Literal("any")], {
      default: "bound",
      description:
        "Who submits as which agent. `bound`: a key that is bound to an agent, as that agent alone. `any`: a key that is bound to none, as any agent, too. ASSENT_AGENTS wins.",
    }),
    require_registered_agents: Type.Boolean({
      default: false,
      description: "Denies the actions of agents that are not registered.",
    }),
    rate_limits: Type.Object(
      {
        per_key: Type.Union([Rate, Type.Null()], { default: null, description: "Requests of one API key." }),
        per_address: Type.Union([Rate, Type.Null()], {
          default: null,
          description: "Calls without a valid key from one address (an IPv6 /64 counts as one).",
        }),
        bad_keys_per_minute: Type.Integer({
          default: 20,
          minimum: 0,
          maximum: 100_000,
          description:
            "Wrong keys from one address in a minute before they get 429 with a growing Retry-After; a right key from there still passes. 0: no limit.",
        }),
      },
      { default: {}, additionalProperties: false, description: "Limits; each process counts for itself." },
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
          "Built-in names or module paths (starting with `./`, `../` or `/`), in order. Absent: all built-in ones.",
      },
    ),
  },
  { additionalProperties: false, $id: "assent-config", description: "Configuration of Assent." },
);

/** The typed configuration: file, then environment, then defaults. Paths are absolute. */
export type Config = Static<typeof ConfigSchema>;

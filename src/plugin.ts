import type { Static, TObject } from "@sinclair/typebox";
/**
 * Plugins define the schemas of their options with these exports, because the TypeBox that checks a schema must have
 * created it.
 */
export { Type, type Static } from "@sinclair/typebox";
import type { FeatureAuditor } from "./contract/audit.ts";
import type { BarSource } from "./contract/bar.ts";
import type { Authenticator } from "./contract/authenticator.ts";
import type { PluginCommand } from "./contract/command.ts";
import type { ToolCredentialIssuer } from "./contract/credentials.ts";
import type { EffectSource } from "./contract/effects.ts";
import type { ErrorKind } from "./contract/errors.ts";
import type { Host, Logger } from "./contract/host.ts";
import type { FactSource } from "./contract/fact-source.ts";
import type { Facade } from "./contract/facade.ts";
import type { Guard } from "./contract/guard.ts";
import type { NoticeKind } from "./contract/notice.ts";
import type { Notifier } from "./contract/notifier.ts";
import type { HealthCheck } from "./contract/check.ts";
import type { Gauge } from "./contract/gauge.ts";
import type { Page } from "./contract/page.ts";
import type { PolicySource } from "./contract/policy-source.ts";
import type { CompletedRequest, Route } from "./contract/resource.ts";
import type { Reaction } from "./contract/reaction.ts";
import type { Reviewer } from "./contract/reviewer.ts";
import type { SoleApproval } from "./contract/sole-approval.ts";
import type { DecisionStep } from "./contract/step.ts";
import type { Storage } from "./contract/storage.ts";
import type { Messenger, MessengerParts } from "./contract/messenger.ts";
import type { Tracer } from "./contract/tracer.ts";
import type { VoteAddition } from "./contract/vote-addition.ts";
import type { Fold } from "./domain/fold.ts";
import type { PluginEntryType } from "./domain/entries.ts";
import type { PluginScope } from "./domain/scopes.ts";

/**
 * Objects and callbacks that a plugin's `setup` adds to one runtime. The set of kinds is closed: a new kind requires a
 * change to the core.
 *
 * `start` runs after the store has been opened, in the order of the configuration. `stop` runs in reverse order, even
 * if a later plugin failed to start, and must be idempotent. Both are members of this object instead of the plugin, so
 * that two runtimes in one process do not share state.
 */
export interface Contributions {
  routes?: Route[];
  policySources?: PolicySource[];
  notifiers?: Notifier[];
  reviewers?: Reviewer[];
  factSources?: FactSource[];
  pages?: Page[];
  facades?: Facade[];
  authenticators?: Authenticator[];
  credentialIssuers?: ToolCredentialIssuer[];
  gauges?: Gauge[];
  checks?: HealthCheck[];
  /** Steps of decisions after the rules. Only for plugins with `core`, because a step can allow actions. */
  steps?: DecisionStep[];
  /** At most one plugin can contribute a tracer. */
  tracer?: Tracer;
  /**
   * Creates what writes and sends messages, after the `setup` of all plugins. Throws OptionsError for a faulty
   * configuration. Only for one plugin, with `core`, because it writes in the transactions of decisions.
   */
  messenger?(parts: MessengerParts): Messenger;
  /** Called after each response is created. Must be fast. Errors are logged, and do not affect the response. */
  onResponse?(request: CompletedRequest): void;
  start?(): Promise<void>;
  stop?(): Promise<void>;
}

export interface Plugin<Options extends TObject = TObject> {
  name: string;
  /**
   * True if `setup` needs the privileged host. `defineCorePlugin` in `assent/core` sets it. A third-party plugin then
   * loads only if the operator sets `core: true` for it in `assent.yaml`.
   */
  core?: true;
  /** Names of the plugins that this one requires. It can import `api.ts` of their folders. */
  needs?: readonly string[];
  /** Schema of the options, validated before `setup`. Unknown keys are rejected. Default: the plugin has no options. */
  options?: Options;
  /** Additional scopes, from `defineScopes`. */
  scopes?: Readonly<Record<string, PluginScope>>;
  /** Additional errors, from `defineErrors`. */
  errors?: Readonly<Record<string, ErrorKind>>;
  /** Additional ledger entry types, `<name>:<type>`, each with the schema of its `data`. */
  entries?: Readonly<Record<PluginEntryType, TObject>>;
  /**
   * Additional ledger entry types without a prefix, from `defineRecord`, keyed by type. Only for plugins with `core`.
   */
  records?: Readonly<Record<string, TObject>>;
  /** Denials above all policies; see `BarSource`. */
  bars?: readonly BarSource[];
  /** Errors with which the plugin's steps refuse submissions, for the API's documentation; see `DecisionStep`. */
  stepErrors?: readonly ErrorKind[];
  /** Kinds of messages about the service; see `NoticeKind`. */
  notices?: readonly NoticeKind<Options>[];
  /** Checks that `assent audit` makes; see `FeatureAuditor`. Each function is called once for each audit. */
  auditors?: readonly (() => FeatureAuditor)[];
  /** States that every process computes from ledger entries; see `Fold`. */
  folds?: readonly Fold<unknown>[];
  /** What the plugin records when actions are rejected or fail, agents are suspended or users deactivated. */
  reactions?: readonly Reaction[];
  /** Conditions for approving and starting actions; see `Guard`. Only for plugins with `core`. */
  guards?: readonly Guard[];
  /** Declares what else an approval can do; see `VoteAddition`. */
  voteAddition?: VoteAddition;
  /** How one person can approve without the other approvers; see `SoleApproval`. */
  soleApproval?: SoleApproval;
  /**
   * Path of a JavaScript module for browsers, whose default export is what the plugin adds to the console: a
   * `ConsolePart` of `assent/console`.
   * @example
   * page: fileURLToPath(new URL("page.js", import.meta.url))
   */
  page?: string;
  /** A command, run as `assent <name>`. It runs outside the service and calls its API. */
  command?: PluginCommand;
  /**
   * Creates the storage without opening it. Exactly one plugin must have this method. It is separate from `setup`, so
   * that commands that need only the store do not run other plugin code.
   */
  storage?(host: StorageHost, options: Static<Options>): Storage | Promise<Storage>;
  /**
   * Returns logs of other systems, which `assent reconcile` compares with the ledger. Runs in the command, not in the
   * service.
   */
  effectSources?(options: Static<Options>): readonly EffectSource[];
  /** Returns all other contributions of the plugin. */
  setup?(host: Host, options: Static<Options>): Contributions | Promise<Contributions>;
}

/** Services that are available when the storage is created. Nothing is open yet. */
export interface StorageHost {
  readonly log: Logger;
  /** The data folder. */
  readonly data: string;
  /** The configured database URL; null if there is none. */
  readonly databaseUrl: string | null;
}

/**
 * Returns the plugin unchanged, and infers the option types of `setup`.
 * @example
 * export default definePlugin({
 *   name: "hello",
 *   options: Type.Object({ greeting: Type.String({ default: "hello" }) }),
 *   setup: (host, options) => ({ start: async () => host.log.info(options.greeting) }),
 * });
 */
export function definePlugin<Options extends TObject>(plugin: Plugin<Options>): Plugin<Options> {
  return plugin;
}

// Services of the core
export type { PluginCommand, CommandContext } from "./contract/command.ts";
export type { Document, DocumentReader, DocumentWriter } from "./contract/plugin-documents.ts";
export type {
  Credential,
  Host,
  Logger,
  NewPluginEntry,
  Session,
  Transaction,
  VisibleActions,
  WorkloadIdentity,
} from "./contract/host.ts";

// Names that a plugin declares
export { defineRecord, type RecordOf } from "./contract/record.ts";
export type {
  AuditedDecision,
  AuditStates,
  Creation,
  FeatureAuditor,
  FeatureStore,
  ReportFault,
} from "./contract/audit.ts";
export type { BarCoverage, BarSource, BarTarget, PlacedBar } from "./contract/bar.ts";
export type { StatesReader } from "./contract/states.ts";
export type { EntryBody } from "./domain/entries.ts";
export { defineErrors, errorKind, Refusal, type ErrorCode, type ErrorKind } from "./contract/errors.ts";
export type { Fold } from "./domain/fold.ts";
export { dropOldEnded, type EndableValues, PersistentMap, RETAINED_ENDED } from "./domain/persistent-map.ts";
export { defineScopes, type PluginScope, type Scope } from "./domain/scopes.ts";

// Routes, pages, facades and sign-in
export type { AuthenticationResult, Authenticator } from "./contract/authenticator.ts";
export type { ApiResponse, Facade, FacadeCall, FacadeFault } from "./contract/facade.ts";
export type { Page } from "./contract/page.ts";
export {
  defineRoute,
  type CompletedRequest,
  type Reply,
  type RequestContext,
  type Route,
  type VerifiedAccount,
} from "./contract/resource.ts";
export type { ApiCalls } from "./contract/api-calls.ts";
export { toRfc3339 } from "./domain/time.ts";
export { cutPage, decodeCursor, DEFAULT_LIMIT, nextLink, PAGE_QUERY, slicePage } from "./http/resource/paging.ts";
export { assertIfMatch, IF_MATCH } from "./http/resource/preconditions.ts";

// Notifiers
export {
  NotifierError,
  type ApprovalMessage,
  type ClosedMessage,
  type NoticeMessage,
  type DeliveryResult,
  type Feed,
  type Message,
  type MessageAction,
  type Notifier,
} from "./contract/notifier.ts";
export {
  formatTime,
  renderText,
  describeLink,
  describeOutcome,
  otherRequestLines,
  listMessageFacts,
  messageTitle,
  requestSections,
} from "./messages/approval-message-text.ts";
export {
  messageSheet,
  renderFitting,
  sheetLines,
  sheetLinks,
  type MessageSheet,
  type PersonalMessage,
} from "./messages/message-sheet.ts";
export type { Notice, NoticeKind } from "./contract/notice.ts";

// Machine reviewers
export { type Reviewer, type ReviewRequest, type ReviewResponse, readReviewResponse } from "./contract/reviewer.ts";
export { type ReviewAnswer, REVIEWER_NAME_PATTERN } from "./domain/reviews.ts";

// Fact sources
export type { FactSource } from "./contract/fact-source.ts";
export { FACT_SOURCE_OPTIONS } from "./domain/fact-source-options.ts";
export { FACT_SOURCE_NAME_PATTERN } from "./domain/policy/parse/bounds.ts";
export { parseJson } from "./domain/json.ts";

// Webhooks and requests to checked addresses
export {
  parseTargetUrl,
  readTarget,
  readWebhookTarget,
  TARGET_OPTIONS,
  type WebhookTarget,
  WEBHOOK_TARGET_OPTIONS,
} from "./webhook/target.ts";
export { equalSecrets } from "./webhook/equal-secrets.ts";
export { createPlaceNotifier, type PlaceNotifierOptions } from "./webhook/place-notifier.ts";
export { type WebhookResponse, get, post, type ResolveName, retryAfterMs, type RequestTarget } from "./webhook/send.ts";
export { readSigningSecret, signatureHeaders } from "./webhook/sign.ts";

// Metrics
export type { HealthCheck } from "./contract/check.ts";
export type { Gauge } from "./contract/gauge.ts";

// Credential issuers
export type { ToolCredentialAction, ToolCredentialIssuer, IssuedToolCredential } from "./contract/credentials.ts";
export { credentialIssuerOptions } from "./domain/credential-options.ts";

// Traces
export type { RequestTrace, TracedAction, TracedExecution, Tracer, TraceStage } from "./contract/tracer.ts";
export { isTraceparent } from "./domain/traceparent.ts";

// Policy sources
export {
  PolicySourceError,
  type PolicyBundle,
  type PolicyFault,
  type PolicyOfferOutcome,
  type PolicySource,
  type UnloadedFile,
} from "./contract/policy-source.ts";
export { parsePolicies, type TextFault } from "./domain/policy/parse/parse.ts";
export {
  checkPolicyFolder,
  parsePolicyFolder,
  testPolicyFolder,
  type CheckedFolder,
  type PolicyFile,
  type PolicyFolder,
} from "./policies/folder.ts";
export { listCandidates as listUnloadedCandidates, listUnloaded } from "./policies/unloaded-files.ts";
export {
  listFilesBeside,
  listPolicyTree,
  readPolicyTree,
  readUnloadedFiles,
  sizePolicyTree,
  type TreeFile,
} from "./policies/git-tree.ts";

// Effect sources; assent/coverage has what creates them
export type { EffectMapping, EffectSource, SourceEvent, SourceRecord } from "./contract/effects.ts";
export { type JsonObject } from "./domain/json.ts";
export { parseRfc3339 } from "./domain/time.ts";

/**
 * Serves clients of protocol revision 2026-07-28. They do not send `initialize`: each request contains the client's
 * information and capabilities. To ask the client for input, the proxy returns a result of type `input_required`. The
 * client then repeats the request with its answers. The proxy stores the request in memory until then.
 */
import { createHash, randomUUID } from "node:crypto";
import { canonicalText } from "../../../src/domain/canonical.ts";
import type { Caller } from "./caller.ts";
import { LIST_TIMEOUT_MS, settlesWithin } from "../upstreams/slow-upstreams.ts";
import { ClientTasks, TASK_METHODS } from "./client-tasks.ts";
import { createSubscriptions } from "./subscriptions.ts";
import {
  ERROR_CODE,
  META_KEY,
  MODERN_VERSION,
  errorReply,
  isObject,
  readMeta,
  unsupportedVersionReply,
  type JsonObject,
  type Reply,
  type Request,
} from "../transport/rpc-message.ts";
import type { IncomingRequest } from "../transport/peer.ts";
import { MultiRoundRequest, type SendNotification } from "./multi-round-request.ts";
import { ClientSession, type SessionOptions } from "../session/client-session.ts";
import type { Tool } from "../tools/tool-catalog.ts";
import type { ClientInfo } from "../upstreams/upstream.ts";

/** Time limit for a client to return with its answers. Milliseconds. */
const ROUND_TIMEOUT_MS = 10 * 60_000;

/**
 * Methods whose results must contain cache members. The proxy forbids caching, because its results are valid only for
 * one client at one moment.
 */
const CACHEABLE_METHODS = new Set([
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "server/discover",
]);

/** All methods of the revision and of the extension for tasks. */
const METHODS = new Set([
  ...CACHEABLE_METHODS,
  ...TASK_METHODS,
  "subscriptions/listen",
  "tools/call",
  "prompts/get",
  "completion/complete",
]);

export class StatelessEndpoint {
  private readonly options: SessionOptions;
  private readonly onEnded: (reason: string) => void;
  private readonly subscriptions = createSubscriptions();
  private readonly waitingRequests = new Map<string, MultiRoundRequest>();
  private readonly tasks = new ClientTasks((task) => this.subscriptions.publishTask(task));
  private sharedSession: Promise<ClientSession> | null = null;

  constructor(options: SessionOptions, onEnded: (reason: string) => void) {
    this.options = options;
    this.onEnded = onEnded;
  }

  /** Returns the tool of a call; undefined if the tool does not exist, or cannot be called. */
  async findTool({ params }: Request): Promise<Tool | undefined> {
    const client = readClient(readMeta(params));
    const name = params?.["name"];
    if (typeof name !== "string" || client === null) return undefined;
    const tool = await this.openSession(client).then((session) => session.tool(name));
    return tool?.withheld === null ? tool : undefined;
  }

  /** Whether no client has a task, or a question that it has not answered. */
  get isIdle(): boolean {
    return this.waitingRequests.size === 0 && this.tasks.isEmpty;
  }

  endSubscriptions(): void {
    this.subscriptions.close();
  }

  async close(): Promise<void> {
    for (const multiRound of this.waitingRequests.values()) multiRound.abandon();
    this.waitingRequests.clear();
    this.tasks.close();
    this.subscriptions.close();
    await (await this.sharedSession?.catch(() => null))?.close();
  }

  async answer({ request, signal }: IncomingRequest, notify: SendNotification): Promise<Reply> {
    const meta = readMeta(request.params);
    if (meta[META_KEY.version] !== MODERN_VERSION) return unsupportedVersionReply(meta[META_KEY.version]);
    const client = readClient(meta);
    if (client === null)
      return errorReply(
        ERROR_CODE.invalidParams,
        `_meta must contain the object ${META_KEY.capabilities}, and ${META_KEY.client} must be an object`,
      );
    const { info, capabilities } = client;
    if (!METHODS.has(request.method))
      return errorReply(ERROR_CODE.methodNotFound, `"${request.method}" is not supported by the proxy`);
    let session: ClientSession;
    try {
      session = await this.openSession(client);
    } catch (error) {
      return errorReply(
        ERROR_CODE.internal,
        `the proxy cannot start the session: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    const serverInfo = await session.serverInfo();
    const withMetadata = (reply: Reply): Reply => addResultMetadata(reply, request.method, serverInfo.info);
    if (request.method === "server/discover")
      return withMetadata({
        result: {
          supportedVersions: [MODERN_VERSION],
          capabilities: serverInfo.capabilities,
          instructions: serverInfo.instructions,
        },
      });
    if (TASK_METHODS.has(request.method)) return withMetadata(this.tasks.handle(request, capabilities));
    if (request.method === "subscriptions/listen") {
      const refusal = this.tasks.checkSubscription(request.params, capabilities);
      if (refusal !== null) return refusal;
      const uris = this.subscriptions.requestedUris(request, serverInfo.capabilities);
      const updateSubscriptions = async (verb: string, resourceUris: string[]): Promise<void> => {
        const caller = silentCaller(AbortSignal.timeout(LIST_TIMEOUT_MS), info, capabilities);
        const replies = resourceUris.map((uri) =>
          session.handle({ ...request, method: `resources/${verb}`, params: { uri } }, caller).catch(() => undefined),
        );
        await settlesWithin(Promise.all(replies));
      };
      await updateSubscriptions("subscribe", uris);
      const reply = await this.subscriptions.serve({ request, signal }, serverInfo.capabilities, notify);
      const unusedUris = uris.filter((uri) => !this.subscriptions.hasSubscriber(uri));
      void updateSubscriptions("unsubscribe", unusedUris);
      return reply;
    }
    return this.handleRequest(session, request, signal, notify, client, withMetadata);
  }

  /**
   * Opens the session that all clients of this endpoint share. The servers receive the first client's information.
   */
  private openSession(facts: ClientInfo): Promise<ClientSession> {
    if (this.sharedSession !== null) return this.sharedSession;
    const newSession = new ClientSession(this.options, {
      notify: (method, params) => this.subscriptions.publish(method, params ?? {}),
      askClient: null,
      ended: (reason) => {
        this.sharedSession = null;
        void newSession.close();
        this.onEnded(reason);
      },
    });
    const openedSession = newSession.open(facts).then(() => newSession);
    this.sharedSession = openedSession;
    openedSession.catch(() => {
      this.sharedSession = null;
      void newSession.close();
    });
    return openedSession;
  }

  /** Starts a request, or continues one if its client returns with answers. */
  private async handleRequest(
    session: ClientSession,
    request: Request,
    signal: AbortSignal,
    notify: SendNotification,
    client: ClientInfo,
    withMetadata: (reply: Reply) => Reply,
  ): Promise<Reply> {
    const { requestState, inputResponses, ...rest } = request.params ?? {};
    const digest = requestDigest(request.method, rest);
    let multiRound: MultiRoundRequest;
    if (requestState === undefined)
      multiRound = this.startRequest(session, { ...request, params: rest }, digest, client, withMetadata);
    else {
      const waitingRequest = typeof requestState === "string" ? this.waitingRequests.get(requestState) : undefined;
      if (waitingRequest === undefined || waitingRequest.digest !== digest)
        return errorReply(
          ERROR_CODE.invalidParams,
          "requestState belongs to another request or has expired; the record of the action shows the outcome",
        );
      this.waitingRequests.delete(requestState as string);
      multiRound = waitingRequest;
    }
    const reply = await multiRound.attach(
      signal,
      notify,
      readMeta(request.params)["progressToken"],
      isObject(inputResponses) ? inputResponses : {},
    );
    return withMetadata(reply);
  }

  private startRequest(
    session: ClientSession,
    request: Request,
    digest: string,
    { info, capabilities }: ClientInfo,
    withMetadata: (reply: Reply) => Reply,
  ): MultiRoundRequest {
    const logLevel = readMeta(request.params)[META_KEY.logLevel];
    const facts = { info, capabilities, logLevel: typeof logLevel === "string" ? logLevel : undefined };
    return new MultiRoundRequest(digest, facts, {
      work: async (caller) => withMetadata(await session.handle(request, caller)),
      store: (multiRound) => {
        const token = randomUUID();
        this.waitingRequests.set(token, multiRound);
        setTimeout(() => {
          if (this.waitingRequests.delete(token)) multiRound.abandon();
        }, ROUND_TIMEOUT_MS).unref();
        return token;
      },
      createTask: (multiRound) => (request.method === "tools/call" ? this.tasks.create(multiRound) : null),
    });
  }
}

/** Returns what a request says about its client; null if it is invalid. A client need not send its name. */
function readClient({ [META_KEY.client]: info = {}, [META_KEY.capabilities]: capabilities }: JsonObject) {
  return isObject(info) && isObject(capabilities) ? { version: MODERN_VERSION, info, capabilities } : null;
}

/**
 * Returns a digest that is the same when a request is repeated. It covers all parameters except `_meta`, which differs
 * between rounds.
 */
function requestDigest(method: string, { _meta, ...params }: JsonObject): string {
  return createHash("sha256").update(canonicalText({ method, params })).digest("hex");
}

function addResultMetadata(reply: Reply, method: string, server: JsonObject): Reply {
  if ("error" in reply) return reply;
  const { result } = reply;
  return {
    result: {
      resultType: "complete",
      ...(CACHEABLE_METHODS.has(method) ? { ttlMs: 0, cacheScope: "private" } : {}),
      ...result,
      _meta: { ...readMeta(result), [META_KEY.server]: server },
    },
  };
}

function silentCaller(signal: AbortSignal, info: JsonObject, capabilities: JsonObject): Caller {
  return {
    signal,
    info,
    capabilities,
    wantsProgress: false,
    whenAttached: () => Promise.resolve(),
    sendProgress() {},
    notify() {},
    askClient: () => Promise.resolve(errorReply(ERROR_CODE.missingCapability, "this request cannot ask the client")),
  };
}

/**
 * Serves the inference hooks of Claude Enterprise. The vendor calls this endpoint before an organization's cloud
 * sessions and connectors run a tool, and waits for an allow or a deny.
 */
import { createHash } from "node:crypto";
import { Type } from "@sinclair/typebox";
import { readJsonObject, UnreadableRequest } from "../../src/core.ts";
import { definePlugin, type FacadeCall, type Host, readSigningSecret, type Reply } from "../../src/plugin.ts";
import { readPrompt, readToolCalls } from "./frame.ts";
import { type SignedFacts, verifySignature } from "./signature.ts";
import { allowReply, deny, denyCalls } from "./verdict.ts";
import { describeRetryableFault, type GateOutcome, type GateRequest, submitAndStartAll } from "../actions/api.ts";

const Options = Type.Object(
  {
    secrets: Type.Array(Type.String(), {
      default: [],
      maxItems: 3,
      description:
        "Signing secrets of the vendor, `whsec_…`. Two during a rotation. The endpoint is enabled if there is at least one.",
    }),
    api_key: Type.Optional(
      Type.String({ minLength: 1, description: "An agent's key of this service, with which the calls are submitted." }),
    ),
    tenant: Type.Union([Type.Null(), Type.String({ minLength: 1, maxLength: 256 })], {
      default: null,
      description: "The only `tenant_id` that is accepted. Default: every tenant whose request is signed.",
    }),
    tool: Type.String({
      default: "claude",
      minLength: 1,
      maxLength: 240,
      description: "The tool of the submitted actions. Prompts have this name followed by `.prompt`.",
    }),
    timeout_ms: Type.Integer({
      default: 4000,
      minimum: 100,
      maximum: 9500,
      description:
        "Time limit for a verdict, from the arrival of the request. Must be less than the vendor's verdict timeout (default 5,000).",
    }),
    prompts: Type.Union([Type.Literal("allow"), Type.Literal("decide")], {
      default: "allow",
      description:
        "`allow`: prompts pass without a decision. `decide`: each prompt is an action with the operation `prompt`.",
    }),
    unknown: Type.Union([Type.Literal("deny"), Type.Literal("allow")], {
      default: "deny",
      description: "What happens to events, and to blocks of a tool call frame, whose type this version does not know.",
    }),
  },
  { additionalProperties: false },
);

/** The vendor's limit for a request. */
const MAX_BODY = 64 * 1024 * 1024;
/**
 * Limits of a frame, checked before it is parsed, because values use more memory than their source. Transcripts are long,
 * and frames to decide have lower limits.
 */
const FRAME_LIMITS = { maxDepth: 256, maxValues: 1_000_000 };
/** Time after which an id can be served again. A retry of the vendor has a new time and the same id. */
const ID_RETENTION_MS = 24 * 60 * 60 * 1000;
/** Number of ids that one request checks for deletion. */
const CLEANUP_BATCH = 20;

interface Settings {
  keys: Uint8Array[];
  authorization: string;
  tenant: string | null;
  tool: string;
  timeoutMs: number;
  decidesPrompts: boolean;
  passesUnknown: boolean;
  /** What the newest request shows about the setup, for `/readyz` and `assent doctor`. */
  health: { ok: boolean; detail: string };
}

export default definePlugin({
  name: "inference-hooks",
  needs: ["actions"],
  options: Options,
  setup(host, { secrets, api_key, tenant, tool, timeout_ms, prompts, unknown }) {
    if (secrets.length === 0) {
      if (api_key !== undefined) throw new Error('the option "secrets" is missing');
      return {};
    }
    if (api_key === undefined) throw new Error('the option "api_key" is missing: create one with assent keys create');
    const keys = secrets.map((secret) => {
      const key = readSigningSecret(secret);
      if (key === null)
        throw new Error('each of "secrets" must be the vendor\'s signing secret, which begins with whsec_');
      return key;
    });
    const settings: Settings = {
      keys,
      authorization: `Bearer ${api_key}`,
      tenant,
      tool,
      timeoutMs: timeout_ms,
      decidesPrompts: prompts === "decide",
      passesUnknown: unknown === "allow",
      health: { ok: true, detail: "no request yet" },
    };
    return {
      checks: [{ name: "inference_hooks", read: () => Promise.resolve({ ...settings.health, held: 0 }) }],
      facades: [
        {
          path: "/inference-hooks",
          title: "Claude inference hooks",
          methods: ["POST"],
          verifiesCallers: true,
          bodyLimit: MAX_BODY,
          serve: (call) => serve(call, host, settings),
          // A status other than 200 would be a failure, and the vendor may then allow the call.
          fault: ({ code }) => deny(describeRetryableFault(code).message),
        },
      ],
    };
  },
});

async function serve(call: FacadeCall, host: Host, settings: Settings): Promise<Reply> {
  const signed = verifySignature(settings.keys, call.request.headers, call.body, host.timeOfDay());
  if (typeof signed === "string") {
    settings.health = { ok: false, detail: `the newest request was rejected: ${signed}` };
    call.log.warn("rejected an inference hook", { reason: signed });
    return { status: 401, text: signed };
  }
  let requests: GateRequest[] | null;
  try {
    requests = readRequests(call.body, signed, settings);
  } catch (error) {
    if (!(error instanceof UnreadableRequest)) throw error;
    return deny(`Not run: the request cannot be decided; ${error.message}.`);
  }
  if (requests === null) return allowReply(null);
  return decide(call, requests, signed, host, settings);
}

/** Returns the actions of a frame; null if it passes without a decision. Throws UnreadableRequest. */
function readRequests(body: Uint8Array, { id }: SignedFacts, settings: Settings): GateRequest[] | null {
  const { tenant, tool, decidesPrompts, passesUnknown } = settings;
  // Transcripts have megabytes, so read only frames exactly that contain something to decide.
  const frame = readJsonObject(body, {
    ...FRAME_LIMITS,
    isHarmless: (code) => code !== "TOO_DEEP" && code !== "TOO_MANY_VALUES",
  });
  if (frame["request_id"] !== id) throw new UnreadableRequest("request_id differs from the signed webhook-id");
  if (tenant !== null && frame["tenant_id"] !== tenant) throw new UnreadableRequest("it belongs to another tenant");
  switch (frame["type"]) {
    case "tool_call":
      return readToolCalls(readJsonObject(body), { tool, passesUnknown });
    case "prompt":
      return decidesPrompts ? [readPrompt(readJsonObject(body), tool)] : null;
    default:
      if (passesUnknown) return null;
      throw new UnreadableRequest(`this version does not know the event ${JSON.stringify(frame["type"] ?? null)}`);
  }
}

/** Returns true if no process of the service has served a request with this id before. */
async function isFirst(host: Host, { id }: SignedFacts): Promise<boolean> {
  const key = createHash("sha256").update(id).digest("hex");
  const now = host.timeOfDay();
  return host.transact(null, async ({ documents }) => {
    if ((await documents.put(key, now, null)) === null) return false;
    // The key is random, so the keys after it are a sample of all keys.
    for (const document of await documents.list({ after: key, limit: CLEANUP_BATCH }))
      if (Number(document.value) < now - ID_RETENTION_MS) await documents.delete(document.key, document.version);
    return true;
  });
}

/** Submits and starts the calls within the time limit. Calls that start too late are recorded as not run. */
async function decide(
  call: FacadeCall,
  requests: GateRequest[],
  signed: SignedFacts,
  host: Host,
  settings: Settings,
): Promise<Reply> {
  // Reading a large body also takes time.
  const remaining = call.receivedAt + settings.timeoutMs - performance.now();
  if (remaining <= 0) return deny(describeRetryableFault("TOO_LATE").message);
  const deadline = AbortSignal.timeout(Math.ceil(remaining));
  const gateCall = {
    request: new Request(call.request.url, { signal: AbortSignal.any([call.request.signal, deadline]) }),
    callApi: ((method, path, options = {}) =>
      call.callApi(method, path, {
        ...options,
        headers: { ...options.headers, Authorization: settings.authorization },
      })) as FacadeCall["callApi"],
  };
  const late = new Promise<null>((resolve) => deadline.addEventListener("abort", () => resolve(null), { once: true }));
  const decided = isFirst(host, signed).then(async (first) =>
    first ? await submitAndStartAll(gateCall, requests) : ("replayed" as const),
  );
  const answered = await Promise.race([decided, late]);
  if (answered === null) {
    void decided
      .then((ended) => (ended === "replayed" ? undefined : reportNotRun(ended.outcomes, gateCall.callApi)))
      .catch((error: unknown) => call.log.warn("a late decision failed", { error: String(error) }));
    return deny(describeRetryableFault("TOO_LATE").message);
  }
  if (answered === "replayed") return deny("Not run: this request was sent before, and each is decided once.");
  const { passed, outcomes } = answered;
  const fault = outcomes.find((outcome) => outcome.kind === "fault");
  settings.health =
    fault === undefined
      ? { ok: true, detail: "the newest request was decided" }
      : { ok: false, detail: `the newest request could not be decided: ${fault.code}` };
  if (!passed) return denyCalls(outcomes, host.origin());
  const [first] = outcomes;
  return allowReply(first?.kind === "go" ? first.action.id : null);
}

async function reportNotRun(outcomes: readonly GateOutcome[], callApi: FacadeCall["callApi"]): Promise<void> {
  const json = { success: false, error: "not run: the verdict came too late" };
  for (const outcome of outcomes)
    if (outcome.kind === "go") await callApi("POST", `/v1/actions/${outcome.action.id}/result`, { json });
}

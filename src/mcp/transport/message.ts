/** JSON-RPC 2.0 as MCP speaks it: one message a line or body, no batches. */
import { isJsonObject as isObject, JsonFault, parseJson, type JsonObject, type JsonValue } from "../../domain/json.ts";

export { isObject, type JsonObject, type JsonValue };
export type RequestId = string | number;

export interface Request {
  jsonrpc: "2.0";
  id: RequestId;
  method: string;
  params?: JsonObject;
}

export interface Notification {
  jsonrpc: "2.0";
  method: string;
  params?: JsonObject;
}

/** What a request is answered with. */
export type Reply = { result: JsonObject } | { error: RpcError };

export interface RpcError {
  code: number;
  message: string;
  data?: JsonValue;
}

export type Response = { jsonrpc: "2.0"; id: RequestId | null } & Reply;
export type Message = Request | Notification | Response;

/** Codes of JSON-RPC 2.0 and of MCP. */
export const ERROR_CODE = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** Protocol revisions, newest first. Since 2026-07-28 there is no handshake. */
export const MODERN_VERSION = "2026-07-28";
export const LEGACY_VERSIONS: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** Members of `_meta` that every request of 2026-07-28 carries. */
export const META_KEY = {
  version: "io.modelcontextprotocol/protocolVersion",
  client: "io.modelcontextprotocol/clientInfo",
  capabilities: "io.modelcontextprotocol/clientCapabilities",
  server: "io.modelcontextprotocol/serverInfo",
  subscription: "io.modelcontextprotocol/subscriptionId",
  log: "io.modelcontextprotocol/logLevel",
} as const;

export const isRequest = (message: Message): message is Request => "method" in message && "id" in message;
export const isResponse = (message: Message): message is Response => !("method" in message);

/** The `_meta` of params or of a result; empty where there is none. */
export function readMeta(value: JsonObject | undefined): JsonObject {
  const meta = value?.["_meta"];
  return isObject(meta) ? meta : {};
}

/** `params` with other `_meta`; without the member when that is empty. */
export function withMeta(params: JsonObject | undefined, meta: JsonObject): JsonObject {
  const { _meta, ...rest } = params ?? {};
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
}

export const errorReply = (code: number, message: string, data?: JsonValue): Reply => ({
  error: { code, message, ...(data === undefined ? {} : { data }) },
});

/** A text that is no message, or one that does not mean one thing to everybody. */
export class MessageError extends Error {
  /** Of the request, where the text can be read that far: it has to be answered. */
  readonly request: Request | null;
  readonly code: number;
  constructor(message: string, request: Request | null, code: number) {
    super(message);
    this.request = request;
    this.code = code;
  }
}

/**
 * Reads a message. What two readers would read differently is refused: equal keys, integers beyond 2^53, halves of
 * surrogate pairs.
 * @throws MessageFault
 */
export function parseMessage(text: string): Message {
  let value: unknown;
  try {
    value = parseJson(text, { maxDepth: 1000 });
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    const where = error.pointer === null || error.pointer === "" ? "" : ` at ${error.pointer}`;
    throw new MessageError(
      `${error.message}${where}`,
      salvageRequest(text),
      error.code === "MALFORMED_JSON" ? ERROR_CODE.parse : ERROR_CODE.invalidRequest,
    );
  }
  return validateMessage(value);
}

/**
 * Reads what a server says. Its texts are its own affair: a number that is not exact stays what JSON.parse makes of it.
 * @throws MessageFault
 */
export function parseServerMessage(text: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new MessageError("the line is not JSON", null, ERROR_CODE.parse);
  }
  return validateMessage(value);
}

/** @throws MessageFault */
export function validateMessage(value: unknown): Message {
  if (Array.isArray(value))
    throw new MessageError("batches are not part of MCP; send one message", null, ERROR_CODE.invalidRequest);
  const id = isObject(value) && isId(value["id"]) ? value["id"] : null;
  const invalid = (why: string): MessageError =>
    new MessageError(
      `this is no JSON-RPC message: ${why}`,
      id === null ? null : { jsonrpc: "2.0", id, method: "" },
      ERROR_CODE.invalidRequest,
    );
  if (!isObject(value) || value["jsonrpc"] !== "2.0") throw invalid(`it has to be an object with "jsonrpc": "2.0"`);
  if (typeof value["method"] === "string") {
    if ("params" in value && !isObject(value["params"])) throw invalid("params has to be an object");
    if ("id" in value && id === null) throw invalid("id has to be a text or a number");
    if ("result" in value || "error" in value) throw invalid("it is a request and an answer at once");
    return value as unknown as Message;
  }
  if ("method" in value) throw invalid("method has to be a text");
  if ("result" in value === "error" in value) throw invalid("an answer has either a result or an error");
  if ("result" in value ? !isObject(value["result"]) : !isFailure(value["error"]))
    throw invalid("its answer cannot be read");
  if (id === null && value["id"] !== null && value["id"] !== undefined)
    throw invalid("id has to be a text or a number");
  return { ...value, id } as unknown as Message;
}

const isId = (value: unknown): value is RequestId => typeof value === "string" || Number.isSafeInteger(value);

const isFailure = (value: unknown): boolean =>
  isObject(value) && typeof value["code"] === "number" && typeof value["message"] === "string";

/** Only to answer it: nothing else of a text that was refused is used. */
function salvageRequest(text: string): Request | null {
  try {
    const value = JSON.parse(text) as unknown;
    return isObject(value) && isId(value["id"]) && typeof value["method"] === "string"
      ? { jsonrpc: "2.0", id: value["id"], method: value["method"] }
      : null;
  } catch {
    return null;
  }
}

/** JSON-RPC 2.0 messages in the form that MCP uses: one message per line or body, no batches. */
import {
  checkJson,
  isJsonObject as isObject,
  JsonFault,
  parseJson,
  type JsonObject,
  type JsonValue,
} from "../../../src/domain/json.ts";

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

/** The outcome of a request: a result or an error. */
export type Reply = { result: JsonObject } | { error: RpcError };

interface RpcError {
  code: number;
  message: string;
  data?: JsonValue;
}

type Response = { jsonrpc: "2.0"; id: RequestId } & Reply;
export type Message = Request | Notification | Response;
/** A message that the proxy sends. The id of a reply is null if the id of the request could not be read. */
export type OutgoingMessage = Message | ({ jsonrpc: "2.0"; id: null } & Reply);

/** Error codes of JSON-RPC 2.0 and MCP. */
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

/** Protocol revisions, newest first. 2026-07-28 removed the `initialize` handshake. */
export const MODERN_VERSION = "2026-07-28";
export const LEGACY_VERSIONS: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** Keys of `_meta`. Every request of protocol revision 2026-07-28 contains the first three. */
export const META_KEY = {
  version: "io.modelcontextprotocol/protocolVersion",
  client: "io.modelcontextprotocol/clientInfo",
  capabilities: "io.modelcontextprotocol/clientCapabilities",
  server: "io.modelcontextprotocol/serverInfo",
  subscription: "io.modelcontextprotocol/subscriptionId",
  logLevel: "io.modelcontextprotocol/logLevel",
} as const;

/** The extension of protocol revision 2026-07-28 for tasks. */
const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";
/** The extension as a member of capabilities. */
export const TASKS_EXTENSION_CAPABILITY: JsonObject = { [TASKS_EXTENSION]: {} };

/** Whether a client's or server's capabilities include the extension for tasks. */
export const supportsTaskExtension = ({ extensions }: JsonObject): boolean =>
  isObject(extensions) && isObject(extensions[TASKS_EXTENSION]);

/** Returns capabilities without the extension for tasks. */
export function withoutTaskExtension(capabilities: JsonObject): JsonObject {
  const { extensions, ...rest } = capabilities;
  if (!isObject(extensions)) return capabilities;
  const { [TASKS_EXTENSION]: _tasks, ...others } = extensions;
  return Object.keys(others).length === 0 ? rest : { ...rest, extensions: others };
}

export const isRequest = (message: OutgoingMessage): message is Request => "method" in message && "id" in message;
export const isResponse = (message: Message): message is Response => !("method" in message);

/** Returns the `_meta` of params or of a result; an empty object if there is none. */
export function readMeta(value: JsonObject | undefined): JsonObject {
  const meta = value?.["_meta"];
  return isObject(meta) ? meta : {};
}

/** Returns `params` with this `_meta`. Omits an empty `_meta`. */
export function withMeta(params: JsonObject | undefined, meta: JsonObject): JsonObject {
  const { _meta, ...rest } = params ?? {};
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
}

export const errorReply = (code: number, message: string, data?: JsonValue): Reply => ({
  error: { code, message, ...(data === undefined ? {} : { data }) },
});

/** Replies that the client would have to declare these capabilities. */
export const missingCapabilityReply = (message: string, requiredCapabilities: JsonObject): Reply =>
  errorReply(ERROR_CODE.missingCapability, message, { requiredCapabilities });

/** Replies that a protocol revision is not served without a session. */
export const unsupportedVersionReply = (requested: JsonValue | undefined): Reply =>
  errorReply(ERROR_CODE.unsupportedVersion, `only ${MODERN_VERSION} is served without a session`, {
    supported: [MODERN_VERSION],
    requested: requested ?? null,
  });

/** A string that is not a message, or that JSON parsers would interpret differently. */
export class MessageError extends Error {
  readonly code: number;
  /** The request to which to reply; null if it is not a request, or its id could not be parsed. */
  readonly request: Request | null;
  /** Ids of the receiver's requests that the string seems to answer; "unknown" if it answers one that it does not name. */
  readonly answers: readonly RequestId[] | "unknown";
  /** Whether the message names a method, so that it is not a reply. */
  readonly isMethod: boolean;
  constructor(
    message: string,
    code: number,
    {
      request = null,
      answers = [],
      isMethod = false,
    }: Partial<Pick<MessageError, "request" | "answers" | "isMethod">> = {},
  ) {
    super(message);
    this.code = code;
    this.request = request;
    this.answers = answers;
    this.isMethod = isMethod;
  }
}

/** Maximum nesting depth of a message. Functions that walk a message are recursive, so a deeper one could overflow the stack. */
const MAX_DEPTH = 1000;

/**
 * Parses a message from a client. Rejects JSON that parsers interpret differently: duplicate keys, integers beyond
 * 2^53, and lone surrogates.
 * @throws MessageError
 */
export function parseMessage(text: string): Message {
  let value: unknown;
  try {
    value = parseJson(text, { maxDepth: MAX_DEPTH });
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    const location = error.pointer === null || error.pointer === "" ? "" : ` at ${error.pointer}`;
    throw new MessageError(
      `${error.message}${location}`,
      error.code === "MALFORMED_JSON" ? ERROR_CODE.parse : ERROR_CODE.invalidRequest,
      salvage(text),
    );
  }
  if (Array.isArray(value))
    throw new MessageError("MCP does not support batches; send one message", ERROR_CODE.invalidRequest);
  return validateMessage(value);
}

/**
 * Separates JSON objects that are written without a line break between them. One JSON value cannot contain this sequence,
 * because a quote after `}{` ends a string.
 */
const BETWEEN_OBJECTS = /(?<=\})\s*(?=\{\s*"\w)/;

/**
 * Parses the messages of a server. Accepts inexact numbers, because no policy decides on a server's data; batches, which
 * protocol revision 2025-03-26 allows; byte order marks and NUL characters around messages; and several messages in one line.
 */
export function parseServerMessages(text: string): (Message | MessageError)[] {
  const line = text.replaceAll("\0", "").trim();
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    const lines = line.split(BETWEEN_OBJECTS);
    if (lines.length > 1) return lines.flatMap(parseServerMessages);
    return [new MessageError("the line is not JSON", ERROR_CODE.parse, { answers: findAnsweredIds(line) })];
  }
  const deep = isTooDeep(line);
  const batch: unknown[] = Array.isArray(value) ? value : [value];
  if (batch.length === 0)
    return [new MessageError("the batch is empty", ERROR_CODE.invalidRequest, { answers: "unknown" })];
  return batch.map((each: unknown) => {
    try {
      if (deep) throw invalidMessage(each, `it is nested more than ${MAX_DEPTH} deep`);
      return validateMessage(withoutNulls(each));
    } catch (error) {
      if (error instanceof MessageError) return error;
      throw error;
    }
  });
}

function isTooDeep(text: string): boolean {
  try {
    checkJson(text, { maxDepth: MAX_DEPTH, isHarmless: (code) => code !== "TOO_DEEP" });
    return false;
  } catch {
    return true;
  }
}

/**
 * Returns the ids of the responses in a text that is not JSON: for example, a response that contains `NaN`, is formatted
 * over several lines, is written as an object of Python or JavaScript, or follows other output on its line.
 */
export function findAnsweredIds(text: string): MessageError["answers"] {
  // Accept single quotes, and names without quotes, only in a line that begins like an object. A line of a log can contain
  // `id: 7`, too.
  const isObjectLike = text.trimStart().startsWith("{");
  const quote = isObjectLike ? `["']?` : `"`;
  const isMember = (names: string): boolean => new RegExp(`${quote}\\b(?:${names})${quote}\\s*:`, "i").test(text);
  if (ID_LINE.test(text)) return [Number(/\d+/.exec(text)?.[0])];
  if (!isMember("result|error|jsonrpc") || isMember("method")) return [];
  const pattern = new RegExp(`${quote}\\bid${quote}\\s*:\\s*["']?(\\d{1,15})(?!\\d)`, "gi");
  const ids = [...text.matchAll(pattern)].map(([, id]) => Number(id));
  return ids.length === 0 && isObjectLike && isMember("jsonrpc") && isMember("result|error") ? "unknown" : ids;
}

/** A line with only the id of a message that is formatted over several lines. */
const ID_LINE = /^\s*(["'])id\1\s*:\s*["']?\d{1,15}["']?\s*,?\s*$/i;

/** Removes `error: null` beside a result, and `result: null` beside an error, which some servers send. */
function withoutNulls(value: unknown): unknown {
  if (!isObject(value) || "method" in value || !("result" in value && "error" in value)) return value;
  const { result, error, ...rest } = value;
  return {
    ...rest,
    ...(result === null && error !== null ? {} : { result }),
    ...(error === null ? {} : { error }),
  };
}

const readId = (value: unknown): RequestId | null => (isObject(value) && isId(value["id"]) ? value["id"] : null);

function invalidMessage(value: unknown, reason: string): MessageError {
  const members = readMembers(value);
  const id = readId(members);
  return new MessageError(`invalid JSON-RPC message: ${reason}`, ERROR_CODE.invalidRequest, {
    answers: answeredIds(value),
    isMethod: members !== null && "method" in members,
    request: id === null || (members !== null && isReplyLike(members)) ? null : { jsonrpc: "2.0", id, method: "" },
  });
}

/** @throws MessageError */
function validateMessage(value: unknown): Message {
  const id = readId(value);
  const invalid = (reason: string): MessageError => invalidMessage(value, reason);
  if (!isObject(value) || value["jsonrpc"] !== "2.0") throw invalid(`it must be an object with "jsonrpc": "2.0"`);
  if (typeof value["method"] === "string") {
    if ("params" in value && !isObject(value["params"])) throw invalid("params must be an object");
    if ("id" in value && id === null) throw invalid("id must be a string or an integer");
    if ("result" in value || "error" in value) throw invalid("it is both a request and a response");
    return value as unknown as Message;
  }
  if ("method" in value) throw invalid("method must be a string");
  if ("result" in value === "error" in value) throw invalid("a response must have either result or error");
  if ("result" in value ? !isObject(value["result"]) : !isFailure(value["error"]))
    throw invalid("result must be an object, and error must have code and message");
  if (id === null) throw invalid("the id of a response must be a string or an integer");
  return { ...value, id } as unknown as Message;
}

const isId = (value: unknown): value is RequestId => typeof value === "string" || Number.isSafeInteger(value);

/**
 * Returns the number of the proxy's request with this id; null if the proxy gives no request such an id. Some servers
 * send ids as strings.
 */
export function toRequestNumber(id: RequestId): number | null {
  const number = typeof id === "string" && /^\d{1,15}$/.test(id) ? Number(id) : id;
  return typeof number === "number" && number > 0 ? number : null;
}

const isFailure = (value: unknown): boolean =>
  isObject(value) && Number.isSafeInteger(value["code"]) && typeof value["message"] === "string";

/** Returns an object's members by their names in small letters, such as `jsonrpc` for `JSON-RPC`; null for other values. */
function readMembers(value: unknown): JsonObject | null {
  if (!isObject(value)) return null;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name.toLowerCase().replaceAll(/[^a-z]/g, ""), member]),
  );
}

const isReplyLike = (members: JsonObject): boolean => "result" in members || "error" in members;

/** Returns true for the result of a tool without the message around it. */
const isBareResult = ({ content, iserror, structuredcontent }: JsonObject): boolean =>
  Array.isArray(content) || typeof iserror === "boolean" || isObject(structuredcontent);

/** Returns true for a line of a log, which some servers write between their messages. */
const isLogLine = (members: JsonObject): boolean =>
  ["level", "severity", "msg", "time", "timestamp", "ts", "logger"].some((name) => name in members);

/**
 * Returns the requests that an invalid message answers. An object with an id is a reply if it is neither a request nor a
 * line of a log, whatever its members are called.
 */
function answeredIds(value: unknown): MessageError["answers"] {
  const members = readMembers(value);
  if (members === null) return findInnerReplies(value);
  const { id, error, jsonrpc } = members;
  if ("method" in members && !isReplyLike(members)) return [];
  if (jsonrpc === undefined && isLogLine(members)) return findInnerReplies(value);
  if (isId(id) && toRequestNumber(id) !== null) return [id];
  // Some servers reply to notifications with this error, to state that they do not support them.
  if (isObject(error) && error["code"] === ERROR_CODE.methodNotFound) return [];
  const isEmpty = Object.keys(members).length === 0;
  return isEmpty || jsonrpc !== undefined || isReplyLike(members) || isBareResult(members)
    ? "unknown"
    : findInnerReplies(value);
}

/** Maximum depth of a reply inside another value. */
const MAX_WRAPPERS = 4;

/** Returns the ids of replies inside a list, a string or the members of another object, such as `{"data": {…}}`. */
function findInnerReplies(value: unknown, depth: number = 0): RequestId[] {
  if (typeof value === "string") return [findAnsweredIds(value)].flat().filter((id) => typeof id === "number");
  if (typeof value !== "object" || value === null || depth > MAX_WRAPPERS) return [];
  const members = readMembers(value) ?? {};
  if ("method" in members) return [];
  if (depth > 0 && isReplyLike(members) && isId(members["id"])) return [members["id"]];
  return Object.values(value).flatMap((each) => findInnerReplies(each, depth + 1));
}

/** Reads id and method of an invalid message, so that a reply can be sent. */
function salvage(text: string): Partial<MessageError> {
  try {
    const value = JSON.parse(text) as unknown;
    return isObject(value) && isId(value["id"]) && typeof value["method"] === "string"
      ? { request: { jsonrpc: "2.0", id: value["id"], method: value["method"] } }
      : { answers: answeredIds(value) };
  } catch {
    return { answers: findAnsweredIds(text) };
  }
}

/** Reads and validates a request's body, in this order: media type, size, UTF-8, JSON, schema. */
import type { TSchema } from "@sinclair/typebox";
import type { TypeCheck } from "@sinclair/typebox/compiler";
import { Refusal, type FieldError } from "../contract/errors.ts";
import type { Route } from "../contract/resource.ts";
import { decodeUtf8, JsonFault, parseJson } from "../domain/json.ts";
import { explainFault, siblingNames, findInnermostFault } from "../domain/validation.ts";
import { createCollector } from "./collector.ts";
import type { RequestByteShare } from "./overload-limits.ts";
import { BodyTooLarge, type RequestInfo } from "./request-info.ts";
import { createSchemaCheck } from "./schema-check.ts";

const MAX_ERRORS = 20;
/**
 * Maximum number of bytes of an oversized body that are read and discarded before the connection is closed. If the
 * connection were closed immediately, a proxy that is still sending would report a broken connection instead of the
 * 413.
 */
const DISCARD_BYTES = 4 * 1_048_576;
/** Timeout for the next chunk while an oversized body is discarded. */
const DISCARD_TIMEOUT_MS = 200;

export interface BodyReader {
  /**
   * Reads a body. Resolves to the validated JSON, the string of a text body, or undefined if the route does not accept
   * a body.
   */
  read(
    request: Request,
    info: RequestInfo,
    share: RequestByteShare,
  ): Promise<{ body: unknown; contentType: string | null }>;
}

export interface BodyLimits {
  /** Maximum size in bytes of a body, unless the route sets its own limit. */
  bytes: number;
  /** Maximum number of object members and array items in one body. */
  values: number;
}

export function createBodyReader(route: Route, limits: BodyLimits): BodyReader {
  const { body: schema } = route;
  const max = route.bodyLimit ?? limits.bytes;
  if (schema === undefined && route.textBodies === undefined) {
    return {
      async read(request, info, share) {
        if (await hasBody(request, info, share))
          throw new Refusal("BAD_REQUEST", `${route.method} ${route.path} does not accept a body; send none`);
        return { body: undefined, contentType: null };
      },
    };
  }
  const check = schema === undefined ? null : createSchemaCheck(schema);
  return {
    async read(request, info, share) {
      const type = mediaType(request.headers.get("content-type"));
      const asText = type !== null && (route.textBodies ?? []).includes(type);
      const isJson = schema !== undefined && type === "application/json";
      if (!asText && type !== null && !isJson) throw unsupportedMediaTypeRefusal(route, type);
      const encoding = request.headers.get("content-encoding");
      if (encoding !== null && encoding.toLowerCase() !== "identity") {
        throw new Refusal(
          "UNSUPPORTED_MEDIA_TYPE",
          `the content encoding "${encoding}" is not supported; send the body unencoded`,
        );
      }
      const bytes = await readBytes(request, max, info, share);
      // Many clients send a Content-Type even without a body.
      if (bytes.length === 0 && !asText && check?.().Check({}) === true) return { body: {}, contentType: type };
      if (type === null) throw unsupportedMediaTypeRefusal(route, null);
      const text = decodeUtf8(bytes);
      if (text === null) throw new Refusal("INVALID_UTF8", "the body is not valid UTF-8");
      if (asText) return { body: text, contentType: type };
      const value = parse(text, limits.values);
      if (check !== null && schema !== undefined && !check().Check(value)) throw invalidRefusal(check(), schema, value);
      return { body: value, contentType: type };
    },
  };
}

function parse(text: string, maxValues: number): unknown {
  try {
    return parseJson(text, { maxValues });
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    throw new Refusal(
      error.code,
      error.message,
      error.pointer === null ? {} : { errors: [{ pointer: error.pointer, detail: error.message }] },
    );
  }
}

function invalidRefusal(check: TypeCheck<TSchema>, schema: TSchema, value: unknown): Refusal {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const error of check.Errors(value)) {
    const fault = findInnermostFault(error);
    // TypeBox reports a missing member twice. Only the first error about a member is useful.
    if (seen.has(fault.path)) continue;
    seen.add(fault.path);
    errors.push({ pointer: fault.path, detail: explainFault(fault, siblingNames(schema, fault.path)) });
    if (errors.length === MAX_ERRORS) break;
  }
  const first = errors[0];
  return new Refusal(
    "VALIDATION_FAILED",
    `the body does not have the expected form: ${first === undefined ? "" : `${first.pointer || "/"}: ${first.detail}`}`,
    { errors },
  );
}

/**
 * Returns the media type in lowercase without parameters, or null if there is none. Refuses charsets other than UTF-8.
 */
function mediaType(header: string | null): string | null {
  if (header === null || header === "application/json") return header;
  const [type, ...parameters] = header.split(";").map((part) => part.trim().toLowerCase());
  for (const parameter of parameters) {
    const charset = /^charset=("?)([^"]*)\1$/.exec(parameter)?.[2];
    if (charset !== undefined && charset !== "utf-8" && charset !== "utf8") {
      throw new Refusal("UNSUPPORTED_MEDIA_TYPE", `the charset "${charset}" is not supported; send UTF-8`);
    }
  }
  return type ?? "";
}

function unsupportedMediaTypeRefusal(route: Route, type: string | null): Refusal {
  const supported = [...(route.body === undefined ? [] : ["application/json"]), ...(route.textBodies ?? [])].join(
    " or ",
  );
  return new Refusal(
    "UNSUPPORTED_MEDIA_TYPE",
    type === null
      ? `the body has no content type; send it as ${supported}`
      : `the content type "${type}" is not supported; send ${supported}`,
  );
}

async function hasBody(request: Request, info: RequestInfo, share: RequestByteShare): Promise<boolean> {
  const length = request.headers.get("content-length");
  if (length !== null) return length.trim() !== "0";
  if (isUnsent(request, info)) return false;
  return (await readBytes(request, 1, info, share).catch(() => new Uint8Array(1))).length > 0;
}

/**
 * Returns true if a request without Content-Length has no body. An HTTP/2 request can have a body without any length
 * header.
 */
function isUnsent(request: Request, info: RequestInfo): boolean {
  if (request.headers.get("transfer-encoding") !== null) return false;
  return info.readBody !== undefined || request.body === null;
}

/**
 * Reads the body and counts its bytes, so that it accepts at most `max` bytes even if Content-Length is missing or
 * false. Throws BODY_TOO_LARGE.
 */
export async function readBytes(
  request: Request,
  max: number,
  info: RequestInfo,
  share: RequestByteShare,
): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > max) {
    if (info.discardBody !== undefined) await info.discardBody(DISCARD_BYTES, DISCARD_TIMEOUT_MS);
    else if (request.body !== null)
      await discard((request.body as ReadableStream<Uint8Array>).getReader(), DISCARD_BYTES);
    throw tooLargeRefusal(max);
  }
  if (declared !== null) share.expect(Number(declared));
  try {
    if (info.readBody !== undefined) return await info.readBody(max, share.take);
    return await readStream(request, max, share.take);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    if (error instanceof BodyTooLarge) {
      await info.discardBody?.(DISCARD_BYTES, DISCARD_TIMEOUT_MS);
      throw tooLargeRefusal(max);
    }
    throw new Refusal("BAD_REQUEST", "the body ended early; send the request again");
  }
}

async function readStream(request: Request, max: number, take: (bytes: number) => void): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array(0);
  const reader = (request.body as ReadableStream<Uint8Array>).getReader();
  const body = createCollector(max, take);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return body.bytes();
    try {
      body.add(value);
    } catch (error) {
      if (error instanceof BodyTooLarge) await discard(reader, DISCARD_BYTES);
      else await reader.cancel().catch(() => {});
      throw error;
    }
  }
}

/**
 * Reads and discards up to `maxBytes` of the body. Otherwise a client that is still sending would not receive the
 * response.
 */
async function discard(reader: ReadableStreamDefaultReader<Uint8Array>, maxBytes: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  for (let size = 0; size < maxBytes;) {
    const pause = new Promise<null>((resolve) => {
      timer = setTimeout(resolve, DISCARD_TIMEOUT_MS, null);
    });
    const next = await Promise.race([reader.read().catch(() => null), pause]);
    clearTimeout(timer);
    if (next === null || next.done) break;
    size += next.value.length;
  }
  await reader.cancel().catch(() => {});
}

function tooLargeRefusal(max: number): Refusal {
  return new Refusal(
    "BODY_TOO_LARGE",
    `the body is larger than ${max} bytes; send less, or raise server.max_body_bytes`,
    { headers: { Connection: "close" } },
  );
}

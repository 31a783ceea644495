/** Requests that a facade sends to the API in this process, and their responses. */
import { Refusal } from "../contract/errors.ts";
import type { ApiResponse, ApiCallOptions, Facade } from "../contract/facade.ts";

/**
 * Returns the API key in the form of an `Authorization` header, from the header that the facade uses; null if the
 * header is absent.
 */
export function readApiKey(
  { headers }: Request,
  { keyHeader = "authorization", acceptsBasicAuth: basicKey = false }: Facade,
): string | null {
  const value = headers.get(keyHeader);
  if (value === null || /^bearer /i.test(value)) return value;
  if (basicKey && /^basic /i.test(value)) return `Bearer ${passwordIn(value.slice(6)) ?? ""}`;
  return keyHeader.toLowerCase() === "authorization" ? value : `Bearer ${value}`;
}

/**
 * Returns the password of Basic credentials, which follows the first colon (RFC 7617); null if the credentials have no
 * colon or are not Base64.
 */
function passwordIn(credentials: string): string | null {
  try {
    return /^[^:]*:(.*)$/s.exec(atob(credentials.trim()))?.[1] ?? null;
  } catch {
    return null;
  }
}

/**
 * Builds a request to the API. Copies only the key, `traceparent`, `X-Request-Id` and the abort signal of the outer
 * request, because its other headers belong to the facade's protocol.
 */
export function buildApiRequest(
  outer: Request,
  key: string | null,
  method: string,
  path: string,
  { json, headers }: ApiCallOptions = {},
): Request {
  const sent = new Headers(headers);
  if (key !== null) sent.set("Authorization", key);
  for (const name of ["traceparent", "x-request-id"]) {
    const value = outer.headers.get(name);
    if (value !== null) sent.set(name, value);
  }
  if (json !== undefined) sent.set("Content-Type", "application/json");
  return new Request(new URL(path, "http://facade.invalid"), {
    method,
    headers: sent,
    signal: outer.signal,
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
}

export async function readApiResponse(response: Response): Promise<ApiResponse> {
  const text = await response.text();
  const isJson = /\bjson\b/.test(response.headers.get("content-type") ?? "");
  return { status: response.status, headers: response.headers, json: isJson ? (JSON.parse(text) as unknown) : null };
}

/**
 * Returns a check that rejects gateway requests to any path other than the gateway's facade. A gateway forwards the
 * path of its client and treats 200 as an allow. If a crafted path leaves the facade (`/../healthz`), the gateway must
 * not mistake another route's 200 for an allow.
 */
export function createGatewayCheck(
  facades: readonly Facade[],
): (target: { facade: Facade | null }, request: Request) => void {
  const headers = [...new Set(facades.flatMap(({ keyHeader }) => keyHeader ?? []))];
  return ({ facade }, request) => {
    const gatewayHeader = headers.find((name) => name !== facade?.keyHeader && request.headers.has(name));
    if (gatewayHeader !== undefined)
      throw new Refusal(
        "BAD_REQUEST",
        `a request with the header ${gatewayHeader} comes from a gateway, but this path is not one of a gateway facade`,
      );
  };
}

/** The two ends of a facade: the request that it sends to the API in this process, and the answer that it gets. */
import { Refusal } from "../contract/errors.ts";
import type { ApiResponse, ApiCallOptions, Facade } from "../contract/facade.ts";

/** The value of `Authorization`, wherever the key came in; null where there is none. */
export function readApiKey(
  { headers }: Request,
  { keyHeader = "authorization", acceptsBasicAuth: basicKey = false }: Facade,
): string | null {
  const value = headers.get(keyHeader);
  if (value === null || /^bearer /i.test(value)) return value;
  if (basicKey && /^basic /i.test(value)) return `Bearer ${passwordIn(value.slice(6)) ?? ""}`;
  return keyHeader.toLowerCase() === "authorization" ? value : `Bearer ${value}`;
}

/** RFC 7617: what stands behind the first colon; null for what is no Base64. */
function passwordIn(credentials: string): string | null {
  try {
    return /^[^:]*:(.*)$/s.exec(atob(credentials.trim()))?.[1] ?? null;
  } catch {
    return null;
  }
}

/** Carries nothing of the outer request but its key, its trace and its end: headers of another protocol mean other things here. */
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
 * Refuses a gateway's question that did not reach its facade. A gateway passes its client's path on, and takes 200 for
 * permission: where the path was written so that it leads out of the facade (`/../healthz`), another route's 200 must not
 * be the answer.
 */
export function createGatewayCheck(
  facades: readonly Facade[],
): (target: { facade: Facade | null }, request: Request) => void {
  const headers = [...new Set(facades.flatMap(({ keyHeader }) => keyHeader ?? []))];
  return ({ facade }, request) => {
    const astray = headers.find((name) => name !== facade?.keyHeader && request.headers.has(name));
    if (astray !== undefined)
      throw new Refusal(
        "BAD_REQUEST",
        `a request with the header ${astray} is a gateway's, and no gateway's address is here`,
      );
  };
}

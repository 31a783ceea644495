/**
 * itty-router finds the path; methods are ours. One entry a path, so that a known path with a wrong
 * method can answer 405 with `Allow`, and HEAD and OPTIONS work everywhere.
 */
import { IttyRouter, type IRequest } from "itty-router";
import { Refusal } from "../contract/errors.ts";

export interface RouteMatch<T> {
  target: T;
  /** Percent-decoded. */
  params: Record<string, string>;
}

export type Router<T> = (url: string) => Promise<RouteMatch<T> | null>;

/** Rejects with BAD_REQUEST for a path that is not percent-encoded UTF-8. */
export function createRouter<T>(
  targets: readonly {
    path: string;
    target: T;
    /** Takes all that lies below its path, however it is written. */ below?: boolean;
  }[],
): Router<T> {
  const router = IttyRouter();
  const prefixes = targets
    .filter(({ below }) => below === true)
    .map(({ path, target }) => ({ prefix: `${path}/`, target }));
  // A path without parameters needs no pattern: most requests go to one of these.
  const literal = new Map(
    targets.filter(({ path }) => !path.includes(":")).map(({ path, target }) => [path, { target, params: {} }]),
  );
  for (const { path, target } of [...targets].sort((a, b) => literalFirst(a.path, b.path))) {
    router.all(path, (request: IRequest) => ({ target, params: decodeAll(request.params) }));
  }
  return async (url) => {
    // The router takes a trailing slash for none; two addresses for one thing are one too many.
    const path = readPath(url);
    const route = literal.get(path);
    if (route !== undefined) return route;
    const below = prefixes.find(({ prefix }) => path.startsWith(prefix));
    if (below !== undefined) return { target: below.target, params: {} };
    if (path.length > 1 && path.endsWith("/")) return null;
    // It writes what it finds onto the request: a throw-away one, without the query that it would parse.
    const match = (await router.fetch({ method: "GET", url: `http://router${path}` })) as RouteMatch<T> | undefined;
    return match ?? null;
  };
}

/** Without query and fragment. */
export function readPath(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start < 0) return "/";
  let end = url.length;
  for (const mark of ["?", "#"]) {
    const at = url.indexOf(mark, start);
    if (at >= 0 && at < end) end = at;
  }
  return url.slice(start, end);
}

/** A literal segment is tried before a parameter, whatever the order of registration. */
function literalFirst(a: string, b: string): number {
  const left = a.split("/");
  const right = b.split("/");
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const l = left[i]?.startsWith(":") === true;
    const r = right[i]?.startsWith(":") === true;
    if (l !== r) return l ? 1 : -1;
  }
  return left.length - right.length;
}

function decodeAll(groups: Record<string, string | undefined>): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [name, value] of Object.entries(groups)) {
    try {
      params[name] = decodeURIComponent(value ?? "");
    } catch {
      throw new Refusal("BAD_REQUEST", `the path segment "${value ?? ""}" is not percent-encoded UTF-8`);
    }
  }
  return params;
}

/**
 * Matches paths with itty-router, regardless of the method. Each path has one entry, so that a wrong method on a known
 * path gets 405 with `Allow`, and HEAD and OPTIONS work on every path.
 */
import { IttyRouter, type IRequest } from "itty-router";
import { Refusal } from "../contract/errors.ts";

interface RouteMatch<T> {
  target: T;
  /** Percent-decoded path parameters. */
  params: Record<string, string>;
}

export type Router<T> = (url: string) => Promise<RouteMatch<T> | null>;

/**
 * Returns a function that finds the target of a URL. It rejects with BAD_REQUEST for a path that is not percent-encoded
 * UTF-8.
 */
export function createRouter<T>(
  targets: readonly {
    path: string;
    target: T;
    /** Whether the target also matches every path below its own. Such paths are not decoded. */
    includesSubpaths?: boolean;
  }[],
): Router<T> {
  const router = IttyRouter();
  const prefixes = targets
    .filter(({ includesSubpaths }) => includesSubpaths === true)
    .map(({ path, target }) => ({ prefix: `${path}/`, target }));
  // Most requests use paths without parameters, which do not need a pattern.
  const literal = new Map(
    targets.filter(({ path }) => !path.includes(":")).map(({ path, target }) => [path, { target, params: {} }]),
  );
  for (const { path, target } of [...targets].sort((a, b) => compareLiteralFirst(a.path, b.path))) {
    router.all(path, (request: IRequest) => ({ target, params: decodeAll(request.params) }));
  }
  return async (url) => {
    const path = readPath(url);
    const route = literal.get(path);
    if (route !== undefined) return route;
    const parent = prefixes.find(({ prefix }) => path.startsWith(prefix));
    if (parent !== undefined) return { target: parent.target, params: {} };
    // Reject a trailing slash. The router would ignore it, so each resource would have two addresses.
    if (path.length > 1 && path.endsWith("/")) return null;
    // Pass a temporary request without the query, because itty-router parses the query and sets members of the request.
    const match = (await router.fetch({ method: "GET", url: `http://router${path}` })) as RouteMatch<T> | undefined;
    return match ?? null;
  };
}

/** Returns the path of a URL, without query and fragment. */
function readPath(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start < 0) return "/";
  let end = url.length;
  for (const mark of ["?", "#"]) {
    const at = url.indexOf(mark, start);
    if (at >= 0 && at < end) end = at;
  }
  return url.slice(start, end);
}

/** Orders two paths: literal segments come before parameters, regardless of the order of registration. */
function compareLiteralFirst(a: string, b: string): number {
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

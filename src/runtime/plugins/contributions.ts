/** Validates the result of `setup`, because a plugin that is loaded by path can be untyped JavaScript. */
import { ERRORS } from "../../contract/errors.ts";
import type { Route } from "../../contract/resource.ts";
import { findSimilarName } from "../../domain/similar-name.ts";
import type { Contributions } from "../../plugin.ts";
import type { Declarations } from "./declarations.ts";

type Kind = "string" | "function" | "object";
type Members = Readonly<Record<string, Kind>>;

/** Members that each item of a list must have. */
const LISTS = {
  routes: {
    path: "string",
    summary: "string",
    tag: "string",
    responses: "object",
    handle: "function",
  },
  policySources: { name: "string", load: "function" },
  notifiers: { name: "string", deliver: "function" },
  reviewers: { name: "string", version: "string", review: "function" },
  factSources: { name: "string", inputs: "object", read: "function" },
  pages: { path: "string", title: "string", serve: "function" },
  authenticators: { name: "string" },
  credentialIssuers: { name: "string", tools: "object", operations: "object", issue: "function" },
  checks: { name: "string", read: "function" },
  steps: { name: "string" },
  gauges: { name: "string", help: "string", labels: "object", read: "function" },
  facades: { path: "string", title: "string", serve: "function", fault: "function" },
} as const satisfies Partial<Record<keyof Contributions, Members>>;

const SINGLE_MEMBERS = {
  tracer: "object",
  messenger: "function",
  onResponse: "function",
  start: "function",
  stop: "function",
} as const satisfies Record<Exclude<keyof Contributions, keyof typeof LISTS>, Kind>;
const KNOWN_MEMBERS = [...Object.keys(LISTS), ...Object.keys(SINGLE_MEMBERS)];
const METHODS: readonly string[] = ["GET", "POST", "PUT", "PATCH", "DELETE"] satisfies Route["method"][];

/** Returns the fault of the contributions; null if they are valid. */
export function findContributionFault(brought: unknown, declared: Declarations): string | null {
  if (!isObject(brought))
    return `setup returned ${wordFor(brought)}; return an object with what the plugin contributes, {} if nothing`;
  for (const name of Object.keys(brought)) {
    if (KNOWN_MEMBERS.includes(name)) continue;
    const suggestion = findSimilarName(name, KNOWN_MEMBERS);
    return `setup returned "${name}", which is not a contribution${suggestion === null ? `; a plugin can contribute ${KNOWN_MEMBERS.join(", ")}` : `; did you mean "${suggestion}"?`}`;
  }
  for (const [name, kind] of Object.entries(SINGLE_MEMBERS)) {
    const value = brought[name];
    if (value !== undefined && !isA(kind, value)) return `"${name}" must be ${article(kind)}; got ${wordFor(value)}`;
  }
  if (brought["tracer"] !== undefined) {
    const fault = itemFault(brought["tracer"], { startRequest: "function" });
    if (fault !== null) return `"tracer" ${fault}`;
  }
  for (const [name, members] of Object.entries(LISTS)) {
    const items = brought[name];
    if (items === undefined) continue;
    if (!Array.isArray(items)) return `"${name}" must be a list; got ${wordFor(items)}`;
    for (const [i, item] of items.entries()) {
      const fault = itemFault(item, members) ?? itemRuleFault(name, item, declared);
      if (fault !== null) return `${name}[${i}] ${fault}`;
    }
  }
  return null;
}

function itemFault(item: unknown, members: Members): string | null {
  if (!isObject(item)) return `must be an object; got ${wordFor(item)}`;
  for (const [member, kind] of Object.entries(members)) {
    const value = item[member];
    if (value === undefined) return `has no "${member}"`;
    if (!isA(kind, value)) return `has a "${member}" that must be ${article(kind)}; got ${wordFor(value)}`;
    if (value === "") return `has an empty "${member}"`;
  }
  return null;
}

function itemRuleFault(list: string, item: unknown, declared: Declarations): string | null {
  if (list === "routes") return routeFault(item as Route, declared);
  return list === "authenticators" ? authenticatorFault(item as Record<string, unknown>) : null;
}

function authenticatorFault(item: Record<string, unknown>): string | null {
  const methods = ["authenticate", "authenticateToken"].filter((name) => item[name] !== undefined);
  if (methods.length === 0) return 'has neither "authenticate" nor "authenticateToken"';
  const wrong = methods.find((name) => !isA("function", item[name]));
  return wrong === undefined ? null : `has a "${wrong}" that must be a function; got ${wordFor(item[wrong])}`;
}

/**
 * Returns the fault of a route. Requires `scope` on every route, so that a route cannot be public or protected by
 * accident.
 */
function routeFault({ method, path, scope, errors = [] }: Route, declared: Declarations): string | null {
  const route = `(${String(method)} ${path})`;
  if (!METHODS.includes(method))
    return `${route} has the method ${JSON.stringify(method)}; one of ${METHODS.join(", ")} is expected`;
  if (!path.startsWith("/")) return `${route} has a path that does not begin with "/"`;
  if (scope === undefined)
    return `${route} has no "scope"; set it to the scope that a key needs, or to null if no key is needed`;
  const scopes: readonly unknown[] = scope === null ? [] : Array.isArray(scope) ? scope : [scope];
  if (Array.isArray(scope) && scopes.length === 0)
    return `${route} has an empty list of scopes; use null if no key is needed`;
  return (
    describeUnknown(`${route} has the scope`, scopes, declared.scopes) ??
    describeUnknown(`${route} lists the error`, codesOf(errors), [
      ...Object.keys(ERRORS),
      // Accept only errors from `defineErrors`, because each code has a fixed status.
      ...declared.errors.filter((kind) => Array.isArray(errors) && errors.includes(kind)).map(({ code }) => code),
    ])
  );
}

function codesOf(errors: NonNullable<Route["errors"]>): readonly unknown[] {
  return Array.isArray(errors) ? errors.map((error) => (isObject(error) ? error["code"] : error)) : errors;
}

function describeUnknown(listName: string, names: readonly unknown[], choices: readonly string[]): string | null {
  if (!Array.isArray(names)) return `${listName} ${JSON.stringify(names)}, which must be a list`;
  const wrong = names.find((candidate) => !choices.includes(candidate as string)) as unknown;
  if (wrong === undefined) return null;
  const suggestion = typeof wrong === "string" ? findSimilarName(wrong, choices) : null;
  return `${listName} ${JSON.stringify(wrong)}, which is not declared${suggestion === null ? "" : `; did you mean "${suggestion}"?`}`;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isA = (kind: Kind, value: unknown): boolean => typeof value === kind && value !== null;
const article = (kind: Kind): string => (kind === "object" ? "an object" : `a ${kind}`);
const wordFor = (value: unknown): string =>
  value === undefined
    ? "nothing"
    : value === null
      ? "null"
      : Array.isArray(value)
        ? "a list"
        : value instanceof Promise
          ? "a promise"
          : typeof value === "object"
            ? "an object"
            : `a ${typeof value}`;

/** Collects the targets of each path: a route for each method, a page or a facade. */
import type { Facade } from "../contract/facade.ts";
import type { Page } from "../contract/page.ts";
import type { Method, Route } from "../contract/resource.ts";
import { createBodyReader, type BodyLimits, type BodyReader } from "./body.ts";
import { createParameterReader, type ParameterReader } from "./query.ts";

/** A route with its compiled readers. */
export interface CompiledRoute {
  route: Route;
  body: BodyReader;
  query: ParameterReader<Record<string, unknown>>;
  params: ParameterReader<Record<string, unknown>>;
}

/** The targets of one path. */
export interface PathTargets {
  path: string;
  methods: Map<Method, CompiledRoute>;
  page: Page | null;
  facade: Facade | null;
}

interface ServedContributions {
  routes: readonly Route[];
  pages: readonly Page[];
  facades: readonly Facade[];
}

export function listPathTargets({ routes, pages, facades }: ServedContributions, limits: BodyLimits): PathTargets[] {
  const targetsByPath = new Map<string, PathTargets>();
  const targetsAt = (path: string): PathTargets => {
    const targets = targetsByPath.get(path) ?? { path, methods: new Map(), page: null, facade: null };
    targetsByPath.set(path, targets);
    return targets;
  };
  for (const route of routes) {
    targetsAt(route.path).methods.set(route.method, {
      route,
      body: createBodyReader(route, limits),
      query: createParameterReader(route.query, "query"),
      params: createParameterReader(route.params, "path"),
    });
  }
  for (const page of pages) targetsAt(page.path).page = page;
  for (const facade of facades) targetsAt(facade.path).facade = facade;
  return [...targetsByPath.values()];
}

export function acceptsMethod({ methods }: Facade, method: string): boolean {
  return methods === "any" || (methods as readonly string[]).includes(method === "HEAD" ? "GET" : method);
}

/** Returns the value of the header `Allow`. */
export function allowHeader(targets: PathTargets): string {
  const methods: string[] = [...targets.methods.keys()];
  if (targets.page !== null && !methods.includes("GET")) methods.push("GET");
  if (targets.facade !== null && targets.facade.methods !== "any") methods.push(...targets.facade.methods);
  if (methods.includes("GET")) methods.push("HEAD");
  return [...methods, "OPTIONS"].sort().join(", ");
}

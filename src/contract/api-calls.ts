/** The types of requests and responses, taken from the schemas of the routes. */
import type { Static, TSchema } from "@sinclair/typebox";
import type { FeatureRoutes, Method } from "./resource.ts";

type RoutesOf<Create> = Create extends (...parameters: never[]) => infer Routes
  ? Routes extends readonly (infer One)[]
    ? One
    : Routes
  : never;
type PublishedRoute = RoutesOf<FeatureRoutes[keyof FeatureRoutes]>;

/** Replaces `:id` by `{id}`, as in the OpenAPI document. */
type PathTemplate<Path extends string> = Path extends `${infer Before}:${infer Name}/${infer After}`
  ? `${Before}{${Name}}/${PathTemplate<After>}`
  : Path extends `${infer Before}:${infer Name}`
    ? `${Before}{${Name}}`
    : Path;

/** A value that clients send: optional members can also be undefined. */
export type Sent<Value> = Value extends readonly (infer Item)[]
  ? Sent<Item>[]
  : Value extends Readonly<Record<string, unknown>>
    ? { [Name in keyof Value]: {} extends Pick<Value, Name> ? Sent<Value[Name]> | undefined : Sent<Value[Name]> }
    : Value;

type SentBy<Schema> = [Schema] extends [never] ? never : Schema extends TSchema ? Sent<Static<Schema>> : never;
type ReturnedIn<Response> = Response extends { schema: infer Schema extends TSchema } ? Static<Schema> : never;
type Success = 200 | 201 | 202;

type RouteCalls = {
  [One in PublishedRoute as `${One["method"]} ${PathTemplate<One["path"]>}`]: {
    query: SentBy<NonNullable<One["query"]>>;
    body: SentBy<NonNullable<One["body"]>>;
    response: ReturnedIn<One["responses"][keyof One["responses"] & Success]>;
  };
};

/**
 * Each operation, such as `"GET /v1/actions/{id}"`, with the types of its query, its body and its JSON response. The
 * type is `never` where there is none. An operation of a deleted feature has no types, so that code which calls it
 * compiles without the feature.
 */
export interface ApiCalls extends RouteCalls {
  // oxlint-disable-next-line typescript/no-explicit-any
  [operation: `${Method} /v1/${string}`]: any;
}

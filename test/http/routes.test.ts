/** Declarations of routes: the types that handlers receive, and the errors that they list. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Type, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Credential } from "../../src/contract/host.ts";
import { defineRoute, type RequestContext } from "../../src/contract/resource.ts";
import { createBodyReader } from "../../src/http/body.ts";
import { listCoreErrors } from "../../src/http/core-errors.ts";
import { createRequestByteBudget } from "../../src/http/overload-limits.ts";
import { startService } from "../support/service.ts";

/** Compiles only if the two types are equal. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_same: Same<A, B>): void {}

const about = { method: "POST", tag: "t", summary: "s", responses: {} } as const;
const Body = Type.Object({ amount: Type.Integer() });

describe("a handler's context", () => {
  test("has the types of the route's schemas", () => {
    defineRoute({
      ...about,
      path: "/v1/a/:id/b/:rest+",
      scope: "actions:read",
      query: Type.Object({ deep: Type.Optional(Type.Boolean()) }),
      body: Body,
      handle({ params, query, body, credential }) {
        same<typeof params, Record<"id" | "rest", string>>(true);
        same<typeof query.deep, boolean | undefined>(true);
        same<typeof body, { amount: number }>(true);
        same<typeof credential, Credential>(true);
        // @ts-expect-error the path has no such parameter
        void params.name;
        return { status: 204 };
      },
    });
    defineRoute({
      ...about,
      path: "/v1/c/:count",
      scope: ["actions:read", "actions:read_own"],
      params: Type.Object({ count: Type.Integer() }),
      body: Body,
      textBodies: ["application/yaml"],
      handle({ params, body, query, credential }) {
        same<typeof params.count, number>(true);
        same<typeof body, { amount: number } | string>(true);
        same<typeof query, Record<string, never>>(true);
        same<typeof credential, Credential>(true);
        return { status: 204 };
      },
    });
  });

  test("has no credential if no key is needed, and no body if none is accepted", () => {
    defineRoute({
      ...about,
      path: "/v1/d",
      scope: "approvals:decide",
      handle({ credential, body }) {
        same<typeof credential, Credential>(true);
        same<typeof body, undefined>(true);
        return { status: 204 };
      },
    });
    defineRoute({
      ...about,
      path: "/v1/e",
      scope: null,
      textBodies: ["text/plain"],
      handle({ credential, body }) {
        same<typeof credential, null>(true);
        same<typeof body, string>(true);
        return { status: 204 };
      },
    });
    const open = Math.random() < 2 ? null : "provenance:read";
    defineRoute({
      ...about,
      path: "/v1/f",
      scope: open,
      handle({ credential }) {
        same<typeof credential, Credential | null>(true);
        return { status: 204 };
      },
    });
  });

  test("has the general type for code that handles any route", () => {
    const route = defineRoute({ ...about, path: "/v1/g", scope: "admin", body: Body, handle: () => ({ status: 204 }) });
    same<Parameters<typeof route.handle>[0], RequestContext>(true);
    assert.equal(route.path, "/v1/g");
  });
});

test("an empty body is {} if the route accepts that, whatever its content type, and rejected if members are required", async () => {
  const of = (body: TSchema) =>
    createBodyReader(defineRoute({ ...about, path: "/v1/h", scope: null, body, handle }), { bytes: 100, values: 100 });
  const handle = () => ({ status: 204 });
  const { share } = createRequestByteBudget(1_000_000);
  const empty = (headers: Record<string, string>) => new Request("http://a/", { method: "POST", body: "", headers });
  const optional = of(Type.Object({ note: Type.Optional(Type.String()) }, { additionalProperties: false }));
  for (const type of ["application/json", "application/json; charset=utf-8"])
    assert.deepEqual((await optional.read(empty({ "content-type": type }), {}, share())).body, {});
  assert.deepEqual((await optional.read(new Request("http://a/", { method: "POST" }), {}, share())).body, {});
  for (const needed of [Body, Type.Object({ note: Type.Optional(Type.String()) }, { minProperties: 1 })])
    await assert.rejects(of(needed).read(empty({ "content-type": "application/json" }), {}, share()), {
      code: "MALFORMED_JSON",
    });
});

test("every route that accepts {} also accepts an empty body", async () => {
  const service = await startService({});
  try {
    const paths = { ":id": "019346a0-0000-7000-8000-000000000000", ":hash": "0".repeat(64) };
    const ask = (method: string, path: string, raw: string) =>
      service.call(
        method,
        path.replaceAll(/:\w+/g, (name) => paths[name as keyof typeof paths]),
        {
          key: service.admin,
          raw,
        },
      );
    const optional = service.runtime.routes.filter(({ body }) => body !== undefined && Value.Check(body, {}));
    assert.ok(optional.length >= 4, String(optional.length));
    for (const { method, path } of optional) {
      const [none, braces] = [await ask(method, path, ""), await ask(method, path, "{}")];
      assert.deepEqual([none.status, none.body.code], [braces.status, braces.body.code], `${method} ${path}`);
    }
  } finally {
    await service.close();
  }
});

test("no route lists an error that the core adds, and none twice", async () => {
  const service = await startService({});
  try {
    for (const route of service.runtime.routes) {
      const errors = route.errors ?? [];
      const given = listCoreErrors(route).filter((code) => errors.includes(code));
      assert.deepEqual(given, [], `${route.method} ${route.path}`);
      assert.equal(new Set(errors).size, errors.length, `${route.method} ${route.path}`);
    }
  } finally {
    await service.close();
  }
});

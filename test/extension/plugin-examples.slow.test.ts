/** The examples of docs/writing-a-plugin.md beyond what the page runs, and invalid offers of policy sources. */
import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, it } from "node:test";
import ntfy from "../../docs/examples/notify-ntfy/index.ts";
import policyUrl from "../../docs/examples/policy-url/index.ts";
import denials from "../../docs/examples/resource-denials/index.ts";
import type { Message, Notifier } from "../../src/contract/notifier.ts";
import { PolicySourceError, type PolicySource } from "../../src/contract/policy-source.ts";
import type { CoreHost } from "../../src/contract/core-host.ts";
import { definePlugin, type Contributions, type Plugin } from "../../src/plugin.ts";
import { ALLOWED, DENIED, startService, type Service } from "../support/service.ts";
import { until } from "../support/wait.ts";

const given = (plugin: unknown, options: object = {}): { plugin: Plugin; options: unknown; origin: string } => ({
  plugin: plugin as Plugin,
  options,
  origin: (plugin as Plugin).name,
});
const servers: Server[] = [];
after(() => servers.forEach((server) => server.close()));

async function answering(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

describe("notify-ntfy", () => {
  const message = {
    kind: "approval_closed",
    to: "approvals",
    action: { agent_id: "a", tool: "t", operation: "o", reason: "", status: "expired" },
  } as unknown as Message;
  const deliver = async (listener: RequestListener, options: object = {}): ReturnType<Notifier["deliver"]> => {
    const { notifiers = [] } = ((await ntfy.setup?.({} as CoreHost, {
      server: await answering(listener),
      ...options,
    })) ?? {}) as Contributions;
    return (notifiers[0] as Notifier).deliver(message, new AbortController().signal);
  };

  for (const [status, permanent] of [
    [401, true],
    [404, true],
    [307, true],
    [408, false],
    [429, false],
    [500, false],
    [503, false],
  ] as const) {
    it(`${status} ${permanent ? "is given up" : "is tried again"}`, async () => {
      const moved = await answering((_, response) => response.end('{"id":"elsewhere"}'));
      await assert.rejects(
        deliver((_, response) => response.writeHead(status, { location: moved }).end()),
        { name: "NotifierError", permanent, retryAfterMs: null },
      );
    });
  }

  it("waits as long as the server's Retry-After", async () => {
    await assert.rejects(
      deliver((_, response) => response.writeHead(429, { "retry-after": "7" }).end()),
      { permanent: false, retryAfterMs: 7000 },
    );
  });

  it("sends the token, and reports expired requests as expired", async () => {
    let seen = {};
    const answer = await deliver(
      (request, response) =>
        void request.toArray().then((chunks) => {
          seen = {
            authorization: request.headers.authorization,
            ...(JSON.parse(Buffer.concat(chunks as Buffer[]).toString()) as object),
          };
          response.end('{"id":"m1"}');
        }),
      { token: "tk_1" },
    );
    assert.deepEqual(answer, { reference: "m1" });
    assert.deepEqual(seen, {
      authorization: "Bearer tk_1",
      topic: "approvals",
      title: "expired: t o",
      message: "asked for by a",
    });
  });
});

describe("resource-denials", () => {
  it("counts over many pages, and shows a key only what it can see", async () => {
    const service = await startService({
      plugins: [given(denials)],
      // All of them concurrently.
      change: (config) => (config.ledger.max_queue = 2000),
    });
    try {
      const submit = (agent_id: string): Promise<unknown> =>
        service.call("POST", "/v1/actions", { key: service.admin, body: { ...DENIED, agent_id } });
      await Promise.all([
        ...Array.from({ length: 1100 }, () => submit("one")),
        submit("two"),
        service.call("POST", "/v1/actions", { key: service.admin, body: ALLOWED }),
      ]);
      const counts = async (key: string): Promise<unknown> =>
        (await service.call("GET", "/v1/denials", { key })).body.denials.map(
          ({ agent_id, count }: { agent_id: string; count: number }) => [agent_id, count],
        );
      assert.deepEqual(await counts(service.admin), [
        ["one", 1100],
        ["two", 1],
      ]);
      const bound = await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "two", scopes: ["analytics:read"], agent_id: "two" },
      });
      assert.deepEqual(await counts(bound.body.key), [["two", 1]]);
    } finally {
      await service.close();
    }
  });
});

describe("policy-url", () => {
  it("keeps the last valid set while the address is unreachable, and says when that ends", async () => {
    let [status, text] = [200, "policy: far\nrules: [{ name: r, tool: far, effect: allow }]\n"];
    const url = await answering((_, response) => response.writeHead(status).end(text));
    const service = await startService({ plugins: [given(policyUrl, { url: `${url}?secret=1`, poll_seconds: 1 })] });
    try {
      const far = async (): Promise<string> =>
        (await service.call("POST", "/v1/actions", { body: { agent_id: "a", tool: "far", operation: "o" } })).body
          .decision;
      const stale = (wanted: boolean): Promise<void> =>
        until(
          `stale is ${String(wanted)}`,
          async () => ((await service.call("GET", "/readyz")).body.policies.stale_since !== null) === wanted,
        );
      assert.equal(await far(), "allow");
      [status, text] = [500, "broken"];
      await stale(true);
      assert.equal(await far(), "allow");
      [status, text] = [200, "policy: far\nrules: [{ name: r, tool: far, effect: deny }]\n"];
      await stale(false);
      assert.equal(await far(), "deny");
      const entries = (await service.storage.entries(0, (await service.storage.head()).size)).map(({ bytes }) =>
        new TextDecoder().decode(bytes),
      );
      assert.ok(service.logged.some((line) => line.includes("it responded with status 500")));
      assert.ok(![...entries, ...service.logged].some((text) => text.includes("secret=1")));
    } finally {
      await service.close();
    }
  });
});

describe("a source that offers", () => {
  const good = { policy: "own", rules: [{ name: "r", tool: "own", effect: "allow" }] };
  const offering = (load: () => unknown): Promise<Service> =>
    startService({
      plugins: [
        given(
          definePlugin({
            name: "own",
            setup: () => ({ policySources: [{ name: "own", load: async () => load() } as PolicySource] }),
          }),
        ),
      ],
    });
  const bundle = (...documents: unknown[]): unknown => ({
    policies: documents.map((document, i) => ({ document, origin: `file-${i}` })),
    source: { kind: "own" },
  });

  for (const [name, load, says] of [
    [
      "an unknown effect",
      () => bundle({ ...good, rules: [{ name: "r", tool: "own", effect: "alow" }] }),
      /file-0: \/rules\/0\/effect: /,
    ],
    ["one name twice", () => bundle(good, good), /file-1: policy \\"own\\" is also in file-0/],
    ["nothing", () => undefined, /did not return a list of policies/],
    [
      "a place that is no text",
      () => ({ ...(bundle(good) as object), source: { commit: 7 } }),
      /must return a source whose values are strings/,
    ],
    [
      "an error without faults",
      () => {
        throw new PolicySourceError("the disk is away");
      },
      /own: the disk is away/,
    ],
  ] as const) {
    it(`${name} is not loaded, and the fault is reported`, async () => {
      const service = await offering(load);
      try {
        assert.match(service.logged.join("\n"), says);
        assert.equal((await service.call("GET", "/readyz")).body.policies.faults.length, 1);
        assert.equal(
          (await service.call("POST", "/v1/actions", { body: { agent_id: "a", tool: "own", operation: "o" } })).body
            .decision,
          "deny",
        );
        assert.equal(
          (await service.call("POST", "/v1/actions", { body: ALLOWED })).body.decision,
          "allow",
          "the other source's set stays",
        );
      } finally {
        await service.close();
      }
    });
  }

  it("a source that throws aborts startup, and is named", async () => {
    await assert.rejects(
      offering(() => {
        throw new TypeError("x is undefined");
      }),
      { message: 'the policy source "own" failed to load: x is undefined' },
    );
  });
});

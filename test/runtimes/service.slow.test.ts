/**
 * Runs the same service as a process on Node, Deno and Bun, on both stores. Deno gets only the permissions of its task.
 * @needs events, provenance
 */
import { needs } from "../support/features.ts";
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ADMIN, sharedEnvironment } from "../support/deployment.ts";
import { startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import {
  endProcessGroup,
  MAIN,
  ROOT,
  startCommand,
  startProcess,
  stopProcess,
  type ServiceProcess,
} from "../support/process.ts";
import { commandOf, denoPermissions, programOf, withoutRuntime, type RuntimeName } from "../support/runtimes.ts";
import { ALLOWED, ASKED, FEW_POLICIES, type Answer } from "../support/service.ts";
import { eventually, pause } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const SHARED = sharedEnvironment("runtimes.test/log");
const RUNTIMES: readonly RuntimeName[] = ["node", "deno", "bun"];

async function call(
  service: ServiceProcess,
  method: string,
  path: string,
  options: { key?: string; body?: object; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Answer> {
  const response = await fetch(service.url + path, {
    method,
    headers: {
      authorization: `Bearer ${options.key ?? ADMIN}`,
      ...(options.body === undefined ? {} : { "content-type": "application/json" }),
      ...options.headers,
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? null : (JSON.parse(text) as Answer["body"]),
  };
}

/** Waits until an action is pending approval, and returns the newest one. */
const pendingAction = (service: ServiceProcess): Promise<Answer["body"]> =>
  eventually(
    async () => (await call(service, "GET", "/v1/actions?status=pending_approval")).body.actions[0],
    () => "no action waits",
  );

/** Returns the number of entries that the signed checkpoint covers, which is its second line. */
async function sizeOf(service: ServiceProcess): Promise<number> {
  const note = await (
    await fetch(`${service.url}/v1/provenance/checkpoint`, { headers: { authorization: `Bearer ${ADMIN}` } })
  ).text();
  return Number(note.split("\n")[1]);
}

interface Stream {
  /** Returns the next `count` events. */
  take(count: number): Promise<{ id: number; data: { type: string } }[]>;
  /** Resolves when the server has closed the stream. */
  ended: Promise<void>;
  cut(): void;
}

async function open(service: ServiceProcess, headers: Record<string, string> = {}): Promise<Stream | number> {
  const controller = new AbortController();
  const response = await fetch(`${service.url}/v1/events`, {
    headers: { authorization: `Bearer ${ADMIN}`, accept: "text/event-stream", ...headers },
    signal: controller.signal,
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    return response.status;
  }
  const events: { id: number; data: { type: string } }[] = [];
  const arrived = { wake: (): void => {} };
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const ended = (async (): Promise<void> => {
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const frames = text.split("\n\n");
      text = frames.pop() as string;
      for (const frame of frames) {
        const [, id, data] = /^id: (\d+)\ndata: (.*)$/m.exec(frame) ?? [];
        if (id !== undefined && data !== undefined)
          events.push({ id: Number(id), data: JSON.parse(data) as { type: string } });
      }
      arrived.wake();
    }
  })();
  // The test itself cuts the stream.
  ended.catch(() => undefined);
  return {
    async take(count) {
      while (events.length < count) await new Promise<void>((resolve) => (arrived.wake = resolve));
      return events.splice(0, count);
    },
    ended,
    cut: () => controller.abort(),
  };
}

async function stream(service: ServiceProcess, headers?: Record<string, string>): Promise<Stream> {
  const opened = await open(service, headers);
  if (typeof opened === "number") assert.fail(`the stream was answered with ${opened}`);
  return opened;
}

for (const runtime of RUNTIMES) {
  describe(`the service on ${runtime}`, { skip: withoutRuntime(runtime) }, () => {
    for (const store of ["SQLite", "Postgres"] as const) {
      describe(`with ${store}`, { skip: store === "Postgres" && withoutPostgres }, () => {
        let server: PostgresServer | null = null;
        let service: ServiceProcess;
        let env: Record<string, string>;
        const program = programOf(runtime);
        const folder = temporaryFolder("assent-runtimes-");

        before(async () => {
          env = { ASSENT_DATA: folder, ASSENT_POLICIES: FEW_POLICIES, ASSENT_ADMIN_KEY: ADMIN };
          if (store === "Postgres") {
            server = await startPostgres();
            env = {
              ...env,
              ...SHARED,
              DATABASE_URL: await server.database(),
            };
          }
          service = await startProcess(env, [], runtime, program);
        });
        after(async () => {
          service.child.kill("SIGKILL");
          await service.ended;
          await server?.stop();
          rmSync(folder, { recursive: true, force: true });
        });

        it("decides, proves and replays", needs("provenance", "replay"), async () => {
          const answers = await Promise.all(
            Array.from({ length: 20 }, () => call(service, "POST", "/v1/actions", { body: ALLOWED })),
          );
          assert.deepEqual(
            answers.map(({ status }) => status),
            answers.map(() => 200),
          );
          const { id, decision_hash } = (answers[0] as Answer).body;
          assert.equal(
            (await call(service, "GET", `/v1/provenance/${decision_hash}/proof`)).body.leaf_hash,
            decision_hash,
          );
          assert.equal((await call(service, "POST", "/v1/replay", { body: { action_id: id } })).body.equal, true);
        });

        it("ends a long wait when a vote decides the action", async () => {
          const waiting = call(service, "POST", "/v1/actions", {
            body: ASKED,
            headers: { prefer: "wait=25", "idempotency-key": "waits" },
          });
          const pending = await pendingAction(service);
          // Longer than Bun's default timeout for idle connections.
          if (runtime === "bun" && store === "SQLite") await pause(11_000);
          assert.equal((await call(service, "POST", `/v1/actions/${pending.id}/cancel`, { body: {} })).status, 200);
          assert.deepEqual([(await waiting).body.id, (await waiting).body.status], [pending.id, "cancelled"]);
        });

        it("streams events, resumes, and frees the stream of a client that disconnected", async () => {
          const first = await stream(service);
          const { body } = await call(service, "POST", "/v1/actions", { body: ALLOWED });
          const [event] = await first.take(1);
          assert.equal(event?.data.type, "decision");
          first.cut();
          await call(service, "POST", "/v1/actions", { body: ALLOWED });
          const resumed = await stream(service, { "last-event-id": String(event?.id) });
          assert.equal((await resumed.take(1))[0]?.id, (event?.id ?? 0) + 1);
          resumed.cut();
          assert.ok(body.id);
          const many = await Promise.all(Array.from({ length: 25 }, () => open(service)));
          const streams = many.filter((one) => typeof one === "object");
          assert.deepEqual([streams.length <= 20, many.includes(429)], [true, true]);
          for (const one of streams) one.cut();
          const again = await eventually(
            async () => {
              const opened = await open(service);
              return typeof opened === "object" ? opened : undefined;
            },
            () => "the streams of clients that went away are not freed",
          );
          again.cut();
        });

        it("continues when a client disconnects during a wait or in the middle of a body", async () => {
          const controller = new AbortController();
          const left = call(service, "POST", "/v1/actions", {
            body: ASKED,
            headers: { prefer: "wait=60" },
            signal: controller.signal,
          });
          await pendingAction(service);
          controller.abort();
          await assert.rejects(left);
          await new Promise<void>((resolve) => {
            const half = request(`${service.url}/v1/actions`, {
              method: "POST",
              headers: {
                authorization: `Bearer ${ADMIN}`,
                "content-type": "application/json",
                "content-length": "1000",
              },
            });
            half.on("error", () => resolve());
            half.write('{"agent_id":');
            setTimeout(() => half.destroy(new Error("gone")), 200);
          });
          assert.equal((await call(service, "POST", "/v1/actions", { body: ALLOWED })).status, 200);
        });

        it("rejects a body above the limit, announced or not", async () => {
          const big = `{"agent_id":"a","tool":"t","operation":"o","params":{"x":"${"x".repeat(2_000_000)}"}}`;
          const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
          const announced = await fetch(`${service.url}/v1/actions`, { method: "POST", headers, body: big });
          assert.deepEqual(
            [announced.status, ((await announced.json()) as { code: string }).code],
            [413, "BODY_TOO_LARGE"],
          );
          const chunks = new Blob([big]).stream();
          const streamed = await fetch(`${service.url}/v1/actions`, {
            method: "POST",
            headers,
            body: chunks,
            duplex: "half",
          } as RequestInit);
          assert.deepEqual(
            [streamed.status, ((await streamed.json()) as { code: string }).code],
            [413, "BODY_TOO_LARGE"],
          );
        });

        it("ends waits and streams on SIGTERM, and loses nothing in a restart", async () => {
          const size = await sizeOf(service);
          const events = await stream(service);
          const waiting = call(service, "POST", "/v1/actions", { body: ASKED, headers: { prefer: "wait=60" } });
          await events.take(1);
          const code = await stopProcess(service);
          assert.equal(code, 0, service.output());
          assert.deepEqual([(await waiting).status, (await waiting).body.status], [202, "pending_approval"]);
          await events.ended;
          service = await startProcess(env, [], runtime, program);
          assert.equal(
            (await call(service, "GET", `/v1/actions/${(await waiting).body.id}`)).body.status,
            "pending_approval",
          );
          assert.ok((await sizeOf(service)) > size);
        });

        it("runs on the intended runtime", async () => {
          const maps = execFileSync("ps", ["-o", "args=", "-p", String(service.child.pid)], { encoding: "utf8" });
          assert.ok(maps.startsWith(program as string), maps);
        });
      });
    }

    it("runs the demo", () => {
      const [program, args] = commandOf(runtime, MAIN, ["demo"], denoPermissions("demo"));
      const shown = execFileSync(program, args, {
        cwd: ROOT,
        encoding: "utf8",
        env: { ...process.env, DENO_NO_UPDATE_CHECK: "1" },
      });
      assert.match(shown, /all checks passed\n$/);
    });

    it("starts by the documented command", async () => {
      // Below ./data, the only folder that Deno's task may write to.
      const had = existsSync(join(ROOT, "data"));
      const data = `data/runtimes-test-${runtime}-${process.pid}`;
      const commands: Record<RuntimeName, [string, string[]]> = {
        node: ["npm", ["start", "--silent"]],
        deno: [programOf("deno") ?? "", ["task", "start"]],
        bun: [programOf("bun") ?? "", ["start"]],
      };
      try {
        // As in a terminal: Ctrl-C reaches the task runner and its child process.
        const started = await startCommand(commands[runtime], { ASSENT_DATA: `./${data}` }, { detached: true });
        try {
          assert.equal((await fetch(`${started.url}/readyz`)).status, 200);
          const greeting = /the command asks for the key:\s+(.*)/.exec(started.output())?.[1] ?? "";
          assert.equal(greeting.split(" ")[0], runtime);
        } finally {
          // The task runner can exit before its child process.
          await endProcessGroup(started.child, "SIGINT");
        }
        await assert.rejects(fetch(`${started.url}/readyz`), "nothing listens now");
      } finally {
        rmSync(join(ROOT, data), { recursive: true, force: true });
        if (!had && existsSync(join(ROOT, "data")) && readdirSync(join(ROOT, "data")).length === 0)
          rmSync(join(ROOT, "data"), { recursive: true });
      }
    });
  });
}

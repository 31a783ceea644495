/** policy-git with real repositories, served by git itself. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect, createServer as createSocket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import policyGit from "../../../plugins/policy-git/index.ts";
import type { Plugin } from "../../../src/plugin.ts";
import { needs } from "../../support/features.ts";
import { makeRepository, serveDaemon, serveHttp, type TestRepository } from "../../support/git-server.ts";
import { startService, type Service } from "../../support/service.ts";
import { eventually, pause } from "../../support/wait.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const rule = (effect: string, name = "git-rules"): string =>
  `policy: ${name}\nrules:\n  - { name: r, tool: t, effect: ${effect} }\n`;
const ACTION = { agent_id: "a", tool: "t", operation: "o" };

let root: string;
let repository: TestRepository;
let service: Service | null = null;

beforeEach(() => {
  root = temporaryFolder("assent-git-");
  repository = makeRepository(root);
  writeFileSync(join(root, "base.yaml"), "policy: base\nrules:\n  - { name: nothing, tool: nothing, effect: deny }\n");
});
afterEach(async () => {
  await service?.close();
  service = null;
  rmSync(root, { recursive: true, force: true });
});

async function start(options: object): Promise<Service> {
  service = await startService({
    policies: root,
    plugins: [
      {
        plugin: policyGit as unknown as Plugin,
        options: { interval_seconds: 1, timeout_seconds: 10, ...options },
        origin: "policy-git",
        core: true,
      },
    ],
  });
  return service;
}

const call = (method: string, path: string, more: Parameters<Service["call"]>[2] = {}) =>
  (service as Service).call(method, path, { key: (service as Service).admin, ...more });
const decide = async (): Promise<string> =>
  (await call("POST", "/v1/actions", { body: ACTION })).body.decision as string;
const ready = async () =>
  (await call("GET", "/readyz")).body.policies as {
    source: { kind: string; commit?: string } | null;
    detail: string;
    stale_since: string | null;
    offers: {
      source: string;
      commit: string | null;
      taken: boolean;
      applied_commit: string | null;
      unread_since: string | null;
    }[];
    faults: { file: string; line: number | null }[];
    unloaded: { source: string; file: string; reason: string }[];
  };

async function until<T>(what: string, look: () => Promise<T>, good: (value: T) => boolean): Promise<T> {
  let value: T;
  return eventually(
    async () => (good((value = await look())) ? value : undefined),
    () =>
      `${what} did not come; the last was ${JSON.stringify(value)}; log: ${(service as Service).logged.slice(-5).join("\n")}`,
  );
}
const becomes = (effect: string): Promise<string> => until(effect, decide, (value) => value === effect);

/** Looks like the part of GitHub's API that the plugin uses. */
async function startGithub() {
  const received: { path: string; token: string | undefined; body: Record<string, unknown> }[] = [];
  let taken = 0;
  const answers: number[] = [];
  let usual = 201;
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
    request.on("end", () => {
      const body = JSON.parse(text) as Record<string, unknown>;
      received.push({ path: request.url ?? "", token: request.headers.authorization, body });
      response.writeHead(answers.shift() ?? usual, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Answers the next request with 502. */
    failOnce: () => answers.push(502),
    deny: () => (usual = 401),
    /** Resolves to the next requests. */
    async requests(count: number) {
      const next = await eventually(
        async () => (received.length >= taken + count ? received.slice(taken, taken + count) : undefined),
        () => `GitHub received only ${JSON.stringify(received.slice(taken))}`,
      );
      taken += count;
      return next;
    },
    stop: () => new Promise<void>((done) => server.close(() => done())),
  };
}

describe("policy-git", () => {
  for (const [name, serve] of [
    ["file://", async () => ({ url: `file://${root}`, stop: async () => undefined })],
    ["http, by git http-backend", () => serveHttp(root)],
    ["git://, by git daemon", () => serveDaemon(root)],
  ] as const) {
    test(
      `follows a branch over ${name}, and names the commit in the set and in the decision`,
      needs("events", "replay"),
      async () => {
        const first = repository.commit({ "p.yaml": rule("allow"), "notes.txt": "x" });
        const serving = await serve();
        try {
          await start({ url: `${serving.url}/policies.git`, ref: "main" });
          assert.equal(await decide(), "allow");
          assert.deepEqual((await ready()).source, { kind: "git", commit: first });
          const second = repository.commit({ "p.yaml": rule("deny") });
          await becomes("deny");
          assert.deepEqual((await ready()).source, { kind: "git", commit: second });
          const { actions } = (await call("GET", "/v1/actions?limit=1")).body;
          const { events } = (await call("GET", `/v1/actions/${actions[0].id}/events`)).body;
          assert.equal(events[0].entry.facts.policy_commit, second);
          const sets = (await call("GET", "/v1/events/page?type=policy_set&limit=100")).body.events as {
            entry: { source: Record<string, string> };
          }[];
          assert.deepEqual(
            sets.map(({ entry }) => entry.source["commit"]).filter((commit) => commit !== undefined),
            [first, second],
          );
          const replayed = (await call("POST", "/v1/replay", { body: { action_id: actions[0].id } })).body;
          assert.equal(replayed.equal, true);
          // Managed by the source, so it cannot be changed here.
          const { policies } = (await call("GET", "/v1/policies")).body;
          const managed = policies.find((policy: { name: string }) => policy.name === "git-rules");
          assert.equal(
            (
              await call("PUT", `/v1/policies/${managed.id}`, {
                body: { policy: "git-rules", rules: [{ name: "x", effect: "allow" }] },
              })
            ).body.code,
            "POLICY_MANAGED",
          );
        } finally {
          await serving.stop();
        }
      },
    );
  }

  test("loads a folder of the repository, a tag, and the remote's own HEAD", async () => {
    repository.commit({
      "deep/er/p.yaml": rule("allow"),
      "deep/er/p_test.yaml": `now: 2026-01-01T00:00:00Z\ncases:\n  - { name: c, action: { agent_id: a, tool: t, operation: o }, expect: { effect: allow } }\n`,
      "other.yaml": "broken: [",
    });
    repository.git("tag", "v1");
    repository.git("push", "--quiet", "origin", "v1");
    repository.commit({ "deep/er/p.yaml": rule("deny"), "deep/er/p_test.yaml": null });
    await start({ url: `file://${repository.bare}`, ref: "v1", folder: "/deep/er/" });
    assert.equal(await decide(), "allow");
    await (service as Service).close();
    await start({ url: `file://${repository.bare}`, folder: "deep", recursive: true });
    assert.equal(await decide(), "deny");
  });

  test("names files of a commit that look like policies and are not loaded", async () => {
    repository.commit({
      "policies/p.yaml": rule("allow"),
      "policies/q.YAML": rule("deny", "q"),
      "policies/team/r.yaml": rule("deny", "r"),
      "policies/team/ci.yaml": "on: push\n",
      "elsewhere/s.yaml": rule("deny", "s"),
    });
    await start({ url: `file://${root}/policies.git`, folder: "policies" });
    assert.equal(await decide(), "allow");
    const named = (await ready()).unloaded.filter(({ source }) => source === "policy-git");
    assert.deepEqual(named, [
      { source: "policy-git", file: "q.YAML", reason: "ending" },
      { source: "policy-git", file: "team/r.yaml", reason: "subfolder" },
    ]);
    assert.ok((service as Service).logged.some((line) => line.includes("not loaded") && line.includes("q.YAML")));
  });

  test(
    "keeps the last valid set after a bad commit, a failing test and a link, and reports the location",
    needs("events"),
    async () => {
      const good = repository.commit({ "p.yaml": rule("allow") });
      await start({ url: `file://${repository.bare}` });
      assert.equal(await decide(), "allow");
      const bad = repository.commit({
        "p.yaml": rule("deny"),
        "q.yaml": "policy: q\nrules:\n  - { name: x, effect: never }\n",
      });
      // The fault is reported first, and recorded afterwards.
      const stale = await until("a recorded fault", ready, ({ offers }) => offers.at(-1)?.commit === bad);
      assert.notEqual(stale.stale_since, null);
      assert.deepEqual([stale.faults[0]?.file, stale.faults[0]?.line, stale.source?.commit], ["q.yaml", 3, good]);
      const offered = (commit: string, applied_commit = commit): object => ({
        source: "policy-git",
        commit,
        taken: commit === applied_commit,
        applied_commit,
        baseline: false,
        unread_since: null,
      });
      assert.deepEqual(stale.offers.at(-1), offered(bad, good));
      assert.equal(await decide(), "allow");
      repository.commit({
        "q.yaml": null,
        "p_test.yaml":
          "now: 2026-01-01T00:00:00Z\ncases:\n  - { name: fails, action: { agent_id: a, tool: t, operation: o }, expect: { effect: allow } }\n",
      });
      await until("the failing test", ready, ({ faults }) => faults[0]?.file === "p_test.yaml");
      assert.equal(await decide(), "allow");
      execFileSync("ln", ["-s", "p.yaml", join(root, "work", "link.yaml")]);
      repository.commit({ "p_test.yaml": null });
      await until("the link", ready, ({ faults }) => faults[0]?.file === "link.yaml");
      execFileSync("rm", [join(root, "work", "link.yaml")]);
      const mended = repository.commit({});
      await becomes("deny");
      assert.deepEqual([(await ready()).stale_since, (await ready()).offers.at(-1)], [null, offered(mended)]);
      const nothing = repository.commit({ "notes.txt": "no policy" });
      const { source } = await until("a commit that changes no policy", ready, ({ offers }) =>
        isDeepStrictEqual(offers.at(-1), offered(nothing)),
      );
      assert.equal(source?.commit, mended, "decisions name the commit that made the set");
      const sets = (await call("GET", "/v1/events/page?type=policy_set&limit=100")).body.events as {
        entry: { source: Record<string, string> };
      }[];
      assert.ok(
        sets.some(
          ({ entry }) =>
            entry.source["commit"] === bad &&
            entry.source["refused"] === "1" &&
            entry.source["fault"]?.includes("q.yaml:3") === true,
        ),
      );
    },
  );

  test("continues after a force-push, a deleted branch, leftovers of a killed process and a lost network", async () => {
    repository.commit({ "p.yaml": rule("allow") });
    const serving = await serveHttp(root);
    await start({ url: `${serving.url}/policies.git`, ref: "main" });
    assert.equal(await decide(), "allow");
    repository.commit({ "p.yaml": rule("deny") }, { amend: true });
    await becomes("deny");

    repository.git("push", "--quiet", "origin", "HEAD:refs/heads/other");
    execFileSync("git", ["-C", repository.bare, "symbolic-ref", "HEAD", "refs/heads/other"]);
    repository.git("push", "--quiet", "origin", ":refs/heads/main");
    await until("the lost branch", ready, ({ stale_since }) => stale_since !== null);
    const deleted =
      /policies could not be read: [^;]* neither a branch nor a tag \\"main\\"; the last valid set stays active/;
    assert.match((service as Service).logged.join("\n"), deleted);
    assert.equal(await decide(), "deny");
    repository.commit({ "p.yaml": rule("allow") });
    await becomes("allow");
    await until("the end of the fault", ready, ({ stale_since }) => stale_since === null);

    const clones = join((service as Service).folder, "policy-git");
    mkdirSync(join(clones, "left", "refs"), { recursive: true });
    for (const lock of ["shallow.lock", "config.lock", "HEAD.lock", "packed-refs.lock", "refs/head.lock"])
      writeFileSync(join(clones, "left", lock), "");
    repository.commit({ "p.yaml": rule("require_approval") });
    await becomes("require_approval");
    // The clone of a load is removed after the load.
    await until(
      "the end of the load",
      () => Promise.resolve(readdirSync(clones)),
      (names) => isDeepStrictEqual(names, ["left"]),
    );

    await serving.stop();
    const lost = await until("the lost network", ready, ({ stale_since }) => stale_since !== null);
    assert.notEqual(lost.offers.at(-1)?.unread_since, null);
    assert.equal(lost.detail, "the last valid set is active; these sources cannot be read: policy-git");
    assert.equal(await decide(), "require_approval");
    assert.deepEqual([lost.faults[0]?.file, lost.offers.at(-1)?.taken], ["(the source)", true]);
    const told = JSON.stringify((await call("GET", "/readyz", { key: null })).body);
    for (const word of [serving.url, "127.0.0.1", "policies.git", root]) assert.ok(!told.includes(word), told);
  });

  test("says on the first start that a source cannot be read, and that no policy is active", async () => {
    rmSync(join(root, "base.yaml"));
    repository.commit({ "p.yaml": rule("allow") });
    await start({ url: `file://${repository.bare}`, ref: "gone" });
    const { detail, offers } = await ready();
    assert.equal(detail, "no policy is active: every action is denied; these sources cannot be read: policy-git");
    assert.deepEqual([offers.at(-1)?.taken, offers.at(-1)?.commit], [false, null]);
    const absent = /policies could not be read: [^;]* \\"gone\\"; no policy of this source is active/;
    assert.match((service as Service).logged.join("\n"), absent);
    await (service as Service).close();

    execFileSync("git", ["-C", repository.bare, "symbolic-ref", "HEAD", "refs/heads/gone"]);
    await start({ url: `file://${repository.bare}` });
    assert.match((service as Service).logged.join("\n"), /its HEAD refers to a branch that does not exist; set `ref`/);
  });

  test("starts, stops and follows other repositories while a server accepts connections and never answers", async () => {
    const team = makeRepository(join(root, "team"));
    const serving = await serveHttp(join(root, "team"));
    // Lets connections through only while `isOpen`.
    let isOpen = true;
    const gate = createSocket((socket) => {
      socket.on("error", () => {});
      if (isOpen)
        socket.pipe(connect(Number(new URL(serving.url).port), "127.0.0.1").on("error", () => {})).pipe(socket);
    });
    await new Promise<void>((done) => gate.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${(gate.address() as AddressInfo).port}/policies.git`;
    repository.commit({ "p.yaml": rule("allow") });
    team.commit({ "q.yaml": rule("allow", "team-rules") });
    const options = {
      url: `file://${repository.bare}`,
      repositories: [{ name: "team", url, interval_seconds: 1, timeout_seconds: 2 }],
    };
    try {
      await start(options);
      assert.equal(await decide(), "allow");
      isOpen = false;
      await until("the silent server", ready, ({ offers }) => offers.at(-1)?.unread_since !== null);
      repository.commit({ "p.yaml": rule("deny") });
      await becomes("deny");
      await (service as Service).restart();
      assert.equal(
        (await ready()).detail,
        "the last valid set is active; these sources cannot be read: policy-git/team",
      );
      const newest = team.commit({ "q.yaml": rule("require_approval", "team-rules") });
      isOpen = true;
      await until("the recovery", ready, ({ offers }) => offers.at(-1)?.applied_commit === newest);
      assert.equal((await ready()).stale_since, null);
    } finally {
      await (service as Service).close();
      service = null;
      gate.close();
      await serving.stop();
    }
  });

  test("a load that fails after the commit is known is repeated", async () => {
    // The server omits the files from the first fetch of a load.
    execFileSync("git", ["-C", repository.bare, "config", "uploadpack.allowFilter", "true"]);
    repository.commit({ "p.yaml": rule("allow") });
    const serving = await serveHttp(root);
    await start({ url: `${serving.url}/policies.git`, ref: "main" });
    assert.equal(await decide(), "allow");
    repository.commit({ "p.yaml": rule("deny") });
    // The fetch of the file fails, and then that of the whole commit. Their number depends on the version of git.
    serving.refuseFrom(repository.git("rev-parse", "HEAD:p.yaml"));
    try {
      await until(
        "the failed load",
        async () => (service as Service).logged.join("\n"),
        (log) => /the files of commit [0-9a-f]{40} could not be fetched/.test(log),
      );
      serving.refuseFrom(null);
      await becomes("deny");
    } finally {
      await serving.stop();
    }
  });

  test("credentials work from options, files and the address, and appear nowhere else", needs("events"), async () => {
    const secret = "s3cret-token";
    repository.commit({ "p.yaml": rule("allow") });
    const serving = await serveHttp(root, secret);
    try {
      writeFileSync(join(root, "token"), `${secret}\n`);
      const withUser = serving.url.replace("http://", `http://git:${secret}@`);
      for (const options of [
        { url: `${serving.url}/policies.git`, password: secret },
        { url: `${serving.url}/policies.git`, password_file: join(root, "token") },
        { url: `${withUser}/policies.git` },
      ]) {
        await start(options);
        assert.equal(await decide(), "allow");
        const seen = [
          (service as Service).logged.join("\n"),
          JSON.stringify((await call("GET", "/v1/events/page?limit=100")).body),
          readFileSync(join((service as Service).folder, "assent.db"), "latin1"),
        ];
        for (const text of seen)
          for (const hidden of [secret, Buffer.from(`git:${secret}`).toString("base64")])
            assert.ok(!text.includes(hidden));
        await (service as Service).close();
        service = null;
      }
      await start({ url: `${serving.url}/policies.git`, password: "wrong-password" });
      assert.equal(await decide(), "deny");
      assert.ok((service as Service).logged.some((line) => line.includes("could not be fetched")));
      assert.ok(!(service as Service).logged.join("\n").includes("wrong-password"));
    } finally {
      await serving.stop();
    }
  });

  test("the git source loads only commits signed by listed keys, if configured", async () => {
    const key = (name: string): string => {
      execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", join(root, name)]);
      return readFileSync(join(root, `${name}.pub`), "utf8").trim();
    };
    const [listed] = [key("listed"), key("other")];
    repository.commit({ "p.yaml": rule("allow") }, { signingKey: join(root, "listed") });
    await start({ url: `file://${repository.bare}`, signed_by: [listed] });
    assert.equal(await decide(), "allow");
    repository.commit({ "p.yaml": rule("deny") });
    await until(
      "the refusal of an unsigned commit",
      async () => (service as Service).logged.join("\n"),
      (log) => log.includes("is not signed, but signed_by requires a signature"),
    );
    assert.equal(await decide(), "allow");
    repository.commit({ "p.yaml": rule("deny") }, { signingKey: join(root, "other") });
    await until(
      "the refusal of another key",
      async () => (service as Service).logged.join("\n"),
      (log) => log.includes("is not signed by a key of signed_by"),
    );
    assert.equal(await decide(), "allow");
    repository.commit({ "p.yaml": rule("require_approval") }, { signingKey: join(root, "listed") });
    await becomes("require_approval");
  });

  test("only a signed webhook triggers an immediate fetch", async () => {
    const secret = "a-secret-of-some-length";
    repository.commit({ "p.yaml": rule("allow") });
    await start({ url: `file://${repository.bare}`, interval_seconds: 86_400, webhook_secret: secret });
    assert.equal(await decide(), "allow");
    repository.commit({ "p.yaml": rule("deny") });
    const raw = '{"ref":"refs/heads/main"}';
    const hook = (headers: Record<string, string>, body = raw) =>
      call("POST", "/v1/policy-sources/git/webhook", {
        key: null,
        raw: body,
        headers: { "content-type": "application/json", ...headers },
      });
    const signature = `sha256=${createHmac("sha256", secret).update(raw).digest("hex")}`;
    for (const headers of [
      {},
      { "x-hub-signature-256": signature.replace(/.$/, "x") },
      { "x-gitlab-token": "another" },
    ] as Record<string, string>[])
      assert.equal((await hook(headers)).body.code, "SIGNATURE_INVALID");
    assert.equal((await hook({ "x-hub-signature-256": signature }, '{"ref":"x"}')).body.code, "SIGNATURE_INVALID");
    await pause(1500);
    assert.equal(await decide(), "allow");
    assert.equal((await hook({ "x-hub-signature-256": signature })).status, 202);
    await becomes("deny");
    repository.commit({ "p.yaml": rule("require_approval") });
    assert.equal((await hook({ "x-gitlab-token": secret })).status, 202);
    await becomes("require_approval");
  });

  test("loads a full ref and a full commit id", async () => {
    const first = repository.commit({ "p.yaml": rule("allow") });
    repository.git("push", "--quiet", "origin", "HEAD:refs/environments/production");
    repository.commit({ "p.yaml": rule("deny") });
    for (const ref of ["refs/environments/production", first]) {
      await start({ url: `file://${repository.bare}`, ref });
      assert.equal(await decide(), "allow");
      assert.equal((await ready()).source?.commit, first);
      await (service as Service).close();
    }
    for (const [ref, message] of [
      ["refs/heads/nothing", 'the repository has no ref \\"refs/heads/nothing\\"'],
      ["0".repeat(39) + "1", "the repository has no commit 0000"],
    ] as const) {
      await start({ url: `file://${repository.bare}`, ref });
      assert.ok(
        (service as Service).logged.some((line) => line.includes(message)),
        (service as Service).logged.join(),
      );
      assert.equal(await decide(), "deny");
      await (service as Service).close();
    }
    service = null;
  });

  test("follows several repositories, and reports to GitHub what became of their commits", async () => {
    const github = await startGithub();
    const token = "github-s3cret";
    try {
      const team = makeRepository(join(root, "team"));
      const first = repository.commit({ "p.yaml": rule("deny", "guard").replace("tool: t", "tool: forbidden") });
      team.commit({ "p.yaml": rule("allow", "team-rules") });
      await start({
        url: `file://${repository.bare}`,
        baseline: true,
        repositories: [
          {
            name: "team",
            url: `file://${team.bare}`,
            interval_seconds: 1,
            github: { repository: "acme/team", token, api_url: github.url },
          },
        ],
      });
      assert.equal(await decide(), "allow");
      const [status, comment] = await github.requests(2);
      assert.match(status?.path ?? "", /^\/repos\/acme\/team\/statuses\/[0-9a-f]{40}$/);
      assert.equal(status?.token, `Bearer ${token}`);
      assert.deepEqual([status?.body["state"], status?.body["context"]], ["success", "assent/policies"]);
      assert.match(
        String(status?.body["description"]),
        /^applied as policy set [0-9a-f]{12}: 1 policy added, 1 rule added$/,
      );
      assert.match(comment?.path ?? "", /^\/repos\/acme\/team\/commits\/[0-9a-f]{40}\/comments$/);
      for (const part of ["## Policies applied", "### Policies: 1 policy added", "`team-rules`", "past decision"])
        assert.ok(String(comment?.body["body"]).includes(part), String(comment?.body["body"]));
      github.failOnce();
      const bad = team.commit({ "q.yaml": rule("allow", "guard") });
      const [failed, retried, rejected] = await github.requests(3);
      assert.deepEqual(failed?.body, retried?.body);
      assert.deepEqual([retried?.path, retried?.body["state"]], [`/repos/acme/team/statuses/${bad}`, "failure"]);
      assert.match(
        String(rejected?.body["body"]),
        /## Policies rejected[^]*`q\.yaml@[0-9a-f]{40}` `policy "guard" belongs to the baseline/,
      );
      assert.deepEqual(
        (await ready()).offers.filter(({ source }) => source === "policy-git").map(({ commit }) => commit),
        [first],
      );
      github.deny();
      team.commit({ "q.yaml": null });
      await until(
        "the log line",
        async () => (service as Service).logged.join("\n"),
        (log) => log.includes("GitHub responded with status 401"),
      );
      assert.ok(!(service as Service).logged.join("\n").includes(token));
    } finally {
      await github.stop();
    }
  });

  test("invalid options abort startup, and the error names the key", async () => {
    for (const [options, message] of [
      [{ url: "ext::sh -c touch% x" }, /is not the address of a repository/],
      [{ url: "--upload-pack=x" }, /is not the address of a repository/],
      [{ url: "file:///x", password: "p" }, /option "password": only for http and https URLs/],
      [{ url: "https://x.example/y", ssh_key_file: "/k" }, /option "ssh_key_file": only for ssh URLs/],
      [{ url: "file:///x", ref: "--exec=x" }, /option "ref"/],
      [{ url: "file:///x", branch: "main" }, /option "branch"/],
      [{ url: "file:///x", github: { repository: "a/b" } }, /option "github": set exactly one of token and token_file/],
      [
        { url: "file:///x", github: { repository: "a/b", token: "t", api_url: "http://example.com" } },
        /option "github.api_url"/,
      ],
    ] as const)
      await assert.rejects(start(options), message);
  });
});

/**
 * Runs each host's hook as a separate process through each situation in the matrix of docs/hooks.md, and compares the
 * results with the page.
 * @needs hook
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { HOSTS, type Host } from "../../clients/hook/hosts/answers.ts";
import { allows, BEFORE, passes, PROMPT, settles, stops } from "../clients/hook/payloads.ts";
import { approveNext, environment, HOOK, runHook, startHookService, type HookService } from "../support/hook.ts";
import { ROOT } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let hooks: HookService;
let folder: string;
const servers: Server[] = [];
before(async () => {
  hooks = await startHookService();
  folder = temporaryFolder("assent-matrix-");
});
after(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await hooks.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the host's event for another command. */
const about = (host: Host, command: string): string => JSON.stringify(BEFORE[host]).replace("ls -la src", command);

async function scripted(answer: (end: (text: string) => void) => void): Promise<Record<string, string>> {
  const server = createServer((request, response) => {
    request.resume();
    answer((text) => {
      response.setHeader("content-type", "application/json");
      response.end(text);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return environment(folder, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, "k");
}

interface Given {
  stdout: string;
  code: number | null;
}
const run = async (host: Host, input: string, env = hooks.env, args: string[] = []): Promise<Given> => {
  const { out, code } = await runHook(host, input, env, args);
  return { stdout: out, code };
};

/** Kills a hook that holds a call, and returns its result. */
function killed(host: Host, env: Record<string, string>): Promise<Given> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...HOOK, "--host", host], {
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "ignore"],
    });
    let stdout = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    child.once("close", (code) => resolve({ stdout, code }));
    child.stdin.end(about(host, "ls hang"));
    // The hook holds the call until the service responds, which it never does.
    setTimeout(() => child.kill("SIGKILL"), 500);
  });
}

/** Returns the host's event that announces its own question about a command; null if the host has none. */
const question = (host: Host, command: string): string | null =>
  PROMPT[host] === undefined ? null : JSON.stringify(PROMPT[host]).replace("ls -la src", command);

const cases = [
  "allow",
  "deny",
  "ask",
  "approved",
  "question",
  "new question",
  "question, service down",
  "BOM",
  "garbage",
  "service down",
  "service garbage",
  "service hangs",
  "key revoked",
  "eight at once",
  "kill -9",
] as const;

function word(host: Host, given: Given): string {
  if (stops(host, given)) return "stops";
  if (allows(host, given)) return "allows";
  if (passes(host, given)) return "runs";
  return given.stdout === "" ? "no answer" : `?${given.stdout}`;
}

/** Returns what the hook does about the host's own question to its user. */
async function answerTo(host: Host, command: string, env?: Record<string, string>): Promise<string> {
  const event = question(host, command);
  if (event === null) return "–";
  const given = await run(host, event, env);
  if (settles(host, given)) return "allows";
  return given.stdout === "" && given.code === 0 ? "asks" : `?${given.stdout}`;
}

async function outcomes(host: Host): Promise<Record<Exclude<(typeof cases)[number], "eight at once">, string>> {
  const down = environment(folder, "http://127.0.0.1:1", "k");
  const hanging = await scripted(() => {});
  const garbled = await scripted((end) => end("<html>"));
  // These tests mostly wait, and use services of their own.
  const apart = Promise.all([
    run(host, about(host, "allowed"), down),
    run(host, about(host, "allowed"), garbled),
    run(host, about(host, "allowed"), hanging, ["--wait", "2"]),
    killed(host, hanging),
  ]);
  const approved = run(host, about(host, `asked and approved ${host}`));
  const id = await approveNext(hooks);
  const held = word(host, await approved);
  const { body } = await hooks.service.call("GET", `/v1/actions/${id}`, { key: hooks.service.admin });
  assert.equal(body.status, "executing");
  const undecided = await answerTo(host, "ls undecided");
  const settled = await answerTo(host, `asked and approved ${host}`);
  const given = await run(host, about(host, `allowed, then down ${host}`));
  assert.ok(passes(host, given) || stops(host, given));
  const unsettled = await answerTo(host, `allowed, then down ${host}`, {
    ...hooks.env,
    ASSENT_URL: down["ASSENT_URL"] as string,
  });
  const asked = runHook(host, about(host, `asked ${host}`), hooks.env, ["--wait", "3"]);
  const allowed = await run(host, about(host, "allowed"));
  const denied = await run(host, about(host, "denied"));
  const marked = await run(host, `\ufeff${about(host, "allowed")}`);
  const cut = await run(host, '{"hook_event_name":');
  const refused = await run(host, about(host, "allowed"), { ...hooks.env, ASSENT_API_KEY: revoked });
  const waiting = await asked;
  assert.match(waiting.out + waiting.err, /repeat the same command/);
  await approveNext(hooks);
  const [unreachable, answeredHtml, unanswered, ended] = await apart;
  return {
    allow: word(host, allowed),
    deny: word(host, denied),
    ask: word(host, { stdout: waiting.out, code: waiting.code }),
    approved: held,
    question: settled,
    "new question": undecided,
    "question, service down": unsettled,
    BOM: word(host, marked),
    garbage: word(host, cut),
    "service down": word(host, unreachable),
    "service garbage": word(host, answeredHtml),
    "service hangs": word(host, unanswered),
    "key revoked": word(host, refused),
    "kill -9": word(host, ended),
  };
}

let revoked: string;
test("the page's matrix is what the hooks do", async () => {
  const { body } = await hooks.service.call("POST", "/v1/api-keys", {
    key: hooks.service.admin,
    body: { name: "gone", preset: "agent", agent_id: "coder" },
  });
  revoked = body.key as string;
  await hooks.service.call("DELETE", `/v1/api-keys/${body.id}`, { key: hooks.service.admin });

  const rows: string[] = [];
  assert.equal(HOSTS.length, 8);
  const eight = await Promise.all(HOSTS.map((host) => run(host, about(host, "allowed at once"))));
  for (const [i, host] of HOSTS.entries()) {
    // The number of calls that get a response before the hook's timeout depends on the machine.
    const atOnce = /^(runs|allows|stops)$/.test(word(host, eight[i] as Given)) ? "runs or stops" : "wrong";
    const outcome = { ...(await outcomes(host)), "eight at once": atOnce };
    rows.push(`| \`${host}\` | ${cases.map((name) => outcome[name]).join(" | ")} |`);
  }
  const page = readFileSync(join(ROOT, "docs/hooks.md"), "utf8");
  const table = [`| host | ${cases.join(" | ")} |`, `|---${"|---".repeat(cases.length)}|`, ...rows].join("\n");
  assert.ok(page.includes(table), `docs/hooks.md has another matrix; this one was measured:\n${table}`);
});

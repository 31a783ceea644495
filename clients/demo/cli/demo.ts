/**
 * `assent demo` simulates a day at a support desk with a real service, including decisions, approvals and executions.
 * Then it verifies every proof offline and replays every decision. It exits with 1 if a check fails. With `--serve`,
 * the service keeps running, and a one-time link signs in to its console.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  colourText,
  type Command,
  EXIT_CODES,
  type Output,
  parseArguments,
  parsePort,
  startServer,
  startService,
  toPrintable,
  usageError,
  waitForStopSignal,
  withJsonReport,
} from "../../../src/command.ts";
import { createAssent, type ActionRecord, type ActionRequest, type Assent } from "../../typescript/index.ts";
import { defaultConfig } from "../../../src/index.ts";
import { createSignInLink, type DemoKeys } from "./sign-in-link.ts";
import day from "./day.json" with { type: "json" };

interface Step {
  time: string;
  action: ActionRequest;
  expect: ActionRecord["decision"];
  votes?: { approver: string; approve: boolean; reason: string }[];
  fails?: string;
}

const POLICIES = new URL("../../../policies", import.meta.url).pathname;
/** The demo's agents also run shell commands, which the default policies do not cover. */
const SHELL_PACK = new URL("../../../policies/packs/shell.yaml", import.meta.url);

export const demo: Command = {
  help: `usage: assent demo [--serve [--port PORT] | --json]

Starts the service on an empty temporary store, plays ${day.length} actions of three agents, lets two people
approve and reject, executes what is allowed, verifies every proof offline and replays every decision.

  --serve      then keep the service running until Ctrl+C, and print a one-time link that signs in to its console.
               Its data is deleted at the end
  --port PORT  port with --serve; 0 picks a free one (8000)
  --json       print the lines as JSON at the end

examples:
  assent demo
  assent demo --serve
`,
  async run(args, io) {
    const { values } = parseArguments(args, {
      serve: { type: "boolean" },
      port: { type: "string" },
      json: { type: "boolean" },
    });
    const port = values.port === undefined ? 8000 : parsePort(values.port);
    if (values.port !== undefined && values.serve !== true) throw usageError("--port needs --serve");
    if (values.json === true && values.serve === true) throw usageError("give either --serve or --json");
    const folder = mkdtempSync(join(tmpdir(), "assent-demo-"));
    const keys = { admin: "", agent: "" };
    const config = defaultConfig({ data: folder, policies: POLICIES });
    // One admin creates the keys of all approvers in the demo. Do not count their votes as votes of that admin, too.
    config.approvals.trust_key_makers = true;
    config.agents = "any";
    config.log.level = "error";
    const runtime = await startService(config);
    try {
      await runtime.createFirstKeys((first) => Object.assign(keys, { admin: first.admin, agent: first.agent }));
      const link = createSignInLink(keys);
      const {
        url,
        port: listeningPort,
        stop,
      } = await startServer(async (request, info) => (await link.answer(request)) ?? runtime.fetch(request, info), {
        host: "127.0.0.1",
        port: values.serve === true ? port : 0,
      });
      runtime.listensAt(listeningPort);
      try {
        const code = await withJsonReport(io, values.json, (report) => play(url, keys, report));
        if (values.serve === true && code === EXIT_CODES.ok)
          await keepServing(url, `${runtime.host.origin()}${link.path}`, keys, io);
        return code;
      } finally {
        runtime.beginStop();
        await stop();
      }
    } finally {
      await runtime.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Prints how to sign in. Resolves when the process receives a signal to stop. */
async function keepServing(url: string, link: string, keys: DemoKeys, io: Output): Promise<void> {
  await waitForStopSignal(() =>
    io.out(`
Open this link once to sign in to the console as its admin:

  ${link}

An agent submits with these:

  export ASSENT_URL=${url}
  export ASSENT_API_KEY=${keys.agent}

Later sign in with the admin key: ${keys.admin}
The demo runs until Ctrl+C; then its data is deleted.`),
  );
}

async function play(url: string, keys: { admin: string; agent: string }, io: Output): Promise<number> {
  const admin = createAssent({ url, apiKey: keys.admin });
  const agent = createAssent({ url, apiKey: keys.agent });
  const people = new Map<string, Assent>();
  for (const name of ["grace", "linus"]) {
    const { key } = await admin.call<{ key: string }>("POST", "/v1/api-keys", {
      name,
      preset: "approver",
    });
    people.set(name, createAssent({ url, apiKey: key }));
  }
  await admin.call("POST", "/v1/policies/import-yaml?activate=true", { yaml: readFileSync(SHELL_PACK, "utf8") });
  const wrong: string[] = [];
  const done: ActionRecord[] = [];
  for (const step of day as Step[]) {
    const view = await playStep(step, agent, people, io);
    if (view.decision !== step.expect)
      wrong.push(
        `${step.time} ${step.action.tool} ${step.action.operation}: ${view.decision}, expected ${step.expect}`,
      );
    const finished = await agent.action(view.id);
    const expected = expectedStatus(step);
    if (finished.status !== expected)
      wrong.push(`${step.time} ${step.action.tool} ${step.action.operation}: ${finished.status}, expected ${expected}`);
    done.push(finished);
  }
  const vkey = (await admin.logKeys()).keys[0]?.vkey ?? "";
  wrong.push(...(await checkAll(createAssent({ url, apiKey: keys.admin, logKey: vkey }), vkey, done, io)));
  for (const line of wrong) io.err(`${colourText(io, "red", "WRONG")} ${line}`);
  io.out(wrong.length === 0 ? colourText(io, "green", "all checks passed") : `${wrong.length} checks failed`);
  return wrong.length === 0 ? EXIT_CODES.ok : EXIT_CODES.failure;
}

async function playStep(
  step: Step,
  agent: Assent,
  people: ReadonlyMap<string, Assent>,
  io: Output,
): Promise<ActionRecord> {
  const { tool, operation, agent_id } = step.action;
  const view = await agent.submit(step.action, { idempotencyKey: `demo-${step.time}` });
  const tint = { allow: "green", deny: "red", require_approval: "yellow" } as const;
  io.out(
    `${step.time}  ${colourText(io, tint[view.decision], view.decision.padEnd(16))} ${agent_id}: ${toPrintable(tool)} ${toPrintable(operation)} ${colourText(io, "dim", `— ${toPrintable(view.reason)}`)}`,
  );
  let current = view;
  for (const { approver, approve, reason } of step.votes ?? []) {
    current = await (people.get(approver) as Assent).vote(view.id, approve, { reason });
    io.out(`       ${approve ? "approved" : "rejected"} by ${approver}: ${reason}`);
  }
  if (current.status === "allowed" || current.status === "approved") await execute(agent, view.id, step);
  return view;
}

async function execute(agent: Assent, id: string, step: Step): Promise<void> {
  await agent.start(id);
  await agent.result(
    id,
    step.fails === undefined ? { success: true, meta: { simulated: true } } : { success: false, error: step.fails },
  );
}

function expectedStatus(step: Step): string {
  if (step.expect === "deny" || step.votes?.some(({ approve }) => !approve) === true) return "denied";
  if (step.expect === "require_approval" && step.votes === undefined) return "pending_approval";
  return step.fails === undefined ? "succeeded" : "failed";
}

/** Verifies the proof of every decision offline with the client's pinned key, and replays every decision. */
async function checkAll(admin: Assent, vkey: string, actions: readonly ActionRecord[], io: Output): Promise<string[]> {
  const wrong: string[] = [];
  let verified = 0;
  let replayed = 0;
  for (const action of actions) {
    try {
      const { leaf } = await admin.proof(action.decision_hash);
      const entry = JSON.parse(Buffer.from(String(leaf), "base64").toString()) as { action_id?: unknown };
      if (entry.action_id === action.id) verified++;
      else wrong.push(`the proof of ${action.id} is of another action`);
    } catch (error) {
      wrong.push(`the proof of ${action.id}: ${error instanceof Error ? error.message : String(error)}`);
    }
    const { equal, fields } = await admin.replay({ action_id: action.id });
    if (equal) replayed++;
    else
      wrong.push(
        `${action.id} was replayed with another result: ${fields
          .filter((field) => !field.equal)
          .map(({ field }) => field)
          .join(", ")}`,
      );
  }
  const count = (status: string): number => actions.filter((action) => action.status === status).length;
  io.out(
    `\n${actions.length} actions: ${["succeeded", "failed", "denied", "pending_approval"].map((status) => `${count(status)} ${status}`).join(", ")}`,
  );
  io.out(`${verified} proofs verified offline with ${vkey}`);
  io.out(`${replayed} decisions replayed, equal in every field`);
  return wrong;
}

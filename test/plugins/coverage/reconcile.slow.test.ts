/**
 * `assent reconcile` with logs in the published formats, and the coverage statements that it records.
 * @needs effects-cloudtrail, effects-github, effects-pgaudit, notify-email, notify-slack, notify-webhook
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { renderMail } from "../../../plugins/notify-email/mail.ts";
import { renderNoticeBlocks } from "../../../plugins/notify-slack/blocks.ts";
import { buildWebhookBody } from "../../../plugins/notify-webhook/webhook-body.ts";
import { EXIT_CODES } from "../../../src/cli/command.ts";
import type { NoticeMessage } from "../../../src/contract/notifier.ts";
import { readStartedActions } from "../../../plugins/coverage/reconcile/started-actions.ts";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { auditStore } from "../../../src/testing/ledger-audit.ts";
import { needs } from "../../support/features.ts";
import { assentInProcess, runProgram, type Run } from "../../support/cli.ts";
import { codeBlocks, documentedCommands, writeDocumentedPlugin } from "../../support/documented.ts";
import { testNotifier } from "../../support/notifier.ts";
import { ASSENT } from "../../support/process.ts";
import { makeKey, setSection, startService, type Service, person } from "../../support/service.ts";

const MINUTE = 60_000;
let service: Service;
let listening: RunningServer;
let window: string[] = [];
const pigeon = testNotifier();

before(async () => {
  service = await startService({
    policy: "policy: tools\nrules:\n  - name: all\n    tool: '*'\n    effect: allow\n",
    plugins: [pigeon.plugin],
    change(config) {
      setSection(config, "coverage", { notify: ["security"] });
      config.channels = {
        security: { notifier: "pigeon", people: [{ owner: person("Anna"), to: "anna" }] },
        others: { notifier: "pigeon", places: [{ to: "hall" }] },
      } as never;
    },
  });
  listening = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
  process.env["ASSENT_URL"] = listening.url;
  process.env["ASSENT_API_KEY"] = service.admin;
  writeFileSync(join(service.folder, "assent.yaml"), CONFIG);
});
after(async () => {
  await listening.stop(1000);
  await service.close();
});

const CONFIG = `
plugins:
  - built-in
  - name: effects-cloudtrail
    options:
      sources:
        trail:
          effects:
            - event: s3.amazonaws.com/PutObject
              tool: s3
              operation: put_object
              params: { bucket: /requestParameters/bucketName, key: /requestParameters/key }
          actors: ["*:assumed-role/agents/*"]
  - name: effects-github
    options:
      sources:
        github:
          effects:
            - { event: pull_request.merge, tool: github, operation: merge, params: { repo: /repo, number: /pull_request_id } }
          action_id_members: [/user_agent, /head_commit/message]
  - name: effects-pgaudit
    options:
      sources:
        database-json:
          log_format: jsonlog
          effects:
            - { event: WRITE/UPDATE, tool: postgres, operation: query, params: { sql: /statement } }
        database:
          effects:
            - { event: WRITE/UPDATE, tool: postgres, operation: query, params: { sql: /statement } }
`;

/** Runs an action that reports success. Returns its id. */
async function act(tool: string, operation: string, params: object): Promise<string> {
  const { body } = await service.call("POST", "/v1/actions", {
    body: { agent_id: "support-bot", tool, operation, params },
  });
  await service.call("POST", `/v1/actions/${body.id}/start`, { body: {} });
  const result = await service.call("POST", `/v1/actions/${body.id}/result`, { body: { success: true } });
  assert.equal(result.status, 200, JSON.stringify(result.body));
  return body.id as string;
}

function time(offset = 0): string {
  return new Date(Date.now() + service.clock.now + offset).toISOString();
}

/** Lets the window end, which must have been over for a minute. */
function endWindow(): void {
  const to = time(1000);
  service.clock.now += 2 * MINUTE;
  window = ["--from", window.at(-1) ?? time(-10 * MINUTE), "--to", to];
}

async function reconcile(source: string, files: Record<string, string | Uint8Array>, ...flags: string[]): Promise<Run> {
  const paths = Object.entries(files).map(([name, content]) => {
    writeFileSync(join(service.folder, name), content);
    return join(service.folder, name);
  });
  return assentInProcess(
    "reconcile",
    source,
    ...paths,
    ...window,
    "--config",
    join(service.folder, "assent.yaml"),
    ...flags,
  );
}

/** A record as in the CloudTrail user guide. */
function trailRecord(id: string, session: string, key: string, over: object = {}): object {
  return {
    eventVersion: "1.09",
    userIdentity: {
      type: "AssumedRole",
      principalId: `AROAIDPPEZS35WEXAMPLE:${session}`,
      arn: `arn:aws:sts::123456789012:assumed-role/agents/${session}`,
      accountId: "123456789012",
    },
    eventTime: time().replace(/\.\d+Z$/, "Z"),
    eventSource: "s3.amazonaws.com",
    eventName: "PutObject",
    awsRegion: "eu-central-1",
    requestParameters: { bucketName: "reports", key, Host: "reports.s3.amazonaws.com" },
    responseElements: null,
    eventID: id,
    readOnly: false,
    eventType: "AwsApiCall",
    ...over,
  };
}

test("the first example of docs/reconcile.md shows a matched, an unmatched and a missing effect", async () => {
  const matched = await act("monitoring", "describe_alert", { id: "AL-77" });
  const missing = await act("monitoring", "get_metrics", { service: "checkout", window: "15m" });
  const [example = assert.fail()] = codeBlocks("reconcile.md", "sh");
  const command = [process.execPath, ...ASSENT].map((word) => `'${word}'`).join(" ");
  const script = example.replace(/^export .*$/m, "").replace("npx assent", command);
  const env = { ASSENT_URL: listening.url, ASSENT_API_KEY: service.admin };
  const { code, out, err } = await runProgram("bash", ["-euc", script], { cwd: service.folder, env });
  assert.equal(code, EXIT_CODES.unverified, err);
  assert.match(out, /effects: 1 matched, 1 unmatched, 0 unknown\nactions: 1 matched, 1 missing, 0 unknown\n/);
  assert.match(
    out,
    /unmatched \S+ monitoring\.amazonaws\.com\/DeleteAlarms by \S+\/agents\/shell: no action has these/,
  );
  assert.match(out, new RegExp(`no effect of the action ${missing}`));
  assert.ok(!out.includes(matched));
});

test(
  "CloudTrail: finds effects without a decision and actions without an effect, and records a statement",
  needs("metrics", "provenance"),
  async () => {
    const explained = await act("s3", "put_object", { bucket: "reports", key: "a.csv" });
    const phantom = await act("s3", "put_object", { bucket: "reports", key: "b.csv" });
    const records = [
      trailRecord("e1", explained, "a.csv"),
      trailRecord("e2", explained, "secrets.csv"),
      trailRecord("e3", "console", "c.csv", { errorCode: "AccessDenied" }),
      trailRecord("e4", "x", "c.csv", { userIdentity: { type: "IAMUser", arn: "arn:aws:iam::123456789012:user/Ana" } }),
    ];
    endWindow();
    const file = { "trail.json.gz": gzipSync(JSON.stringify({ Records: records })) };
    const dry = await reconcile("trail", file, "--dry-run");
    assert.equal(dry.code, EXIT_CODES.unverified, dry.err);
    assert.match(dry.out, /effects: 1 matched, 1 unmatched, 0 unknown/);
    assert.match(dry.out, /already has its effect|other parameters/);
    assert.match(dry.out, new RegExp(`no effect of the action ${phantom}`));
    assert.match(dry.out, /recorded nothing/);
    const { body: none } = await service.call("GET", "/v1/coverage", { key: service.admin });
    assert.deepEqual(none.statements, []);

    const run = await reconcile("trail", file, "--json", "--report", join(service.folder, "report.jsonl"));
    const statement = JSON.parse(run.out);
    assert.deepEqual(statement.actions, { total: 2, matched: 1, missing: 1, unknown: 0 });
    assert.deepEqual(statement.skipped, { duplicates: 0, outside: 0, unmapped: 0, no_effect: 1, other_actors: 1 });
    const { body } = await service.call("GET", "/v1/coverage?limit=1", { key: service.admin });
    const [{ seq, hash, at, by, ...recorded }] = body.statements;
    assert.deepEqual(recorded, statement);
    assert.match(recorded.cannot_see.join(" "), /Data events/);
    assert.match(by, /^key:/);
    const { body: metrics } = await service.call("GET", "/metrics", { key: service.admin });
    assert.match(metrics, /assent_coverage_effects\{source="trail",result="unmatched"\} 1/);
    assert.match(metrics, /assent_coverage_effects\{source="trail",result="missing"\} 1/);
    const { body: entry } = await service.call("GET", `/v1/provenance/${hash}`, { key: service.admin });
    assert.deepEqual([entry.index, entry.type, entry.at], [seq, "coverage:statement", at]);
  },
);

test("a gap notifies the configured channels once, and a statement without gaps does not", async () => {
  const explained = await act("s3", "put_object", { bucket: "reports", key: "n.csv" });
  const arn = `arn:aws:sts::123456789012:assumed-role/agents/<b>shell</b>\u202e`;
  const records = [
    trailRecord("n1", explained, "n.csv"),
    trailRecord("n2", "x", "n.csv", { userIdentity: { type: "AssumedRole", arn } }),
  ];
  endWindow();
  const complete = await reconcile("trail", { "complete.json": JSON.stringify({ Records: records.slice(0, 1) }) });
  assert.equal(complete.code, EXIT_CODES.ok, complete.err);
  const run = await reconcile("trail", { "gap.json": JSON.stringify({ Records: records }) });
  assert.equal(run.code, EXIT_CODES.unverified, run.err);
  const message = (await pigeon.next(
    (sent) => sent.kind === "notice" && JSON.stringify(sent.notice.data).includes(arn),
  )) as NoticeMessage;
  const { coverage } = message.notice.data as unknown as { coverage: Record<string, unknown> };
  assert.deepEqual(
    pigeon.messages.map((sent) => `${sent.to} ${sent.kind === "notice" ? sent.notice.name : sent.kind}`),
    ["anna coverage_gap", "anna coverage_gap"],
    "one for the test before, one for this",
  );
  const { source, from, to, unmatched, missing, first_missing } = coverage;
  assert.deepEqual([source, from, to, unmatched, missing, first_missing], ["trail", window[1], window[3], 1, 0, []]);
  assert.match(message.link, /#\/coverage$/);
  const { subject, text, html } = renderMail(message);
  assert.equal(subject, "[Assent] gap in coverage: trail, 1 unmatched and 0 missing");
  assert.match(text, /Effect 1: +s3\.amazonaws\.com\/PutObject by /);
  assert.ok(!text.includes("\u202e") && !html.includes("<b>"), "texts of the source are marked and escaped");
  assert.ok(!JSON.stringify(renderNoticeBlocks(message)).includes("<b>"));
  assert.deepEqual(JSON.parse(buildWebhookBody(message)).data.coverage, coverage);
});

test("a broken record is reported with its line, and nothing is recorded", async () => {
  endWindow();
  const good = JSON.stringify(trailRecord("f1", "x", "a"));
  const { body: before } = await service.call("GET", "/v1/coverage", { key: service.admin });
  for (const [content, message] of [
    [`${good}\n{"eventID": \n}\n`, /broken\.json:2: the record is not JSON/],
    [`${good}\n{"eventID": "x`, /broken\.json:2: the file ends inside this record/],
    [
      `${good}\n\n{"eventID": "x"}\n`,
      /broken\.json:3: the record's eventTime|broken\.json:3: the record has no string/,
    ],
    [`{"Records": [\n${good},\n`, /broken\.json:3: the file ends inside its list/],
    [`${good}\n${good.replace('"a"', '"b"')}\n`, /broken\.json:2: the event "f1" occurs twice with different content/],
    [gzipSync(good).subarray(0, 40), /broken\.json:1: expected a JSON object|cannot be read/],
  ] as const) {
    const run = await reconcile("trail", { "broken.json": content });
    assert.equal(run.code, EXIT_CODES.failure);
    assert.match(run.err, message);
  }
  const { body: unchanged } = await service.call("GET", "/v1/coverage", { key: service.admin });
  assert.deepEqual(unchanged, before);
});

test("GitHub: reads an exported array and streamed lines, and finds the id in a commit's trailer", async () => {
  const id = await act("github", "merge", { repo: "acme/web", number: 7 });
  const event = (document: string, over: object): object => ({
    "@timestamp": Date.now() + service.clock.now,
    _document_id: document,
    action: "pull_request.merge",
    actor: "assent-agent[bot]",
    org: "acme",
    repo: "acme/web",
    pull_request_id: 7,
    user_agent: "Octokit",
    ...over,
  });
  const named = event("g1", { head_commit: { message: `Fix the header\n\nAssent-Action: ${id}\n` } });
  const bypass = event("g2", { pull_request_id: 8 });
  endWindow();
  for (const content of [
    JSON.stringify([named, bypass], null, 2),
    `${JSON.stringify(named)}\n${JSON.stringify(bypass)}\n`,
  ]) {
    const { out, code } = await reconcile("github", { "audit.json": content }, "--json");
    assert.equal(code, EXIT_CODES.unverified);
    const { effects, unmatched } = JSON.parse(out);
    assert.deepEqual(effects, { total: 2, matched: 1, unmatched: 1, unknown: 0 });
    assert.deepEqual([unmatched[0].id, unmatched[0].reason], ["g2", "no_action"]);
  }
});

test("pgaudit: reads csvlog, takes the id from the login role, and counts a statement on two tables once", async () => {
  const sql = "update invoices set note = 'a \"b\", c'\nwhere id = 7";
  const id = await act("postgres", "query", { sql });
  const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;
  const line = (user: string, statement: number, object: string, text: string, zone = "UTC"): string => {
    const message = `AUDIT: OBJECT,${statement},1,WRITE,UPDATE,TABLE,${object},${quote(text)},<none>`;
    const stamp = `${time().slice(0, 23).replace("T", " ")} ${zone}`;
    const columns = [
      stamp,
      user,
      "shop",
      "4711",
      "10.0.0.1:5000",
      `65ba.${user.length}`,
      "3",
      "UPDATE",
      stamp,
      "3/7",
      "0",
    ];
    return `${[...columns, "LOG", "00000", quote(message), "", "", "", "", "", "", "", "", "psql", "client backend"].join(",")}\n`;
  };
  const role = `assent_${id.replaceAll("-", "")}_0123456789ab`;
  const log =
    line(role, 1, "public.invoices", sql) +
    line(role, 1, "public.customers", sql) +
    line("app", 1, "public.invoices", "update invoices set paid = true");
  endWindow();
  const { out, code } = await reconcile("database", { "postgresql.csv": log }, "--json");
  assert.equal(code, EXIT_CODES.unverified);
  const { effects, actions, skipped, unmatched } = JSON.parse(out);
  assert.deepEqual(effects, { total: 2, matched: 1, unmatched: 1, unknown: 0 });
  assert.deepEqual(actions, { total: 1, matched: 1, missing: 0, unknown: 0 });
  assert.equal(skipped.no_effect, 1);
  assert.equal(unmatched[0].actor, "app");
  const other = await reconcile("database", { "zone.csv": line("app", 1, "t", "x", "CET") });
  assert.match(other.err, /zone\.csv:1: the time .* is not in UTC; set log_timezone/);
});

test("pgaudit: reads jsonlog, and takes the id from the application name", async () => {
  const sql = "update invoices set note = 'a \"b\", c'\nwhere id = 8";
  const id = await act("postgres", "query", { sql });
  const record = (over: object, statement = sql): string =>
    JSON.stringify({
      timestamp: `${time().slice(0, 23).replace("T", " ")} UTC`,
      user: "app",
      dbname: "shop",
      pid: 4711,
      remote_host: "10.0.0.1",
      remote_port: 5000,
      session_id: "65ba.1267",
      line_num: 3,
      ps: "UPDATE",
      session_start: "2026-01-31 11:00:00 UTC",
      vxid: "3/7",
      txid: 0,
      error_severity: "LOG",
      message: `AUDIT: SESSION,1,1,WRITE,UPDATE,,,"${statement.replaceAll('"', '""')}",<not logged>`,
      application_name: "psql",
      backend_type: "client backend",
      query_id: 0,
      ...over,
    });
  const log = [
    record({ message: "checkpoint starting: time" }),
    record({ application_name: `assent:${id}` }),
    record({ session_id: "65ba.1268", user: "" }, "update invoices set paid = true"),
  ].join("\n");
  endWindow();
  const { out, err, code } = await reconcile("database-json", { "postgresql.json": `${log}\n` }, "--json");
  assert.equal(code, EXIT_CODES.unverified, err);
  const { format, effects, actions, unmatched } = JSON.parse(out);
  assert.equal(format, "pgaudit-jsonlog");
  assert.deepEqual(effects, { total: 2, matched: 1, unmatched: 1, unknown: 0 });
  assert.deepEqual(actions, { total: 1, matched: 1, missing: 0, unknown: 0 });
  assert.deepEqual([unmatched[0].actor, unmatched[0].reason], ["unknown", "no_action"]);
  const cut = await reconcile("database-json", { "cut.json": `${record({})}\n${record({}).slice(0, 80)}` });
  assert.match(cut.err, /cut\.json:2: the file ends inside this record/);
  const old = await reconcile("database-json", { "message.json": record({ message: "AUDIT: nothing" }) });
  assert.match(old.err, /message\.json:1: the message is not a pgaudit entry/);
});

test("pgaudit: what the audited user writes hides no effect, and confirms no success", async () => {
  const allowed = await act("postgres", "query", { sql: "update a set x = 1" });
  const faked = await act("postgres", "query", { sql: "update b set x = 1" });
  const stamp = `${time().slice(0, 23).replace("T", " ")} UTC`;
  const line = (session: string, user: string, entry: string, over: object = {}): string =>
    JSON.stringify({ timestamp: stamp, user, session_id: session, message: `AUDIT: ${entry}`, ...over });
  const role = (id: string): string => `assent_${id.replaceAll("-", "")}_0123456789ab`;
  // What RAISE LOG adds.
  const context = "PL/pgSQL function inline_code_block line 1 at RAISE";
  const statement = "DO $$ BEGIN RAISE LOG 'AUDIT: …'; END $$";
  const update = (n: number, sql: string, object = ""): string =>
    `SESSION,${n},1,WRITE,UPDATE,,${object},"${sql}",<none>`;
  const log = [
    line("a.1", role(allowed), "SESSION,1,1,READ,SELECT,TABLE,public.a,update a set x = 1,<none>"),
    line("a.1", role(allowed), update(1, "update a set x = 1", "public.a")),
    line("a.1", role(allowed), update(1, "update a set x = 1", "public.c")),
    line("a.2", role(faked), update(1, "update b set x = 1"), { context, statement }),
    line("a.2", role(faked), update(1, "update b set x = 1"), { context }),
    line("a.2", role(faked), update(1, "update b set x = 1"), { statement }),
    line("a.2", role(faked), update(1, "update b set x = 1"), { state_code: "38000" }),
    line("a.2", role(faked), update(1, "update b set x = 1"), { file_name: "pl_exec.c" }),
    line("a.3", "shell", "nothing", { context, statement }),
    line("a.4", "shell", update(2, "update hidden set x = 1"), { context, statement }),
    line("a.4", "shell", update(2, "update hidden set x = 1"), { file_name: "pgaudit.c", state_code: "00000" }),
    line("a.5", "shell", update(3, `select '\u0001'`)).replace("\\u0001", "\u0001").slice(0, -1) + "}",
  ].join("\n");
  endWindow();
  const bytes = Buffer.from(`${log}\n`, "latin1");
  bytes[bytes.indexOf(1)] = 0xff;
  const { out, err, code } = await reconcile("database-json", { "forged.json": bytes }, "--json");
  assert.equal(code, EXIT_CODES.unverified, err);
  const { effects, actions, missing, unmatched, skipped } = JSON.parse(out);
  assert.deepEqual(effects, { total: 3, matched: 1, unmatched: 2, unknown: 0 });
  assert.deepEqual(actions, { total: 2, matched: 1, missing: 1, unknown: 0 });
  assert.equal(missing[0].id, faked);
  assert.deepEqual(
    unmatched.map(({ actor }: { actor: string }) => actor),
    ["shell", "shell"],
  );
  assert.deepEqual([skipped.no_effect, skipped.unmapped], [8, 1]);
});

test(
  "a gap stays in the metrics after clean statements of other windows, effects and sources",
  needs("metrics"),
  async () => {
    endWindow();
    const { out } = await reconcile("trail", { "none.json": "" }, "--json", "--dry-run");
    const empty = JSON.parse(out);
    const post = async (over: object) => {
      const { status, body } = await service.call("POST", "/v1/coverage", {
        key: service.admin,
        body: {
          ...empty,
          source: "gap",
          operations: [{ tool: "x", operation: "y" }],
          actions: { total: 0, matched: 0, missing: 0, unknown: 0 },
          missing: [],
          ...over,
        },
      });
      assert.equal(status, 201, JSON.stringify(body));
    };
    const gap = { id: "e", at: empty.from, event: "e", actor: "a", action_id: null, reason: "no_action" };
    await post({ effects: { total: 1, matched: 0, unmatched: 1, unknown: 0 }, unmatched: [gap] });
    const metric = async (): Promise<string | undefined> =>
      /assent_coverage_effects\{source="gap",result="unmatched"\} (\d+)/.exec(
        (await service.call("GET", "/metrics", { key: service.admin })).body as string,
      )?.[1];
    const millisecond = (text: string, by: number): string => new Date(Date.parse(text) + by).toISOString();
    await post({ from: millisecond(empty.from, -1), to: empty.from });
    await post({ from: empty.to, to: millisecond(empty.to, 1) });
    for (let i = 0; i < 101; i++) await post({ source: `a${i}` });
    // Of the same window, with fewer effects, or for other identities or operations.
    await post({});
    const compared = { effects: { total: 1, matched: 1, unmatched: 0, unknown: 0 } };
    await post({ ...compared, actors: ["nobody"] });
    await post({ ...compared, operations: [{ tool: "x", operation: "other" }] });
    assert.equal(await metric(), "1");
    await post(compared);
    assert.equal(await metric(), "0");
  },
);

test("the service refuses a statement that leaves out a success, is inconsistent or is too early", async () => {
  await act("s3", "put_object", { bucket: "reports", key: "z" });
  endWindow();
  const { out } = await reconcile("trail", { "none.json": "" }, "--json", "--dry-run");
  const statement = JSON.parse(out);
  const text = await reconcile("trail", { "none.json": "" }, "--dry-run");
  assert.match(text.out, /warning: the files contain no effect to compare in this window/);
  const post = async (body: object, key = service.admin) => service.call("POST", "/v1/coverage", { key, body });
  const omitted = await post({ ...statement, actions: { total: 0, matched: 0, missing: 0, unknown: 0 }, missing: [] });
  assert.equal(omitted.status, 422);
  assert.match(omitted.body.detail, /the ledger has 1 successes in the window/);
  assert.match((await post({ ...statement, missing: [] })).body.detail, /does not list its missing/);
  assert.match((await post({ ...statement, to: time(-1000) })).body.detail, /must have ended at least a minute ago/);
  const { key } = await makeKey(service, { name: "auditor", preset: "auditor" });
  assert.equal((await post(statement, key)).status, 403);
  assert.equal((await service.call("GET", "/v1/coverage", { key })).status, 200);
  const executions = "/v1/coverage/executions?since=2026-01-01T00:00:00Z&until=2100-01-01T00:00:00Z";
  assert.equal((await service.call("GET", executions, { key })).status, 403);
});

test("an action without a result ends when the service records that, or at its late result", async () => {
  const at = (minute: number): string => `2026-01-31T04:0${minute}:00.000Z`;
  const entry = { tool: "s3", operation: "put_object", params: {}, success: null };
  const executions = [
    { ...entry, action_id: "silent", phase: "start", at: at(1) },
    { ...entry, action_id: "late", phase: "start", at: at(2) },
    { ...entry, action_id: "silent", phase: "no_result", at: at(3) },
    { ...entry, action_id: "late", phase: "no_result", at: at(4) },
    { ...entry, action_id: "late", phase: "result", at: at(5), success: true },
  ];
  const call = async <T>(): Promise<T> => ({ executions, next_cursor: null }) as T;
  const actions = await readStartedActions(call, 0, Date.parse(at(9)));
  const ends = [...actions.values()].map(({ id, ended_at, success }) => [id, ended_at, success]);
  assert.deepEqual(ends, [
    ["silent", Date.parse(at(3)), null],
    ["late", Date.parse(at(5)), true],
  ]);
});

test("the list of executions has pages", async () => {
  const seen: number[] = [];
  for (let cursor = ""; ;) {
    const path = `/v1/coverage/executions?since=2026-01-01T00:00:00Z&until=2100-01-01T00:00:00Z&limit=3${cursor}`;
    const { body } = await service.call("GET", path, { key: service.admin });
    seen.push(...body.executions.map(({ seq }: { seq: number }) => seq));
    if (body.next_cursor === null) break;
    cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`;
  }
  assert.equal(new Set(seen).size, seen.length);
  assert.equal(seen.length, 22);
});

test("the audit counts again, and finds a statement that the store does not list", async () => {
  const { storage } = service;
  const audit = async () => (await auditStore(storage, service.runtime.host.ledger.vkey)).faults;
  assert.deepEqual(await audit(), []);
  const [document] = await storage.documents({ plugin: "coverage", prefix: "statement/", limit: 1 });
  assert.ok(document !== undefined);
  const withoutDocument = new Proxy(storage, {
    get: (target, name) =>
      name === "documents"
        ? async (filter: Parameters<typeof storage.documents>[0]) =>
            (await target.documents(filter)).filter(({ key }) => key !== document.key)
        : Reflect.get(target, name, target) instanceof Function
          ? (Reflect.get(target, name, target) as () => unknown).bind(target)
          : (Reflect.get(target, name, target) as unknown),
  });
  const { faults } = await auditStore(withoutDocument, service.runtime.host.ledger.vkey);
  assert.match(faults.join("\n"), /does not list the coverage statement in entry \d+/);
});

test("an unknown source, and times that are none, are refused", async () => {
  endWindow();
  assert.match((await reconcile("trial", { "x.json": "" })).err, /there is no source "trial"; did you mean "trail"\?/);
  const { err, code } = await assentInProcess(
    "reconcile",
    "trail",
    "x.json",
    "--from",
    "yesterday",
    "--to",
    "2026-01-31",
  );
  assert.equal(code, EXIT_CODES.usage);
  assert.match(err, /--from must be a time such as .*, a date, or a duration such as 2h .*; got "yesterday"/);
});

test("the configurations and the command of docs/reconcile.md work as printed", async () => {
  const config = join(service.folder, "documented.yaml");
  const log = join(service.folder, "documented.json.gz");
  const record = trailRecord("d1", "shell", "a.csv", { eventTime: "2026-01-31T04:11:09Z" });
  writeFileSync(log, gzipSync(JSON.stringify({ Records: [record] })));
  const [trail, database] = codeBlocks("reconcile.md", "yaml");
  writeFileSync(config, trail ?? assert.fail());
  for (const command of documentedCommands("reconcile.md", "reconcile production", { "trail/*.json.gz": log })) {
    const { out, code, err } = await assentInProcess(...command, "--config", config);
    assert.equal(code, EXIT_CODES.unverified, err);
    assert.match(
      out,
      /^production from 2026-01-31T00:00:00.000Z to 2026-02-01T00:00:00.000Z\neffects: 0 matched, 1 unm/,
    );
    assert.match(out, /unmatched 2026-01-31T04:11:09.000Z s3.amazonaws.com\/PutObject by arn:.*: no action has these/);
  }
  writeFileSync(config, database ?? assert.fail());
  const shop = await reconcile("shop", { "shop.csv": "" }, "--dry-run", "--config", config);
  assert.equal(shop.code, EXIT_CODES.ok, shop.err);
});

test("the plugin of docs/reconcile.md works as printed", async () => {
  const plugin = writeDocumentedPlugin("reconcile.md", service.folder);
  const config = join(service.folder, "billing.yaml");
  writeFileSync(
    config,
    (codeBlocks("reconcile.md", "yaml")[2] ?? assert.fail()).replace("./effects-billing.ts", plugin),
  );
  const id = await act("billing", "refund", { amount: 40 });
  const record = (over: object): string =>
    JSON.stringify({ id: "b1", time: time(), type: "refund.created", user: "shop", amount: 40, ...over });
  const lines = [
    record({ reference: `Assent ${id}` }),
    record({ id: "b2", reference: id }),
    record({ id: "b3", amount: 9 }),
  ];
  endWindow();
  const run = await reconcile("billing", { "billing.jsonl": lines.join("\n") }, "--json", "--config", config);
  assert.equal(run.code, EXIT_CODES.unverified, run.err);
  const { format, effects, unmatched } = JSON.parse(run.out);
  assert.deepEqual([format, effects], ["billing-log", { total: 3, matched: 1, unmatched: 2, unknown: 0 }]);
  assert.deepEqual(
    unmatched.map(({ reason }: { reason: string }) => reason),
    ["already_matched", "no_action"],
  );
  const broken = { "times.jsonl": `${lines[0]}\n${record({ time: "yesterday" })}` };
  assert.match(
    (await reconcile("billing", broken, "--config", config)).err,
    /times\.jsonl:2: .*is not a valid time: yesterday/,
  );
  // A plugin that does not check times itself.
  const script = readFileSync(plugin, "utf8").replace(/parseRfc3339\((?=member)/, "Date.parse(");
  writeFileSync(plugin.replace(".mjs", "-unchecked.mjs"), script);
  writeFileSync(config, readFileSync(config, "utf8").replace(".mjs", "-unchecked.mjs"));
  const unchecked = await reconcile("billing", broken, "--config", config);
  assert.match(unchecked.err, /times\.jsonl:2: the event "b1" has no valid time: NaN/);
});

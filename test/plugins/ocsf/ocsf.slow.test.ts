/**
 * Exports of a real service to a file, an HTTP collector and NATS JetStream, through kill -9 and a failing collector.
 * @needs provenance
 */
import "../../support/on-disk.ts";
import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { toHex } from "../../../src/domain/hash.ts";
import { hashLeaf } from "../../../src/domain/merkle.ts";
import { verifyTlogProof } from "../../../src/domain/tlog-proof.ts";
import { verifyEd25519 } from "../../../src/identity/vault.ts";
import { freePort } from "../../support/postgres.ts";
import { startProcess, stopProcess, type ServiceProcess } from "../../support/process.ts";
import { startReceiver, type Receiver } from "../../support/receiver.ts";
import { FEW_POLICIES } from "../../support/service.ts";
import { createFileSink } from "../../../plugins/ocsf/file-sink.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/wait.ts";

interface Event {
  raw_data: string;
  metadata: { uid: string; sequence: number; version: string };
  unmapped: { tlog_proof: string };
  [member: string]: unknown;
}

const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const ROUNDS = 3;
const PER_ROUND = 80;
const withoutNats =
  spawnSync("nats-server", ["--version"]).error === undefined ? false : "nats-server is not installed";

describe("the export of OCSF events", { skip: withoutNats }, () => {
  const folder = temporaryFolder("assent-ocsf-");
  const file = join(folder, "events.ndjson");
  let nats: ChildProcess;
  let natsPort: number;
  let collector: Receiver;
  let service: ServiceProcess;
  let size = 0;
  let vkey = "";

  const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
  const start = (): Promise<ServiceProcess> =>
    startProcess({
      ASSENT_CONFIG: join(folder, "assent.yaml"),
      ASSENT_DATA: join(folder, "data"),
      ASSENT_POLICIES: FEW_POLICIES,
      ASSENT_ADMIN_KEY: ADMIN,
    });
  const submit = (url: string, id: number): Promise<number | null> =>
    fetch(`${url}/v1/actions`, {
      method: "POST",
      headers,
      body: JSON.stringify({ agent_id: "bot", tool: "tickets", operation: "get_ticket", params: { id } }),
    }).then(
      (answer) => answer.status,
      () => null,
    );
  const parse = (lines: string): Event[] =>
    lines
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Event);
  const inFile = (): Event[] => (existsSync(file) ? parse(readFileSync(file, "utf8")) : []);
  /** Counts finished lines, because the service may be in the middle of one. */
  const linesInFile = (): number => (existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0);
  const accepted: string[] = [];
  const posted = (): Event[] => accepted.flatMap(parse);

  async function inStream(): Promise<Event[]> {
    const connection = await connect({ servers: `127.0.0.1:${natsPort}` });
    try {
      const manager = await jetstreamManager(connection);
      const { state } = await manager.streams.info("assent");
      const events: Event[] = [];
      for (let seq = 1; seq <= state.messages; seq++) {
        const message = await manager.streams.getMessage("assent", { seq });
        events.push((message as { json(): unknown }).json() as Event);
      }
      return events;
    } finally {
      await connection.close();
    }
  }

  before(async () => {
    mkdirSync(join(folder, "data"));
    natsPort = await freePort();
    nats = spawn("nats-server", ["-js", "-sd", join(folder, "nats"), "-a", "127.0.0.1", "-p", String(natsPort)], {
      stdio: "ignore",
    });
    await until("NATS accepts connections", async () => {
      const connection = await connect({ servers: `127.0.0.1:${natsPort}`, reconnect: false }).catch(() => null);
      if (connection === null) return false;
      await (await jetstreamManager(connection)).streams.add({ name: "assent", subjects: ["assent.events"] });
      await connection.close();
      return true;
    });
    collector = await startReceiver();
    let requests = 0;
    collector.answer = ({ body }, response) => {
      // A collector that fails sometimes. It stores a batch only if it acknowledges it.
      response.statusCode = ++requests % 3 === 0 ? 503 : 200;
      if (response.statusCode === 200) accepted.push(body);
      response.end();
    };
    writeFileSync(
      join(folder, "assent.yaml"),
      JSON.stringify({
        plugins: [
          "built-in",
          {
            name: "ocsf",
            options: {
              exports: {
                file: { file },
                http: { url: `http://127.0.0.1:${collector.port}/events`, allow_private: true },
                nats: { nats: [`127.0.0.1:${natsPort}`], subject: "assent.events" },
              },
            },
          },
        ],
      }),
    );
    for (let round = 0; round < ROUNDS; round++) {
      service = await start();
      const { url } = service;
      const sent = Promise.all(Array.from({ length: PER_ROUND }, (_, at) => submit(url, round * PER_ROUND + at)));
      if (round === ROUNDS - 1) await sent;
      // Killed while events are being exported.
      else {
        const had = linesInFile();
        await until("the export has begun to send this round", () => linesInFile() > had);
        await stopProcess(service, "SIGKILL");
        await sent;
        // A possible state of the file after a crash during a write.
        if (round === 0) appendFileSync(file, '{"class_uid":6003,"metad');
      }
    }
    const checkpoint = await (await fetch(`${service.url}/v1/provenance/checkpoint`, { headers })).text();
    size = Number(checkpoint.split("\n")[1]);
    const keys = await (await fetch(`${service.url}/v1/provenance/keys`, { headers })).json();
    vkey = (keys as { keys: { vkey: string }[] }).keys[0]?.vkey ?? "";
    await until(
      () => `everything arrives: ${linesInFile()} in the file, ${posted().length} posted, of ${size}`,
      async () =>
        linesInFile() >= size &&
        new Set(posted().map(({ metadata }) => metadata.sequence)).size >= size &&
        (await inStream()).length >= size,
    );
  });
  after(async () => {
    await stopProcess(service).catch(() => undefined);
    await collector.close();
    nats.kill();
    await once(nats, "exit");
    rmSync(folder, { recursive: true, force: true });
  });

  const sequences = (events: readonly Event[]): number[] => events.map(({ metadata }) => metadata.sequence);
  const all = (): number[] => Array.from({ length: size }, (_, seq) => seq);

  test("reports that no entry is missing in any sink", async () => {
    const metrics = await (await fetch(`${service.url}/metrics`, { headers })).text();
    for (const name of ["file", "http", "nats"])
      assert.match(metrics, new RegExp(`^assent_export_lag_entries\\{export="${name}"\\} 0$`, "m"));
  });

  test("does not change a file that is not an export", async () => {
    const other = join(folder, "other.txt");
    for (const text of ["not an event", '{"class_uid":1', "a line\nand another"]) {
      writeFileSync(other, text);
      await assert.rejects(createFileSink(other).resume(), /is not an event of this export/);
      assert.equal(readFileSync(other, "utf8"), text);
    }
  });

  test("writes each entry to the file exactly once, in order", () => {
    assert.ok(size > PER_ROUND, `${size} entries`);
    assert.deepEqual(sequences(inFile()), all());
  });

  test("publishes each entry to JetStream exactly once, in order", async () => {
    assert.deepEqual(sequences(await inStream()), all());
  });

  test("posts each entry at least once, in order, although the collector fails at times", () => {
    const firsts = [...new Set(sequences(posted()))];
    assert.deepEqual(firsts, all());
  });

  test("proves each event's entry under a signed checkpoint", () => {
    for (const { raw_data, metadata, unmapped } of inFile()) {
      const leaf = hashLeaf(new TextEncoder().encode(raw_data));
      assert.equal(metadata.uid, toHex(leaf));
      verifyTlogProof(unmapped.tlog_proof, leaf, vkey, verifyEd25519);
    }
    const [first] = inFile();
    const other = hashLeaf(new TextEncoder().encode(`${first?.raw_data} `));
    assert.throws(() => verifyTlogProof(first?.unmapped.tlog_proof ?? "", other, vkey, verifyEd25519));
  });

  test("uses the class API Activity of OCSF 1.9 with its required attributes", () => {
    const decision = inFile().find(
      (event) => (event["metadata"] as Record<string, unknown>)["event_code"] === "decision",
    ) as Event;
    // Required by the class, its category or the base event (ocsf-schema, 1.9).
    for (const name of [
      "activity_id",
      "actor",
      "api",
      "category_uid",
      "class_uid",
      "metadata",
      "severity_id",
      "src_endpoint",
      "time",
      "type_uid",
    ])
      for (const event of inFile()) assert.notEqual(event[name], undefined, name);
    assert.deepEqual(
      [decision["class_uid"], decision["category_uid"], decision["type_uid"], decision.metadata.version],
      [6003, 6, 600_301, "1.9.0"],
    );
    assert.deepEqual([decision["action_id"], decision["disposition_id"], decision["status_id"]], [1, 1, 1]);
    assert.deepEqual((decision["api"] as { service: { name: string } }).service, { name: "tickets" });
    assert.equal((decision["ai_agent"] as { uid: string }).uid, "bot");
  });
});

/** Where processes say that they are reached, and who believes it. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { hostname } from "node:os";
import { test } from "node:test";
import { holderOf, loopbackHere, peerOf, placeOf } from "../../src/cluster/sequencing/place.ts";
import { boundTo } from "../../src/cluster/sequencing/seal.ts";
import { createElection } from "../../src/cluster/sequencing/election.ts";
import { memoryStorage } from "../../src/testing/index.ts";
import { until } from "../support/wait.ts";
import { createLogger } from "../../src/serve/log.ts";
import { ConfigError, loadConfig } from "../../src/config/index.ts";

const vaultOf = (secret: string) => ({
  mac: (purpose: string, message: Uint8Array) =>
    new Uint8Array(createHmac("sha256", `${secret}/${purpose}`).update(message).digest()),
});
const VAULT = boundTo("log", vaultOf("secret"));
const INSTANCE = "0199aaaa-0000-7000-8000-000000000000";
const [HERE, ELSEWHERE] = ["boot-1/4026531840", "boot-2/4026531840"];

test("an address over loopback is for who has the same loopback, a configured one for everybody", () => {
  const near = placeOf("auto", "http://0.0.0.0:8001", HERE);
  assert.deepEqual(near, { url: "http://127.0.0.1:8001", loopback: HERE });
  assert.deepEqual(placeOf("auto", "http://[::]:8001", HERE)?.url, "http://[::1]:8001");
  assert.ok(near !== null);
  assert.equal(peerOf(holderOf(INSTANCE, near, VAULT), HERE, VAULT)?.url, "http://127.0.0.1:8001");
  for (const other of [ELSEWHERE, "boot-1/4026532000", null])
    assert.equal(peerOf(holderOf(INSTANCE, near, VAULT), other, VAULT), null, String(other));
  const far = placeOf("http://{hostname}:8000/", "http://127.0.0.1:8000", HERE);
  assert.deepEqual(far, { url: `http://${hostname()}:8000`, loopback: null });
  assert.ok(far !== null);
  assert.deepEqual(peerOf(holderOf(INSTANCE, far, VAULT), null, VAULT), { instance: INSTANCE, ...far });
});

test("without an address, or where loopback is not known or not listened on, a process is not reached", () => {
  assert.equal(placeOf("off", "http://127.0.0.1:8000", HERE), null);
  assert.equal(placeOf("auto", "http://127.0.0.1:8000", null), null);
  assert.equal(placeOf("auto", "http://10.1.2.3:8000", HERE), null);
  for (const holder of ["", INSTANCE, `${INSTANCE} http://a`, `${INSTANCE} http://a *`, `${INSTANCE} http://a * more`])
    assert.equal(peerOf(holder, HERE, VAULT), null, holder);
});

test("an address that somebody else wrote to the database is nobody's, nor is one of another secret or log", () => {
  const place = { url: "http://10.1.2.3:8000", loopback: null };
  const holder = holderOf(INSTANCE, place, VAULT);
  assert.deepEqual(peerOf(holder, HERE, VAULT), { instance: INSTANCE, ...place });
  const others: Record<string, string> = {
    "another address": holder.replace("10.1.2.3", "10.1.2.4"),
    "another process": holder.replace(INSTANCE, INSTANCE.replace("0199", "0198")),
    "for another machine": holder.replace(" * ", ` ${HERE} `),
    "no MAC": holder.slice(0, -65),
    "half a MAC": holder.slice(0, -1),
    more: `${holder} more`,
    "another secret": holderOf(INSTANCE, place, boundTo("log", vaultOf("another"))),
    "another log": holderOf(INSTANCE, place, boundTo("other", vaultOf("secret"))),
    "no address": holderOf(INSTANCE, { ...place, url: "http://u:p@10.1.2.3:8000" }, VAULT),
  };
  for (const [what, other] of Object.entries(others)) assert.equal(peerOf(other, HERE, VAULT), null, what);
});

test("a process whose ledger is halted neither leads nor is led", async () => {
  const store = memoryStorage();
  await store.open();
  let halted: string | null = null;
  const election = createElection({
    storage: store,
    instance: INSTANCE,
    place: { url: "http://10.1.2.3:8000", loopback: null },
    vault: VAULT,
    unfit: () => halted,
    here: HERE,
    log: createLogger("silent"),
  });
  await store.lease("process/another", "another", 30_000);
  const leaseOf = async () => (await store.leases(30_000)).find(({ name }) => name === "sequencer")?.holder;
  try {
    election.start();
    await until("it leads", () => election.leader() === "me");
    assert.equal(typeof (await leaseOf()), "string");
    halted = "its head does not continue";
    await until("it leads no more", () => election.leader() === null);
    assert.equal(await leaseOf(), undefined);
    assert.equal(election.why(), halted);
    halted = null;
    await until("it leads again", () => election.leader() === "me");
  } finally {
    await election.stop();
    await store.close();
  }
});

test("this machine's loopback is the same whenever it is looked for", { skip: process.platform !== "linux" }, () => {
  assert.match(loopbackHere() ?? "", /^[0-9a-f-]{36}\/\d+$/);
  assert.equal(loopbackHere(), loopbackHere());
});

test("ASSENT_PEER_URL is an address, `auto` or `off`; without it it is `auto`, and what is none of these is refused", () => {
  const load = (url: string) =>
    loadConfig({ cwd: "/nonexistent", env: { ASSENT_PEER_URL: url } }).config.server.peer_url;
  for (const url of ["auto", "off", "http://10.1.2.3:8000", "https://{hostname}:8000/assent"])
    assert.equal(load(url), url);
  assert.equal(loadConfig({ cwd: "/nonexistent", env: {} }).config.server.peer_url, "auto");
  for (const url of ["Auto", "10.1.2.3:8000", "ftp://a", "http://u:p@a", "http://a?b", "http://a b"])
    assert.throws(
      () => load(url),
      (error) =>
        error instanceof ConfigError && error.message.includes("/server/peer_url") && error.message.includes(url),
      url,
    );
});

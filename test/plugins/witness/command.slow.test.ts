/** A service, its witness, and a verifier: each is a separate process. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { needs } from "../../support/features.ts";
import { assent } from "../../support/cli.ts";
import { ASSENT, startCommand, startProcess, stopProcess } from "../../support/process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { eventually } from "../../support/wait.ts";

const ADMIN = `witness-test-admin-${"0".repeat(32)}`;
const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
let folder: string;
before(() => (folder = temporaryFolder("assent-witness-cli-")));
after(() => rmSync(folder, { recursive: true, force: true }));

test(
  "a proof with a cosigned checkpoint is valid with the witness's key, and not with a different key",
  needs("provenance"),
  async () => {
    const env = { ASSENT_DATA: join(folder, "data"), ASSENT_ADMIN_KEY: ADMIN, ASSENT_LOG_ORIGIN: "example.com/log" };
    const first = await startProcess(env);
    const keys = (await (await fetch(`${first.url}/v1/provenance/keys`, { headers })).json()) as {
      keys: [{ vkey: string }];
    };
    const [{ vkey }] = keys.keys;
    assert.equal(await stopProcess(first), 0);

    const witness = (name: string) =>
      startCommand(
        [
          process.execPath,
          [...ASSENT, "witness", "--name", name, "--log", vkey, "--data", join(folder, name), "--port", "0"],
        ],
        {},
        { listening: /the witness is listening on (http:\S+)/ },
      );
    const one = await witness("w1.example.com");
    const keyOf = (output: string): string => /^ {2}(\S+)$/m.exec(output)?.[1] as string;
    const trusted = keyOf(one.output());
    const stranger = await witness("w2.example.com");
    const untrusted = keyOf(stranger.output());
    assert.equal(await stopProcess(stranger), 0);

    const second = await assent(
      ["witness", "--name", "w1.example.com", "--log", vkey, "--data", join(folder, "w1.example.com"), "--port", "0"],
      {},
    );
    assert.deepEqual([second.code, /already runs a witness with /.test(second.err)], [1, true], second.err);

    const port = ["--data", join(folder, "w3.example.com"), "--port", new URL(one.url).port];
    const taken = await assent(["witness", "--name", "w3.example.com", "--log", vkey, ...port], {});
    assert.deepEqual(
      [taken.code, /^assent: port .* is in use .* with --port \(/.test(taken.err)],
      [1, true],
      taken.err,
    );

    const config = join(folder, "assent.yaml");
    writeFileSync(config, JSON.stringify({ witness: { witnesses: [{ url: one.url, vkey: trusted }], seconds: 1 } }));
    const service = await startProcess(env, ["--config", config]);
    try {
      const submitted = await fetch(`${service.url}/v1/actions`, {
        method: "POST",
        headers,
        body: JSON.stringify({ agent_id: "a", tool: "t", operation: "o" }),
      });
      const { decision_hash: hash } = (await submitted.json()) as { decision_hash: string };
      const answer = await eventually(
        async () => {
          const asked = await fetch(`${service.url}/v1/provenance/${hash}/proof?witnessed=true`, { headers });
          if (asked.status !== 409) return asked;
          assert.equal(((await asked.json()) as { code: string }).code, "NOT_WITNESSED");
          return undefined;
        },
        () => "no witness cosigns",
      );
      const proof = join(folder, "proof.json");
      writeFileSync(proof, await answer.text());
      const good = await assent(["verify", proof, "--key", vkey, "--witness", trusted]);
      assert.deepEqual([good.code, /cosigned by w1\.example\.com at \d{4}-/.test(good.out)], [0, true], good.err);
      const bad = await assent(["verify", proof, "--key", vkey, "--witness", trusted, "--witness", untrusted]);
      assert.deepEqual([bad.code, /the witness w2\.example\.com did not cosign/.test(bad.err)], [6, true], bad.err);
      assert.equal((await assent(["verify", proof, "--key", vkey, "--witness", vkey])).code, 2, "a log's key");
    } finally {
      assert.equal(await stopProcess(service), 0);
      assert.equal(await stopProcess(one), 0);
    }
  },
);

/**
 * The protections of webhooks and mail work on every runtime: the checked address is used, the certificate matches the
 * name, and STARTTLS is required.
 * @needs notify-email, notify-webhook
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { Webhook } from "standardwebhooks";
import { startMailServer } from "../support/mail.ts";
import { makeCertificate, startReceiver, withoutOpenssl, type Receiver } from "../support/receiver.ts";
import { ROOT } from "../support/process.ts";
import { commandOf, denoPermissions, scriptOf, withoutRuntime, type RuntimeName } from "../support/runtimes.ts";

const SECRET = `whsec_${Buffer.alloc(32, 5).toString("base64")}`;
const script = (name: string): string => scriptOf(`test/runtimes/children/${name}`);
const RUNTIMES: readonly RuntimeName[] = ["node", "deno", "bun"];

/** Returns the script's output. Deno may read the repository and `folder`. */
async function run(runtime: RuntimeName, name: string, folder: string, args: string[]): Promise<string> {
  const [program, all] = commandOf(runtime, script(name), args, denoPermissions("start", folder));
  const { stdout } = await promisify(execFile)(program, all, {
    cwd: ROOT,
    env: { ...process.env, DENO_NO_UPDATE_CHECK: "1" },
  });
  return stdout.trim();
}

describe("runtimes", { skip: withoutOpenssl() }, () => {
  let own: ReturnType<typeof makeCertificate>;
  let plain: Receiver;
  let secure: Receiver;
  before(async () => {
    own = makeCertificate("hooks.example.com");
    [plain, secure] = [await startReceiver(), await startReceiver(own)];
  });
  after(async () => {
    await plain.close();
    await secure.close();
  });

  for (const runtime of RUNTIMES) {
    test(`webhooks on ${runtime}`, { skip: withoutRuntime(runtime) }, async () => {
      const send = (url: string, address: string, ca = ""): Promise<string> =>
        run(runtime, "webhook", dirname(own.certFile), [url, address, SECRET, ca]);
      assert.equal(await send(`http://hooks.example.com:${plain.port}/`, "127.0.0.1"), "delivered");
      const { headers, body } = plain.received.at(-1) as (typeof plain.received)[number];
      assert.equal(headers.host, `hooks.example.com:${plain.port}`);
      assert.deepEqual(new Webhook(SECRET).verify(body, headers as Record<string, string>), JSON.parse(body));

      assert.equal(await send(`https://hooks.example.com:${secure.port}/`, "127.0.0.1", own.certFile), "delivered");
      assert.equal(secure.received.at(-1)?.headers.host, `hooks.example.com:${secure.port}`);
      const before = secure.received.length;
      assert.match(await send(`https://other.example.com:${secure.port}/`, "127.0.0.1", own.certFile), /^failed: /);
      assert.match(await send(`https://hooks.example.com:${secure.port}/`, "127.0.0.1"), /^failed: /);
      assert.equal(secure.received.length, before);
      assert.match(
        await send(`https://hooks.example.com:${secure.port}/`, "::ffff:127.0.0.1"),
        /which is not a public address/,
      );

      plain.answer = (_, response) =>
        void response.writeHead(302, { location: `https://hooks.example.com:${secure.port}/` }).end();
      assert.match(
        await send(`http://hooks.example.com:${plain.port}/`, "127.0.0.1"),
        /responded with status 302, and redirects are not followed/,
      );
      plain.answer = () => {};
      assert.match(await send(`http://hooks.example.com:${plain.port}/`, "127.0.0.1"), /did not respond within 5 s/);
      plain.answer = (_, response) => void response.end();
      assert.equal(secure.received.length, before);
    });

    test(`mail on ${runtime}`, { skip: withoutRuntime(runtime) }, async () => {
      const { key, cert, certFile } = makeCertificate("localhost");
      const mail = await startMailServer({ hideSTARTTLS: false, key, cert, authOptional: false });
      try {
        assert.equal(
          await run(runtime, "email", dirname(certFile), [String(mail.port), "localhost", certFile]),
          "delivered <0190a0a0-0000-7000-8000-0000000000aa@example.com>",
        );
        assert.deepEqual(
          [mail.mails[0]?.secure, mail.mails[0]?.user, mail.mails[0]?.to],
          [true, "assent", ["anna@example.com"]],
        );
        assert.ok(mail.mails[0]?.text.includes("https://assent.example/approve#apl1_secret.mac"));
        // The certificate is valid only for localhost.
        assert.match(
          await run(runtime, "email", dirname(certFile), [String(mail.port), "127.0.0.1", certFile]),
          /^failed: /,
        );
        assert.equal(mail.mails.length, 1);
      } finally {
        await mail.close();
      }
    });
  }
});

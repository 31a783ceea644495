/**
 * A service on Postgres in a child process. It reads commands from standard input: `submit N` submits N actions at once
 * and prints the ids of the acknowledged actions, `restart` restarts the service on the same store, `end` exits.
 */
import { createInterface } from "node:readline";
import { postgresStorage } from "../../../plugins/storage-postgres/index.ts";
import { ALLOWED, startService } from "../../support/service.ts";

const [url = "", admin = ""] = process.argv.slice(2);
const say = (value: object): void => void process.stdout.write(`${JSON.stringify(value)}\n`);

const service = await startService({
  storage: () => postgresStorage({ url, poolSize: 2, connectTimeoutMs: 3000 }),
  broken: true,
  change(config) {
    config.admin_key = admin;
    config.agents = "any";
    config.secret = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
    config.ledger.key = process.env["LOG_KEY"] ?? null;
    config.permits.key = process.env["PERMIT_KEY"] ?? null;
    config.ledger.origin = "cut.test/log";
  },
});
say({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
  const [word, count] = line.split(" ");
  if (word === "end") break;
  if (word === "restart") {
    await service.restart();
    say({ ready: true });
    continue;
  }
  const answers = await Promise.all(
    Array.from({ length: Number(count) }, () => service.call("POST", "/v1/actions", { key: admin, body: ALLOWED })),
  );
  const refused = answers.find(({ status }) => status !== 200);
  say({
    refused: refused?.body ?? null,
    ids: answers.filter(({ status }) => status === 200).map(({ body }) => body.id as string),
  });
}
await service.close();
process.exit(0);

/** Starts pgbouncer in front of a test's Postgres. Default: session pooling, which the documentation requires. */
import { spawn } from "node:child_process";
import { chmodSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { freePort } from "./postgres.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { until } from "./wait.ts";

const PROGRAM = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"].find((path) =>
  existsSync(path),
);

/** Value for the `skip` option of a test: false, or the reason why it cannot run here. */
export const withoutPgbouncer: string | false =
  PROGRAM === undefined ? "no pgbouncer on this machine: install it to run this test" : false;

export async function startPgbouncer(
  database: URL,
  mode: "session" | "transaction" = "session",
  users: readonly string[] = [],
): Promise<{ port: number; stop(): Promise<void> }> {
  const folder = temporaryFolder("assent-pgbouncer-");
  chmodSync(folder, 0o755);
  const port = await freePort();
  const file = join(folder, "pgbouncer.ini");
  const names = ["assent", ...users].map((name) => `"${name}" ""\n`);
  writeFileSync(join(folder, "users"), names.join(""), { mode: 0o644 });
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${database.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, "users")}
pool_mode = ${mode}
server_reset_query = DISCARD ALL
`,
    { mode: 0o644 },
  );
  // pgbouncer refuses to run as root.
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child = spawn(PROGRAM as string, [...user, file], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  await until("pgbouncer listens or exits", async () => child.exitCode !== null || (await listens(port)));
  if (child.exitCode !== null) {
    await stop();
    throw new Error(`pgbouncer does not listen:\n${said}`);
  }
  return { port, stop };
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
}

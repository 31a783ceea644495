/** Starts HAProxy as load balancer in front of several processes, if it is installed. */
import { spawn } from "node:child_process";
import { accessSync, constants, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { until } from "./wait.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface Proxy {
  url: string;
  stop(): Promise<void>;
}

/** Returns the path of a program, or null if it is not installed. */
export function findProgram(name: string): string | null {
  for (const folder of [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"]) {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {
      // Try the next folder.
    }
  }
  return null;
}

/** Value for the `skip` option of a test: false, or the reason why it cannot run here. */
export const withoutProxy: string | false =
  findProgram("haproxy") === null ? "no haproxy on this machine: install it to run this test" : false;

const configuration = (port: number, backends: readonly number[]): string => `global
  maxconn 2000
defaults
  mode http
  timeout connect 1s
  timeout client 120s
  timeout server 120s
frontend front
  bind 127.0.0.1:${port}
  default_backend back
backend back
  balance roundrobin
  option httpchk GET /readyz
  option redispatch
${backends.map((backend, i) => `  server s${i} 127.0.0.1:${backend} check inter 300ms fall 1 rise 1`).join("\n")}
`;

export async function startProxy(port: number, backends: readonly number[]): Promise<Proxy> {
  const folder = temporaryFolder("assent-proxy-");
  const file = join(folder, "config");
  writeFileSync(file, configuration(port, backends));
  const child = spawn(findProgram("haproxy") as string, ["-db", "-f", file], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  await until("haproxy listens", async () => child.exitCode !== null || (await listens(port)));
  if (child.exitCode !== null) {
    await stop();
    throw new Error(`haproxy does not listen:\n${said}`);
  }
  return { url: `http://127.0.0.1:${port}`, stop };
}

export function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
}

/** Threads of the service's own: the file stands beside the one that starts it, compiled beside compiled. */
import process from "node:process";
import { Worker, type WorkerOptions } from "node:worker_threads";

/** @param url `import.meta.url` of the caller; `name` of the file beside it, without its end */
export function startThread(url: string, name: string, options: WorkerOptions): Worker {
  const fromSource = url.endsWith(".ts");
  const file = new URL(`./${name}.${fromSource ? "ts" : "js"}`, url);
  const given = { execArgv: [], ...options };
  if (!fromSource || "deno" in process.versions || "bun" in process.versions) return new Worker(file, given);
  // On Node a thread does not get the loader that reads TypeScript.
  const loader = import.meta.resolve("tsx/esm/api");
  const begin = `import(${JSON.stringify(loader)}).then(({ register }) => (register(), import(${JSON.stringify(file.href)})))`;
  return new Worker(begin, { ...given, eval: true });
}

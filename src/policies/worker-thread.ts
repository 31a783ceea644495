/**
 * Starts a worker thread from a file in the caller's folder. Runs the TypeScript source or the compiled file, whichever
 * the caller is.
 */
import process from "node:process";
import { Worker, type WorkerOptions } from "node:worker_threads";

/**
 * Starts a worker thread.
 * @param url the `import.meta.url` of the caller
 * @param name the name of the file in the caller's folder, without its extension
 */
export function startThread(url: string, name: string, options: WorkerOptions): Worker {
  const fromSource = url.endsWith(".ts");
  const file = new URL(`./${name}.${fromSource ? "ts" : "js"}`, url);
  const given = { execArgv: [], ...options };
  if (!fromSource || "deno" in process.versions || "bun" in process.versions) return new Worker(file, given);
  // In Node, a thread does not inherit the loader for TypeScript.
  const loader = import.meta.resolve("tsx/esm/api");
  const begin = `import(${JSON.stringify(loader)}).then(({ register }) => (register(), import(${JSON.stringify(file.href)})))`;
  return new Worker(begin, { ...given, eval: true });
}

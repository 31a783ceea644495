/** Starts worker threads, and names the modules that they run. */
import process from "node:process";
import { Worker, type WorkerOptions } from "node:worker_threads";

/**
 * Returns the URL of a module: the TypeScript source or the compiled file, whichever the caller is.
 * @param url the `import.meta.url` of the caller
 * @param name path of the module from the caller's folder, without its extension
 * @example
 * siblingModule(import.meta.url, "trial-thread");
 */
export function siblingModule(url: string, name: string): URL {
  return new URL(`./${name}.${url.endsWith(".ts") ? "ts" : "js"}`, url);
}

/**
 * Starts a worker thread.
 * @param url the `import.meta.url` of the caller
 * @param name the name of the file in the caller's folder, without its extension
 */
export function startThread(url: string, name: string, options: WorkerOptions): Worker {
  const fromSource = url.endsWith(".ts");
  const file = siblingModule(url, name);
  const workerOptions = { execArgv: [], ...options };
  if (!fromSource || "deno" in process.versions || "bun" in process.versions) return new Worker(file, workerOptions);
  // In Node, a thread does not inherit the loader for TypeScript.
  const loader = import.meta.resolve("tsx/esm/api");
  const begin = `import(${JSON.stringify(loader)}).then(({ register }) => (register(), import(${JSON.stringify(file.href)})))`;
  return new Worker(begin, { ...workerOptions, eval: true });
}

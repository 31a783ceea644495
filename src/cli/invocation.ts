/** How the reader of a message calls this program from where it was started, on the runtime that runs it. */
import { existsSync } from "node:fs";
import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** @param env of the process, where npx and bunx leave their mark */
export function invocation(env: Record<string, string | undefined> = process.env): string {
  const source = import.meta.url.endsWith(".ts");
  const bin = fileURLToPath(new URL(`./bin.${source ? "ts" : "js"}`, import.meta.url));
  const { bun, deno } = process.versions;
  if (bin.includes(`${sep}node_modules${sep}`)) {
    if (deno !== undefined) return "deno run -A npm:assent";
    if (bun !== undefined || (env["npm_config_user_agent"] ?? "").startsWith("bun/")) return "bunx assent";
    // Installed for all projects, it is on the PATH; npx is what finds it elsewhere.
    const local = process.cwd().startsWith(bin.slice(0, bin.indexOf(`${sep}node_modules${sep}`)));
    return local || env["npm_command"] === "exec" ? "npx assent" : "assent";
  }
  // The launcher of a clone, which an image does not have.
  const launcher = fileURLToPath(new URL(source ? "./assent.mjs" : "../../../src/cli/assent.mjs", import.meta.url));
  if (deno !== undefined && existsSync("deno.json")) return "deno task assent";
  const program = deno !== undefined ? "deno run -A" : bun !== undefined ? "bun" : "node";
  return `${program} ${relative(process.cwd(), existsSync(launcher) ? launcher : bin)}`;
}

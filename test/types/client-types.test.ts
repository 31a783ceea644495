/** The client's types against those that openapi-typescript makes of the served document. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { ROOT } from "../support/process.ts";
import { startService } from "../support/service.ts";

const run = promisify(execFile);
const MODULES = join(ROOT, "node_modules");
/** The generator needs a TypeScript with a programming interface, which the compiler of this project no longer has. */
const RESOLVE = `export const resolve = (name, context, next) => next(name === "typescript" ? "typescript-5" : name, context);`;
const HOOK = `data:text/javascript,${encodeURIComponent(
  `import { register } from "node:module"; register("data:text/javascript," + encodeURIComponent(${JSON.stringify(RESOLVE)}), ${JSON.stringify(`file://${ROOT}/`)});`,
)}`;

const CHECK = `
import type { components, paths } from "./document.js";
import type { ActionQuery, ActionRecord, ActionRequest, ActionResult, LedgerEvent } from "./types.js";
type Served = components["schemas"]["Action"];
type Body<Path extends keyof paths> = paths[Path] extends { post: { requestBody?: { content: { "application/json": infer B } } } } ? B : never;
declare const served: Served;
export const record: ActionRecord = served;
type Only<A, B> = Exclude<keyof A, keyof B>;
export const invented: [Only<ActionRecord, Served>] extends [never] ? true : Only<ActionRecord, Served> = true;
export const statuses: ActionRecord["status"] extends Served["status"] ? true : never = true;
declare const event: components["schemas"]["Event"];
export const ours: LedgerEvent = event;
declare const request: ActionRequest;
export const body: Body<"/v1/actions"> = request;
declare const result: ActionResult;
export const report: Body<"/v1/actions/{id}/result"> = result;
type Query = NonNullable<paths["/v1/actions"]["get"]["parameters"]["query"]>;
export const unasked: [Only<ActionQuery, Query>] extends [never] ? true : Only<ActionQuery, Query> = true;
`;

test("what the client says of requests and answers is what the document says", async () => {
  const service = await startService();
  const folder = mkdtempSync(join(tmpdir(), "assent-client-types-"));
  try {
    writeFileSync(join(folder, "openapi.json"), JSON.stringify((await service.call("GET", "/openapi.json")).body));
    symlinkSync(MODULES, join(folder, "node_modules"));
    copyFileSync(join(ROOT, "src/client/types.ts"), join(folder, "types.ts"));
    writeFileSync(join(folder, "check.ts"), CHECK);
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    const compilerOptions = {
      target: "ES2022",
      module: "nodenext",
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      types: [],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["check.ts"] }));
    const script = join(MODULES, "openapi-typescript", "bin", "cli.js");
    await run(process.execPath, ["--import", HOOK, script, "openapi.json", "-o", "document.ts"], { cwd: folder });
    await run(process.execPath, [join(MODULES, "typescript", "bin", "tsc"), "-p", folder], { cwd: folder }).catch(
      (failure: { stdout: string }) => assert.fail(failure.stdout),
    );
  } finally {
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Evaluates one call, read from standard input, and exits. Used when hookd does not run. */
import { serveRequest } from "./hookd-protocol.ts";
import { VERSION } from "../../src/version.ts";

const chunks: Buffer[] = [];
for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
// The launcher kills its worker when it exits, so the worker does not need an abort signal.
const answer = await serveRequest(Buffer.concat(chunks), VERSION, new AbortController().signal);
process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit(0));

/** Decides one call that stands on standard input, and ends: what is used where no hookd runs. */
import { serveRequest } from "./hookd-protocol.ts";
import { VERSION } from "../version.ts";

const chunks: Buffer[] = [];
for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
// A starter that ends takes its worker with it.
const answer = await serveRequest(Buffer.concat(chunks), VERSION, new AbortController().signal);
process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit(0));

/**
 * Loading the service makes much garbage at once, and V8 answers with a young generation of 16 MiB and more that it
 * keeps for good. Held small until the service listens, it grows again when requests need it. Node alone.
 */
import { setFlagsFromString } from "node:v8";

const { bun, deno } = process.versions;
const isNode = bun === undefined && deno === undefined;

export function holdYoungSpace(): void {
  if (isNode) setFlagsFromString("--semi-space-growth-factor=1");
}

/** V8's own growth again. */
export function releaseYoungSpace(): void {
  if (isNode) setFlagsFromString("--semi-space-growth-factor=2");
}

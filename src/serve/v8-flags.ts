/**
 * Flags of V8 that shorten startup and limit the heap of a service. Loading creates a lot of garbage, so V8 would
 * enlarge the young generation to 16 MiB or more and never shrink it. Much garbage of requests reaches the old
 * generation, which V8 would let grow to a multiple of the live data. Only in Node.
 */
import { setFlagsFromString } from "node:v8";

const { bun, deno } = process.versions;
const isNode = bun === undefined && deno === undefined;

/** Call before the modules of the service are loaded. Their top-level code runs once, so optimizing it would cost more than it saves. */
export function prepareForLoading(): void {
  if (isNode) setFlagsFromString("--semi-space-growth-factor=1");
  if (isNode) setFlagsFromString("--no-opt");
}

/** Call before the service reads its policies and its ledger, which are loops over much data. */
export function allowOptimization(): void {
  if (isNode) setFlagsFromString("--opt");
}

/**
 * Lets V8 enlarge the young generation as requests need it, and makes it collect the old generation whenever that has
 * grown by half. bench/README.md has the figures.
 */
export function prepareForRequests(): void {
  if (isNode) setFlagsFromString("--semi-space-growth-factor=2");
  if (isNode) setFlagsFromString("--heap-growing-percent=50");
}

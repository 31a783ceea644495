/**
 * Keeps V8's young generation small while the service loads. Loading creates a lot of garbage, so V8 would enlarge the
 * young generation to 16 MiB or more and never shrink it. After startup, V8 can enlarge it as requests need it. Only in
 * Node.
 */
import { setFlagsFromString } from "node:v8";

const { bun, deno } = process.versions;
const isNode = bun === undefined && deno === undefined;

export function limitYoungGeneration(): void {
  if (isNode) setFlagsFromString("--semi-space-growth-factor=1");
}

/** Removes the limit, so that V8 enlarges the young generation as it does by default. */
export function unlimitYoungGeneration(): void {
  if (isNode) setFlagsFromString("--semi-space-growth-factor=2");
}

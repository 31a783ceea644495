/** Compiles the effect key of a rule: a template, and the period after a success in which the effect is not repeated. */
import { parseDuration } from "../../time.ts";
import { parsePreview } from "../decide/preview.ts";
import type { EffectKeyDocument } from "../policy-types.ts";
import type { CompiledEffectKey } from "./compiled-policy.ts";

const DEFAULT_WITHIN_MS = 86_400_000;
const MAX_WITHIN_MS = 366 * 86_400_000;

/** Parses a rule's `effect_key`. If it has a fault, returns the fault as a sentence. */
export function parseEffectKey(document: string | EffectKeyDocument): CompiledEffectKey | string {
  const { key, within } = typeof document === "string" ? { key: document, within: undefined } : document;
  const parts = parsePreview(key, "effect key");
  if (typeof parts === "string") return parts;
  if (!parts.some((part) => "pointer" in part))
    return "the effect key names no member of the request, so it would be the same for all actions; write for example refund/{params.payment}";
  const within_ms = within === undefined ? DEFAULT_WITHIN_MS : parseDuration(within);
  if (within_ms === null || within_ms > MAX_WITHIN_MS)
    return `within: "${within ?? ""}" is not a duration such as 1h, 24h or 7d, at most 366d`;
  return { parts, within_ms };
}

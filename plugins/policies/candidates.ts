/** Candidate policies in request bodies. */
import { Type } from "@sinclair/typebox";
import type { CandidatePolicies } from "../../src/core.ts";
import { Refusal } from "../../src/plugin.ts";

/** Member of bodies with candidates. */
export const EnforceField = Type.Optional(
  Type.Boolean({ description: "Evaluates candidates in shadow mode as if they were enforced." }),
);

/**
 * Reads the candidates in a body, which must have exactly one of `policy` (JSON) and `yaml` (one or more documents).
 */
export function parseCandidates({
  policy,
  yaml,
  enforce = false,
}: {
  policy?: unknown;
  yaml?: string | undefined;
  enforce?: boolean | undefined;
}): CandidatePolicies {
  if ((policy === undefined) === (yaml === undefined)) {
    throw new Refusal("VALIDATION_FAILED", "send the candidate either as `policy` or as `yaml`", {
      errors: [{ pointer: "", detail: "exactly one of `policy` and `yaml`" }],
    });
  }
  return yaml === undefined ? { policy, pointer: "/policy", enforce } : { yaml, enforce };
}

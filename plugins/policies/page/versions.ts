/** Loads versions of a policy for the policy pages. */
import { type Api, encodeSegment, fetchJsonWithEtag, type Policy, request } from "../../console/app/kit.ts";
import { renderYaml } from "./yaml.ts";

export type PolicyVersion = Api["GET /v1/policies/{id}/versions"]["response"]["versions"][number];

/** A policy with its newest versions, and its entity tag, which changes must send. */
export interface LoadedPolicy {
  policy: Policy;
  etag: string;
  versions: readonly PolicyVersion[];
  hasMore: boolean;
}

/**
 * Loads a policy and its 100 newest versions.
 * @param id id or name
 */
export async function loadPolicy(id: string, signal: AbortSignal): Promise<LoadedPolicy> {
  const [{ body, etag }, { versions, next_cursor }] = await Promise.all([
    fetchJsonWithEtag(`/v1/policies/${encodeSegment(id)}`, { signal }),
    request("GET /v1/policies/{id}/versions", { path: [id], query: { limit: 100 }, signal }),
  ]);
  return { policy: body as Policy, etag, versions, hasMore: next_cursor !== null };
}

/**
 * Returns the text of a version: the author's YAML if the version was sent as YAML, otherwise YAML generated from the
 * JSON.
 */
export function renderVersionYaml(version: PolicyVersion): string {
  return version.yaml ?? renderYaml(version.definition);
}

/** Returns the text of a version in shadow mode, changed so that it is enforced. */
export function renderEnforcedYaml(version: PolicyVersion): string {
  const text = renderVersionYaml(version);
  const enforced = text.replace(/^mode:\s*shadow\b/m, "mode: enforce");
  return enforced === text ? renderYaml({ ...version.definition, mode: "enforce" }) : enforced;
}

/** Returns the YAML of a policy, changed to shadow mode; null if it does not name its policy at the start of a line. */
export function renderShadowYaml(yaml: string): string | null {
  if (/^mode:/m.test(yaml))
    return yaml.replace(/^mode:[^\r\n#]*/m, "mode: shadow ").replace(/^mode: shadow +$/m, "mode: shadow");
  return /^policy:/m.test(yaml) ? yaml.replace(/^policy:.*$/m, (line) => `${line.trimEnd()}\nmode: shadow`) : null;
}

/** Returns the active version if it is in shadow mode. */
export function findActiveShadow({ policy, versions }: LoadedPolicy): PolicyVersion | undefined {
  return versions.find((each) => each.version === policy.active_version && isShadow(each));
}

export function isShadow({ definition }: PolicyVersion): boolean {
  return definition["mode"] === "shadow";
}

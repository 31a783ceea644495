/** Finds policies and rules for the command palette. */
import { buildUrl, encodeSegment, type FoundObject, renderPlain, request } from "../../console/app/kit.ts";

/** Returns the policies whose name contains the text, then the rules. */
export async function findPolicies(text: string, signal: AbortSignal): Promise<FoundObject[]> {
  const { policies } = await request("GET /v1/policies", { query: { limit: 1000 }, signal });
  const matches = (name: string): boolean => name.toLowerCase().includes(text);
  const addressOf = (name: string): string => `#/policies/${encodeSegment(name)}`;
  const found = policies
    .filter(({ name }) => matches(name))
    .map(({ name }) => ({ address: addressOf(name), title: renderPlain(name), kind: "policy" }));
  const rules = policies.flatMap(({ name: policy, rule_names }) =>
    rule_names.filter(matches).map((rule) => ({
      address: buildUrl(addressOf(policy), { rule }),
      title: renderPlain(rule),
      kind: `rule of ${renderPlain(policy)}`,
    })),
  );
  return [...found, ...rules];
}

/** Collects the policy sets that decisions of a pack refer to, and computes the changes between them. */
import { CommandError } from "../../src/command.ts";
import {
  canonicalText,
  type CompiledPolicySet,
  compilePolicySet,
  diffPolicySets,
  emptyPolicySet,
  type PolicySetDocument,
} from "../../src/core.ts";
import type { JsonObject } from "../../src/plugin.ts";
import type { PolicySetLine } from "./pack-format.ts";
import type { PackStore } from "./pack-store.ts";

/** Maximum number of compiled sets in memory. */
const MAX_COMPILED = 8;

export interface PolicySetCollector {
  /** Records that a decision refers to the set. */
  addUsed(digest: string | null): void;
  compiled(digest: string | null): Promise<CompiledPolicySet>;
  /** Throws CommandError if the set redacts parameters and the collector refuses this. */
  assertShown(digest: string | null): Promise<void>;
  /** Yields a line for each set that was recorded, in the order of activation. */
  render(): AsyncIterable<string>;
}

export function createPolicySetCollector(store: PackStore, refusesRedacted: boolean): PolicySetCollector {
  const seen = new Set<string>();
  const cache = new Map<string, CompiledPolicySet>();

  async function read(digest: string): Promise<{ document: PolicySetDocument; created_at: number }> {
    const row = await store.policySet(digest);
    if (row === null) throw new CommandError(`the store lacks the policy set ${digest}; run assent audit`);
    return { document: JSON.parse(row.document) as PolicySetDocument, created_at: row.created_at };
  }

  async function compiled(digest: string | null): Promise<CompiledPolicySet> {
    if (digest === null) return emptyPolicySet();
    const cached = cache.get(digest);
    if (cached !== undefined) return cached;
    const set = compilePolicySet((await read(digest)).document);
    cache.set(digest, set);
    for (const oldest of cache.keys()) if (cache.size > MAX_COMPILED) cache.delete(oldest);
    return set;
  }

  return {
    compiled,
    async assertShown(digest) {
      if (refusesRedacted && (await compiled(digest)).redacts)
        throw new CommandError(
          `policies of the set ${digest} redact parameters, and a pack contains parameters in clear; run assent evidence on the machine of the service`,
        );
    },
    addUsed(digest) {
      if (digest !== null) seen.add(digest);
    },
    async *render() {
      const times = new Map<string, number>();
      for (const digest of seen) times.set(digest, (await read(digest)).created_at);
      const ordered = [...times].sort(([a, earlier], [b, later]) => earlier - later || (a < b ? -1 : 1));
      let before: PolicySetDocument | null = null;
      for (const [digest] of ordered) {
        const { document }: { document: PolicySetDocument } = await read(digest);
        const difference = before === null ? null : diffPolicySets(definitionsOf(before), definitionsOf(document));
        const line: PolicySetLine = {
          digest,
          document: document as unknown as JsonObject,
          changes: (difference?.policies ?? []).flatMap(({ summary, changes }) => [
            summary,
            ...changes.map((change) => `  ${change.summary}`),
          ]),
        };
        yield `${canonicalText(line as unknown as JsonObject)}\n`;
        before = document;
      }
    },
  };
}

function definitionsOf({ policies }: PolicySetDocument): PolicySetDocument["policies"][number]["definition"][] {
  return policies.map(({ definition }) => definition);
}

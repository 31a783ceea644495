/**
 * Who stands behind a key: whoever it belongs to, whoever made it, and whoever made that one's key. A vote is the vote of
 * all of them, so that nobody meets a quorum, or approves what they submitted, with keys they made themselves.
 */
import { principalOfKey } from "./owner.ts";

/** A key as the ledger has it. */
export interface RecordedKey {
  id: string;
  name: string;
  /** SHA-256 of its value, hex. */
  hash: string;
  scopes: readonly string[];
  agent_id: string | null;
  owner: string | null;
  /** Key that made it; null for what the operator made at the machine. */
  created_by: string | null;
  expires_at: number | null;
  revoked: boolean;
}

type KeyOf = (id: string) => RecordedKey | null;

/** The key, its maker, the maker's maker, and so on. Empty for an id that no key has. */
export function listKeyMakers(id: string, keyOf: KeyOf): RecordedKey[] {
  const line: RecordedKey[] = [];
  for (let next: string | null = id; next !== null;) {
    const key: RecordedKey | null = keyOf(next);
    if (key === null || line.includes(key)) break;
    line.push(key);
    next = key.created_by;
  }
  return line;
}

/** How many different people these are, each given by the principals that stand behind one vote: with one in common they are one. */
export function countPeople(votes: readonly (readonly string[])[]): number {
  const people: Set<string>[] = [];
  for (const principals of votes) {
    const joined = new Set(principals);
    for (let i = people.length - 1; i >= 0; i--) {
      const person = people[i] as Set<string>;
      if (!principals.some((principal) => person.has(principal))) continue;
      for (const principal of person) joined.add(principal);
      people.splice(i, 1);
    }
    people.push(joined);
  }
  return people.length;
}

export function principalsOfKeys(line: readonly RecordedKey[]): string[] {
  return line.map(principalOfKey);
}

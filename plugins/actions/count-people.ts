/** Counts the people who have voted, or who have made the same request. */
import { isOfUnknownPerson } from "../../src/core.ts";

/**
 * Returns true if a vote is by a different person than all earlier votes. Each vote is represented by the principals
 * that share it, as in `countPeople`.
 */
export function isNewPerson(earlier: readonly (readonly string[])[], vote: readonly string[]): boolean {
  if (isOfUnknownPerson(vote)) return earlier.length === 0;
  const knownVoters = earlier.filter((principals) => !isOfUnknownPerson(principals));
  return countPeople([...knownVoters, vote]) > countPeople(knownVoters);
}

/**
 * Returns the number of different people. Each vote is represented by the principals that share it. Votes with a common
 * principal count as one person.
 */
export function countPeople(votes: readonly (readonly string[])[]): number {
  const knownVoters = votes.filter((principals) => !isOfUnknownPerson(principals));
  if (knownVoters.length === 0) return Math.min(votes.length, 1);
  const people: Set<string>[] = [];
  for (const principals of knownVoters) {
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

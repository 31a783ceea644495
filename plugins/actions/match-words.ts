/** Matches actions with the words of a search. */
import {
  type ApprovalEntry,
  type CompiledPolicySet,
  type CoreHost,
  decodeEntry,
  type PrincipalNames,
  principalOfUser,
  readPrincipalNames,
  redactRow,
  userState,
} from "../../src/core.ts";
import {
  type ActionRow,
  type ApprovalRow,
  type ContainedText,
  hasEarlierComments,
  nullIfCorrupt,
  searchedPrincipals,
  searchedText,
} from "../../src/storage/index.ts";

/** Minimum length of a word that is compared with ids. A shorter word would match the ids of many actions. */
const MIN_ID_PREFIX = 8;
/** Matches whitespace, non-ASCII characters, and characters that JSON escapes in strings or uses as syntax. */
const OUTSIDE_STRINGS = /[^\w!#$%&'()*+./;<=>?@^`|~-]+/;

/** Maximum length of the text for the store. Requests that repeat the start of a long text would slow the search down. */
const MAX_TEXT = 16;

/** Splits the words of a search, in lowercase. Returns an empty list without a search. */
export function splitWords(q: string | undefined): readonly string[] {
  return (q ?? "")
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
}

/**
 * Returns the actions of which each word occurs in `searchedText`, in the name of a person or key who voted, asked or
 * changed the request, in an earlier comment, or as the beginning of the id. Never compares redacted values, so a
 * search finds only what every reader of the action can see.
 * @param keyId the key that searches, which waits for its turn before each read of entries
 */
export async function selectByWords(
  host: CoreHost,
  keyId: string,
  words: readonly string[],
  rows: readonly ActionRow[],
  policies: CompiledPolicySet,
): Promise<readonly ActionRow[]> {
  if (words.length === 0) return rows;
  // Most searches find their words in the request, so votes and entries are read only if they can matter.
  const found = new Set(rows.filter((row) => containsWords(words, row, policies, [], {})));
  const others = rows.filter((row) => row.quorum !== null && !found.has(row));
  const votes = others.length === 0 ? [] : await host.storage.approvalsOfActions(others.map(({ id }) => id));
  const votesOn = (row: ActionRow) => votes.filter(({ action_id }) => action_id === row.id);
  const names = await readNames(
    host,
    others.flatMap((row) => searchedPrincipals(row, votesOn(row))),
  );
  for (const row of others) {
    if (containsWords(words, row, policies, votesOn(row), names)) found.add(row);
    else if (hasEarlierComments(row)) {
      await host.waitForReadSlot(keyId);
      const earlier = await readRecordedVotes(host, row);
      const earlierNames = await readNames(host, searchedPrincipals(row, earlier));
      if (containsWords(words, row, policies, earlier, earlierNames)) found.add(row);
    }
  }
  return rows.filter((row) => found.has(row));
}

type Vote = Pick<ApprovalRow, "principal" | "on_behalf_of" | "reason">;

function containsWords(
  words: readonly string[],
  row: ActionRow,
  policies: CompiledPolicySet,
  votes: readonly Vote[],
  names: PrincipalNames,
): boolean {
  const people = searchedPrincipals(row, votes).flatMap((principal) => names[principal] ?? []);
  const text = searchedText(redactRow(policies, row), votes);
  const plain = [text.plain, ...people].join("\n").toLowerCase();
  const json = text.json.toLowerCase();
  return words.every(
    (word) =>
      plain.includes(word) || json.includes(inJson(word)) || (word.length >= MIN_ID_PREFIX && row.id.startsWith(word)),
  );
}

/** Returns the word as it is written inside a JSON string. */
const inJson = (word: string): string => JSON.stringify(word).slice(1, -1);

async function readNames(host: CoreHost, principals: readonly string[]): Promise<PrincipalNames> {
  return principals.length === 0 ? {} : readPrincipalNames(host.storage, await host.state(userState), principals);
}

/** Returns the votes on the action and the lifts of its rejection, including votes that no longer count. */
async function readRecordedVotes(host: CoreHost, row: ActionRow): Promise<Vote[]> {
  const entries = (await nullIfCorrupt(host.storage.entriesOfAction(row.id))) ?? [];
  return entries
    .filter(({ type }) => type === "approval")
    .map(({ bytes }) => decodeEntry<ApprovalEntry>(bytes))
    .filter(({ verdict }) => verdict === "approve" || verdict === "deny" || verdict === "rejection_lifted")
    .flatMap(({ by, delegation, comment: reason }) =>
      by === null ? [] : [{ principal: by.principal, on_behalf_of: delegation?.from ?? null, reason }],
    );
}

/**
 * Returns text that all actions with these words contain, so that the store can omit most other actions. Returns
 * undefined if there is no such text. Also returns undefined if the policies redact anything, because the duration of a
 * search would confirm a guess of a redacted value. The text is part of one JSON string or number, because rows can
 * have members in different orders. It is not a part of a person's name, because the store does not know names.
 */
export async function findContainedText(
  host: CoreHost,
  words: readonly string[],
  policies: CompiledPolicySet,
): Promise<ContainedText | undefined> {
  if (words.length === 0 || policies.redacts) return undefined;
  const users = await host.state(userState);
  const principals = [...users.keys()].map(principalOfUser);
  const names = Object.values(await readPrincipalNames(host.storage, users, principals)).map((name) =>
    name.toLowerCase(),
  );
  const texts = words
    .filter((word) => !names.some((name) => name.includes(word)))
    .flatMap((word) =>
      word
        .split(OUTSIDE_STRINGS)
        .filter((part) => part !== "")
        .map((part) => ({
          // Replace i and k by `_`, which matches any character. `toLowerCase` turns U+0130 and U+212A into an i and a
          // k, but the store might not.
          text: part.slice(0, MAX_TEXT).replace(/[ik]/g, "_"),
          id_prefix: word.length >= MIN_ID_PREFIX && /^[\da-f-]+$/.test(word) ? word : "",
        })),
    );
  const characters = ({ text }: ContainedText): number => text.replace(/[_%]/g, "").length;
  return texts.sort((a, b) => characters(b) - characters(a))[0];
}

/** Verifies a whole pack, and collects the facts that an auditor reads. Runs in browsers, and in tests. */
import { PACK_FORMAT, type Control, type Manifest, type OpenedAction, type PolicySetLine } from "../pack-format.ts";
import {
  type ActionEntry,
  type Actor,
  type ApiKeyEntry,
  appendLogKey,
  type ApprovalEntry,
  canonicalBytes,
  commitDigest,
  currentVkey,
  type Decision,
  encodeRequest,
  equalBytes,
  findGestureFault,
  listVkeys,
  type LogKeyEntry,
  type LogKeys,
  openLogCheckpoint,
  parseCosignerVkey,
  questionsDigest,
  sha256Hex,
  toHex,
  type UserEntry,
  userOfPrincipal,
  utf8,
  verifyCosignatures,
} from "../../../src/browser.ts";
import { digestFile, parseLine, type PackFile, readLines, readText } from "./read-lines.ts";
import { createSignatureQueue } from "./signature-queue.ts";
import { addCommitments, type Commitments, findActionFault } from "./verify-actions.ts";
import { type PackEntry, verifyEntries } from "./verify-entries.ts";

/** One vote, for display. */
export interface Vote {
  seq: number;
  at: string;
  verdict: "approve" | "deny";
  approver: string;
  /**
   * Name of the user or key in the newest entry of the pack before the vote; null if there is none. The pack may lack a
   * later entry from before the window.
   */
  name: { text: string; seq: number } | null;
  comment: string | null;
  /** Whether the vote has a verified signature by a passkey of the approver. */
  isSigned: boolean;
  /** Commitment to the request that the vote is about. */
  commitment: string;
  /** Commitment to the preview that the approver saw; null if there was none. */
  preview: string | null;
  /** Leaf hash of the entry that requested the vote, if no later entry could have; else null. */
  asked: string | null;
  /** Commitments to the questions and answers before the vote. */
  questions: Commitments["questions"];
  on_behalf_of: string | null;
  break_glass: boolean;
  /**
   * The newest decision in the pack before the vote; null if there is none. `isChecked` is false if the pack may lack a
   * later decision from before the window.
   */
  decision: (Decision & { seq: number; isChecked: boolean }) | null;
  action: { id: string; agent_id: string; tool: string; operation: string; outcome: string };
  /** What the approver saw. Null for an action that was erased, and for a change of the request that was replaced. */
  seen: {
    /** The preview that the vote's entry commits to; null if there was none, or if the pack does not have it. */
    preview: string | null;
    isPreviewMissing: boolean;
    params: unknown;
    context: unknown;
    questions: { question: string; answer: string | null }[];
    /** Whether `questions` is incomplete, because questions asked before the vote were erased. */
    isQuestionErased: boolean;
  } | null;
  erased_at: string | null;
}

export interface PackReport {
  /** Empty if the pack is valid. */
  faults: string[];
  manifest: Manifest | null;
  digest: string;
  /** The key that signed the checkpoint. `vkeys` contains all of the log's keys in the pack. */
  vkey: string;
  vkeys: string[];
  /** Whether the reader stated a key of the log that they know. */
  isVkeyKnown: boolean;
  /** Whether the checkpoint ends with the window, so that entries may have followed before the window's end. */
  isWindowOpen: boolean;
  /**
   * Witnesses that cosigned the checkpoint, with the keys that the pack names. Anyone can create such a key, so a
   * cosignature is proof only if the reader knows the key.
   */
  witnesses: { name: string; at: string; vkey: string; isKnown: boolean }[];
  counts: { entries: number; actions: number; erased: number; signedVotes: number };
  votes: Vote[];
  controls: Control[];
  /** Entries in the window, keyed by type: their number, and at most `MAX_LISTED` sequence numbers. */
  byType: Map<string, { count: number; seqs: number[] }>;
  policySets: PolicySetLine[];
}

const MAX_LISTED = 200;
const MAX_FAULTS = 20;

/** State of an action while the entries are being read. */
interface ActionState {
  commitments: Commitments;
  decision: Decision & { seq: number };
  outcome: string;
  /** Leaf hashes of the entries that requested approval. */
  requests: readonly string[];
  previous: ActionEntry;
}

/** @param pinned keys of the log and of witnesses that the reader knows, separated by white space */
export async function verifyPack(files: ReadonlyMap<string, PackFile>, pinned: string): Promise<PackReport> {
  const report: PackReport = {
    faults: [],
    manifest: null,
    digest: "",
    vkey: "",
    vkeys: [],
    isVkeyKnown: false,
    isWindowOpen: false,
    witnesses: [],
    counts: { entries: 0, actions: 0, erased: 0, signedVotes: 0 },
    votes: [],
    controls: [],
    byType: new Map(),
    policySets: [],
  };
  const reportFault = (message: string): void => {
    if (report.faults.length < MAX_FAULTS) report.faults.push(message);
  };
  try {
    const manifest = await verifyFiles(files, report, reportFault);
    if (manifest !== null) await verifyContents(files, manifest, pinned, report, reportFault);
  } catch (error) {
    reportFault(error instanceof Error ? error.message : String(error));
  }
  return report;
}

/** Compares every file with the manifest. */
async function verifyFiles(
  files: ReadonlyMap<string, PackFile>,
  report: PackReport,
  reportFault: (message: string) => void,
): Promise<Manifest | null> {
  const file = files.get("manifest.json");
  const stated = files.get("manifest.sha256");
  if (file === undefined || stated === undefined) {
    reportFault(
      "the selected files are not a pack: manifest.json or manifest.sha256 is missing; select all files of the folder",
    );
    return null;
  }
  const text = await readText(file);
  report.digest = sha256Hex(utf8(text));
  if ((await readText(stated)) !== `${report.digest}  manifest.json\n`) reportFault("manifest.json was changed");
  const manifest = JSON.parse(text) as Manifest;
  const format: string = manifest.format;
  if (format !== PACK_FORMAT)
    throw new SyntaxError(`the pack has the format ${format}; this page reads ${PACK_FORMAT}`);
  report.manifest = manifest;
  const names = new Set(manifest.files.map(({ name }) => name));
  for (const name of files.keys())
    if (!names.has(name) && name !== "manifest.json" && name !== "manifest.sha256")
      reportFault(`${name} is not part of the pack`);
  for (const { name, sha256, bytes } of manifest.files) {
    const listed = files.get(name);
    if (listed === undefined) {
      reportFault(`${name} is missing`);
      continue;
    }
    const found = await digestFile(listed);
    if (found.sha256 !== sha256 || found.bytes !== bytes) reportFault(`${name} was changed`);
  }
  return manifest;
}

async function verifyContents(
  files: ReadonlyMap<string, PackFile>,
  manifest: Manifest,
  pinned: string,
  report: PackReport,
  reportFault: (message: string) => void,
): Promise<void> {
  const fileOf = (name: string): PackFile => {
    const file = files.get(name);
    if (file === undefined) throw new RangeError(`${name} is missing`);
    return file;
  };
  const signatures = createSignatureQueue();
  const entries = createEntryReader(manifest, report, signatures, reportFault);
  const { size, root } = await verifyEntries(fileOf("entries.jsonl"), manifest, entries.onEntry);
  const note = await readText(fileOf("checkpoint.txt"));
  const checkpoint = openLogCheckpoint(note, entries.keys(), signatures.ed25519("the checkpoint"));
  if (checkpoint.origin !== manifest.origin) reportFault(`the checkpoint is of the log ${checkpoint.origin}`);
  report.isWindowOpen = manifest.end === size;
  if (checkpoint.size !== size || !equalBytes(checkpoint.root, root))
    reportFault("the entries are not the ones that were signed");
  report.vkey = currentVkey(entries.keys());
  report.vkeys = listVkeys(entries.keys());
  const pinnedKeys = new Set(pinned.split(/\s+/).filter((key) => key !== ""));
  // A pack that was made in the console names no witnesses.
  const witnesses = [...manifest.witnesses, ...[...pinnedKeys].filter(isCosignerVkey)];
  report.witnesses = readWitnesses(note, witnesses, pinnedKeys, signatures);
  report.isVkeyKnown = report.vkeys.some((key) => pinnedKeys.has(key));
  for (const key of pinnedKeys)
    if (!report.vkeys.includes(key) && !report.witnesses.some(({ vkey }) => vkey === key))
      reportFault(
        `the key ${key} that you know is not a key of this log, nor of a witness that cosigned the checkpoint`,
      );
  await verifyActions(fileOf("actions.jsonl"), entries.actions, report, reportFault);
  await verifyPolicySets(fileOf("policies.jsonl"), entries.policySets, report, reportFault);
  // A type that is listed twice must not be counted twice.
  report.controls = (JSON.parse(await readText(fileOf("controls.json"))) as Control[]).map((control) => ({
    ...control,
    entries: [...new Set(control.entries)],
  }));
  for (const message of await signatures.drain()) reportFault(message);
}

/**
 * Returns the witnesses that cosigned the checkpoint. A missing cosignature is not a fault, because the witness may
 * have been unreachable. Throws NoteError for an invalid one.
 */
function readWitnesses(
  note: string,
  vkeys: readonly string[],
  pinnedKeys: ReadonlySet<string>,
  signatures: ReturnType<typeof createSignatureQueue>,
): PackReport["witnesses"] {
  return [...new Set(vkeys)].flatMap((vkey) =>
    verifyCosignatures(note, [vkey], signatures.ed25519("a witness")).map(({ name, seconds }) => ({
      name,
      at: new Date(seconds * 1000).toISOString(),
      vkey,
      isKnown: pinnedKeys.has(vkey),
    })),
  );
}

function isCosignerVkey(vkey: string): boolean {
  try {
    parseCosignerVkey(vkey);
    return true;
  } catch {
    return false;
  }
}

/** Returns a reader of entries that collects the log's keys, people, votes, and the commitments of actions. */
function createEntryReader(
  { first, end, vkey }: Manifest,
  report: PackReport,
  signatures: ReturnType<typeof createSignatureQueue>,
  reportFault: (message: string) => void,
) {
  let keys: LogKeys = { first: vkey, changes: [] };
  const users = new Map<string, UserEntry["user"] & { seq: number }>();
  const keyNames = new Map<string, { name: string; seq: number }>();
  const actions = new Map<string, ActionState>();
  const policySets = new Set<string>();

  function nameOf({ principal, key_id }: Actor): Vote["name"] {
    const found = users.get(userOfPrincipal(principal) ?? "") ?? keyNames.get(key_id);
    return found === undefined ? null : { text: found.name, seq: found.seq };
  }

  function verifyGesture(vote: ApprovalEntry & { seq: number }): boolean {
    const { gesture, by } = vote;
    if (gesture === null || by === null) return false;
    const user = users.get(userOfPrincipal(by.principal) ?? "");
    const passkey = user?.passkeys.find(({ id }) => id === gesture.credential_id);
    const subject = `the vote in entry ${vote.seq}`;
    const found =
      passkey === undefined
        ? "its passkey is not one of the approver's"
        : findGestureFault(
            report.manifest?.origin ?? "",
            { ...vote, gesture },
            by.principal,
            passkey,
            signatures.passkey(subject),
          );
    if (found !== null) reportFault(`the signature of ${subject} is not valid: ${found}`);
    return found === null;
  }

  /** Reports votes about questions or a decision that the pack lacks. */
  function checkBasis({ seq, gesture, questions }: ApprovalEntry & { seq: number }, state: ActionState): void {
    if (questionsDigest(state.commitments.questions) !== questions)
      reportFault(`the pack lacks a question or an answer before the vote in entry ${seq}`);
    if (
      gesture !== null &&
      !state.requests.slice(isVoteRedecision(state.previous) ? -2 : -1).includes(gesture.decision)
    )
      reportFault(`the pack lacks the decision that the vote in entry ${seq} is about`);
  }

  function addVote(entry: ApprovalEntry & { seq: number }, state: ActionState): void {
    const { seq, at, verdict, by, comment, action_id: id, agent_id } = entry;
    if (by === null || (verdict !== "approve" && verdict !== "deny")) return;
    const isSigned = verifyGesture(entry);
    if (seq < first || seq >= end) return;
    checkBasis(entry, state);
    if (isSigned) report.counts.signedVotes++;
    const { decision } = state;
    report.votes.push({
      seq,
      at,
      verdict,
      approver: by.principal,
      name: nameOf(by),
      comment,
      isSigned,
      commitment: entry.commitment,
      preview: entry.preview,
      asked: isVoteRedecision(state.previous) ? null : (state.requests.at(-1) ?? null),
      questions: state.commitments.questions.map((each) => ({ ...each })),
      on_behalf_of: entry.delegation?.from ?? null,
      break_glass: entry.break_glass,
      decision: { ...decision, isChecked: isSigned || decision.seq >= first },
      action: { id, agent_id, tool: "", operation: "", outcome: "" },
      seen: null,
      erased_at: null,
    });
  }

  function onEntry(entry: PackEntry, leafHash: Uint8Array): void {
    const { seq, type } = entry;
    if (seq >= first && seq < end) {
      report.counts.entries++;
      const listed = report.byType.get(type) ?? { count: 0, seqs: [] };
      listed.count++;
      if (listed.seqs.length < MAX_LISTED) listed.seqs.push(seq);
      report.byType.set(type, listed);
    }
    if (type === "log_key")
      keys = appendLogKey(keys, entry as LogKeyEntry & { seq: number }, signatures.ed25519(`the key in entry ${seq}`));
    else if (type === "user") users.set(entry.user.id, { ...entry.user, seq });
    else if (type === "api_key") {
      const { id, name } = (entry as ApiKeyEntry).key;
      keyNames.set(id, { name, seq });
    } else if (type === "decision" || type === "redecision" || (type === "policy_set" && seq >= first && seq < end)) {
      if (entry.policy_set !== null) policySets.add(entry.policy_set);
    }
    const id = (entry as { action_id?: string | null }).action_id ?? null;
    if (id === null || type.includes(":")) return;
    const before = actions.get(id);
    const action = entry as unknown as ActionEntry;
    if (type === "approval" && before !== undefined) addVote(entry as ApprovalEntry & { seq: number }, before);
    const commitments = addCommitments(before?.commitments ?? null, action, { first, end });
    if (commitments === null) throw new RangeError(`the pack lacks the decision of the action in entry ${seq}`);
    const isDecision = action.type === "decision" || action.type === "redecision";
    if (before !== undefined && seq >= end) return;
    actions.set(id, {
      commitments,
      decision: isDecision ? { ...action.decision, seq } : (before as ActionState).decision,
      outcome: "status" in action ? action.status : (before?.outcome ?? ""),
      requests: [
        ...(before?.requests ?? []),
        ...(isDecision && action.status === "pending_approval" ? [toHex(leafHash)] : []),
      ],
      previous: action,
    });
  }

  return { onEntry, keys: () => keys, actions, policySets };
}

async function verifyActions(
  file: PackFile,
  states: ReadonlyMap<string, ActionState>,
  report: PackReport,
  reportFault: (message: string) => void,
): Promise<void> {
  const votes = new Map<string, Vote[]>();
  for (const vote of report.votes) votes.set(vote.action.id, [...(votes.get(vote.action.id) ?? []), vote]);
  const opened = new Set<string>();
  for await (const line of readLines(file)) {
    const action = parseLine(line) as unknown as OpenedAction;
    const state = states.get(action.id);
    const found = state === undefined ? "no entry is about it" : findActionFault(action, state.commitments);
    if (found !== null) reportFault(`the action ${action.id} is not as recorded: ${found}`);
    if (opened.has(action.id)) reportFault(`the action ${action.id} occurs twice`);
    opened.add(action.id);
    report.counts.actions++;
    if (action.erased_at !== null) report.counts.erased++;
    if (state === undefined || found !== null) continue;
    for (const vote of votes.get(action.id) ?? []) {
      describeVote(vote, action, state);
      // The pack has the preview of the newest request for approval.
      if (vote.seen?.isPreviewMissing === true && vote.asked === state.requests.at(-1))
        reportFault(`the action ${action.id} is not as recorded: its preview was changed`);
    }
  }
  for (const id of states.keys()) if (!opened.has(id)) reportFault(`the action ${id} is missing`);
}

/** Adds what the approver saw to the vote. Adds only contents that the vote's entry commits to. */
function describeVote(vote: Vote, action: OpenedAction, state: ActionState): void {
  const { agent_id, tool, operation, erased_at, shown, salt } = action;
  vote.action = { id: action.id, agent_id, tool, operation, outcome: state.outcome };
  vote.erased_at = erased_at;
  const request = findRequest(action, vote.commitment);
  if (request === null) return;
  const stated = shown?.preview ?? null;
  const isPreview = stated !== null && commitDigest(salt ?? "", sha256Hex(utf8(stated))) === vote.preview;
  vote.seen = {
    preview: isPreview ? stated : null,
    isPreviewMissing: !isPreview && (vote.preview !== null || stated !== null),
    params: request.params,
    context: request.context,
    questions: action.questions.slice(0, vote.questions.length).map(({ question, answer }, i) => ({
      question: question.text,
      answer: vote.questions[i]?.answer === null ? null : (answer?.text ?? null),
    })),
    isQuestionErased: action.questions.length < vote.questions.length,
  };
}

/** Returns the request with this commitment; null if the pack does not have it. */
function findRequest({ request, salt, effective }: OpenedAction, commitment: string): OpenedAction["request"] {
  const requests = [
    { request, salt },
    { request: effective?.request ?? null, salt: effective?.salt ?? null },
  ];
  const found = requests.find(
    (each) =>
      each.request !== null &&
      each.salt !== null &&
      commitDigest(each.salt, encodeRequest(each.request).hash) === commitment,
  );
  return found?.request ?? null;
}

/** Returns true for a decision that a vote caused. Its entry precedes that of the vote. */
function isVoteRedecision(entry: ActionEntry): boolean {
  return entry.type === "redecision" && entry.occasion === "vote";
}

async function verifyPolicySets(
  file: PackFile,
  named: ReadonlySet<string>,
  report: PackReport,
  reportFault: (message: string) => void,
): Promise<void> {
  const found = new Set<string>();
  for await (const line of readLines(file)) {
    const set = parseLine(line) as unknown as PolicySetLine;
    if (sha256Hex(canonicalBytes(set.document)) !== set.digest) reportFault(`the policy set ${set.digest} was changed`);
    if (found.has(set.digest)) reportFault(`the policy set ${set.digest} occurs twice`);
    if (!named.has(set.digest)) reportFault(`no entry refers to the policy set ${set.digest}`);
    found.add(set.digest);
    report.policySets.push(set);
  }
  for (const digest of named) if (!found.has(digest)) reportFault(`the policy set ${digest} is missing`);
}

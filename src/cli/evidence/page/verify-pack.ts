/** Verifies a whole pack, and collects the facts that an auditor reads. Runs in browsers, and in tests. */
import type { ActionEntry } from "../../../domain/action-history.ts";
import { canonicalBytes } from "../../../domain/canonical.ts";
import { verifyCosignatures } from "../../../domain/cosignature.ts";
import type { Actor, ApprovalEntry, ApiKeyEntry, LogKeyEntry, UserEntry } from "../../../domain/entries.ts";
import { findGestureFault } from "../../../domain/gesture.ts";
import { equalBytes, sha256Hex, utf8 } from "../../../domain/hash.ts";
import { appendLogKey, currentVkey, listVkeys, openLogCheckpoint, type LogKeys } from "../../../domain/log-keys.ts";
import { userOfPrincipal } from "../../../domain/principals.ts";
import type { Decision } from "../../../domain/policy/policy-types.ts";
import { commitDigest, encodeRequest } from "../../../domain/request.ts";
import { PACK_FORMAT, type Control, type Manifest, type OpenedAction, type PolicySetLine } from "../pack-format.ts";
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
  /** Name of the user or key; empty if the pack does not contain it. */
  name: string;
  comment: string | null;
  /** Whether the vote has a verified signature by a passkey of the approver. */
  isSigned: boolean;
  /** Commitment to the changed request that the vote is about; null if the request had not been changed. */
  effective: string | null;
  /** Commitment to the preview that the signature covers. */
  signedPreview: string | null;
  on_behalf_of: string | null;
  break_glass: boolean;
  /** The newest decision before the vote; null if there is none. */
  decision: Decision | null;
  action: { id: string; agent_id: string; tool: string; operation: string; outcome: string };
  /** What the approver saw. Null for an action that was erased, and for a change of the request that was replaced. */
  seen: {
    preview: string | null;
    /**
     * Whether the vote's signature covers the preview. If false, only the pack states the preview.
     */
    isPreviewSigned: boolean;
    params: unknown;
    context: unknown;
    questions: { question: string; answer: string | null }[];
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
  /** Whether the checkpoint ends with the window, so that entries may have followed before the window's end. */
  isWindowOpen: boolean;
  /** Witnesses that cosigned the checkpoint, with the keys that the operator configured. */
  witnesses: { name: string; at: string; vkey: string }[];
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
  decision: Decision;
  outcome: string;
}

/** @param pinned a key of the log that the reader trusts; empty if there is none */
export async function verifyPack(files: ReadonlyMap<string, PackFile>, pinned: string): Promise<PackReport> {
  const report: PackReport = {
    faults: [],
    manifest: null,
    digest: "",
    vkey: "",
    vkeys: [],
    isWindowOpen: false,
    witnesses: [],
    counts: { entries: 0, actions: 0, erased: 0, signedVotes: 0 },
    votes: [],
    controls: [],
    byType: new Map(),
    policySets: [],
  };
  const fault = (message: string): void => {
    if (report.faults.length < MAX_FAULTS) report.faults.push(message);
  };
  try {
    const manifest = await verifyFiles(files, report, fault);
    if (manifest !== null) await verifyContents(files, manifest, pinned, report, fault);
  } catch (error) {
    fault(error instanceof Error ? error.message : String(error));
  }
  return report;
}

/** Compares every file with the manifest. */
async function verifyFiles(
  files: ReadonlyMap<string, PackFile>,
  report: PackReport,
  fault: (message: string) => void,
): Promise<Manifest | null> {
  const file = files.get("manifest.json");
  const stated = files.get("manifest.sha256");
  if (file === undefined || stated === undefined) {
    fault(
      "the selected files are not a pack: manifest.json or manifest.sha256 is missing; select all files of the folder",
    );
    return null;
  }
  const text = await readText(file);
  report.digest = sha256Hex(utf8(text));
  if ((await readText(stated)) !== `${report.digest}  manifest.json\n`) fault("manifest.json was changed");
  const manifest = JSON.parse(text) as Manifest;
  const format: string = manifest.format;
  if (format !== PACK_FORMAT)
    throw new SyntaxError(`the pack has the format ${format}; this page reads ${PACK_FORMAT}`);
  report.manifest = manifest;
  const names = new Set(manifest.files.map(({ name }) => name));
  for (const name of files.keys())
    if (!names.has(name) && name !== "manifest.json" && name !== "manifest.sha256")
      fault(`${name} is not part of the pack`);
  for (const { name, sha256, bytes } of manifest.files) {
    const listed = files.get(name);
    if (listed === undefined) {
      fault(`${name} is missing`);
      continue;
    }
    const found = await digestFile(listed);
    if (found.sha256 !== sha256 || found.bytes !== bytes) fault(`${name} was changed`);
  }
  return manifest;
}

async function verifyContents(
  files: ReadonlyMap<string, PackFile>,
  manifest: Manifest,
  pinned: string,
  report: PackReport,
  fault: (message: string) => void,
): Promise<void> {
  const fileOf = (name: string): PackFile => {
    const file = files.get(name);
    if (file === undefined) throw new RangeError(`${name} is missing`);
    return file;
  };
  const signatures = createSignatureQueue();
  const entries = createEntryReader(manifest, report, signatures, fault);
  const { size, root } = await verifyEntries(fileOf("entries.jsonl"), manifest, entries.onEntry);
  const note = await readText(fileOf("checkpoint.txt"));
  const checkpoint = openLogCheckpoint(note, entries.keys(), signatures.ed25519("the checkpoint"));
  if (checkpoint.origin !== manifest.origin) fault(`the checkpoint is of the log ${checkpoint.origin}`);
  report.isWindowOpen = manifest.end === size;
  if (checkpoint.size !== size || !equalBytes(checkpoint.root, root))
    fault("the entries are not the ones that were signed");
  report.vkey = currentVkey(entries.keys());
  report.vkeys = listVkeys(entries.keys());
  if (pinned !== "" && !report.vkeys.includes(pinned)) fault("the key that you know is not a key of this log");
  report.witnesses = readWitnesses(note, manifest.witnesses, signatures);
  await verifyActions(fileOf("actions.jsonl"), entries.actions, report, fault);
  await verifyPolicySets(fileOf("policies.jsonl"), entries.policySets, report, fault);
  report.controls = JSON.parse(await readText(fileOf("controls.json"))) as Control[];
  for (const message of await signatures.drain()) fault(message);
}

/**
 * Returns the witnesses that cosigned the checkpoint. A missing cosignature is not a fault, because the witness may
 * have been unreachable.
 */
function readWitnesses(
  note: string,
  vkeys: readonly string[],
  signatures: ReturnType<typeof createSignatureQueue>,
): PackReport["witnesses"] {
  return vkeys.flatMap((vkey) => {
    try {
      return verifyCosignatures(note, [vkey], signatures.ed25519("a witness")).map(({ name, seconds }) => ({
        name,
        at: new Date(seconds * 1000).toISOString(),
        vkey,
      }));
    } catch {
      return [];
    }
  });
}

/** Returns a reader of entries that collects the log's keys, people, votes, and the commitments of actions. */
function createEntryReader(
  { first, end, vkey }: Manifest,
  report: PackReport,
  signatures: ReturnType<typeof createSignatureQueue>,
  fault: (message: string) => void,
) {
  let keys: LogKeys = { first: vkey, changes: [] };
  const users = new Map<string, UserEntry["user"]>();
  const keyNames = new Map<string, string>();
  const actions = new Map<string, ActionState>();
  const policySets = new Set<string>();

  const nameOf = ({ principal, key_id }: Actor): string =>
    users.get(userOfPrincipal(principal) ?? "")?.name ?? keyNames.get(key_id) ?? "";

  function verifyGesture(vote: ApprovalEntry & { seq: number }): boolean {
    const { gesture, by } = vote;
    if (gesture === null || by === null) return false;
    const user = users.get(userOfPrincipal(by.principal) ?? "");
    const passkey = user?.passkeys.find(({ id }) => id === gesture.credential_id);
    const what = `the vote in entry ${vote.seq}`;
    const found =
      passkey === undefined
        ? "its passkey is not one of the approver's"
        : findGestureFault(
            report.manifest?.origin ?? "",
            { ...vote, gesture },
            by.principal,
            passkey,
            signatures.passkey(what),
          );
    if (found !== null) fault(`the signature of ${what} is not valid: ${found}`);
    report.counts.signedVotes++;
    return found === null;
  }

  function addVote(entry: ApprovalEntry & { seq: number }, state: ActionState | undefined): void {
    const { seq, at, verdict, by, comment, action_id: id, agent_id } = entry;
    if (by === null || (verdict !== "approve" && verdict !== "deny")) return;
    const isSigned = verifyGesture(entry);
    if (seq < first || seq >= end) return;
    report.votes.push({
      seq,
      at,
      verdict,
      approver: by.principal,
      name: nameOf(by),
      comment,
      isSigned,
      effective: state?.commitments.effective ?? null,
      signedPreview: entry.gesture?.preview ?? null,
      on_behalf_of: entry.delegation?.from ?? null,
      break_glass: entry.break_glass,
      decision: state?.decision ?? null,
      action: { id, agent_id, tool: "", operation: "", outcome: "" },
      seen: null,
      erased_at: null,
    });
  }

  function onEntry(entry: PackEntry): void {
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
    else if (type === "user") users.set(entry.user.id, entry.user);
    else if (type === "api_key") keyNames.set((entry as ApiKeyEntry).key.id, (entry as ApiKeyEntry).key.name);
    else if (type === "decision" || type === "redecision" || (type === "policy_set" && seq >= first && seq < end)) {
      if (entry.policy_set !== null) policySets.add(entry.policy_set);
    }
    const id = (entry as { action_id?: string | null }).action_id ?? null;
    if (id === null || type.includes(":")) return;
    const before = actions.get(id);
    const action = entry as unknown as ActionEntry;
    const commitments = addCommitments(before?.commitments ?? null, action);
    if (commitments === null) throw new RangeError(`the pack lacks the decision of the action in entry ${seq}`);
    const decision = action.type === "decision" || action.type === "redecision" ? action.decision : before?.decision;
    const outcome = "status" in action ? action.status : (before?.outcome ?? "");
    const state = { commitments, decision: decision as Decision, outcome };
    if (type === "approval") addVote(entry as ApprovalEntry & { seq: number }, before);
    actions.set(id, state);
  }

  return { onEntry, keys: () => keys, actions, policySets };
}

async function verifyActions(
  file: PackFile,
  states: ReadonlyMap<string, ActionState>,
  report: PackReport,
  fault: (message: string) => void,
): Promise<void> {
  const votes = new Map<string, Vote[]>();
  for (const vote of report.votes) votes.set(vote.action.id, [...(votes.get(vote.action.id) ?? []), vote]);
  const opened = new Set<string>();
  for await (const line of readLines(file)) {
    const action = parseLine(line) as unknown as OpenedAction;
    const state = states.get(action.id);
    const found = state === undefined ? "no entry is about it" : findActionFault(action, state.commitments);
    if (found !== null) fault(`the action ${action.id} is not as recorded: ${found}`);
    if (opened.has(action.id)) fault(`the action ${action.id} occurs twice`);
    opened.add(action.id);
    report.counts.actions++;
    if (action.erased_at !== null) report.counts.erased++;
    for (const vote of votes.get(action.id) ?? []) describeVote(vote, action, state);
  }
  for (const id of states.keys()) if (!opened.has(id)) fault(`the action ${id} is missing`);
}

/** Adds what the approver saw to the vote. */
function describeVote(vote: Vote, action: OpenedAction, state: ActionState | undefined): void {
  const { agent_id, tool, operation, erased_at, shown } = action;
  vote.action = { id: action.id, agent_id, tool, operation, outcome: state?.outcome ?? "" };
  vote.erased_at = erased_at;
  const request = vote.effective === null ? action.request : findChangedRequest(action, vote.effective);
  if (request === null) return;
  const stated = shown?.preview ?? null;
  const commitment = stated === null ? null : commitDigest(action.salt ?? "", sha256Hex(utf8(stated)));
  const isPreviewSigned = vote.isSigned && stated !== null && vote.signedPreview === commitment;
  // The preview describes the newest request. An approver who voted before the last change saw an earlier request.
  const isNewest = vote.effective === (state?.commitments.effective ?? null);
  vote.seen = {
    preview: isPreviewSigned || isNewest ? stated : null,
    isPreviewSigned,
    params: request.params,
    context: request.context,
    questions: action.questions.map(({ question, answer }) => ({
      question: question.text,
      answer: answer?.text ?? null,
    })),
  };
}

/** Returns the changed request with this commitment; null if the pack does not have it. */
function findChangedRequest({ effective }: OpenedAction, commitment: string): OpenedAction["request"] {
  if (effective === null) return null;
  return commitDigest(effective.salt, encodeRequest(effective.request).hash) === commitment ? effective.request : null;
}

async function verifyPolicySets(
  file: PackFile,
  named: ReadonlySet<string>,
  report: PackReport,
  fault: (message: string) => void,
): Promise<void> {
  const found = new Set<string>();
  for await (const line of readLines(file)) {
    const set = parseLine(line) as unknown as PolicySetLine;
    if (sha256Hex(canonicalBytes(set.document)) !== set.digest) fault(`the policy set ${set.digest} was changed`);
    if (found.has(set.digest)) fault(`the policy set ${set.digest} occurs twice`);
    if (!named.has(set.digest)) fault(`no entry refers to the policy set ${set.digest}`);
    found.add(set.digest);
    report.policySets.push(set);
  }
  for (const digest of named) if (!found.has(digest)) fault(`the policy set ${digest} is missing`);
}

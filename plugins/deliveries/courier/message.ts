/**
 * Builds the message for a notifier from a row of the outbox: the current state of the action, and a link for the
 * recipient.
 */
import {
  type ApprovalMessage,
  type ClosedMessage,
  type EntryBody,
  type Message,
  type MessageAction,
  type NoticeKind,
  NotifierError,
  toRfc3339,
} from "../../../src/plugin.ts";
import {
  type ActionRequest,
  type CompiledPolicySet,
  type CoreHost,
  type DecisionEntry,
  decodeEdit,
  decodeEntry,
  decodeQuestions,
  digestAddress,
  effectiveRequest,
  effectiveRequestHash,
  formatPrincipal,
  makeToken,
  type MessageBase,
  presentRequest,
  principalOfKey,
  readPrincipalNames,
  redactRow,
  type RedecisionEntry,
  type RowSeals,
  toHex,
  type Users,
  type VoteAddition,
} from "../../../src/core.ts";
import {
  type ActionRow,
  type ApprovalRow,
  CORE_DELIVERY_KINDS,
  type DeliveryRow,
  type EntryRow,
  nullIfCorrupt,
  type StorageReader,
} from "../../../src/storage/index.ts";
import { genuineDeliveriesOfAction } from "../outbox/genuine-deliveries.ts";
import { mayNotify } from "../outbox/new-delivery.ts";

/** A message that no longer needs to be sent, with the reason. */
export interface ObsoleteMessage {
  obsoleteReason: string;
}

export interface MessageBuilder {
  /** Throws NotifierError for a delivery that someone changed in the store. */
  build(row: DeliveryRow): Promise<Message | ObsoleteMessage>;
}

interface MessageOptions {
  /** The kinds of notices of all features. */
  notices: readonly NoticeKind[];
  /** Declares what else an approval can do. Absent if no plugin adds anything. */
  voteAddition?: VoteAddition | null;
  storage: Pick<
    StorageReader,
    "action" | "actions" | "approvals" | "key" | "entries" | "entriesOfAction" | "deliveriesOfAction"
  >;
  seals: RowSeals;
  clock(): number;
  /** Returns the MAC of a link. */
  mac(message: Uint8Array): Uint8Array;
  /** Returns the active policies, which define the members that approvers see first (`shown_first`). */
  policies(): Promise<CompiledPolicySet>;
  /** Returns the current users. */
  users(): Promise<Users>;
  groups: CoreHost["groups"];
  /** Returns the service's address that people use, without a trailing slash. */
  publicUrl(): string;
  /** Names of the channels with `digest`. */
  digests?: ReadonlySet<string>;
}

/** Members that all messages have. */
type BaseMembers = Omit<MessageBase, "kind">;
/** Members that all messages about actions have. */
type CommonMembers = Omit<ClosedMessage, "kind" | "reference">;

/**
 * The data of a request for approval or a reminder. For a reminder, `request` is the earlier request to the same
 * person.
 */
interface RequestSubject {
  kind: ApprovalMessage["kind"];
  notifier: string;
  action: ActionRow;
  votes: readonly ApprovalRow[];
  set: CompiledPolicySet;
  request: DeliveryRow | undefined;
}

export function isObsolete(built: Message | ObsoleteMessage): built is ObsoleteMessage {
  return "obsoleteReason" in built;
}

/** Returns true if the delivery is a request for approval or an escalation of one, not a reminder. */
export function isApprovalRequest({ kind }: Pick<DeliveryRow, "kind">): boolean {
  return kind === "approval_requested" || kind === "approval_escalated";
}

/** Returns true if the delivery is useless once its action has expired. */
export function expiresWithAction(row: Pick<DeliveryRow, "kind">): boolean {
  return isApprovalRequest(row) || row.kind === "approval_reminder";
}

export function createMessageBuilder(options: MessageOptions): MessageBuilder {
  return new StoredMessageBuilder(options);
}

class StoredMessageBuilder implements MessageBuilder {
  private readonly options: MessageOptions;

  constructor(options: MessageOptions) {
    this.options = options;
  }

  async build(row: DeliveryRow): Promise<Message | ObsoleteMessage> {
    if (!this.options.seals.matches("deliveries", row)) throw alteredDeliveryError();
    const base = { id: row.id, attempt: row.attempts + 1, to: row.recipient, at: toRfc3339(row.created_at) };
    if (row.kind === "event") return this.buildEvent(row, base);
    const notice = this.options.notices.find(({ name }) => name === row.kind);
    if (notice !== undefined) return this.buildNotice(row, base, notice);
    const kind = CORE_DELIVERY_KINDS.find((each) => each === row.kind);
    if (kind === undefined || kind === "event")
      return { obsoleteReason: `no loaded plugin sends messages of the kind "${row.kind}"` };
    const { storage, policies } = this.options;
    const action = row.action_id === null ? null : await storage.action(row.action_id);
    if (action === null) return { obsoleteReason: "the action does not exist" };
    if (action.erased_at !== null) return { obsoleteReason: "the request was erased" };
    const users = await this.options.users();
    const subject = { agent_id: action.agent_id, tool: action.tool, owner: action.submitted_owner };
    const isRequest = isApprovalRequest(row) || kind === "approval_reminder";
    if (!mayNotify({ users, groups: this.options.groups }, row, subject, isRequest))
      return { obsoleteReason: "the person may no longer see the action, or approve it" };
    const votes = await storage.approvals(action.id);
    const set = await policies();
    const described = describe(action, votes, set);
    const common: CommonMembers = {
      ...base,
      channel: row.channel ?? "",
      person: row.person,
      action: {
        ...described,
        names: await readPrincipalNames(storage, users, [row.person, ...listPrincipals(described)]),
      },
    };
    if (kind === "outcome_unknown") {
      if (action.status !== "unknown") return { obsoleteReason: "the outcome is known by now" };
      return { ...common, kind, reference: null };
    }
    if (kind === "break_glass") return { ...common, kind, reference: null };
    const request = await this.earlierRequest(row, action.id);
    if (kind === "approval_closed") {
      if (request?.state !== "delivered") return { obsoleteReason: "the request itself was not delivered" };
      if (request.reference === null && this.options.digests?.has(common.channel) === true)
        return { obsoleteReason: "the channel gets digests, and no message of its own was sent for the request" };
      return { ...common, kind, reference: request.reference };
    }
    return this.buildRequest(common, { kind, notifier: row.notifier, action, votes, set, request });
  }

  /** Builds a request for approval, or a reminder of one. */
  private async buildRequest(
    common: CommonMembers,
    { kind, notifier, action, votes, set, request }: RequestSubject,
  ): Promise<Message | ObsoleteMessage> {
    const { storage, clock } = this.options;
    if (action.status !== "pending_approval" || (action.expires_at ?? 0) <= clock())
      return { obsoleteReason: "the action is no longer waiting" };
    const hasOffers = kind !== "approval_reminder" && action.plan_id === null;
    const offers = hasOffers ? await listOffers(this.options.voteAddition ?? null, storage, action, set) : [];
    const { person } = common;
    if (votes.some((vote) => vote.principal === person)) return { obsoleteReason: "this person has voted" };
    if (kind === "approval_reminder" && request?.state !== "delivered")
      return { obsoleteReason: "the request itself was not delivered" };
    return {
      ...common,
      action: { ...common.action, offers },
      kind,
      link: this.linkTo(action, person, notifier, common.to),
      others: [],
      reference: request?.reference ?? null,
    };
  }

  private linkTo(action: ActionRow, principal: string | null, notifier: string, to: string): string {
    const url = this.options.publicUrl();
    if (action.plan_id !== null) return `${url}/#/plans/${action.plan_id}`;
    if (principal === null) return `${url}/approve#${action.id}`;
    const claims = {
      action_id: action.id,
      request_hash: effectiveRequestHash(action),
      approver: principal,
      expires_at: action.expires_at ?? 0,
      address: digestAddress(notifier, to),
    };
    return `${url}/approve#${makeToken("link", claims, this.options.mac)}`;
  }

  /** Returns the newest earlier request for approval to the same destination and person, whatever its state. */
  private async earlierRequest(row: DeliveryRow, actionId: string): Promise<DeliveryRow | undefined> {
    if (isApprovalRequest(row)) return undefined;
    const { seals, storage } = this.options;
    const deliveries = await genuineDeliveriesOfAction(seals, storage, actionId);
    return deliveries
      .filter(
        (other) => isApprovalRequest(other) && other.destination === row.destination && other.person === row.person,
      )
      .at(-1);
  }

  /** Builds a message about the service from its ledger entry. */
  private async buildNotice(row: DeliveryRow, base: BaseMembers, kind: NoticeKind): Promise<Message | ObsoleteMessage> {
    const stored = await this.readEntry(row);
    if (stored === undefined) return { obsoleteReason: "the entry does not exist" };
    const entry = decodeEntry<EntryBody>(stored.bytes);
    const obsoleteReason = kind.obsoleteReason?.(entry, this.options.clock()) ?? null;
    if (obsoleteReason !== null) return { obsoleteReason };
    const author = "by" in entry ? entry.by : null;
    const named = author === null ? [] : [author.principal];
    const names = await readPrincipalNames(this.options.storage, await this.options.users(), named);
    const { page, ...notice } = kind.render(entry, (principal) => formatPrincipal(principal, names));
    return {
      ...base,
      kind: "notice",
      channel: row.channel ?? "",
      person: row.person,
      link: `${this.options.publicUrl()}/${page}`,
      notice: { name: kind.name, ...notice },
    };
  }

  private async buildEvent(row: DeliveryRow, base: BaseMembers): Promise<Message | ObsoleteMessage> {
    const entry = await this.readEntry(row);
    if (entry === undefined) return { obsoleteReason: "the entry does not exist" };
    return {
      ...base,
      kind: "event",
      event: { seq: entry.seq, hash: toHex(entry.leaf_hash), type: entry.type, entry: decodeEntry(entry.bytes) },
    };
  }

  /** Returns the entry that caused the delivery. */
  private async readEntry({ seq }: DeliveryRow): Promise<EntryRow | undefined> {
    return (await this.options.storage.entries(seq, seq + 1))[0];
  }
}

function alteredDeliveryError(): NotifierError {
  return new NotifierError(
    "the delivery was changed in the store outside the service, so it was not sent; run assent audit",
    { permanent: true },
  );
}

/** Returns what the approval page offers with an approval of a pending action. */
async function listOffers(
  voteAddition: VoteAddition | null,
  storage: Pick<StorageReader, "actions" | "entriesOfAction">,
  row: ActionRow,
  set: CompiledPolicySet,
): Promise<MessageAction["offers"]> {
  if (voteAddition === null) return [];
  // Ignore corrupt entries, because an altered store must not suppress the notification.
  const entries = (await nullIfCorrupt(storage.entriesOfAction(row.id))) ?? [];
  const newest = entries.filter(({ type }) => type === "decision" || type === "redecision").at(-1);
  if (newest === undefined) return [];
  const { approval } = decodeEntry<DecisionEntry | RedecisionEntry>(newest.bytes).decision;
  const offers = approval === null ? [] : await voteAddition.listOffers(storage, row, set, approval);
  return offers.map(({ text }) => text);
}

/** Returns the principals in a message. */
function listPrincipals({
  submitted_by,
  edited_by,
  questions,
  votes,
}: Omit<MessageAction, "names">): (string | null)[] {
  return [
    submitted_by,
    edited_by,
    ...questions.map(({ asked_by }) => asked_by),
    ...votes.flatMap(({ approver, on_behalf_of }) => [approver, on_behalf_of]),
  ];
}

function describe(row: ActionRow, votes: readonly ApprovalRow[], set: CompiledPolicySet): Omit<MessageAction, "names"> {
  const request = effectiveRequest(redactRow(set, row)) as ActionRequest;
  return {
    id: row.id,
    agent_id: row.agent_id,
    tool: row.tool,
    operation: row.operation,
    params: request.params,
    context: request.context,
    status: row.status,
    reason: row.reason,
    risk_level: row.risk_level,
    policy: row.policy,
    rule: row.rule,
    submitted_by: principalOfKey({ id: row.submitted_by, owner: row.submitted_owner }),
    request_hash: effectiveRequestHash(row),
    ...presentRequest(set, { ...row, ...request }),
    plan: row.plan_id === null ? null : { id: row.plan_id, position: row.plan_position ?? 0 },
    edited_by: decodeEdit(row.effective)?.by ?? null,
    questions: decodeQuestions(row.questions).map(({ asked_by, question, answer }) => ({
      asked_by,
      question: question.text,
      answer: answer?.text ?? null,
    })),
    offers: [],
    quorum: row.quorum ?? 1,
    votes: votes.map((vote) => ({
      approver: vote.principal,
      approve: vote.approve,
      on_behalf_of: vote.on_behalf_of,
      break_glass: vote.break_glass,
      reason: vote.reason,
      at: toRfc3339(vote.created_at),
    })),
    created_at: toRfc3339(row.created_at),
    expires_at: row.expires_at === null ? null : toRfc3339(row.expires_at),
  };
}

/**
 * Answers pending confirmations from decisions. A session waits until its confirmation arrives. So a failure here or in
 * the service delays a call, but never lets it run.
 */
import { createHash } from "node:crypto";
import type { createClient } from "../../src/command.ts";
import type { PendingCall } from "./confirmations.ts";
import { findPendingCalls, readCall } from "./confirmations.ts";
import type { VendorApi } from "./vendor-api.ts";

type Assent = Awaited<ReturnType<typeof createClient>>;
type Action = Awaited<ReturnType<Assent["submit"]>>;

/** Maximum length of a message to the model. Characters. */
const MAX_MESSAGE = 1000;

interface WorkerOptions {
  vendor: VendorApi;
  assent: Assent;
  /** Agent of the submitted actions. */
  agent: string;
  /** Only sessions of this agent at the vendor; undefined for all. */
  vendorAgent: string | undefined;
  /** Prefix of `tool`: the vendor's own tools are `<prefix>`, and those of MCP servers `mcp.<server>`. */
  tool: string;
  log(line: string): void;
}

type Confirmation = { result: "allow" } | { result: "deny"; deny_message: string };

export class Worker {
  private readonly options: WorkerOptions;
  /** Calls that wait for an approval, so that each is logged once. */
  private readonly waiting = new Set<string>();

  constructor(options: WorkerOptions) {
    this.options = options;
  }

  /** Answers all confirmations that are decided. Logs what fails, which the next round tries again. */
  async runOnce(): Promise<void> {
    const { vendor, vendorAgent } = this.options;
    for (const session of await vendor.idleSessions(vendorAgent))
      await this.logFailure(session, async () => {
        for (const event of await findPendingCalls(vendor.eventsBackwards(session)))
          await this.logFailure(session, () => this.answer(session, readCall(event)));
      });
  }

  private async logFailure(session: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.options.log(`session ${session}: ${messageOf(error)}; it keeps waiting`);
    }
  }

  private async answer(session: string, call: PendingCall): Promise<void> {
    const { vendor, log } = this.options;
    const action = await this.submit(session, call);
    const key = digestOf(session, call);
    const confirmation = await this.confirm(action, key);
    if (confirmation === null) {
      if (!this.waiting.has(key)) log(`session ${session}: "${call.name}" waits for approval ${action.id}`);
      this.waiting.add(key);
      return;
    }
    // Without its thread, the confirmation of a sub-agent's call goes to the session's own agent.
    const thread = call.thread === null ? {} : { session_thread_id: call.thread };
    await vendor.send(session, [{ type: "user.tool_confirmation", tool_use_id: call.id, ...thread, ...confirmation }]);
    this.waiting.delete(key);
    log(`session ${session}: "${call.name}" was answered with ${confirmation.result} (action ${action.id})`);
  }

  /** Submits a call. The idempotency key identifies the call, so each call is one action, even after a restart. */
  private submit(session: string, call: PendingCall): Promise<Action> {
    const { id, name, server, input } = call;
    const { assent, agent, tool } = this.options;
    return assent.submit(
      {
        agent_id: agent,
        tool: server === null ? tool : `mcp.${server}`,
        operation: name,
        params: input,
        context: {},
      },
      {
        idempotencyKey: `managed-agents:${digestOf(session, call)}`,
        meta: { via: "managed-agents", session, tool_use_id: id },
      },
    );
  }

  /**
   * Starts an action that may run. Resolves to null if the action waits for an approval.
   * @param key identifies the call
   */
  private async confirm(action: Action, key: string): Promise<Confirmation | null> {
    const deny = (reason: string): Confirmation => ({
      result: "deny",
      deny_message: `Not run: ${reason} (action ${action.id}).`.slice(0, MAX_MESSAGE),
    });
    switch (action.status) {
      case "pending_approval":
        return null;
      case "allowed":
      case "approved":
      case "executing":
        // The session runs the arguments that it showed, so changed ones cannot run.
        if (action.proposed != null) return deny("an approver changed the request, and this call cannot be changed");
        // The attempt is the same after a restart, so a start whose confirmation was lost can be repeated.
        await this.options.assent.start(action.id, {
          permit: action.permit ?? undefined,
          attempt: key.slice(0, 32),
        });
        return { result: "allow" };
      case "denied":
        return deny(action.reason);
      case "expired":
        return deny("no one approved it in time. It was not refused; ask again if it is still needed");
      default:
        return deny(`it is ${action.status}`);
    }
  }
}

/** Identifies a call. Ids of events are not documented to be unique across sessions. */
const digestOf = (session: string, { id }: PendingCall): string =>
  createHash("sha256")
    .update(JSON.stringify([session, id]))
    .digest("hex");

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

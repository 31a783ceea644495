/** Writes and sends notifications, and lists and retries their deliveries. */
import {
  confirmCredential,
  type CoreHost,
  decodeSeqCursor,
  defineCorePlugin,
  DELIVERY_RETRY_MS,
} from "../../src/core.ts";
import {
  type Credential,
  cutPage,
  DEFAULT_LIMIT,
  defineRoute,
  nextLink,
  Refusal,
  toRfc3339,
  Type,
} from "../../src/plugin.ts";
import type { DeliveryRow } from "../../src/storage/index.ts";
import { createMessenger } from "./messenger.ts";
import * as schema from "./schemas.ts";
import { type NotifierVerification, verifyNotifiers } from "./verify-notifiers.ts";

const Options = Type.Object(
  {
    timeout_seconds: Type.Integer({
      default: 30,
      minimum: 1,
      maximum: 600,
      description: "Timeout of one attempt of a notifier.",
    }),
    keep_days: Type.Integer({
      default: 30,
      minimum: 4,
      maximum: 3650,
      description: "Time for which finished deliveries are listed.",
    }),
  },
  { additionalProperties: false, description: "Messages to people and other programs." },
);

export default defineCorePlugin({
  name: "deliveries",
  needs: ["actions"],
  options: Options,
  setup(host, options) {
    let verification: NotifierVerification | null = null;
    return {
      routes: routes(host),
      messenger(parts) {
        const messenger = createMessenger(host, options, parts);
        const { read, stop } = (verification = verifyNotifiers(host, parts.notifiers, options.timeout_seconds * 1000));
        return {
          ...messenger,
          start() {
            messenger.start();
            void read();
          },
          async stop() {
            stop();
            await messenger.stop();
          },
        };
      },
      checks: [
        { name: "notifiers", read: async () => (await verification?.read()) ?? { ok: true, detail: "ok", held: 0 } },
      ],
    };
  },
});

function routes(host: CoreHost) {
  const response = { description: "The delivery.", schema: schema.DeliveryRecord };
  const tag = "deliveries";
  return [
    defineRoute({
      method: "GET",
      path: "/v1/deliveries",
      tag,
      summary: "List deliveries, newest first",
      scope: "deliveries:read",
      query: schema.ListQuery,
      description:
        "`state=dead` lists deliveries that were abandoned. The messages are not included, because the links in them are secrets of their recipients.",
      responses: { 200: { description: "A page.", schema: schema.DeliveryList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query, credential }) {
        assertUnbound(credential);
        const { cursor, limit = DEFAULT_LIMIT, ...filter } = query;
        const result = await host.storage.deliveries({
          ...filter,
          limit: limit + 1,
          ...(cursor === undefined ? {} : { before_position: decodeSeqCursor("deliveries", cursor) }),
        });
        const { rows, next_cursor } = cutPage("deliveries", result, limit, (row) => row.position);
        return {
          status: 200,
          json: { deliveries: rows.map(show), next_cursor },
          headers: nextLink("/v1/deliveries", query, next_cursor),
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/deliveries/:id",
      tag,
      summary: "Read a delivery",
      scope: "deliveries:read",
      params: schema.DeliveryParams,
      responses: { 200: response },
      errors: ["DELIVERY_NOT_FOUND"],
      async handle({ params: { id }, credential }) {
        assertUnbound(credential);
        return { status: 200, json: show(await deliveryOf(host.storage, id)) };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/deliveries/:id/retry",
      tag,
      summary: "Retry a delivery now",
      scope: "deliveries:retry",
      params: schema.DeliveryParams,
      description:
        "A failed delivery is retried for another three days. A waiting delivery is attempted now instead of at its scheduled time.",
      responses: { 200: response },
      errors: ["DELIVERY_NOT_FOUND", "DELIVERY_NOT_DEAD"],
      async handle({ params: { id }, credential }) {
        const row = await host.ledger.transact(async (tx) => {
          assertUnbound(await confirmCredential(tx, credential, "deliveries:retry"));
          const before = await deliveryOf(tx, id);
          if (before.state !== "dead" && before.state !== "waiting")
            throw new Refusal(
              "DELIVERY_NOT_DEAD",
              `the delivery is ${before.state}; only waiting and dead deliveries can be retried`,
            );
          await tx.updateDelivery(id, before, {
            state: "waiting",
            next_at: tx.now,
            ...(before.state === "dead" ? { give_up_at: tx.now + DELIVERY_RETRY_MS } : {}),
            updated_at: tx.now,
          });
          return deliveryOf(tx, id);
        });
        return { status: 200, json: show(row) };
      },
    }),
  ];
}

/** Rejects keys of agents, which must not see who approves and how approvers are notified. */
function assertUnbound(credential: Credential): void {
  if (credential.key.agent_id !== null)
    throw new Refusal(
      "INSUFFICIENT_SCOPE",
      `the key "${credential.key.name}" is bound to an agent, and agents see no deliveries`,
    );
  if (!("all" in credential.limits))
    throw new Refusal(
      "INSUFFICIENT_SCOPE",
      "your groups limit which actions you see, and deliveries are about all actions; use a key without such a group",
    );
}

async function deliveryOf(
  reader: { delivery(id: string): Promise<DeliveryRow | null> },
  id: string,
): Promise<DeliveryRow> {
  const row = await reader.delivery(id);
  if (row === null)
    throw new Refusal(
      "DELIVERY_NOT_FOUND",
      `there is no delivery "${id}"; deliveries that have ended are removed after some time`,
    );
  return row;
}

function show(row: DeliveryRow): schema.DeliveryRecord {
  const { id, kind, state, destination, notifier, recipient, channel, person, action_id, seq, attempts, last_error } =
    row;
  return {
    id,
    kind,
    state,
    destination,
    notifier,
    recipient,
    channel,
    person,
    action_id,
    seq,
    attempts,
    next_attempt_at: state === "waiting" || state === "scheduled" ? toRfc3339(row.next_at) : null,
    give_up_at: toRfc3339(row.give_up_at),
    last_error,
    delivered_at: row.delivered_at === null ? null : toRfc3339(row.delivered_at),
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
  };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    deliveries: typeof routes;
  }
}

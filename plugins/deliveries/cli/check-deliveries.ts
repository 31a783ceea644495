import { AssentError, createAssent } from "../../../clients/typescript/index.ts";
import { CommandError, type DoctorCheck, findAvailableKey, serviceUrl } from "../../../src/command.ts";
import type { DeliveryRecord } from "../schemas.ts";

/** Request timeout in seconds. Short, because a person waits at the terminal. */
const TIMEOUT = 10;

/**
 * Reports for each notifier whether its newest message was delivered, because no configuration can show whether a token
 * or an address is right.
 */
export async function findDeliveryProblems(): Promise<Awaited<ReturnType<NonNullable<DoctorCheck["find"]>>>> {
  const check = "deliveries";
  let deliveries: DeliveryRecord[];
  try {
    const url = serviceUrl();
    const apiKey = findAvailableKey(url);
    if (apiKey === null) return [];
    const service = createAssent({ url, apiKey, timeout: TIMEOUT, retries: 0 });
    ({ deliveries } = await service.call<{ deliveries: DeliveryRecord[] }>("GET", "/v1/deliveries?limit=100"));
    if (!Array.isArray(deliveries)) return [];
  } catch (error) {
    // Other checks report a service that does not respond, and a key that is not valid. Keys of agents see no deliveries.
    if (error instanceof CommandError || error instanceof AssentError) return [];
    throw error;
  }
  const attempted = deliveries.filter(({ state, last_error }) => state === "delivered" || last_error !== null);
  const newest = new Map([...attempted].reverse().map((delivery) => [delivery.notifier, delivery]));
  return [...newest.values()].map(({ notifier, state, recipient, last_error }) =>
    state === "delivered"
      ? { check, state: "ok" as const, text: `${notifier} delivered its newest message` }
      : {
          check,
          state: "problem" as const,
          text: `${notifier} could not deliver its newest message, to ${recipient}: ${last_error}`,
          fix: "correct the configuration (docs/notifications.md), and send the message again in the console, under Deliveries",
        },
  );
}

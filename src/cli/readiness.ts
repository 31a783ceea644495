/** Reads the readiness of a running service, which `assent status` and `assent doctor` display. */
import { AssentError, type Assent } from "../../clients/typescript/index.ts";
import { isJsonObject } from "../domain/json.ts";

/** Response of `GET /readyz`, with the members that the commands display. */
export interface Readiness {
  ready: boolean;
  policies: {
    active: number;
    policy_set: string | null;
    offers: {
      source: string;
      commit: string | null;
      taken: boolean;
      applied_commit: string | null;
      baseline: boolean;
      unread_since?: string | null;
    }[];
  };
}

/**
 * Reads the readiness. Also resolves if the service responds that it is not ready. Throws AssentError for all other
 * errors.
 */
export async function readReadiness(service: Assent): Promise<Readiness> {
  try {
    return await service.call<Readiness>("GET", "/readyz");
  } catch (error) {
    // A service that is not ready responds with 503 and the same members.
    const body: unknown = error instanceof AssentError && error.status === 503 ? error.problem : null;
    if (isJsonObject(body) && body["ready"] === false && isJsonObject(body["policies"]))
      return body as unknown as Readiness;
    throw error;
  }
}

/** A check that failed. */
export interface FailedCheck {
  name: string;
  detail: string;
  /** Whether the check only reports that something is held on purpose, such as an active stop. */
  isHeld: boolean;
}

export function listFailedChecks(readiness: Readiness): FailedCheck[] {
  return Object.entries(readiness).flatMap(([name, check]) =>
    isJsonObject(check) && check["ok"] === false && typeof check["detail"] === "string"
      ? [{ name, detail: check["detail"], isHeld: Number(check["held"]) > 0 }]
      : [],
  );
}

/** Describes which checks failed, such as "policies: no policy is active: every action is denied". */
export function describeFailedChecks(readiness: Readiness): string {
  const failed = listFailedChecks(readiness).map(({ name, detail }) => `${name}: ${detail}`);
  return failed.length === 0 ? "it is stopping" : failed.join("; ");
}

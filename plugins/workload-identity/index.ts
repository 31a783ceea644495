/**
 * Lets agents authenticate with a token of their platform instead of an API key. A token gives the same `Credential` as
 * a bound key.
 */
import { userState, type CoreHost, defineCorePlugin, findAmbiguity, findUserByIdentity } from "../../src/core.ts";
import type { Credential } from "../../src/plugin.ts";
import { ERRORS } from "./token-errors.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { selectNamedClaims } from "./named-claims.ts";
import { assertIssuers, Options, type WorkloadOptions } from "./issuer-options.ts";
import { compileSubject } from "./subject-pattern.ts";
import { invalidToken, type Issuer, type VerifiedToken, verifyToken } from "./verify-token.ts";
import { WorkloadKeys } from "./workload-keys.ts";

export default defineCorePlugin({
  name: "workload-identity",
  options: Options,
  errors: ERRORS,
  setup(host, { issuers: configured }) {
    assertIssuers(configured);
    if (configured.length === 0) return {};
    const issuers = configured.map((options) => ({
      options,
      keys: new IssuerKeys({
        id: options.id,
        source: options.keys,
        isBundle: options.platform === "spiffe",
        clock: host.clock,
        log: host.log,
      }),
    }));
    const matchers = new Map(
      configured.flatMap(({ workloads }) =>
        workloads.map((workload) => [workload, compileSubject(workload.subject ?? "")] as const),
      ),
    );
    const keys = new WorkloadKeys(host);
    return {
      checks: [
        {
          name: "workload_identity",
          async read() {
            const failed = issuers.map((issuer) => issuer.keys.health()).filter(({ fault }) => fault !== null);
            // Callers of the route are not authenticated, so the reason is in the log only.
            const detail = `the keys of ${failed.map(({ id }) => `"${id}"`).join(", ")} cannot be read; the log has the reason`;
            return { ok: failed.length === 0, detail: failed.length === 0 ? "ok" : detail, held: 0 };
          },
        },
      ],
      async start() {
        for (const { keys: issuerKeys } of issuers) issuerKeys.health();
        const users = await host.state(userState);
        for (const { id, workloads } of configured)
          for (const { owner, ...workload } of workloads) {
            const fault = owner === undefined ? null : findAmbiguity(users, owner);
            if (fault !== null)
              throw new Error(`the owner of the workload "${id}/${workload.id}" is not clear: ${fault}`);
          }
      },
      authenticators: [
        {
          name: "workload-token",
          async authenticateToken(token) {
            const verified = await verifyToken(token, issuers, host.timeOfDay());
            return verified === null ? null : identify(host, keys, matchers, verified);
          },
        },
      ],
    };
  },
});

type Matchers = ReadonlyMap<WorkloadOptions, (subject: string) => boolean>;

/**
 * Returns the credential of the workload that a verified token belongs to. Throws INVALID_CREDENTIAL if there is none.
 */
async function identify(
  host: CoreHost,
  keys: WorkloadKeys,
  matchers: Matchers,
  { issuer, payload, expires_at }: VerifiedToken,
): Promise<Credential> {
  const claims = readClaims(issuer, payload);
  const subject = payload["sub"] as string;
  const workload = issuer.options.workloads.find(
    (each) =>
      (each.subject === undefined || matchers.get(each)?.(subject) === true) &&
      Object.entries(each.where).every(([name, value]) => claims[name] === value),
  );
  if (workload === undefined)
    throw invalidToken(
      `no workload of the issuer "${issuer.options.id}" matches its subject ${JSON.stringify(subject)}`,
    );
  const bearer =
    issuer.options.platform === "id-jag"
      ? { user_id: await findUserId(host, issuer.options.issuer, subject), agent_id: workload.agent }
      : { key_id: await keys.find(issuer.options, workload) };
  // The issuer states the time of day.
  const ends = expires_at + host.ledger.clockAhead();
  const credential = await host.keys.workload(bearer, { claims, expires_at: ends });
  if (credential === null) throw invalidToken("its workload was revoked, or its user is deactivated");
  return credential;
}

function readClaims({ options }: Issuer, payload: VerifiedToken["payload"]): VerifiedToken["payload"] {
  try {
    return selectNamedClaims(options, payload);
  } catch (error) {
    if (error instanceof RangeError) throw invalidToken(error.message);
    throw error;
  }
}

/**
 * Returns the user for whom the agent acts, from the subject of an ID-JAG. The user must be known, because only a known
 * user can be prevented from approving their own actions.
 */
async function findUserId(host: CoreHost, issuer: string, subject: string): Promise<string> {
  const user = findUserByIdentity(await host.state(userState), issuer, subject);
  if (user !== null) return user.id;
  throw invalidToken("its user has never signed in here with the same issuer and subject");
}

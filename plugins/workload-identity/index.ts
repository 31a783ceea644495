/**
 * Lets agents authenticate with a token of their platform instead of an API key. A token gives the same `Credential` as
 * a bound key.
 */
import { userState, type CoreHost, defineCorePlugin, findAmbiguity, findUserByIdentity } from "../../src/core.ts";
import type { Credential, Scope } from "../../src/plugin.ts";
import { AccessTokens } from "./access-tokens.ts";
import { ERRORS } from "./token-errors.ts";
import { tokenRoutes } from "./token-endpoint.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { selectNamedClaims } from "./named-claims.ts";
import { actsForUser, assertIssuers, type IssuerOptions, Options, type WorkloadOptions } from "./issuer-options.ts";
import { compileSubject } from "./subject-pattern.ts";
import { invalidToken, type Issuer, type VerifiedToken, verifyToken } from "./verify-token.ts";
import { WorkloadKeys } from "./workload-keys.ts";

export default defineCorePlugin({
  name: "workload-identity",
  options: Options,
  errors: ERRORS,
  setup(host, { issuers: configured }) {
    const self = host.config.server.public_url?.replace(/\/+$/, "") ?? null;
    assertIssuers(configured, self);
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
    const tokens = new AccessTokens(host);
    const grantIssuers = issuers.filter(({ options }) => options.platform === "id-jag");
    return {
      routes:
        self === null || grantIssuers.length === 0
          ? []
          : tokenRoutes({
              host,
              issuers: grantIssuers,
              self,
              tokens,
              identify: (verified) => identify(host, keys, matchers, verified),
            }),
      async start() {
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
            const access = grantIssuers.length === 0 ? null : tokens.read(token);
            const now = host.timeOfDay();
            if (access !== null && access.expires_at <= now) throw invalidToken("it has expired; get another one");
            const verified = await verifyToken(
              access?.assertion ?? token,
              access === null ? issuers : grantIssuers,
              now,
            );
            if (verified === null) return null;
            const { issuer, payload, expires_at } = verified;
            if (access === null) {
              if (issuer.options.platform === "id-jag")
                throw invalidToken("an ID-JAG is not a bearer token; exchange it for an access token at /oauth/token");
              return identify(host, keys, matchers, verified);
            }
            if (tokens.fingerprint(issuer, payload) !== access.client)
              throw invalidToken("the secret of its client has changed; get another one");
            const end = Math.min(expires_at, access.expires_at);
            return identify(host, keys, matchers, { ...verified, expires_at: end }, access.scopes);
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
  scopes?: readonly Scope[],
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
  const isForUser = actsForUser(issuer.options.platform);
  if (isForUser) assertTenant(issuer.options, workload, payload);
  const bearer = isForUser
    ? { user_id: await findUserId(host, issuer.options.issuer, subject), agent_id: workload.agent }
    : { key_id: await keys.find(issuer.options, workload) };
  // The issuer states the time of day.
  const ends = expires_at + host.ledger.clockAhead();
  const token = { claims, expires_at: ends, ...(scopes === undefined ? {} : { scopes }) };
  const credential = await host.keys.workload(bearer, token);
  if (credential === null) throw invalidToken("its workload was revoked, or its user is deactivated");
  return credential;
}

/** The subjects of an issuer with several tenants are unique only within a tenant, and users are found by subject. */
function assertTenant({ claims }: IssuerOptions, { where }: WorkloadOptions, payload: VerifiedToken["payload"]): void {
  const isRequired = Object.keys(where).some((name) => [claims[name]].flat().join(".") === "tenant");
  if (payload["tenant"] !== undefined && !isRequired)
    throw invalidToken("it has a `tenant`; require one with `where`, because subjects of tenants can be equal");
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
 * Returns the user for whom the agent acts, from the subject of its token. The user must be known, because only a known
 * user can be prevented from approving their own actions.
 */
async function findUserId(host: CoreHost, issuer: string, subject: string): Promise<string> {
  const user = findUserByIdentity(await host.state(userState), issuer, subject);
  if (user !== null) return user.id;
  throw invalidToken("its user has never signed in here with the same issuer and subject");
}

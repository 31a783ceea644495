/**
 * Issues AWS credentials with STS `AssumeRole`. The session name is the action's id, which CloudTrail records. A
 * session policy limits the role to what the action needs. AWS cannot revoke a single session, so a credential ends
 * when it expires.
 */
import { AwsClient } from "aws4fetch";
import {
  type ToolCredentialAction,
  type ToolCredentialIssuer,
  credentialIssuerOptions,
  definePlugin,
  type IssuedToolCredential,
  type Static,
  Type,
} from "../../src/plugin.ts";
import { fillSessionPolicy, findPolicyFault } from "./session-policy.ts";

const Options = credentialIssuerOptions({
  role_arn: Type.String({ pattern: "^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$", maxLength: 2048 }),
  region: Type.String({ pattern: "^[a-z0-9-]{1,40}$" }),
  access_key_id: Type.String({ minLength: 1, maxLength: 128 }),
  secret_access_key: Type.String({ minLength: 1, maxLength: 256 }),
  session_token: Type.Optional(Type.String({ minLength: 1, maxLength: 8192 })),
  policy: Type.Record(Type.String(), Type.Unknown(), {
    description: "Session policy. `{params.name}` in a string is replaced with that parameter of the action.",
  }),
  valid_seconds: Type.Integer({ default: 900, minimum: 900, maximum: 43_200, description: "Lifetime." }),
  endpoint: Type.Optional(
    Type.String({ pattern: "^https?://", description: "Address of STS, such as a VPC endpoint." }),
  ),
});
type AwsIssuerOptions = Static<typeof Options>["issuers"][string];

export default definePlugin({
  name: "credentials-aws",
  needs: ["credentials"],
  options: Options,
  setup: (_host, options) => ({
    credentialIssuers: Object.entries(options.issuers).map(([name, issuer]) => createAwsIssuer(name, issuer)),
  }),
});

function createAwsIssuer(name: string, options: AwsIssuerOptions): ToolCredentialIssuer {
  const fault = findPolicyFault(options.policy);
  if (fault !== null) throw new Error(`the policy of the issuer "${name}" ${fault}`);
  const {
    access_key_id: accessKeyId,
    secret_access_key: secretAccessKey,
    session_token: sessionToken,
    region,
  } = options;
  const client = new AwsClient({
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
    service: "sts",
    region,
    // Do not repeat the call, because that would create a second session.
    retries: 0,
  });
  const endpoint = options.endpoint ?? `https://sts.${region}.amazonaws.com/`;

  async function issue(action: ToolCredentialAction, signal: AbortSignal): Promise<IssuedToolCredential> {
    const body = new URLSearchParams({
      Action: "AssumeRole",
      Version: "2011-06-15",
      RoleArn: options.role_arn,
      RoleSessionName: action.id,
      DurationSeconds: String(options.valid_seconds),
      Policy: fillSessionPolicy(options.policy, action.params),
    });
    const response = await client.fetch(endpoint, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded; charset=utf-8" },
      body: body.toString(),
      signal,
      redirect: "error",
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`STS responded with status ${response.status} ${memberOf(answer, "Code") ?? ""}`);
    return toCredential(answer, region);
  }

  return { name, tools: options.tools, operations: options.operations, issue };
}

/**
 * Parses the response of `AssumeRole` (AWS STS API reference, version 2011-06-15). Throws Error if a member is missing.
 */
function toCredential(answer: string, region: string): IssuedToolCredential {
  const member = (name: string): string => {
    const value = memberOf(answer, name);
    if (value === null) throw new Error(`the response of STS has no ${name}`);
    return value;
  };
  const secret = {
    access_key_id: member("AccessKeyId"),
    secret_access_key: member("SecretAccessKey"),
    session_token: member("SessionToken"),
    region,
  };
  return { secret, expires_at: Date.parse(member("Expiration")), revocation: null };
}

/** Returns the text of the first element with this name. The values of this response contain no markup. */
function memberOf(xml: string, name: string): string | null {
  return new RegExp(`<${name}>([^<>]*)</${name}>`).exec(xml)?.[1]?.trim() ?? null;
}

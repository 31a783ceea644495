/**
 * Issues installation tokens of a GitHub App, limited to repositories and permissions (REST API, "Create an
 * installation access token for an app"). A token expires after an hour; the service revokes it when the action ends.
 */
import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import {
  type ToolCredentialAction,
  type ToolCredentialIssuer,
  credentialIssuerOptions,
  definePlugin,
  type IssuedToolCredential,
  type Static,
  Type,
} from "../../src/plugin.ts";

const RepositoryName = Type.String({ pattern: "^[A-Za-z0-9._-]{1,100}$" });

const Options = credentialIssuerOptions({
  app_id: Type.String({ pattern: "^[A-Za-z0-9.]{1,64}$", description: "App id or client id." }),
  private_key: Type.String({ minLength: 1, description: "The app's RSA key, PEM." }),
  installation_id: Type.Integer({ minimum: 1 }),
  repositories: Type.Array(RepositoryName, {
    minItems: 1,
    maxItems: 100,
    description: "Repositories that tokens can reach, without their owner.",
  }),
  repository_param: Type.Optional(
    Type.String({
      pattern: "^[A-Za-z0-9_]{1,64}$",
      description: "Parameter of the action that names one of `repositories`: the token reaches only this one.",
    }),
  ),
  permissions: Type.Record(
    Type.String({ pattern: "^[a-z_]{1,64}$" }),
    Type.Union([Type.Literal("read"), Type.Literal("write"), Type.Literal("admin")]),
    { minProperties: 1, description: "Permissions of tokens." },
  ),
  api_url: Type.String({ default: "https://api.github.com", pattern: "^https?://", maxLength: 500 }),
});
type GitHubIssuerOptions = Static<typeof Options>["issuers"][string];

export default definePlugin({
  name: "credentials-github",
  needs: ["credentials"],
  options: Options,
  setup: (_host, options) => ({
    credentialIssuers: Object.entries(options.issuers).map(([name, issuer]) => createGitHubIssuer(name, issuer)),
  }),
});

function createGitHubIssuer(name: string, options: GitHubIssuerOptions): ToolCredentialIssuer {
  const key = readPrivateKey(name, options.private_key);
  const api = options.api_url.replace(/\/$/, "");
  const call = (path: string, method: string, token: string, body: unknown, signal: AbortSignal): Promise<Response> =>
    fetch(`${api}${path}`, {
      method,
      headers: {
        accept: "application/vnd.github+json",
        authorization: `Bearer ${token}`,
        "x-github-api-version": "2022-11-28",
        "user-agent": "assent",
        ...(body === null ? {} : { "content-type": "application/json" }),
      },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
      signal,
      redirect: "error",
    });

  async function issue(action: ToolCredentialAction, signal: AbortSignal): Promise<IssuedToolCredential> {
    const repositories = repositoriesFor(options, action);
    const { permissions, app_id, installation_id } = options;
    const path = `/app/installations/${installation_id}/access_tokens`;
    const response = await call(path, "POST", createAppToken(app_id, key), { repositories, permissions }, signal);
    if (response.status !== 201) throw new Error(`GitHub responded with status ${response.status}`);
    const answer = (await response.json()) as InstallationToken | null;
    if (typeof answer?.token !== "string" || typeof answer.expires_at !== "string")
      throw new Error("the response of GitHub has no token");
    const { token, expires_at } = answer;
    if (!isLimited(answer, repositories, permissions)) {
      await revoke(token, signal);
      throw new Error("GitHub granted other repositories or permissions than requested");
    }
    return { secret: { token, repositories }, expires_at: Date.parse(expires_at), revocation: token };
  }

  async function revoke(token: string, signal: AbortSignal): Promise<void> {
    const response = await call("/installation/token", "DELETE", token, null, signal);
    // 401 means that the token has expired or was already revoked.
    if (response.status !== 204 && response.status !== 401)
      throw new Error(`GitHub responded to the revocation with status ${response.status}`);
  }

  return { name, tools: options.tools, operations: options.operations, issue, revoke };
}

function repositoriesFor(
  { repositories, repository_param }: GitHubIssuerOptions,
  action: ToolCredentialAction,
): string[] {
  if (repository_param === undefined) return [...repositories];
  const named = Object.hasOwn(action.params, repository_param) ? action.params[repository_param] : undefined;
  // GitHub ignores the case of repository names.
  const repository =
    typeof named === "string" ? repositories.find((name) => name.toLowerCase() === named.toLowerCase()) : undefined;
  if (repository === undefined)
    throw new Error(`the parameter "${repository_param}" does not name a configured repository`);
  return [repository];
}

/** Members that this plugin reads from GitHub's response to a token request. */
interface InstallationToken {
  token?: unknown;
  expires_at?: unknown;
  permissions?: Record<string, unknown>;
  repositories?: { name?: unknown }[];
}

/** Returns true if the token reaches exactly these repositories, and has no other permissions. */
function isLimited(
  { permissions: granted, repositories: reached = [] }: InstallationToken,
  repositories: readonly string[],
  permissions: GitHubIssuerOptions["permissions"],
): boolean {
  const names = reached.map(({ name }) => (typeof name === "string" ? name.toLowerCase() : null));
  return (
    names.length === repositories.length &&
    repositories.every((name) => names.includes(name.toLowerCase())) &&
    granted !== undefined &&
    // Allow `metadata: read`, which GitHub adds to every other permission.
    Object.entries(granted).every(
      ([name, level]) => permissions[name] === level || (name === "metadata" && level === "read"),
    )
  );
}

function readPrivateKey(name: string, pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "rsa") return key;
  } catch {
    // Report the error below, without the key.
  }
  throw new Error(`the private_key of the issuer "${name}" is not an RSA key in PEM`);
}

/**
 * Returns the JWT that authenticates the app (RS256). It expires after five minutes, and is backdated by a minute to
 * allow for clock drift.
 */
function createAppToken(appId: string, key: KeyObject): string {
  const now = Math.floor(Date.now() / 1000);
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${encode({ alg: "RS256", typ: "JWT" })}.${encode({ iat: now - 60, exp: now + 300, iss: appId })}`;
  return `${text}.${sign("RSA-SHA256", Buffer.from(text), key).toString("base64url")}`;
}

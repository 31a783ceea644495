/** A policy source that follows a branch or tag of a git repository, by polling and by webhook. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { Type, type Static } from "@sinclair/typebox";
import { type CoreHost, defineCorePlugin } from "../../src/core.ts";
import {
  parsePolicyFolder,
  type PolicyBundle,
  type PolicySource,
  PolicySourceError,
  testPolicyFolder,
} from "../../src/plugin.ts";
import { GitError } from "./git.ts";
import { openRepository, RemoteError, type Repository } from "./repository.ts";
import { createWebhookRoute } from "./webhook.ts";

const Options = Type.Object(
  {
    url: Type.Optional(
      Type.String({
        minLength: 1,
        description: "URL of the repository, in any form that git can fetch from. Without it the plugin does nothing.",
      }),
    ),
    ref: Type.Optional(
      Type.String({
        minLength: 1,
        pattern: "^[^-\\s:?*\\[\\\\^~][^\\s:?*\\[\\\\^~]*$",
        description: "Branch or tag; the remote's HEAD when absent.",
      }),
    ),
    folder: Type.String({ default: "", description: "Folder inside the repository; its root when absent." }),
    recursive: Type.Boolean({ default: false, description: "Include subfolders." }),
    interval_seconds: Type.Number({
      default: 60,
      minimum: 1,
      maximum: 86_400,
      description: "How often the repository is polled.",
    }),
    timeout_seconds: Type.Number({ default: 30, minimum: 1, maximum: 600, description: "Timeout of one git command." }),
    username: Type.Optional(
      Type.String({ minLength: 1, description: "For http(s); `git` when absent and there is a password." }),
    ),
    password: Type.Optional(
      Type.String({ minLength: 1, description: "Password or token for http(s), best as ${VARIABLE}." }),
    ),
    password_file: Type.Optional(
      Type.String({ minLength: 1, description: "File with the password or token; read before each fetch." }),
    ),
    ssh_key_file: Type.Optional(
      Type.String({ minLength: 1, description: "Private key for ssh, without a passphrase." }),
    ),
    known_hosts_file: Type.Optional(
      Type.String({
        minLength: 1,
        description: "Host keys for ssh; the user's when absent. Unknown hosts are refused.",
      }),
    ),
    signed_by: Type.Optional(
      Type.Array(Type.String({ pattern: "^(ssh|sk-ssh|ecdsa|sk-ecdsa)-[^\\s]+ [A-Za-z0-9+/=]+( .*)?$" }), {
        minItems: 1,
        description:
          "OpenSSH public keys. The commit must be signed by one of them, and descend from the last accepted commit.",
      }),
    ),
    accept: Type.Optional(
      Type.String({
        pattern: "^[0-9a-f]{40}([0-9a-f]{24})?$",
        description: "With signed_by: one commit that need not descend from the last accepted commit.",
      }),
    ),
    webhook_secret: Type.Optional(
      Type.String({
        minLength: 16,
        description: "Enables POST /v1/policy-sources/git/webhook for requests that are signed with this secret.",
      }),
    ),
  },
  { additionalProperties: false },
);
type Options = Static<typeof Options>;

const SSH_ONLY = /^(ssh:\/\/|[^/:]+@[^/:]+:)/;

export default defineCorePlugin({
  name: "policy-git",
  options: Options,
  setup(host, options) {
    if (options.url === undefined) return {};
    const followed = follow(host, options, options.url);
    return {
      policySources: [followed.source],
      ...(options.webhook_secret === undefined
        ? {}
        : { routes: [createWebhookRoute(options.webhook_secret, followed.look)] }),
    };
  },
});

function follow(host: CoreHost, options: Options, given: string): { source: PolicySource; look(): void } {
  const { url, username, password } = withoutCredentials(given);
  if (url.startsWith("-") || /^ext::/i.test(url)) throw new Error(`"${url}" is not the address of a repository`);
  if (options.password !== undefined && options.password_file !== undefined)
    throw new Error('option "password_file": give either password or password_file');
  const http = /^https?:\/\//i.test(url);
  if ((options.password !== undefined || options.password_file !== undefined) && !http)
    throw new Error('option "password": only http and https take one; ssh takes ssh_key_file');
  if (options.ssh_key_file !== undefined && !SSH_ONLY.test(url))
    throw new Error('option "ssh_key_file": only ssh takes one');
  const folder = posix.normalize(`/${options.folder}`).slice(1).replace(/\/$/, "");
  const about = {
    kind: "git",
    url,
    ...(options.ref === undefined ? {} : { ref: options.ref }),
    ...(folder === "" ? {} : { folder }),
  };

  /** Created for each fetch, because the token in the password file can change while the service runs. */
  function repository(): Repository {
    const secret =
      options.password_file === undefined ? (options.password ?? password) : readSecret(options.password_file);
    const basic =
      secret === null || secret === undefined
        ? null
        : Buffer.from(`${options.username ?? username ?? "git"}:${secret}`).toString("base64");
    return openRepository({
      url,
      ref: options.ref ?? null,
      folder: join(host.config.data, "policy-git", createHash("sha256").update(url).digest("hex").slice(0, 16)),
      timeoutMs: options.timeout_seconds * 1000,
      secrets: basic === null ? [] : [["http.extraHeader", `Authorization: Basic ${basic}`]],
      env: SSH_ONLY.test(url) ? { GIT_SSH_COMMAND: sshCommand(options) } : {},
      signers: options.signed_by ?? null,
    });
  }

  /** The last loaded commit, whether it was accepted or not. */
  let seen: string | null = null;
  /** Only one git command at a time uses the mirror. */
  let working: Promise<unknown> = Promise.resolve();
  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const result = working.then(work);
    working = result.catch(() => undefined);
    return result;
  };

  function refuse(error: unknown, commit: string | null): PolicySourceError {
    if (!(error instanceof RemoteError || error instanceof GitError)) throw error;
    return new PolicySourceError(error.message, [{ file: url, line: null, column: null, message: error.message }], {
      ...about,
      ...(commit === null ? {} : { commit }),
    });
  }

  /** Resolves to the last commit that any process accepted; null if the configuration now follows another branch or repository. */
  async function acceptedBefore(commit: string): Promise<string | null> {
    if (options.signed_by === undefined || commit === options.accept) return null;
    const taken = await host.storage.meta("policy_source:policy-git");
    const { source = {} } = (taken === null ? {} : JSON.parse(taken)) as { source?: Record<string, string> };
    return source["url"] === url && source["ref"] === options.ref ? (source["commit"] ?? null) : null;
  }

  async function load(): Promise<PolicyBundle> {
    return alone(async () => {
      const from = repository();
      let commit: string | null = null;
      try {
        commit = await from.fetch();
        seen = commit;
        const { files, faults } = await from.files(commit, folder, options.recursive, await acceptedBefore(commit));
        const where = `${folder === "" ? url : `${url}/${folder}`}@${commit.slice(0, 12)}`;
        const checked = testPolicyFolder(
          parsePolicyFolder(where, files, { unread: faults, environment: host.config.environment }),
        );
        if (checked.faults.length > 0)
          throw new PolicySourceError(
            `${checked.faults.length} ${checked.faults.length === 1 ? "fault" : "faults"} in commit ${commit}`,
            checked.faults,
            { ...about, commit },
          );
        return {
          policies: checked.documents.map(({ document, file }) => ({ document, origin: `${file}@${commit}` })),
          source: { ...about, commit },
        };
      } catch (error) {
        if (error instanceof PolicySourceError) throw error;
        throw refuse(error, commit);
      }
    });
  }

  let look = (): void => {};
  return {
    look: () => look(),
    source: {
      name: "policy-git",
      load,
      watch(changed) {
        const duty = host.leaderLease("policy-git");
        let timer: ReturnType<typeof setTimeout> | null = null;
        let stopped = false;
        let asking: Promise<void> | null = null;
        /** Whether the last poll failed. Then `changed` is called on each poll, so that the failure and its end are reported. */
        let faulty = false;

        /** @param byWebhook whether a webhook was received: then this process polls even if it is not the leader */
        async function ask(byWebhook: boolean): Promise<void> {
          if (!byWebhook && !(await duty.isLeader())) return;
          let commit: string | null = null;
          try {
            commit = await alone(() => repository().fetch());
          } catch (error) {
            if (!(error instanceof RemoteError)) throw error;
          }
          if (stopped || (commit === seen && commit !== null && !faulty)) return;
          faulty = commit === null;
          changed();
        }

        function next(ms: number, byWebhook = false): void {
          if (stopped) return;
          if (timer !== null) clearTimeout(timer);
          timer = setTimeout(() => {
            timer = null;
            if (asking !== null) return next(100, byWebhook);
            asking = ask(byWebhook)
              .catch((error: unknown) =>
                host.log.warn("the policy repository could not be polled; trying again", {
                  url,
                  error: String(error),
                }),
              )
              .finally(() => {
                asking = null;
                if (timer === null) next(options.interval_seconds * 1000);
              });
          }, ms);
          timer.unref?.();
        }

        look = () => next(0, true);
        next(options.interval_seconds * 1000);
        return async () => {
          stopped = true;
          look = () => undefined;
          if (timer !== null) clearTimeout(timer);
          await asking;
          await duty.release().catch(() => undefined);
        };
      },
    },
  };
}

/** Removes credentials from the URL, so that they do not appear in logs and in the ledger. */
function withoutCredentials(given: string): { url: string; username: string | null; password: string | null } {
  if (!/^https?:\/\//i.test(given)) return { url: given, username: null, password: null };
  const url = new URL(given);
  const credentials = {
    username: url.username === "" ? null : decodeURIComponent(url.username),
    password: url.password === "" ? null : decodeURIComponent(url.password),
  };
  url.username = "";
  url.password = "";
  return { url: url.href, ...credentials };
}

function readSecret(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new RemoteError(`the password file cannot be read: ${(error as Error).message}`);
  }
}

function sshCommand({ ssh_key_file, known_hosts_file }: Options): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  return [
    "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes",
    ...(ssh_key_file === undefined ? [] : [`-o IdentitiesOnly=yes -i ${quoted(ssh_key_file)}`]),
    ...(known_hosts_file === undefined ? [] : [`-o UserKnownHostsFile=${quoted(known_hosts_file)}`]),
  ].join(" ");
}

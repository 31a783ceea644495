/** Posts commit statuses and comments to the REST API of GitHub (version 2022-11-28). */
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { GithubOptions } from "./options.ts";

/** Timeout of one request. Milliseconds. */
const TIMEOUT_MS = 10_000;
/** Delay before each retry. Milliseconds. */
const RETRY_AFTER_MS = [500, 4_000];
/** Limits of the API, in characters. */
const MAX_DESCRIPTION = 140;
const MAX_BODY = 65_000;
const CUT = "\n\nThe rest was omitted, because GitHub does not accept longer comments.";

/** GitHub rejected a request or did not respond. The message contains neither the token nor the response. */
export class GithubError extends Error {}

export class GithubClient {
  private readonly options: GithubOptions;
  private readonly api: string;

  /** Throws an error if the options contradict each other or would send the token unencrypted. */
  constructor(options: GithubOptions) {
    if ((options.token === undefined) === (options.token_file === undefined))
      throw new Error('option "github": set exactly one of token and token_file');
    const { protocol, hostname } = new URL(options.api_url);
    if (protocol !== "https:" && !["127.0.0.1", "localhost", "[::1]"].includes(hostname))
      throw new Error('option "github.api_url": the token is sent only to https addresses, or to this machine');
    this.options = options;
    this.api = `${options.api_url.replace(/\/$/, "")}/repos/${options.repository}`;
  }

  /** Posts the status of a commit. Rejects with GithubError. */
  async postStatus(
    commit: string,
    { state, description, url }: { state: "success" | "failure"; description: string; url: string | null },
    signal: AbortSignal,
  ): Promise<void> {
    const { context } = this.options;
    const target = url === null ? {} : { target_url: url };
    await this.post(
      `/statuses/${commit}`,
      { state, description: clip(description, MAX_DESCRIPTION), context, ...target },
      signal,
    );
  }

  /**
   * Posts a comment on a commit. Rejects with GithubError.
   * @param body Markdown
   */
  async postComment(commit: string, body: string, signal: AbortSignal): Promise<void> {
    await this.post(`/commits/${commit}/comments`, { body: clipLines(body, MAX_BODY) }, signal);
  }

  /** Retries after a failure of the connection or the server. */
  private async post(path: string, body: object, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const failure = await this.send(path, body, signal);
      if (failure === null) return;
      const wait = RETRY_AFTER_MS[attempt];
      if (!failure.mayPass || wait === undefined || signal.aborted) throw new GithubError(failure.message);
      await pause(wait, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Sends one request. Resolves to null if the status or comment was created, else to the failure. */
  private async send(
    path: string,
    body: object,
    signal: AbortSignal,
  ): Promise<{ message: string; mayPass: boolean } | null> {
    let response: Response;
    try {
      response = await fetch(`${this.api}${path}`, {
        method: "POST",
        headers: {
          accept: "application/vnd.github+json",
          authorization: `Bearer ${this.readToken()}`,
          "content-type": "application/json",
          "user-agent": "assent",
          "x-github-api-version": "2022-11-28",
        },
        body: JSON.stringify(body),
        // Do not follow redirects, because that would send the token to another address.
        redirect: "error",
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      await response.body?.cancel();
    } catch (error) {
      if (error instanceof GithubError) return { message: error.message, mayPass: false };
      return { message: `GitHub did not respond: ${(error as Error).name}`, mayPass: true };
    }
    if (response.status === 201) return null;
    return {
      message: `GitHub responded with status ${response.status}`,
      mayPass: response.status >= 500 || response.status === 429,
    };
  }

  private readToken(): string {
    const { token, token_file } = this.options;
    let secret = token ?? "";
    try {
      if (token_file !== undefined) secret = readFileSync(token_file, "utf8").trim();
    } catch (error) {
      throw new GithubError(`the token file cannot be read: ${(error as NodeJS.ErrnoException).code ?? ""}`);
    }
    if (!/^[\x21-\x7e]+$/.test(secret)) throw new GithubError("the token contains invalid characters");
    return secret;
  }
}

function clip(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/**
 * Cuts the text between two lines, because a code span that is not closed would turn the following text into markup.
 */
function clipLines(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, Math.max(0, text.lastIndexOf("\n", max - CUT.length))) + CUT;
}

/** The format of a request from the launcher to the deciding process: one line of JSON, then the host's payload. */
import { loadConfig } from "./hook-config.ts";
import { startService } from "./start-service.ts";
import { decideHookCall } from "./decide-tool-call.ts";
import { isHost, type HookAnswer } from "./hosts/answers.ts";
import { isObject, MAX_PAYLOAD_BYTES } from "./payload.ts";
import { HookState, stateFolder } from "./hook-state.ts";

/** The first line of a request, as JSON. */
export interface RequestHeader {
  version: string;
  host: string;
  cwd: string;
  project: string | null;
  program: string | null;
  /** Time limit for the answer in seconds. */
  deadline: number;
  /** Seconds that a call waits for approval; null to wait until the deadline. */
  maxWait: number | null;
  /** Environment variables that determine the configuration and the state folder. */
  env: Record<string, string>;
}

/** Maximum size of a request. Bytes. */
export const MAX_REQUEST_BYTES = MAX_PAYLOAD_BYTES + 65_536;

/**
 * Evaluates one request. Resolves to null for an invalid request, or a request of a different version. The launcher
 * then uses a worker.
 */
export async function serveRequest(request: Buffer, version: string, signal: AbortSignal): Promise<HookAnswer | null> {
  const end = request.indexOf(10);
  const header = end < 0 ? null : readHeader(request.subarray(0, end).toString("utf8"));
  if (header === null || header.version !== version || !isHost(header.host)) return null;
  const { env } = header;
  return decideHookCall(
    {
      flag: header.host,
      payload: request.subarray(end + 1),
      environment: {
        cwd: header.cwd,
        home: env["HOME"] || env["USERPROFILE"] || null,
        project: header.project,
        codexProgram: header.program,
      },
      deadline: header.deadline,
      maxWait: header.maxWait,
      signal,
    },
    {
      config: () => loadConfig(env),
      state: new HookState(stateFolder(env)),
      startService: (config, timeoutMs) => startService(config, env, timeoutMs, signal),
    },
  );
}

function readHeader(line: string): RequestHeader | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isObject(value) || !isObject(value["env"])) return null;
  const { version, host, cwd, project, program, deadline, maxWait, env } = value;
  const isValid =
    typeof version === "string" &&
    typeof host === "string" &&
    typeof cwd === "string" &&
    [project, program].every((each) => each === null || typeof each === "string") &&
    typeof deadline === "number" &&
    (maxWait === null || typeof maxWait === "number") &&
    Object.values(env as object).every((each) => typeof each === "string");
  return isValid ? (value as unknown as RequestHeader) : null;
}

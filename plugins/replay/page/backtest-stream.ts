/** Runs a backtest and reports its progress. */
import { type Api, type Backtest, type ReportProgress, sendRequest } from "../../console/app/kit.ts";

/**
 * Timeout for progress, after which the stream counts as failed. The service reports progress twice a second.
 * Milliseconds.
 */
const SILENCE_MS = 60_000;

/**
 * Runs one backtest. Aborting the signal also ends the work in the service. Throws `ApiError`, or `Error` if the stream
 * ends before it delivers the result.
 */
export async function runBacktest(
  body: Api["POST /v1/replay/progress"]["body"],
  { signal, onProgress }: { signal: AbortSignal; onProgress: (counts: ReportProgress) => void },
): Promise<Backtest> {
  const response = await sendRequest("/v1/replay/progress", { method: "POST", body, signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (reader !== undefined) {
    const { done, value } = await withinSilence(reader.read());
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const message = JSON.parse(line) as ({ type: "progress" } & ReportProgress) | ({ type: "result" } & Backtest);
      if (message.type === "result") return message;
      onProgress(message);
    }
  }
  throw new Error("the backtest ended before its result: run it again");
}

function withinSilence<T>(read: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new Error(`the backtest has reported nothing for ${SILENCE_MS / 1000} seconds: run it again`);
    timer = setTimeout(() => reject(error), SILENCE_MS);
  });
  return Promise.race([read, late]).finally(() => clearTimeout(timer));
}

/** Makes an evidence pack of a period, and saves it as a ZIP file. */
import {
  downloadBlob,
  ErrorNotice,
  FactList,
  Field,
  formatCounted,
  Hash,
  Notice,
  Page,
  readFormValues,
  sendRequest,
  useEffect,
  useRef,
  useState,
} from "../../console/app/kit.ts";
import { createZip } from "./zip.ts";

const TEXTS = {
  title: "Evidence",
  help: "A pack lets an auditor verify offline who approved what in a period, on what grounds, and what they saw. It contains the parameters of actions as plain text, so protect it like the store. Requests that were erased are not in it.",
  from: "From",
  to: "Until",
  make: "Make the pack",
  cancel: "Cancel",
  done: "The pack is saved. Unpack it and open verify.html in a browser.",
  digest: "State this digest when you hand over the pack, so that the auditor can compare it.",
  cut: "the service ended the pack early; try again",
} as const;

type Line =
  | { type: "progress"; done: number; total: number }
  | { type: "file"; name: string; text: string }
  | { type: "result"; digest: string; entries: number; actions: number }
  | { type: "error"; detail: string };
type Result = Extract<Line, { type: "result" }>;
interface Progress {
  done: number;
  total: number;
}

export function Evidence() {
  const [progress, setProgress] = useState<Progress | null>(null);
  const [result, setResult] = useState<Result | null>(null);
  const [error, setError] = useState<unknown>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const make = async (form: HTMLFormElement): Promise<void> => {
    const { from = "", to = "" } = readFormValues(form);
    const controller = new AbortController();
    running.current = controller;
    setProgress({ done: 0, total: 0 });
    setResult(null);
    setError(null);
    try {
      const body = { from: startOfDay(from, 0), to: startOfDay(to, 1) };
      const made = await readPack(body, controller.signal, setProgress);
      downloadBlob(`evidence-${from}-${to}.zip`, new Blob(createZip(made.files) as BlobPart[]));
      setResult(made.result);
    } catch (problem) {
      if (!controller.signal.aborted) setError(problem);
    } finally {
      setProgress(null);
    }
  };
  const today = new Date();
  return (
    <Page title={TEXTS.title}>
      <p class="quiet">{TEXTS.help}</p>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          void make(event.currentTarget);
        }}
      >
        <Field name="from" label={TEXTS.from} type="date" required defaultValue={toDay(new Date(+today - 30 * DAY))} />
        <Field name="to" label={TEXTS.to} type="date" required defaultValue={toDay(today)} />
        <button type="submit" class="primary" disabled={progress !== null}>
          {TEXTS.make}
        </button>
        {progress === null ? null : (
          <button type="button" onClick={() => running.current?.abort()}>
            {TEXTS.cancel}
          </button>
        )}
      </form>
      {progress === null ? null : (
        <p role="status">
          <progress max={Math.max(progress.total, 1)} value={progress.done} aria-label={TEXTS.make} />{" "}
          {progress.done.toLocaleString("en")} of {formatCounted(progress.total, "entry", "entries")}
        </p>
      )}
      <ErrorNotice error={error} />
      {result === null ? null : (
        <>
          <Notice kind="good">{TEXTS.done}</Notice>
          <FactList
            rows={[
              ["Entries", result.entries.toLocaleString("en")],
              ["Actions", result.actions.toLocaleString("en")],
              ["Digest", <Hash value={result.digest} />],
            ]}
          />
          <p class="quiet">{TEXTS.digest}</p>
        </>
      )}
    </Page>
  );
}

const DAY = 86_400_000;
/** Returns the day in the reader's time zone, as a date field has it. */
const toDay = (at: Date): string =>
  [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
function startOfDay(day: string, daysLater: number): string {
  const start = new Date(`${day}T00:00`);
  start.setDate(start.getDate() + daysLater);
  return start.toISOString();
}

/** Reads the files of a pack. Throws if the service cannot create it, or ends the response early. */
async function readPack(
  body: { from: string; to: string },
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<{ files: Map<string, Uint8Array[]>; result: Result }> {
  const response = await sendRequest("/v1/evidence", { method: "POST", body, signal });
  const files = new Map<string, Uint8Array[]>();
  const encoder = new TextEncoder();
  let rest = "";
  const read = (text: string): Result | null => {
    const lines = `${rest}${text}`.split("\n");
    rest = lines.pop() ?? "";
    for (const each of lines) {
      const line = JSON.parse(each) as Line;
      if (line.type === "error") throw new Error(line.detail);
      if (line.type === "result") return line;
      if (line.type === "progress") onProgress({ done: line.done, total: line.total });
      else {
        const chunks = files.get(line.name) ?? [];
        files.set(line.name, chunks);
        chunks.push(encoder.encode(line.text));
      }
    }
    return null;
  };
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error(TEXTS.cut);
    const result = read(decoder.decode(value, { stream: true }));
    if (result !== null) return { files, result };
  }
}

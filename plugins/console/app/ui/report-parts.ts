/** A report that is fetched in parts, newest decisions first. */
import { useEffect, useRef, useState } from "preact/hooks";
import { serviceNow } from "../core/api.ts";
import { type FlipReport, joinReports } from "./flips.ts";

const DAY = 86_400_000;
/** Ranges that the user can choose, in milliseconds. */
export const RANGES: Readonly<Record<string, number>> = {
  "24 hours": DAY,
  "7 days": 7 * DAY,
  "30 days": 30 * DAY,
  "90 days": 90 * DAY,
  "1 year": 365 * DAY,
};
const DEFAULT_RANGE = "7 days";

/** Numbers of the decisions that were evaluated so far. */
export interface ReportProgress {
  evaluated: number;
  flipped: number;
}

/** The range of one request of a report. */
interface ReportPart {
  since: string;
  until: string | undefined;
  /** Sequence number at which the previous part ended; null for the first part. */
  before: number | null;
  signal: AbortSignal;
  onProgress: (counts: ReportProgress) => void;
}

interface Options<Comparison> {
  fetchPart: (part: ReportPart) => Promise<FlipReport>;
  /** Called with the whole report after each part. */
  compare?: (report: FlipReport, signal: AbortSignal) => Promise<Comparison | null>;
  /** Called with the error of a request. Returns true if another element displays the error. */
  onRefused?: (error: unknown) => boolean;
  /** The subject of the report. If it changes, the report is stale. */
  subject: string;
}

interface State<Comparison> {
  isBusy: boolean;
  isCancelled: boolean;
  counts: ReportProgress | null;
  data: FlipReport | null;
  comparison: Comparison | null;
  error: unknown;
  subject: string;
}

export interface ReportState<Comparison> extends Omit<State<Comparison>, "subject"> {
  range: string;
  isStale: boolean;
  setRange(range: string): void;
  start(): void;
  /** Continues the report with older decisions. */
  goOn(): void;
  cancel(): void;
}

/** Returns the state of a report, and functions that start, continue and cancel it. Leaving the page cancels it. */
export function useReport<Comparison>(options: Options<Comparison>): ReportState<Comparison> {
  const { fetchPart, compare, onRefused, subject } = options;
  const [range, setRange] = useState(DEFAULT_RANGE);
  const [state, setState] = useState<State<Comparison>>({
    isBusy: false,
    isCancelled: false,
    counts: null,
    data: null,
    comparison: null,
    error: null,
    subject,
  });
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const fetchNext = async (first: FlipReport | null): Promise<void> => {
    running.current?.abort();
    const current = new AbortController();
    running.current = current;
    const { signal } = current;
    const update = (change: Partial<State<Comparison>>): void => {
      if (!signal.aborted) setState((old) => ({ ...old, ...change }));
    };
    update({ isBusy: true, isCancelled: false, counts: null, data: first, comparison: null, error: null, subject });
    try {
      const since = first?.since ?? new Date(serviceNow() - (RANGES[range] ?? DAY)).toISOString();
      const onProgress = ({ evaluated, flipped }: ReportProgress): void =>
        update({
          counts: { evaluated: evaluated + (first?.evaluated ?? 0), flipped: flipped + (first?.flipped ?? 0) },
        });
      const part = await fetchPart({ since, until: first?.until, before: first?.next ?? null, signal, onProgress });
      const data = joinReports(first, part);
      update({ data });
      update({ comparison: (await compare?.(data, signal)) ?? null, isBusy: false });
    } catch (error) {
      update({ isBusy: false, error: onRefused?.(error) === true ? null : error });
    }
  };
  return {
    ...state,
    range,
    setRange,
    isStale: state.subject !== subject,
    start: () => void fetchNext(null),
    goOn: () => void fetchNext(state.data),
    cancel() {
      running.current?.abort();
      setState((old) => ({ ...old, isBusy: false, isCancelled: old.data === null }));
    },
  };
}

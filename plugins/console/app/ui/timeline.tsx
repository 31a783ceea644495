/**
 * A timeline of an action, an agent, a person or the system. Shows the oldest step first by default. With exact
 * times, it also draws the time between two steps.
 */
import type { ComponentChildren } from "preact";
import { Ago, Time } from "./elements.tsx";
import { formatDuration } from "./format.ts";

export interface TimelineStep {
  key: string | number;
  /** RFC 3339 time. */
  at: string;
  /** Colour of the mark. */
  kind?: "good" | "bad" | "busy" | undefined;
  content: ComponentChildren;
}

/** Gaps between steps that are shorter than this are not drawn. Milliseconds. */
const MIN_GAP_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** @param props.newestFirst whether the steps are in descending order of time */
export function Timeline({
  label,
  steps,
  newestFirst = false,
  hasExactTimes = false,
}: {
  label: string;
  steps: readonly TimelineStep[];
  newestFirst?: boolean;
  /** Whether to show the time of each step, and the time between steps, instead of its age. */
  hasExactTimes?: boolean;
}) {
  return (
    <ol class="timeline" aria-label={label} {...(newestFirst ? { reversed: true } : {})}>
      {steps.map(({ key, at, kind, content }, i) => {
        const previous = steps[i - 1];
        const gap = previous === undefined ? 0 : Math.abs(Date.parse(at) - Date.parse(previous.at));
        return (
          <li key={key} class={`step ${kind ?? ""}`}>
            {gap < MIN_GAP_MS || !hasExactTimes ? null : (
              <p class={`gap ${gapSize(gap)}`}>
                {formatDuration(gap)} {newestFirst ? "earlier" : "later"}
              </p>
            )}
            <p class="step-body">
              {hasExactTimes ? <Time at={at} /> : <Ago at={at} />} {content}
            </p>
          </li>
        );
      })}
    </ol>
  );
}

/** Returns the size of a gap. There are only three sizes, so that a gap of several days fits on the page. */
function gapSize(ms: number): "minutes" | "hours" | "days" {
  if (ms >= DAY_MS) return "days";
  return ms >= HOUR_MS ? "hours" : "minutes";
}

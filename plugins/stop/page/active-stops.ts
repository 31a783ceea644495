/** The active stops, which the bar polls. */
import { useEffect, useState } from "preact/hooks";
import { followLiveEvents, request } from "../../console/app/kit.ts";
import type { Stop } from "./api-types.ts";

/** Poll interval. Milliseconds. */
const POLL_MS = 5000;
const watchers = new Set<() => void>();

/** Reads the active stops again at once, after a change. */
export function refreshStops(): void {
  for (const watcher of watchers) watcher();
}

export function useStops(): readonly Stop[] {
  const [stops, setStops] = useState<readonly Stop[]>([]);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const watcher = (): void => setRound((n) => n + 1);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
  useEffect(() => {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async (): Promise<void> => {
      try {
        if (!document.hidden) setStops((await request("GET /v1/stop", { signal: controller.signal })).stops);
      } catch {
        // The error is temporary, and other parts of the page display it.
      }
      if (!controller.signal.aborted) timer = setTimeout(() => void poll(), POLL_MS);
    };
    void poll();
    // A new stop has to be seen before the next vote, which can be earlier than the next poll.
    followLiveEvents({
      filters: { type: "stop" },
      signal: controller.signal,
      onEvent: refreshStops,
      onState: () => undefined,
    });
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [round]);
  return stops;
}

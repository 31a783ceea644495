/** Components of the inbox that few people need. They are loaded when they are first displayed. */
import type { ComponentProps, ComponentType } from "preact";
import { Loading, ErrorNotice } from "../ui/elements.tsx";
import { useLoad } from "../ui/hooks.ts";

const loadFirstSteps = async () => ({ View: (await import("./first-steps.tsx")).FirstSteps });
const loadHistory = async () => ({ View: (await import("../ui/action-history.tsx")).ActionHistory });
const loadTestProof = async () => ({ View: (await import("./test-proof.tsx")).TestRequestProof });

export function FirstSteps(props: ComponentProps<Awaited<ReturnType<typeof loadFirstSteps>>["View"]>) {
  return <LazyPart load={loadFirstSteps} what="the first steps" props={props} />;
}

export function ActionHistory(props: ComponentProps<Awaited<ReturnType<typeof loadHistory>>["View"]>) {
  return <LazyPart load={loadHistory} what="the history" props={props} />;
}

export function TestRequestProof(props: ComponentProps<Awaited<ReturnType<typeof loadTestProof>>["View"]>) {
  return <LazyPart load={loadTestProof} what="the proof" props={props} />;
}

function LazyPart<P extends object>({
  load,
  what,
  props,
}: {
  load: () => Promise<{ View: ComponentType<P> }>;
  what: string;
  props: P;
}) {
  const { data, error, reload } = useLoad(load, []);
  if (error !== null) return <ErrorNotice error={error} onRetry={reload} />;
  return data === null ? <Loading what={what} /> : <data.View {...props} />;
}

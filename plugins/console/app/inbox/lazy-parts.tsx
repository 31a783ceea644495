/** Components of the inbox that few people need. They are loaded when they are first displayed. */
import type { ComponentProps } from "preact";
import { Loading } from "../ui/elements.tsx";
import { LazyPart } from "../ui/panels.tsx";

const loadFirstSteps = async () => (await import("./first-steps.tsx")).FirstSteps;
const loadHistory = async () => (await import("../ui/action-history.tsx")).ActionHistory;

export function FirstSteps(props: ComponentProps<Awaited<ReturnType<typeof loadFirstSteps>>>) {
  return <LazyPart load={loadFirstSteps} props={props} waiting={<Loading what="the first steps" />} />;
}

export function ActionHistory(props: ComponentProps<Awaited<ReturnType<typeof loadHistory>>>) {
  return <LazyPart load={loadHistory} props={props} waiting={<Loading what="the history" />} />;
}

/** Validates a policy's text in the service while a person types. */
import { useEffect, useState } from "preact/hooks";
import { type Api, request } from "../../console/app/kit.ts";

export type CheckResult = Api["POST /v1/policies/check"]["response"];

export interface CheckState {
  /** Result for the newest text that was checked; null before the first check. */
  result: CheckResult | null;
  error: unknown;
  /** Whether the newest text has not been checked yet, so that the result belongs to an earlier text. */
  isBusy: boolean;
  recheck(): void;
}

/** Delay from the last keystroke to a check. Milliseconds. */
const PAUSE_MS = 300;

/** Returns the state of the check of a policy and its tests. A check is aborted when the text changes. */
export function useCheckedText(yaml: string, tests: string): CheckState {
  const [state, setState] = useState<{ result: CheckResult | null; error: unknown; of: string }>({
    result: null,
    error: null,
    of: "",
  });
  const [round, setRound] = useState(0);
  const subject = JSON.stringify([yaml, tests]);
  useEffect(() => {
    const controller = new AbortController();
    const body = { yaml, ...(tests.trim() === "" ? {} : { tests }) };
    const check = (): void =>
      void request("POST /v1/policies/check", { body, signal: controller.signal }).then(
        (result) => controller.signal.aborted || setState({ result, error: null, of: subject }),
        (error: unknown) => controller.signal.aborted || setState((old) => ({ ...old, error, of: subject })),
      );
    const timer = setTimeout(check, state.of === "" ? 0 : PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [subject, round]);
  return {
    result: state.result,
    error: state.error,
    isBusy: state.of !== subject,
    recheck: () => setRound((n) => n + 1),
  };
}

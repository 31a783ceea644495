/** The button that flags an action, and the line of a flag's entry. */
import {
  encodeSegment,
  FlagUse,
  MarkedValue,
  type PartTexts,
  type Places,
  renderPlain,
  request,
  useState,
} from "../../console/app/kit.ts";

const TEXTS = {
  button: "Flag…",
  title: "Flag this action?",
  help: "The action should not have been let through. The person who approved it is notified. A flag stops nothing: cancel the action, or stop the agent.",
  done: "You flagged it.",
} as const;
const STATUSES: readonly string[] = ["allowed", "approved", "executing", "succeeded", "failed", "unknown"];

export function FlagAction({ action }: Places["settled"]) {
  const [isDone, setDone] = useState(false);
  if (!STATUSES.includes(action.status)) return null;
  if (isDone) return <span role="status">{TEXTS.done}</span>;
  const flag = async (reason: string): Promise<void> => {
    await request("POST /v1/actions/{id}/flag", { path: [encodeSegment(action.id)], body: { reason } });
    setDone(true);
  };
  return <FlagUse texts={TEXTS} name={renderPlain(`${action.tool} ${action.operation}`)} flag={flag} />;
}

const describeFlag = (entry: Record<string, unknown>) => (
  <>
    flagged: <MarkedValue value={(entry["data"] as { reason: string }).reason} />
  </>
);

export const texts: PartTexts = { entries: { "flags:flag": { summarize: describeFlag, describe: describeFlag } } };

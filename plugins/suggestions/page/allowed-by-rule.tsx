/** On the page about an action: buttons that flag the suggested rules that allowed it. */
import { FlagUse, type Places, request } from "../../console/app/kit.ts";

const TEXTS = {
  button: "Flag this use of the suggested rule…",
  title: "Flag this use of the suggested rule?",
  help: "The action should not have been allowed. The rule reverts: its actions require approval again, until a person restores it.",
  done: "The use is flagged, and the rule is reverted.",
};

export function AllowedByRule({ action, entries, onChange }: Places["action-allowed"]) {
  const policies = new Set(
    entries.flatMap((entry) => (entry as { facts?: { suggested?: readonly string[] } }).facts?.suggested ?? []),
  );
  if (policies.size === 0) return null;
  const flag = async (policy: string, reason: string): Promise<void> => {
    const body = { action_id: action.id, reason };
    await request("POST /v1/suggested-rules/{policy}/flag", { path: [policy], body });
    onChange(TEXTS.done);
  };
  return (
    <p class="row">
      {[...policies].map((policy) => (
        <FlagUse key={policy} texts={TEXTS} name={policy} flag={(reason) => flag(policy, reason)} />
      ))}
    </p>
  );
}

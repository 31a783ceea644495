/** Texts of the policy pages. */
import { formatCounted } from "../../console/app/kit.ts";

const formatNumber = (count: number): string => count.toLocaleString("en");

export const LIST_TEXTS = {
  title: "Policies",
  create: "New policy",
  empty: "No policy is stored, so every action is denied.",
  emptyHelp: "Write a policy here, or start the service with a folder of policies that you keep in git:",
  emptySnippet: "Create a folder with policies, tests and schemas for editors",
  head: ["Policy", "Description", "Status", "Version", "Managed by", "Changed"],
  noneActive: "none active",
  newest: (version: number) => `newest ${version}`,
};

export const DETAIL_TEXTS = {
  edit: "Edit…",
  enforce: "Enforce…",
  deactivate: "Deactivate…",
  delete: "Delete…",
  managed: "and read-only here: change the file in its source. The service loads it automatically.",
  activeVersion: "Active version",
  versions: "Versions",
  versionsLabel: "Versions of the policy",
  versionsHead: ["Version", "Age", "By", "Rules", ""],
  show: "Show",
  showVersion: (version: number) => `Show version ${version}`,
  rollBack: "Roll back…",
  activate: "Activate…",
  activateVersion: (version: number) => `Activate version ${version}`,
  onlyNewest: "Only the 100 newest versions are listed.",
  changed: "What changed",
  from: "From",
  to: "To",
  version: (version: number) => `Version ${version}`,
  asYaml: (version: number) => `Version ${version} as YAML`,
  unchanged: "These versions do not differ.",
  backtest: (version: number) => `Backtest of version ${version}`,
  backtestHelp:
    "Evaluates past requests again with this version instead of the active one, each with its own facts and at its own time.",
  backtestShadow: "This version is in shadow mode and decides nothing. It is tested here as if it were enforced.",
};

/** Returns one sentence that states which version of a policy is active. */
export function describeActiveVersion(policy: {
  active_version: number | null;
  latest_version: number;
  mode: "enforce" | "shadow";
}): string {
  const { active_version: active, latest_version: newest, mode } = policy;
  if (active === null) return "No version is active: this policy decides nothing.";
  const older = newest === active ? "" : `; the newest, version ${newest}, is not active`;
  return mode === "shadow"
    ? `Version ${active} is active in shadow mode: its decisions are recorded, and it enforces nothing${older}.`
    : `Version ${active} is active and enforced${older}.`;
}

/** Texts of a dialog that activates or deactivates a version. */
export interface ChangeTexts {
  title: string;
  effect: string;
  button: string;
  /** Message to show after the change. */
  done: string;
}

export const CHANGE_TEXTS = {
  cancel: "Cancel",
  activate(version: number, active: number | null, isShadow: boolean): ChangeTexts {
    const instead = active === null ? "" : ` instead of version ${active}`;
    return {
      title: `Activate version ${version}?`,
      effect: isShadow
        ? `Version ${version} is in shadow mode: from the next action on its decisions are recorded, and the policy enforces nothing. The backtest evaluates it as if it were enforced.`
        : `From the next action on, version ${version} decides${instead}.`,
      button: isShadow ? "Activate in shadow mode" : "Activate",
      done: `Version ${version} is active${isShadow ? " in shadow mode: it enforces nothing" : ""}.`,
    };
  },
  enforce: {
    title: "Enforce this policy?",
    effect: "From the next action on, what it has only recorded in shadow mode decides.",
    button: "Enforce",
    done: "The policy is enforced.",
  } satisfies ChangeTexts,
  enforceSuggested: {
    title: "Enforce this suggested rule?",
    effect:
      "From the next action on, the actions that it covers are allowed without an approval. It reverts when someone flags a use, at a stop, and when too many of its results are failures.",
    button: "Enforce",
    done: "The suggested rule is in force.",
  } satisfies ChangeTexts,
  deactivate: {
    title: "Deactivate this policy?",
    effect: "From the next action on it decides nothing. Actions that only this policy allowed are denied.",
    button: "Deactivate",
    done: "The policy is inactive.",
  } satisfies ChangeTexts,
  delete: {
    title: "Delete this policy?",
    effect:
      "From the next action on it decides nothing. Its recorded decisions remain, and its versions are retained for replay.",
    button: "Delete",
    done: "",
  } satisfies ChangeTexts,
};

/** Texts of what a policy in shadow mode would have changed. */
export const SHADOW_TEXTS = {
  shadowTitle: "Shadow mode: what it would have changed",
  shadowHelp: "What would be different if it had been enforced, from the decisions that it recorded.",
  shadowLoading: "Reading what it recorded…",
  shadowNothing:
    "It recorded no decision in this range that you may see. A policy in shadow mode records decisions while it is active.",
} as const;

export const EDITOR_TEXTS = {
  newTitle: "New policy",
  editTitle: (name: string) => `Edit ${name}`,
  back: (isNew: boolean) => (isNew ? "Policies" : "Policy"),
  label: "Policy, as YAML",
  loading: "the editor",
  notLoaded: "the editor could not be loaded; if the service was updated, reload the console",
  noActiveVersion: "No version decides yet: this policy is not stored.",
  afterSaving: (activeVersion: string) => `${activeVersion} Saving stores another version, which is not active.`,
  draft: "Your earlier draft, not saved yet.",
  draftTooLarge: "This draft is too large for the browser to keep: leaving this page loses it.",
  startOver: "Start over",
  save: "Save",
  saveAndActivate: "Save and activate…",
  saveHelp: "Saving stores a version, which decides nothing. Activating it makes it decide from the next action on.",
  completionHelp: "Ctrl+Space suggests names. Esc and then Tab leaves the editor.",
  discardTitle: "Discard your changes?",
  discardText: "They are not saved and will be lost.",
  discard: "Discard",
  keepEditing: "Keep editing",
  activateTitle: "Save and activate?",
  activateText:
    "From the next action on, this text decides. In shadow mode it enforces nothing: its decisions are only recorded. The backtest evaluates it as if it were enforced.",
  activate: "Activate",
  activateInShadow: "Activate in shadow mode",
  cancel: "Cancel",
  results: "Results",
  tabs: {
    problems: "Problems",
    changes: "Changes",
    samples: "Dry run",
    tests: "Tests",
    backtest: "Backtest",
    shadow: "Shadow mode",
  },
  checking: "Checking…",
  valid: "No problems. The text can be saved.",
  problems: (count: number) => `${formatCounted(count, "problem")}. The text cannot be saved.`,
  warnings: (count: number) => formatCounted(count, "warning"),
  position: (line: number, column: number | null) => `Line ${line}${column === null ? "" : `, column ${column}`}`,
  changesNew: "A new policy: there is no stored version to compare with.",
  changesNone: (version: number) => `No rule differs from version ${version}.`,
  changesFrom: (version: number) => `Compared with version ${version}:`,
  changesMore: (count: number) => `and ${formatNumber(count)} more changes`,
  changesUnknown: "The changes appear when the text has no problems.",
  backtestHelp:
    "Evaluates past requests again with this text instead of the active version, each with its own facts and at its own time. A text in shadow mode is evaluated as if it were enforced.",
};

export const DRY_RUN_TEXTS = {
  more: (count: number) => `and ${formatNumber(count)} more`,
  help: "Evaluates sample actions with the active policies, and with this text instead of the active version, as if it were enforced. Records nothing.",
  run: "Evaluate the samples",
  samples: "Sample actions",
  samplesHelp: "A JSON list of at most 100 actions. It starts with the newest real actions that you may see.",
  notJson: (reason: string) => `the sample actions are not JSON: ${reason}`,
  unchanged: (count: number) => `All ${formatCounted(count, "action")} would be decided as now.`,
  changed: (changed: number, count: number) =>
    `${changed} of ${formatCounted(count, "action")} would be decided differently.`,
  stale: "The text or the actions have changed since this dry run: run it again.",
  count: (count: number) => formatCounted(count, "action"),
  overruled: (policy: string | null) =>
    `A stricter policy overrules this text: ${policy === null ? "the action is denied" : `“${policy}” decides`}.`,
  same: "decided as now",
  now: "now",
  by: "by",
  terms: "with different terms",
};

export const TESTS_TEXTS = {
  label: "Tests, as YAML",
  help: "Tests of only this text, in the format of NAME_test.yaml. This tab keeps them until you sign out. They are not stored with the policy: save the file next to the policy in git.",
  record: "Write tests from the sample actions",
  recordHelp: "Each expects what this text decides now, so it fails when a later change decides differently.",
  download: "Download",
  none: "No tests yet.",
  blocked: "The tests run when the text has no problems.",
  passed: (count: number) => `${formatCounted(count, "test")} passed.`,
  failed: (failed: number, count: number) => `${formatNumber(failed)} of ${formatCounted(count, "test")} failed.`,
};

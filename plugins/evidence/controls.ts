/**
 * Maps each requirement of a standard to the records of a pack that provide evidence for it. Summaries are our own
 * wording; `url` leads to the text of the standard. Last compared with the standards on 2026-11-26.
 */
import type { Control } from "./pack-format.ts";

type Mapping = Omit<Control, "count">;

interface Standard extends Pick<Control, "compared_with"> {
  name: string;
  url(control: string): string;
}

const SOC2: Standard = {
  name: "SOC 2 (2017 Trust Services Criteria)",
  compared_with: "summaries",
  url: () =>
    "https://www.aicpa-cima.com/resources/download/2017-trust-services-criteria-with-revised-points-of-focus-2022",
};
const ISO: Standard = {
  name: "ISO/IEC 42001:2023",
  compared_with: "summaries",
  url: () => "https://www.iso.org/standard/42001",
};
const AISVS_CHAPTERS: Readonly<Record<string, string>> = {
  "9": "0x10-C09-Orchestration-and-Agentic-Action.md",
  "12": "0x10-C12-Monitoring-and-Logging.md",
};
const AISVS: Standard = {
  name: "OWASP AISVS 1.0",
  compared_with: "text",
  url: (control) =>
    `https://github.com/OWASP/AISVS/blob/main/1.0/en/${AISVS_CHAPTERS[control.split(".", 1)[0] ?? ""] ?? ""}`,
};
const ACT: Standard = {
  name: "EU AI Act (Regulation 2024/1689)",
  compared_with: "summaries",
  url: (control) => `https://eur-lex.europa.eu/eli/reg/2024/1689/oj#art_${/\d+/.exec(control)?.[0] ?? ""}`,
};

const DECISIONS = ["decision", "redecision", "approval", "review"];
const ACCESS = ["user", "api_key", "agent", "delegation"];

function map(
  { name, compared_with, url }: Standard,
  control: string,
  subject: string,
  entries: string[],
  files: string[] = [],
): Mapping {
  return { standard: name, compared_with, control, url: url(control), subject, entries, files };
}

export const CONTROLS: readonly Mapping[] = [
  map(SOC2, "CC6.1", "Access to protected assets is restricted", ["decision", "policy_set"], ["policies.jsonl"]),
  map(SOC2, "CC6.2", "Users are registered, authorized and removed", ["user", "api_key"], ["people.csv"]),
  map(SOC2, "CC6.3", "Access follows roles and is changed or removed", ACCESS, ["people.csv"]),
  map(SOC2, "CC7.2", "Operation is monitored for anomalies", ["coverage:statement", "throttle", "decision"]),
  map(SOC2, "CC7.4", "Security incidents are contained", ["stop", "break_glass"]),
  map(SOC2, "CC8.1", "Changes are authorized before they are made", ["policy_set", ...DECISIONS], ["approvals.csv"]),
  map(SOC2, "C1.1", "Confidential information is kept as long as it must be", ["legal_hold"]),
  map(SOC2, "C1.2", "Confidential information is disposed of", ["erasure", "part_erasure"]),
  map(ISO, "A.6.2.6", "AI systems are operated and monitored", ["decision", "execution", "coverage:statement"]),
  map(
    ISO,
    "A.6.2.8",
    "Event logs are recorded while AI systems are in use",
    ["decision", "execution"],
    ["entries.jsonl"],
  ),
  map(ISO, "A.9.2", "Processes for responsible use are defined", ["policy_set", "approval"], ["policies.jsonl"]),
  map(ISO, "A.9.4", "AI systems are used as intended", ["decision", "redecision"], ["actions.jsonl"]),
  map(AISVS, "9.2.1", "Approval before privileged or irreversible actions", DECISIONS, ["approvals.csv"]),
  map(AISVS, "9.2.2", "The approver sees all parameters, unaltered", ["approval", "question"], ["actions.jsonl"]),
  map(AISVS, "9.2.6", "A model reviews risky actions in addition to the policies", ["review"]),
  map(AISVS, "9.2.8", "Approvals are bound to parameters, requester and context", ["approval"], ["approvals.csv"]),
  map(AISVS, "9.5.6", "Authorization is evaluated again at each privileged action", DECISIONS.slice(0, 2)),
  map(AISVS, "9.6.2", "No approval in time means no action", ["approval"]),
  map(AISVS, "12.1.2", "Policy decisions are logged in enough detail for an audit", ["decision"], ["policies.jsonl"]),
  map(
    AISVS,
    "12.4.2",
    "Approver, time, parameters and outcome of actions are logged",
    ["approval", "execution"],
    ["approvals.csv", "actions.jsonl"],
  ),
  map(AISVS, "12.4.3", "Use of the kill switch and of overrides is logged", [
    "stop",
    "agent",
    "api_key",
    "break_glass",
  ]),
  map(
    ACT,
    "Article 12(1)",
    "Events are recorded automatically over the lifetime",
    ["decision", "execution"],
    ["entries.jsonl", "checkpoint.txt"],
  ),
  map(ACT, "Article 12(2)", "Records allow risks to be traced and operation to be monitored", [
    "decision",
    "execution",
    "policy_set",
    "coverage:statement",
  ]),
  map(ACT, "Article 14(1)", "People oversee the system while it is in use", ["approval"], ["approvals.csv"]),
  map(ACT, "Article 14(4)(a)", "People monitor operation and detect anomalies", [
    "decision",
    "throttle",
    "coverage:statement",
  ]),
  map(ACT, "Article 14(4)(b)", "People stay aware of automation bias", ["approval", "question"], ["actions.jsonl"]),
  map(ACT, "Article 14(4)(d)", "People can decide not to use, override or reverse", [
    "approval",
    "redecision",
    "grant",
  ]),
  map(ACT, "Article 14(4)(e)", "People can intervene or stop the system", ["stop"]),
];

/** Which records of a pack show which requirement. Subjects are in our words; the texts are those of the standards. */
import type { Control } from "./pack-format.ts";

type Mapping = Omit<Control, "count">;

const SOC2 = "SOC 2 (2017 Trust Services Criteria)";
const ISO = "ISO/IEC 42001:2023";
const AISVS = "OWASP AISVS 1.0";
const ACT = "EU AI Act (Regulation 2024/1689)";

const DECISIONS = ["decision", "redecision", "approval", "review"];
const ACCESS = ["user", "api_key", "agent", "delegation"];

function map(standard: string, control: string, subject: string, entries: string[], files: string[] = []): Mapping {
  return { standard, control, subject, entries, files };
}

export const CONTROLS: readonly Mapping[] = [
  map(SOC2, "CC6.1", "Access to assets is restricted by rules", ["decision", "policy_set"], ["policies.jsonl"]),
  map(SOC2, "CC6.2", "Users are registered and removed", ["user", "api_key"], ["people.csv"]),
  map(SOC2, "CC6.3", "Roles and access are granted, changed and reviewed", ACCESS, ["people.csv"]),
  map(SOC2, "CC7.2", "Systems are monitored for anomalies", ["coverage:statement", "decision"]),
  map(SOC2, "CC7.4", "Incidents are contained", ["stop", "break_glass"]),
  map(SOC2, "C1.2", "Confidential information is disposed of, unless it must be kept", [
    "erasure",
    "part_erasure",
    "legal_hold",
  ]),
  map(SOC2, "CC8.1", "Changes are authorized before they are made", ["policy_set", ...DECISIONS], ["approvals.csv"]),
  map(ISO, "A.6.2.6", "Operation of AI systems is monitored", ["decision", "execution", "coverage:statement"]),
  map(ISO, "A.6.2.8", "Events of AI systems are logged", ["decision", "execution"], ["entries.jsonl"]),
  map(ISO, "A.9.2", "Processes for responsible use are followed", ["policy_set", "approval"], ["policies.jsonl"]),
  map(ISO, "A.9.4", "AI systems are used as intended", ["decision", "redecision"], ["actions.jsonl"]),
  map(AISVS, "9.2.1", "Approval before privileged or irreversible actions", DECISIONS, ["approvals.csv"]),
  map(AISVS, "9.2.2", "The approver sees all parameters, unaltered", ["approval", "question"], ["actions.jsonl"]),
  map(AISVS, "9.2.8", "Approvals are bound to parameters and requester", ["approval"], ["approvals.csv"]),
  map(AISVS, "9.5.6", "Authorization at each privileged action", ["decision", "redecision", "execution"]),
  map(AISVS, "9.6.2", "No approval in time means no action", ["approval"]),
  map(AISVS, "12.1.2", "Policy decisions are logged for audit", ["decision"], ["policies.jsonl"]),
  map(AISVS, "12.4.2", "Who approved what, when, with which outcome", ["approval", "execution"], ["approvals.csv"]),
  map(AISVS, "12.4.3", "Use of the kill switch is logged", ["stop", "agent", "api_key"]),
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
    "coverage:statement",
  ]),
  map(ACT, "Article 14(1)", "People oversee the system while it is in use", ["approval", "review"], ["approvals.csv"]),
  map(ACT, "Article 14(4)(b)", "People stay aware of automation bias", ["approval", "question"], ["actions.jsonl"]),
  map(ACT, "Article 14(4)(d)", "People can decide not to use, override or reverse", [
    "approval",
    "redecision",
    "grant",
  ]),
  map(ACT, "Article 14(4)(e)", "People can intervene or stop the system", ["stop"]),
];

/** The ledger entries of inspections, and of the labels that sessions get. Neither contains anything of an output. */
import { closed, countSchema, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { type Static, Type } from "../../src/plugin.ts";

export const INSPECTION = "results:inspection";
export const LABELS = "results:labels";

const VERDICTS = ["allow", "redact", "withhold", "not_inspected"] as const;
export const LabelList = Type.Array(Type.String(), { description: "Sorted." });

export const InspectionData = Type.Object(
  {
    verdict: Type.Union(
      VERDICTS.map((verdict) => Type.Literal(verdict)),
      { description: "not_inspected: the result was reported, or is overdue, and no one had sent the output." },
    ),
    output: orNull(
      Type.Object(
        {
          digest: textSchema("Commitment to the output, with the salt of the action."),
          bytes: countSchema("Size of the output as canonical JSON."),
        },
        { description: "Null if the output was not inspected.", ...closed },
      ),
    ),
    rules: Type.Array(Type.Object({ policy: Type.String(), rule: Type.String() }, closed), {
      description: "The rules that match; for not_inspected, the rules that apply.",
    }),
    labels: LabelList,
    policy_set: orNull(textSchema("Digest of the policies.")),
  },
  closed,
);
export type InspectionData = Static<typeof InspectionData>;

export const LabelsData = Type.Object(
  {
    session: orNull(textSchema("The session; null if the action has none, so that the labels apply to the agent.")),
    labels: LabelList,
    until: timeSchema("When the labels end, unless they are added again."),
  },
  closed,
);
export type LabelsData = Static<typeof LabelsData>;

/** The lines of inspections on pages about entries. */
import { MarkedValue, type PartTexts } from "../../console/app/kit.ts";

interface Data {
  verdict?: string;
  labels: string[];
}

const dataOf = (entry: Record<string, unknown>): Data => entry["data"] as Data;

export const texts: PartTexts = {
  entries: {
    "results:inspection": { summarize: describeInspection, describe: describeInspection },
    "results:labels": { summarize: describeLabels, describe: describeLabels },
  },
};

function describeInspection(entry: Record<string, unknown>) {
  const { verdict = "" } = dataOf(entry);
  return <MarkedValue value={`output: ${verdict.replaceAll("_", " ")}`} />;
}

function describeLabels(entry: Record<string, unknown>) {
  return <MarkedValue value={`labels: ${dataOf(entry).labels.join(", ")}`} />;
}

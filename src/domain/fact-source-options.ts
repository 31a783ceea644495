/** Common options of fact sources. The contract in `contract/fact-source.ts` defines the bounds. */
import { Type } from "@sinclair/typebox";

/** Option schemas of a fact source, for the options of a plugin. */
export const FACT_SOURCE_OPTIONS = {
  timeout_seconds: Type.Number({ default: 2, minimum: 0.1, maximum: 10, description: "Longest read." }),
  max_age_seconds: Type.Integer({
    default: 30,
    minimum: 0,
    maximum: 86_400,
    description: "Time for which an answer is cached. 0: each decision reads it again.",
  }),
};

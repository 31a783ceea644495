/** The options of publication: the key `witness` of `assent.yaml`. */
import { type Static, Type } from "../../src/plugin.ts";

const seconds = (description: string) => Type.Integer({ default: 60, minimum: 1, maximum: 86_400, description });

export const WitnessOptions = Type.Object(
  {
    witnesses: Type.Array(
      Type.Object(
        {
          url: Type.String({
            pattern: "^https?://",
            description: "Submission prefix of the witness. Requests are sent to `<url>/add-checkpoint`.",
          }),
          vkey: Type.String({
            minLength: 1,
            description: "Verifier key of the witness, as `assent witness` prints it.",
          }),
        },
        { additionalProperties: false },
      ),
      {
        default: [],
        maxItems: 20,
        description:
          "Witnesses that cosign checkpoints (C2SP tlog-witness), so that no client can be given a forked log.",
      },
    ),
    seconds: seconds("Interval at which cosignatures are requested."),
    webhooks: Type.Array(Type.String({ pattern: "^https?://" }), {
      default: [],
      maxItems: 20,
      description: "URLs to which the newest signed checkpoint is posted, as `{type, origin, size, note}`.",
    }),
    webhook_seconds: seconds("Interval at which a new checkpoint is posted, if there is one."),
  },
  { default: {}, additionalProperties: false, description: "Other parties that see the log's checkpoints." },
);
export type WitnessOptions = Static<typeof WitnessOptions>;

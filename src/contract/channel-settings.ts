/** Schema of a channel in `assent.yaml`. A channel contains destinations of notifications. */
import { type Static, Type } from "@sinclair/typebox";
import { REFERENCE_FORMS } from "../domain/person-reference.ts";

const To = (more: string) =>
  Type.String({
    minLength: 1,
    maxLength: 500,
    description: `Recipient in the notifier's format: an address, a channel, or the name of a destination${more}.`,
  });
const NotifierName = Type.Optional(
  Type.String({
    minLength: 1,
    description: "Notifier plugin, such as notify-email. Default: the notifier of the channel.",
  }),
);

const TimeOfDay = (description: string) => Type.String({ pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$", description });

export const ChannelSchema = Type.Object(
  {
    notifier: NotifierName,
    people: Type.Optional(
      Type.Array(
        Type.Object(
          {
            owner: Type.String({
              minLength: 1,
              maxLength: 200,
              description: `The user who votes with the link in the message: ${REFERENCE_FORMS}. A member of the channel's rota has the same reference there.`,
            }),
            to: Type.Optional(To("; `owner` when absent")),
            notifier: NotifierName,
          },
          { additionalProperties: false },
        ),
        { maxItems: 100, description: "People, who each get their own link." },
      ),
    ),
    places: Type.Optional(
      Type.Array(Type.Object({ to: To(""), notifier: NotifierName }, { additionalProperties: false }), {
        maxItems: 100,
        description: "Destinations that several people can read. Their link requires a key.",
      }),
    ),
    rota: Type.Optional(
      Type.String({
        description:
          "Rota of the people. Notifies only the person on call, and the person who takes over while the action is pending.",
      }),
    ),
    remind_before: Type.Optional(
      Type.String({
        description: "Time before the approval expires at which people who have not voted get a reminder.",
      }),
    ),
    quiet: Type.Optional(
      Type.Object(
        {
          from: TimeOfDay("Start in local time, such as 22:00."),
          until: TimeOfDay("End in local time, such as 07:00. If it is before `from`, it is on the next day."),
          time_zone: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 64,
              description: "Time zone, such as Europe/Berlin. Default: UTC.",
            }),
          ),
          except: Type.Optional(
            Type.Array(Type.Union(["low", "medium", "high", "critical"].map((risk) => Type.Literal(risk))), {
              maxItems: 4,
              description: "Risks of actions for which quiet hours do not apply. Default: [critical].",
            }),
          ),
        },
        {
          additionalProperties: false,
          description:
            "Quiet hours. Requests for approval are sent when they end, unless too little time to vote would remain.",
        },
      ),
    ),
    digest: Type.Optional(
      Type.String({
        description:
          "Interval at which requests for approval are sent, such as 15m. Each recipient gets one message about all requests of an interval. Critical requests are sent immediately.",
      }),
    ),
    escalate: Type.Optional(
      Type.Object(
        {
          to: Type.String({ description: "Channel." }),
          after: Type.String({ description: "Time from the request to the escalation." }),
        },
        { additionalProperties: false, description: "Notifies another channel if no one has voted." },
      ),
    ),
  },
  { additionalProperties: false },
);

export type ChannelSettings = Static<typeof ChannelSchema>;

/** Schema of a channel in `assent.yaml`, which lists the destinations of notifications. */
import { Type } from "@sinclair/typebox";

const To = (more: string) =>
  Type.String({
    minLength: 1,
    maxLength: 500,
    description: `What the notifier needs to reach them: an address, a channel, a destination's name${more}.`,
  });
const NotifierName = Type.Optional(
  Type.String({ minLength: 1, description: "Notifier plugin, such as notify-email; the channel's when absent." }),
);

const TimeOfDay = (description: string) => Type.String({ pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$", description });

export const Channel = Type.Object(
  {
    notifier: NotifierName,
    people: Type.Optional(
      Type.Array(
        Type.Object(
          {
            owner: Type.String({
              minLength: 1,
              maxLength: 200,
              description: "Who decides with the link that is sent; the same name as the `owner` of their API keys.",
            }),
            member: Type.Optional(
              Type.String({
                minLength: 1,
                maxLength: 200,
                description: "How the channel's rota names the person, if not by `owner`, such as `user:<id>`.",
              }),
            ),
            to: Type.Optional(To("; `owner` when absent")),
            notifier: NotifierName,
          },
          { additionalProperties: false },
        ),
        { maxItems: 100, description: "Each gets a link of their own." },
      ),
    ),
    places: Type.Optional(
      Type.Array(Type.Object({ to: To(""), notifier: NotifierName }, { additionalProperties: false }), {
        maxItems: 100,
        description: "Seen by several people: told, with a link that needs a key.",
      }),
    ),
    rota: Type.Optional(
      Type.String({
        description:
          "Notifies only those of the people who are on call in this rota, and whoever takes over while the action is pending.",
      }),
    ),
    remind_before: Type.Optional(
      Type.String({ description: "Reminds those who have not decided, so long before the approval expires." }),
    ),
    quiet: Type.Optional(
      Type.Object(
        {
          from: TimeOfDay("Begin, in local time, such as 22:00."),
          until: TimeOfDay("End, such as 07:00; on the next day if it is before `from`."),
          time_zone: Type.Optional(
            Type.String({ minLength: 1, maxLength: 64, description: "Such as Europe/Berlin; UTC when absent." }),
          ),
          except: Type.Optional(
            Type.Array(Type.Union(["low", "medium", "high", "critical"].map((risk) => Type.Literal(risk))), {
              maxItems: 4,
              description: "Risks of actions that are notified of at any time; [critical] when absent.",
            }),
          ),
        },
        {
          additionalProperties: false,
          description: "Quiet hours: requests for approval wait until they end, unless too little time would be left.",
        },
      ),
    ),
    digest: Type.Optional(
      Type.String({
        description:
          "Collects requests for approval, such as 15m: they wait for the next multiple of this time, and each recipient gets one message about all of them. Critical requests do not wait.",
      }),
    ),
    escalate: Type.Optional(
      Type.Object(
        {
          to: Type.String({ description: "Channel." }),
          after: Type.String({ description: "How long after the request." }),
        },
        { additionalProperties: false, description: "Asks another channel too when nobody has decided." },
      ),
    ),
  },
  { additionalProperties: false },
);

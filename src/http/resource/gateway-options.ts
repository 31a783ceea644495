/** What every gateway's facade is configured with. */
import { Type } from "@sinclair/typebox";

const Header = (description: string) => Type.String({ pattern: "^[A-Za-z0-9-]{1,64}$", description });

export const GATEWAY_OPTIONS = {
  enabled: Type.Boolean({ default: false, description: "Opens the address." }),
  tool: Type.String({ default: "http", minLength: 1, maxLength: 256, description: "The actions' tool." }),
  mode: Type.Union([Type.Literal("gate"), Type.Literal("permit")], {
    default: "gate",
    description: "`gate` decides on the whole request. `permit` takes one that was given before, and uses it up.",
  }),
  covers: Type.Union([Type.Literal("request"), Type.Literal("tool")], {
    default: "request",
    description:
      "What a permit must name: this very request, or the tool alone, where what stands behind the gateway compares the permit with what it runs.",
  }),
  wait_seconds: Type.Integer({ default: 0, minimum: 0, maximum: 300, description: "How long people are waited for." }),
  agent_header: Type.Union(
    [Type.Null(), Header("Header in which the gateway names the agent that it has made sure of.")],
    {
      default: null,
    },
  ),
};

import { MarkedValue } from "../../console/app/kit.ts";
import type { Stop } from "./api-types.ts";

/** Renders what a stop covers, such as "tool stripe". */
export function StopCover({ stop: { agent, tool, policy } }: { stop: Pick<Stop, "agent" | "tool" | "policy"> }) {
  const parts = Object.entries({ agent, tool, policy }).filter(([, value]) => value !== null);
  if (parts.length === 0) return <>everything</>;
  return (
    <>
      {parts.map(([name, value], i) => (
        <span key={name}>
          {i === 0 ? "" : ", "}
          {name} <MarkedValue value={value} />
        </span>
      ))}
    </>
  );
}

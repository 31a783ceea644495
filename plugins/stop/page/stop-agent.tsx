import { useState } from "preact/hooks";
import { currentMe } from "../../console/app/kit.ts";
import { canStop } from "./can-stop.ts";
import { StopDialog } from "./stop-dialog.tsx";

/** Renders the button on the page about an agent that stops the agent. */
export function StopAgent({ agent }: { agent: string }) {
  const [isStopping, setStopping] = useState(false);
  const me = currentMe();
  if (me === null || !canStop(me)) return null;
  return (
    <>
      <button type="button" class="danger" onClick={() => setStopping(true)}>
        Stop this agent…
      </button>
      {isStopping ? <StopDialog agent={agent} onClose={() => setStopping(false)} /> : null}
    </>
  );
}

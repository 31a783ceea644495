/** The bar that every page shows while a stop is active. */
import { useState } from "preact/hooks";
import { Age, currentMe, Icon, MarkedValue, PrincipalName, TimeUntil } from "../../console/app/kit.ts";
import type { Stop } from "./api-types.ts";
import { refreshStops, useStops } from "./active-stops.ts";
import { canStop } from "./can-stop.ts";
import { LiftDialog } from "./lift-dialog.tsx";
import { StopCover } from "./stop-cover.tsx";

export function StopBar() {
  const stops = useStops();
  const me = currentMe();
  const [lifting, setLifting] = useState<Stop | null>(null);
  return (
    <>
      <div class="stops" role="status" aria-live="assertive">
        {stops.map((stop) => (
          <div class="stopped" key={stop.id}>
            <Icon name="stop" />
            <p>
              <strong>
                Stopped: <StopCover stop={stop} />.
              </strong>{" "}
              {stop.reason === null ? null : <MarkedValue value={stop.reason} />}
              <span class="since">
                Placed <Age at={stop.placed_at} /> ago
                {stop.placed_by === null ? null : (
                  <>
                    {" "}
                    by <PrincipalName principal={stop.placed_by} />
                  </>
                )}
                {stop.until === null ? null : (
                  <>
                    , ends <TimeUntil at={stop.until} />
                  </>
                )}
                {stop.lift.asked.length === 0
                  ? null
                  : `; ${stop.lift.asked.length} of ${stop.lift.needed} people requested to lift it`}
              </span>
            </p>
            {me !== null && canStop(me) ? (
              <button type="button" class="small" onClick={() => setLifting(stop)}>
                Lift…
              </button>
            ) : null}
          </div>
        ))}
      </div>
      {lifting === null ? null : (
        <LiftDialog
          stop={lifting}
          onClose={() => setLifting(null)}
          onDone={() => {
            setLifting(null);
            refreshStops();
          }}
        />
      )}
    </>
  );
}

import { MarkedValue } from "../../console/app/kit.ts";
import { EDITOR_TEXTS } from "./strings.ts";

interface Fault {
  line: number | null;
  column: number | null;
  detail: string;
}

/** Renders faults of a policy text. Each position is a button that moves the cursor there. */
export function FaultList({
  faults,
  goTo,
}: {
  faults: readonly Fault[];
  goTo: (line: number, column: number | null) => void;
}) {
  return (
    <ul>
      {faults.map(({ line, column, detail }) => (
        <li key={`${line} ${column} ${detail}`}>
          {line === null ? null : (
            <>
              <button type="button" class="plain" onClick={() => goTo(line, column)}>
                <strong>{EDITOR_TEXTS.position(line, column)}</strong>
              </button>
              {": "}
            </>
          )}
          <MarkedValue value={detail} />
        </li>
      ))}
    </ul>
  );
}

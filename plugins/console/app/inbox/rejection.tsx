/** Shows a person's rejection of an action: who rejected it and why, and how long it denies duplicate requests. */
import type { Action } from "../core/api-types.ts";
import { encodeSegment } from "../core/api.ts";
import { Ago, Notice, MarkedValue, TimeUntil } from "../ui/elements.tsx";
import { PrincipalName } from "../ui/person.tsx";

export function Rejection({ action }: { action: Action }) {
  const { rejection } = action;
  if (rejection === null || rejection === undefined) return null;
  const isEarlier = rejection.action_id !== action.id;
  return (
    <>
      <Notice kind="bad">
        Rejected by <PrincipalName principal={rejection.approver} /> <Ago at={rejection.rejected_at} />
        {rejection.reason ? (
          <>
            : “<MarkedValue value={rejection.reason} />”{" "}
          </>
        ) : (
          ". "
        )}
        {isEarlier ? (
          <a href={`#/actions/${encodeSegment(rejection.action_id)}`}>The action that was rejected</a>
        ) : null}
      </Notice>
      {rejection.holds_until === null ? (
        <p class="quiet">The same request can be submitted again.</p>
      ) : (
        <p class="quiet">
          The same request can be submitted again <TimeUntil at={rejection.holds_until} />
          {isEarlier ? ", or now if that rejection was lifted" : ""}.
        </p>
      )}
    </>
  );
}

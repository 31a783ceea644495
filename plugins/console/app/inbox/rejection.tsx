/**
 * Shows a person's rejection of an action: who rejected it and why, how long duplicate requests are denied because of
 * it, and the button that lifts it.
 */
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { encodeSegment, request } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import { Notice, MarkedValue, Time } from "../ui/elements.tsx";
import { PrincipalName } from "../ui/person.tsx";

interface Props {
  action: Action;
  onLifted: () => void;
  onRefused: (error: unknown) => void;
}

export function Rejection({ action, onLifted, onRefused }: Props) {
  const [isBusy, setBusy] = useState(false);
  const { rejection } = action;
  if (rejection === null || rejection === undefined) return null;
  const isEarlier = rejection.action_id !== action.id;
  const lift = async (): Promise<void> => {
    setBusy(true);
    onRefused(null);
    try {
      await request("POST /v1/actions/{id}/lift-rejection", { path: [action.id], body: {} });
      onLifted();
    } catch (error) {
      onRefused(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Notice kind="bad">
        Rejected by <PrincipalName principal={rejection.approver} /> <Time at={rejection.rejected_at} />
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
          The same request is refused until <Time at={rejection.holds_until} />
          {isEarlier ? ", unless that rejection was lifted" : ""}.
        </p>
      )}
      {isEarlier || rejection.holds_until === null || !hasScope("approvals:decide") ? null : (
        <p class="row">
          <button type="button" disabled={isBusy} onClick={() => void lift()}>
            Lift the rejection
          </button>
          <span class="quiet">The same request then requires approval again. This action stays denied.</span>
        </p>
      )}
    </>
  );
}

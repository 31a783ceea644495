/** A person's rejection of an action: who, why, until when it refuses the same request, and the button that lifts it. */
import { at, call } from "../api.js";
import { may } from "../me.js";
import { Who } from "../person.js";
import { Notice, Text, Time, html, useState } from "../ui.js";

/** @param {{ action: any, onLifted: () => void, onRefused: (error: unknown) => void }} props */
export function Rejection({ action, onLifted, onRefused }) {
  const [busy, setBusy] = useState(false);
  const { rejection } = action;
  if (!rejection) return null;
  const isEarlier = rejection.action_id !== action.id;
  const lift = async () => {
    setBusy(true);
    onRefused(null);
    try {
      await call(`/v1/actions/${at(action.id)}/lift-rejection`, { method: "POST", body: {} });
      onLifted();
    } catch (error) {
      onRefused(error);
    } finally {
      setBusy(false);
    }
  };
  return html`<${Notice} kind="bad"
      >Rejected by <${Who} principal=${rejection.approver} />
      <${Time} at=${rejection.rejected_at} />${rejection.reason ? html`: “<${Text} value=${rejection.reason} />”` : "."}
      ${isEarlier ? html`<a href=${`#/actions/${at(rejection.action_id)}`}>The action that was rejected</a>.` : null}<//
    >
    ${
      rejection.holds_until === null
        ? html`<p class="quiet">The same request can be submitted again.</p>`
        : html`<p class="quiet">
            The same request is refused until
            <${Time} at=${rejection.holds_until} />${isEarlier ? ", unless that rejection was lifted" : ""}.
          </p>`
    }
    ${
      isEarlier || rejection.holds_until === null || !may("approvals:decide")
        ? null
        : html`<p class="row">
            <button type="button" disabled=${busy} onClick=${lift}>Lift the rejection</button>
            <span class="quiet">The same request then requires approval again. This action stays denied.</span>
          </p>`
    }`;
}

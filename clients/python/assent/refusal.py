"""Explains why an action cannot run, and what its agent can do next."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Dict, Mapping, NamedTuple, Optional, cast

from .errors import AssentError

LONGEST = 500
NO_DETOUR = "do not look for another way to do the same"
SUBMIT_AGAIN = "It was not refused: the same request can be submitted again, and is decided anew. Tell the user."
#: Characters that a font may ignore, in addition to the Unicode categories below.
IGNORABLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")


class Refusal(NamedTuple):
    """
    `outcome`: `denied` by policy; `rejected` by a person, now or earlier; `stopped` by a stop of the service; `expired`: no
    one decided, or no one started it, in time; `cancelled`; `taken`: another call runs it or has run it; `refused`: the
    service did not start it. `why` completes "The call was …"; `next` is for the agent.
    """

    outcome: str
    why: str
    next: str


def refusal_of(action: Mapping[str, Any], error: Optional[AssentError] = None) -> Refusal:
    """Returns the refusal of an action that cannot run now. `error`: why it could not be started, if its status does not contain the reason."""
    status = action["status"]
    if status == "denied":
        return _denied(action)
    if status == "expired":
        why = "approved, and not started in time" if action.get("approved_until") else "not decided on in time"
        return Refusal("expired", why, SUBMIT_AGAIN)
    if status == "cancelled":
        return Refusal("cancelled", "cancelled", "No one refused it, but do not submit it again unless the user asks for it.")
    if status in ("allowed", "approved") and action.get("proposed") is not None and error is None:
        params: Dict[str, Any] = action.get("params") or {}
        before: Dict[str, Any] = action["proposed"].get("params") or {}
        changed = ", ".join(f"{name} = {json.dumps(value)}" for name, value in params.items() if value != before.get(name))
        return Refusal(
            "edited",
            f"{status} with other parameters: {as_text(changed)}",
            "They cannot be applied to this call. If the user agrees, make a new call with exactly these parameters; it is "
            "decided anew.",
        )
    if status in ("allowed", "approved"):
        code = error.code if error is not None else "UNKNOWN"
        message = str(error) if error is not None else f"it is {status}"
        if code == "STOPPED":
            return _stopped(message)
        if code == "START_EXPIRED":
            return Refusal("expired", f"{status}, and not started in time", SUBMIT_AGAIN)
        return Refusal("refused", f"not started by the service ({code}): {as_text(message)}", "Tell the user.")
    return Refusal(
        "taken",
        f"already taken by another call: it is {as_text(status)}",
        "One approval or decision is good for one run. If it is still needed, submit it again.",
    )


def _denied(action: Mapping[str, Any]) -> Refusal:
    by, reason, code = action.get("denied_by"), action.get("reason", ""), action.get("reason_code")
    if by in ("person", "reviewer", "earlier_rejection"):
        rejection: Dict[str, Any] = action.get("rejection") or {}
        words = as_text(rejection.get("reason") or "")
        until = rejection.get("holds_until")
        holds = (
            "Do not submit the same request again unless the user asks for it."
            if until is None
            else f"The same request is refused until {as_text(until)}, unless an approver lifts the rejection."
        )
        way = "If the approver names another way, take that one." if words else "Ask the user how to go on."
        already = "already " if by == "earlier_rejection" else ""
        why = f"{already}rejected by {approver_name(rejection.get('approver'), action.get('names'))}{': ' + words if words else ''}"
        return Refusal("rejected", why, f"{holds} {way} Otherwise: {NO_DETOUR}.")
    if by == "stop":
        return _stopped(reason)
    shown = "" if code == "POLICY_RULE" else f" ({as_text(code)})"
    alternative: Dict[str, Any] = action.get("alternative") or {}
    other = alternative.get("text")
    return Refusal(
        "denied",
        f"denied by policy{shown}: {as_text(reason)}",
        "The same request gets the same answer for as long as the policies stay as they are. "
        f"{NO_DETOUR.capitalize()}; tell the user." + ("" if other is None else f" If it serves the user's purpose: {as_text(other)}."),
    )


def _stopped(reason: Any) -> Refusal:
    return Refusal(
        "stopped",
        f"stopped: {as_text(reason)}",
        f"The stop is not about this request alone. {NO_DETOUR.capitalize()}; tell the user that work is stopped, and try "
        "again once the stop is lifted.",
    )


def approver_name(principal: Any, names: Any = None) -> str:
    """Returns the name of a person or key for display; the id if the record has no name."""
    if not isinstance(principal, str):
        return "a person"
    name = cast(Mapping[str, Any], names).get(principal) if isinstance(names, Mapping) else None
    if isinstance(name, str):
        return as_text(f"the key {name}" if principal.startswith("key:") else name)
    return as_text(re.sub("^(user|key|reviewer):", r"the \1 ", principal))


def as_text(text: Any, longest: int = LONGEST) -> str:
    """Returns text of people or policies as one line of limited length, without characters that hide or reorder others."""
    visible = IGNORABLE.sub(" ", str(text))
    visible = "".join(" " if unicodedata.category(one)[0] in "CZ" else one for one in visible)
    line = re.sub(" +", " ", visible).strip()
    return line if len(line) <= longest else f"{line[:longest]}…"

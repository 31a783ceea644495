"""What every adapter asks: may this call of a tool happen now? A yes is already started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional

from ..client import Assent
from ..errors import AssentError, NotJson


@dataclass(frozen=True)
class Verdict:
    """`allowed`: run it once, now. Else `text` is for the model: what happened, and what to do."""

    allowed: bool
    pending: bool
    text: str
    action_id: Optional[str] = None


def ask(
    client: Assent,
    *,
    agent_id: str,
    tool: str,
    operation: str,
    params: Mapping[str, Any],
    meta: Optional[Dict[str, Any]] = None,
    wait: float = 0,
) -> Verdict:
    """Never raises for what the service says or fails to say: everything but a recorded start is a no."""
    try:
        action = client.submit(
            agent_id=agent_id, tool=tool, operation=operation, params=params, meta=meta, wait=wait
        )
        identity = action["id"]
        if action["status"] == "pending_approval":
            return Verdict(
                False,
                True,
                f"Not run: waits for approval ({identity}). It is not refused: call again with exactly the same arguments.",
                identity,
            )
        if action["status"] not in ("allowed", "approved"):
            return Verdict(False, False, f"Not run, denied: {action.get('reason', action['status'])}", identity)
        client.start(identity)
        return Verdict(True, False, "", identity)
    except NotJson as error:
        return Verdict(False, False, f"Not run: the arguments are no JSON: {error}")
    except AssentError as error:
        return Verdict(False, False, f"Not run: nothing could be decided ({error.code}).")


def report(client: Assent, verdict: Verdict, error: Optional[BaseException] = None) -> None:
    """How it went. A failure to say so changes nothing of what was done."""
    if verdict.action_id is None:
        return
    try:
        client.result(
            verdict.action_id, success=error is None, error=None if error is None else type(error).__name__
        )
    except AssentError:
        pass

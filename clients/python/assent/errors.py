"""Errors of the client, one class for each possible reaction of the caller. If a call raises one, the action must not run."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class AssentError(Exception):
    """Base class of all failures of a call. `status` is 0 if there was no response; `code` is a code of docs/errors.md or of the client."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "UNKNOWN",
        retry_after: Optional[float] = None,
        problem: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.problem = dict(problem or {})


class ServiceUnavailable(AssentError):
    """There is no usable response: a timeout, an unreadable response, 429 or 5xx. The service may have carried out the request."""


class Unauthorized(AssentError):
    """The key is missing, is not valid, or does not permit this call."""


class RequestRefused(AssentError):
    """The service rejected the request. The same call would be rejected again."""


class NotJson(TypeError):
    """JSON cannot represent the arguments exactly, so the decided arguments would differ from the arguments that run."""


class Denied(AssentError):
    """
    The action must not run. `action` is its record. `outcome` is `denied` by policy, `rejected` by a person, `stopped`,
    `expired`, `cancelled`, `taken` by another call, or `refused` at its start; the message states what to do next.
    """

    def __init__(self, message: str, *, code: str, action: Mapping[str, Any], outcome: str = "denied") -> None:
        super().__init__(message, status=200, code=code)
        self.action = dict(action)
        self.outcome = outcome


class OutputWithheld(AssentError):
    """
    The function has run, and a rule withholds its output or the service gave no verdict on it. The message contains nothing
    of the output. `action` is its record.
    """

    def __init__(self, reason: str, action: Mapping[str, Any]) -> None:
        super().__init__(
            f"the call was made, and its output is withheld: {reason} (action {action['id']}). "
            "Do not repeat the call to get the output; tell the user",
            status=200,
            code="OUTPUT_WITHHELD",
        )
        self.action = dict(action)


class Pending(AssentError):
    """
    The action requires approval and did not run; it was not denied. The same call with the same arguments joins the pending
    action. `question`: an approver's question to the agent, part of the message.
    """

    def __init__(self, action: Mapping[str, Any], retry_after: float, question: str = "") -> None:
        super().__init__(
            f"not run: waits for approval ({action.get('id')}){question}; call again with exactly the same arguments",
            status=202,
            code="PENDING",
            retry_after=retry_after,
        )
        self.action = dict(action)
        self.action_id = str(action.get("id"))

"""What the client raises, by what a caller can do about it. Nothing may run because of one, whatever it says."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class AssentError(Exception):
    """Every failure of a call. `status` is 0 where there was no answer; `code` is one of docs/errors.md or the client's own."""

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
    """The service could not say: no answer, none in time, one that cannot be read, 429 or 5xx. It may have been carried out."""


class Unauthorized(AssentError):
    """The key is missing, not valid, or may not do this."""


class RequestRefused(AssentError):
    """The service read the request and said no. The same call gets the same answer."""


class NotJson(TypeError):
    """Arguments that JSON cannot carry exactly: what would be decided is not what would run."""


class Denied(AssentError):
    """
    The action may not run. `action` is its record. `outcome` is `denied` by policy, `rejected` by a person, `stopped`,
    `expired`, `cancelled`, `taken` by another call, or `refused` at its start; the message says what to do next.
    """

    def __init__(self, message: str, *, code: str, action: Mapping[str, Any], outcome: str = "denied") -> None:
        super().__init__(message, status=200, code=code)
        self.action = dict(action)
        self.outcome = outcome


class Pending(AssentError):
    """A person is asked, and the action did not run. The same call with the same arguments joins it; it is not refused. `question`: what an approver asks the agent, as part of the message."""

    def __init__(self, action: Mapping[str, Any], retry_after: float, question: str = "") -> None:
        super().__init__(
            f"not run: waits for approval ({action.get('id')}){question}; call again with exactly the same arguments",
            status=202,
            code="PENDING",
            retry_after=retry_after,
        )
        self.action = dict(action)
        self.action_id = str(action.get("id"))

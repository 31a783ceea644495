"""Admission: submits an action, waits for approval and records its start. Every governed call goes through `admit`."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any, Callable, Dict, NoReturn, Optional, TypeVar

from .client import Assent, new_attempt
from .errors import AssentError, Denied, Pending, RequestRefused, ServiceUnavailable
from .records import ActionRecord, open_question
from .refusal import approver_name, as_text, refusal_of

log = logging.getLogger("assent")

#: Seconds after which to repeat a call that waits for approval (`Pending.retry_after`).
COME_BACK = 10.0
#: Default approval timeout of a call, in seconds.
DEFAULT_WAIT = 30.0
#: Maximum age of the response to a start, in seconds. A later response is ignored, because the process may have been suspended.
LIVE = 60.0

STARTABLE = ("allowed", "approved")
Admitted = TypeVar("Admitted")


class Caller:
    """A caller that waits for an admission in another thread and can be cancelled. After `leave`, a start is reported as not run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gone = False
        self._started: Optional[Run] = None

    @property
    def gone(self) -> bool:
        return self._gone

    def take(self, run: Run) -> bool:
        with self._lock:
            if not self._gone:
                self._started = run
            return not self._gone

    def leave(self) -> None:
        with self._lock:
            self._gone = True
            run = self._started
        if run is not None:
            run.not_run("the caller disconnected before it could run")


class Run:
    """One start of an action, with an attempt that only this process knows."""

    def __init__(self, client: Assent, action: ActionRecord, inspects: bool = False) -> None:
        self.client = client
        self.inspects = inspects
        self.action = action
        self.attempt = new_attempt()

    def start(self) -> ActionRecord:
        return self.client.start(self.action["id"], attempt=self.attempt, inspects=self.inspects)

    def not_run(self, why: str) -> None:
        """
        Reports that the function was not called. Sends the attempt of this start, so that the report cannot settle a run
        that another call started. Sends the report from a new thread, so that an unreachable service does not delay the
        caller.
        """

        def report() -> None:
            try:
                self.client.result(self.action["id"], success=False, error=f"not run: {why}", attempt=self.attempt)
            except AssentError as error:
                log.info("that action %s was not run could not be reported: %s", self.action["id"], error)

        threading.Thread(target=report, name="assent-not-run").start()


def admit(
    client: Assent, request: Dict[str, Any], wait: float, caller: Optional[Caller] = None, inspects: bool = False
) -> Run:
    """
    Returns a recorded start, which allows one run now. Joins an open action with the same request, waits for approval, and
    starts the action. Raises Denied; Pending after `wait` seconds; and AssentError if there is no decision. If it raises, the
    call must not run.
    `inspects`: whether the caller lets the service inspect the output before it passes the output on.
    """
    end = time.monotonic() + wait
    # Do not wait in `submit`: only `wait` continues after a restart of the service.
    action = client.submit(**request)
    while True:
        left = end - time.monotonic()
        if action["status"] == "pending_approval" and open_question(action) is None and left > 0:
            action = client.wait(action["id"], left)
        if action["status"] == "pending_approval":
            raise Pending(action, COME_BACK, _question(action))
        if action["status"] not in STARTABLE or action.get("proposed") is not None:
            _refuse(action)
        run = Run(client, action, inspects)
        again = _start(run, caller)
        if again is None:
            return run
        # At the start, the policies were evaluated again and require more approvals.
        action = again


def _question(action: ActionRecord) -> str:
    """Returns the open question of an approver as a sentence; empty if there is none."""
    question = open_question(action)
    if question is None:
        return ""
    who = approver_name(question.get("asked_by"), action.get("names"))
    return (
        f'; {who} asks about it (question {question.get("number")}): "{as_text(question.get("question"), 1000)}"; answer it '
        "through the program that runs you (`Assent.answer`), truthfully, and do not change the call"
    )


async def in_thread(admitted: Callable[[Caller], Admitted]) -> Admitted:
    """
    Runs an admission in a thread. If the task is cancelled in the meantime, reports a start that was already recorded as
    not run.
    """
    caller = Caller()
    try:
        return await asyncio.to_thread(admitted, caller)
    except asyncio.CancelledError:
        caller.leave()
        raise


def _start(run: Run, caller: Optional[Caller]) -> Optional[ActionRecord]:
    """Starts the action. Returns None if the call may run. Returns the action if the start requires another approval."""
    if caller is not None and caller.gone:
        raise ServiceUnavailable("the caller left; nothing was run", code="TIMEOUT")
    wall, steady = time.time(), time.monotonic()
    try:
        started = run.start()
    except RequestRefused as error:
        now = run.client.action(run.action["id"])
        if now["status"] == "executing":
            run.not_run(str(error))
        if now["status"] == "pending_approval":
            return now
        _refuse(now, error)
    except BaseException:
        # The service may have recorded the start, and only the response was lost.
        run.not_run("the start was not confirmed")
        raise
    if max(time.time() - wall, time.monotonic() - steady) > LIVE:
        run.not_run("the response to the start arrived too late")
        raise ServiceUnavailable("the response to the start arrived too late; nothing was run", code="TIMEOUT")
    run.action = started
    if caller is not None and not caller.take(run):
        run.not_run("the caller disconnected before it could run")
        raise ServiceUnavailable("the caller left; nothing was run", code="TIMEOUT")
    return None


def _refuse(action: ActionRecord, cause: Optional[AssentError] = None) -> NoReturn:
    outcome, why, further = refusal_of(action, cause)
    message = f"Not run: {action.get('tool')} {action.get('operation')} was {why}. {further} [action {action['id']}]"
    code = cause.code if cause is not None else str(action.get("reason_code") or action["status"])
    raise Denied(message, code=code, action=action, outcome=outcome) from cause

"""Admission: ask, wait, start. Whatever may run runs behind this, and behind nothing else."""

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

#: Seconds after which a caller that was told to come back does so.
COME_BACK = 10.0
#: Seconds for which a call holds while somebody decides.
DEFAULT_WAIT = 30.0
#: Seconds from the sending of a start within which its answer counts: a process can have been asleep in between.
LIVE = 60.0

STARTABLE = ("allowed", "approved")
Admitted = TypeVar("Admitted")


class Caller:
    """Whoever waits for an admission in another thread, and may leave. Either it takes the start, or nobody does."""

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
    """One start, of which nobody else knows the attempt."""

    def __init__(self, client: Assent, action: ActionRecord) -> None:
        self.client = client
        self.action = action
        self.attempt = new_attempt()

    def start(self) -> ActionRecord:
        return self.client.start(self.action["id"], attempt=self.attempt)

    def not_run(self, why: str) -> None:
        """
        Tells the record that the function was not called. Under its attempt it ends no other call's run. Nobody waits for
        it: a service that cannot be reached would hold the caller up.
        """

        def report() -> None:
            try:
                self.client.result(self.action["id"], success=False, error=f"not run: {why}", attempt=self.attempt)
            except AssentError as error:
                log.info("that action %s was not run could not be reported: %s", self.action["id"], error)

        threading.Thread(target=report, name="assent-not-run").start()


def admit(client: Assent, request: Dict[str, Any], wait: float, caller: Optional[Caller] = None) -> Run:
    """
    What may run now, once. Joins what was asked before and is open; waits for an approval; starts. Raises Denied, Pending
    after `wait` seconds, and AssentError where the service cannot say: then it must not run.
    """
    end = time.monotonic() + wait
    action = client.submit(**request, wait=wait)
    while True:
        left = end - time.monotonic()
        if action["status"] == "pending_approval" and open_question(action) is None and left > 0:
            action = client.wait(action["id"], left)
        if action["status"] == "pending_approval":
            raise Pending(action, COME_BACK, _question(action))
        if action["status"] not in STARTABLE or action.get("proposed") is not None:
            _refuse(action)
        run = Run(client, action)
        again = _start(run, caller)
        if again is None:
            return run
        # Decided again, it wants more approvals than it had.
        action = again


def _question(action: ActionRecord) -> str:
    """What an approver asks about the action, as a sentence; empty if nothing is open."""
    question = open_question(action)
    if question is None:
        return ""
    who = approver_name(question.get("asked_by"))
    return (
        f'; {who} asks about it (question {question.get("number")}): "{as_text(question.get("question"), 1000)}"; answer it '
        "through whoever runs you (`Assent.answer`), truthfully, and do not change the call"
    )


async def in_thread(admitted: Callable[[Caller], Admitted]) -> Admitted:
    """An admission in a thread. Nothing stays started for a task that was cancelled meanwhile."""
    caller = Caller()
    try:
        return await asyncio.to_thread(admitted, caller)
    except asyncio.CancelledError:
        caller.leave()
        raise


def _start(run: Run, caller: Optional[Caller]) -> Optional[ActionRecord]:
    """None: it has begun, and its caller is there. Else the action, which waits for people again."""
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
        # It may have begun, and only the answer is missing.
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

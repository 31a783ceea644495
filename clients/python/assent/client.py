"""Client of the `/v1` API for agents, approvers and tools."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import ssl
import time
from typing import Any, AsyncIterator, Dict, Iterator, List, Mapping, Optional, Sequence, cast
from urllib.parse import quote, urlencode

from .errors import AssentError, RequestRefused, ServiceUnavailable
from .records import ActionRecord, Event, PlanRecord, open_question
from .transport import Transport, as_object, to_json

DEFAULT_URL = "http://127.0.0.1:8000"
#: Maximum number of seconds that one request waits for a vote. A longer wait uses several requests.
LONGEST_WAIT = 30
#: Maximum number of actions for which a client stores the kept members of outputs.
MAX_KEPT = 1000
#: A stream without data for this number of seconds is disconnected, because the service sends heartbeats more often.
PATIENCE = 90.0


class Assent:
    """
    A client of one service with one key. `url` defaults to `ASSENT_URL` or http://127.0.0.1:8000, and `api_key` to
    `ASSENT_API_KEY`. `session_token` is sent with each action; the process that started the agent requests it
    (`POST /v1/agent-sessions`). `authority` is the authority under which the agent acts for another agent. It is sent with
    each action and plan, and defaults to `ASSENT_AUTHORITY`; an empty string means that the agent acts in its own name.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        *,
        timeout: float = 30.0,
        ssl_context: Optional[ssl.SSLContext] = None,
        session_token: Optional[str] = None,
        authority: Optional[str] = None,
    ) -> None:
        address = url or os.environ.get("ASSENT_URL") or DEFAULT_URL
        key = api_key or os.environ.get("ASSENT_API_KEY", "")
        self.url = address
        self._http = Transport(address, key, timeout, ssl_context)
        # Members of outputs that histories keep, by action, until the result is reported.
        self._kept: Dict[str, Dict[str, Any]] = {}
        self._bound_to: Optional[str] = None
        self._session = session_token
        self._authority = os.environ.get("ASSENT_AUTHORITY") if authority is None else authority

    def submit(
        self,
        *,
        agent_id: str,
        tool: str,
        operation: str,
        params: Optional[Mapping[str, Any]] = None,
        context: Optional[Mapping[str, Any]] = None,
        meta: Optional[Mapping[str, Any]] = None,
        join: bool = True,
        wait: float = 0,
        permit: bool = False,
        idempotency_key: Optional[str] = None,
        authority: Optional[str] = None,
    ) -> ActionRecord:
        """
        Submits a request and returns its action. With `join`, an open action of this key with the same request is returned
        instead of a new action. `wait`: seconds to wait for approval; the record can still be `pending_approval` afterwards.
        `permit`: includes a permit in the record. If no permit could be issued, `Assent.permit` raises the reason.
        `authority`: instead of the authority of the client.
        """
        body: Dict[str, Any] = {"agent_id": agent_id, "tool": tool, "operation": operation}
        for name, value in (("params", params), ("context", context), ("meta", meta)):
            if value is not None:
                body[name] = value
        named = self._authority if authority is None else authority
        if named:
            body["authority"] = named
        prefer = ["permit"] if permit else []
        if wait > 0:
            prefer.append(f"wait={min(int(wait), LONGEST_WAIT)}")
        headers = {"Prefer": ", ".join(prefer)} if prefer else {}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        if self._session is not None:
            headers["Assent-Session"] = self._session
        path = "/v1/actions?join=open" if join else "/v1/actions"
        repeat = join or idempotency_key is not None
        record = self._record("POST", path, body, headers, min(wait, LONGEST_WAIT), repeat)
        # A proxy between the client and the service can mix up responses.
        # An approver may have changed the parameters of the action that this request joins.
        asked = {**record, "params": (record.get("proposed") or record).get("params")}
        for name in ("agent_id", "tool", "operation", "params", "context"):
            if not _same(to_json(body.get(name, {})), asked.get(name)):
                raise _another(record)
        if _authority_of(record) != (named or None):
            raise _another(record)
        left = wait - LONGEST_WAIT
        pending = record["status"] == "pending_approval" and open_question(record) is None
        return self.wait(record["id"], left) if pending and left > 0 else record

    def agent(self) -> str:
        """Returns the id of the agent that this key is bound to."""
        if self._bound_to is None:
            _, _, me = self._http.call("GET", "/v1/me", repeat=True)
            bound = as_object(as_object(me).get("key")).get("agent_id")
            if not isinstance(bound, str):
                raise RequestRefused(
                    "this key is not bound to an agent; set the agent of the request", status=403, code="AGENT_UNBOUND"
                )
            self._bound_to = bound
        return self._bound_to

    def action(self, action_id: str) -> ActionRecord:
        """Reads an action."""
        return self._record("GET", f"/v1/actions/{_part(action_id)}", repeat=True, about=action_id)

    def actions(self, **filters: str) -> Iterator[ActionRecord]:
        """Yields all actions that match the filters and that this key may see. Reads them page by page."""
        query = dict(filters)
        while True:
            _, _, answer = self._http.call("GET", f"/v1/actions?{urlencode(query)}", repeat=True)
            page = as_object(answer)
            if not isinstance(page.get("actions"), list):
                raise ServiceUnavailable("the response is not a list", status=200, code="UNREADABLE_ANSWER")
            yield from page["actions"]
            cursor = page.get("next_cursor")
            if not cursor:
                return
            if cursor == query.get("cursor"):
                raise ServiceUnavailable("the pages of the list do not end", status=200, code="UNREADABLE_ANSWER")
            query["cursor"] = cursor

    def wait(self, action_id: str, seconds: float) -> ActionRecord:
        """
        Waits until the action is no longer pending, an approver asks its agent a question, or `seconds` have passed. Returns the
        action. Continues to wait while the service is unavailable, for example during a restart.
        """
        end = time.monotonic() + seconds
        while True:
            now = max(0, min(int(end - time.monotonic()), LONGEST_WAIT))
            path = f"/v1/actions/{_part(action_id)}?wait={now}"
            try:
                record = self._record("GET", path, wait=now, repeat=True, about=action_id)
            except ServiceUnavailable as error:
                pause = max(1.0, error.retry_after or 0)
                if time.monotonic() + pause >= end:
                    raise
                time.sleep(pause)
                continue
            if record["status"] != "pending_approval" or open_question(record) or time.monotonic() + 1 >= end:
                return record

    def permit(self, action_id: str) -> ActionRecord:
        """Evaluates the policies again and returns the action with a new permit, or without one if it requires approval again."""
        return self._record("POST", f"/v1/actions/{_part(action_id)}/permit", {}, about=action_id)

    def start(
        self,
        action_id: str,
        permit: Optional[str] = None,
        attempt: Optional[str] = None,
        request_hash: Optional[str] = None,
        inspects: bool = False,
    ) -> ActionRecord:
        """
        Records the start of an action, which only one caller can do. A caller that did not submit the action needs the
        permit. If the response is lost, the request is retried with the same `attempt` (from `new_attempt()`). If this method
        raises, the caller must not run the action.
        `inspects`: whether the caller calls `inspect` before it passes the output on, if the record has `inspect`. Otherwise the
        session gets the labels of all result rules that apply when the action starts.
        """
        body: Dict[str, Any] = {"attempt": attempt or new_attempt()}
        if inspects:
            body["inspects"] = True
        if permit is not None:
            body["permit"] = permit
        # Required if an approver changed the request: the hash of the record whose `params` the caller runs.
        if request_hash is not None:
            body["request_hash"] = request_hash
        record = self._record("POST", f"/v1/actions/{_part(action_id)}/start", body, repeat=True, about=action_id)
        if record["status"] != "executing":
            raise ServiceUnavailable(
                f"{action_id} is {record['status']} after it was started", code="UNREADABLE_ANSWER"
            )
        return record

    def result(
        self,
        action_id: str,
        *,
        success: bool,
        error: Optional[str] = None,
        meta: Optional[Mapping[str, Any]] = None,
        usage: Optional[Mapping[str, float]] = None,
        attempt: Optional[str] = None,
    ) -> ActionRecord:
        """
        Reports the result of an action. Adds the `kept` members that `inspect` returned to `meta`. If the response is
        lost, the request is retried; the service stores the first result.
        `usage`: what the action used, for limits, such as {"cost_usd": 0.02}.
        `attempt`: the attempt of the start that this result ends. The result of a different attempt is rejected.
        """
        body: Dict[str, Any] = {"success": success}
        if error is not None:
            body["error"] = error
        meta = {**self._kept.pop(action_id, {}), **(meta or {})} or meta
        if meta is not None:
            body["meta"] = meta
        if usage is not None:
            body["usage"] = usage
        if attempt is not None:
            body["attempt"] = attempt
        path = f"/v1/actions/{_part(action_id)}/result"
        try:
            return self._record("POST", path, body, repeat=True, about=action_id)
        except RequestRefused as refused:
            if refused.code != "ACTION_NOT_STARTED":
                raise
            now = self.action(action_id)
            if now["status"] != ("succeeded" if success else "failed"):
                raise
            return now

    def inspect(self, action_id: str, output: Any) -> Dict[str, Any]:
        """
        Lets the service inspect the output of a started action, if its record has `inspect`. Pass on only what the response
        says: `verdict` is `allow`, `redact` (with `output`) or `withhold`. If this raises, pass nothing on.
        """
        path = f"/v1/actions/{_part(action_id)}/inspect"
        status, _, answer = self._http.call("POST", path, {"output": output}, None, 0, True)
        inspection = as_object(answer)
        verdict = inspection.get("verdict")
        if verdict not in ("allow", "redact", "withhold") or (verdict == "redact" and "output" not in inspection):
            raise ServiceUnavailable(
                f"the response ({status}) has no verdict", status=status, code="UNREADABLE_ANSWER"
            )
        if "kept" in inspection:
            self._kept[action_id] = {**self._kept.get(action_id, {}), **as_object(inspection["kept"])}
            if len(self._kept) > MAX_KEPT:
                self._kept.pop(next(iter(self._kept)), None)
        return inspection

    def ask(self, action_id: str, question: str) -> ActionRecord:
        """Asks the agent of a pending action a question. Needs a key that can approve the action."""
        path = f"/v1/actions/{_part(action_id)}/questions"
        return self._record("POST", path, {"question": question}, repeat=True, about=action_id)

    def answer(self, action_id: str, answer: str, number: Optional[int] = None) -> ActionRecord:
        """Answers question `number` about a pending action of this agent, or the first question without an answer."""
        body: Dict[str, Any] = {"answer": answer}
        if number is not None:
            body["number"] = number
        path = f"/v1/actions/{_part(action_id)}/answers"
        return self._record("POST", path, body, repeat=True, about=action_id)

    def cancel(self, action_id: str) -> ActionRecord:
        """Cancels the action."""
        return self._record("POST", f"/v1/actions/{_part(action_id)}/cancel", {}, about=action_id)

    def submit_plan(
        self,
        actions: Sequence[Mapping[str, Any]],
        *,
        ordered: bool = False,
        stop_on_failure: bool = False,
        idempotency_key: Optional[str] = None,
    ) -> PlanRecord:
        """
        Submits several requests of one agent as a plan, which people approve as one list. Each request has `agent_id`, `tool`
        and `operation`, and may have `params`, `context` and `meta`. A governed
        function that is later called with the same request uses the action of the plan.
        """
        named = {"authority": self._authority} if self._authority else {}
        requests = [{**named, **action} for action in actions]
        body = {"actions": requests, "ordered": ordered, "stop_on_failure": stop_on_failure}
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        repeat = idempotency_key is not None
        plan = self._plan("POST", "/v1/plans", body, headers, repeat)
        asked = [_request(to_json(action)) for action in requests]
        # An approver may have changed parameters of a plan that an earlier call submitted.
        answered = [
            _request(
                {
                    **action,
                    "params": (action.get("proposed") or action).get("params"),
                    "authority": _authority_of(action),
                }
            )
            for action in plan["actions"]
        ]
        if not _same(asked, answered):
            raise ServiceUnavailable(f"{plan['id']} is not the plan that was submitted", code="UNREADABLE_ANSWER")
        return plan

    def plan(self, plan_id: str) -> PlanRecord:
        """Reads a plan. Needs a key that may see all its actions."""
        return self._plan("GET", f"/v1/plans/{_part(plan_id)}", repeat=True, about=plan_id)

    def cancel_plan(self, plan_id: str, reason: Optional[str] = None) -> PlanRecord:
        """Cancels the pending actions of a plan. With an admin key, also cancels actions that have not started yet."""
        body = {} if reason is None else {"reason": reason}
        return self._plan("POST", f"/v1/plans/{_part(plan_id)}/cancel", body, about=plan_id)

    def lift_rejection(self, action_id: str, reason: Optional[str] = None) -> ActionRecord:
        """Lifts a rejection, so that the same request requires approval again. Needs a key that can approve the action."""
        body = {} if reason is None else {"reason": reason}
        return self._record("POST", f"/v1/actions/{_part(action_id)}/lift-rejection", body, about=action_id)

    def vote(self, action_id: str, approve: bool, reason: Optional[str] = None) -> ActionRecord:
        """Approves or rejects an action. Reads the action first for its approval token. Needs a key that can approve the action."""
        action = self.action(action_id)
        token = action.get("approval_token")
        if not isinstance(token, str):
            raise RequestRefused(
                f"this key cannot vote on {action_id}: the action is {action['status']}, the key is not an approver of it,"
                " or the key has already voted",
                status=403,
                code="NO_TOKEN",
            )
        body: Dict[str, Any] = {"approve": approve, "token": token}
        if reason is not None:
            body["reason"] = reason
        return self._record("POST", f"/v1/actions/{_part(action_id)}/approval", body, about=action_id)

    def events(self, after: Optional[str] = None, **filters: str) -> Iterator[Event]:
        """
        Yields events as they are recorded, each once, without end. If the connection is lost or data is unreadable, reconnects
        and continues after the last event. `after`: an event's id; `filters`: `type`, `agent_id`, `tool`, `action_id`. Raises
        Unauthorized and RequestRefused, because a retry would fail, too.
        """
        last = after
        pause = 1.0
        path = f"/v1/events?{urlencode(filters)}" if filters else "/v1/events"
        while True:
            headers = {} if last is None else {"Last-Event-ID": last}
            try:
                for event in _events(self._http.stream(path, headers, PATIENCE)):
                    pause = 1.0
                    if not _is_new(event["id"], last):
                        continue
                    last = event["id"] or last
                    # The service also sends its position, in an event with a name.
                    if event["event"] == "message" and event["data"] is not None:
                        yield event
            except ServiceUnavailable as error:
                pause = min(30.0, pause * 2) if error.retry_after is None else error.retry_after
            time.sleep(pause)

    def _plan(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        repeat: bool = False,
        about: Optional[str] = None,
    ) -> PlanRecord:
        status, _, answer = self._http.call(method, path, body, headers, 0, repeat)
        plan = as_object(answer)
        if not isinstance(plan.get("id"), str) or not isinstance(plan.get("actions"), list):
            raise ServiceUnavailable(f"the response ({status}) is not a plan", status=status, code="UNREADABLE_ANSWER")
        if about is not None and plan["id"] != about:
            raise ServiceUnavailable(f"{plan['id']} is not the requested plan", code="UNREADABLE_ANSWER")
        return cast(PlanRecord, plan)

    def _record(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        wait: float = 0,
        repeat: bool = False,
        about: Optional[str] = None,
    ) -> ActionRecord:
        status, _, answer = self._http.call(method, path, body, headers, wait, repeat)
        record = as_object(answer)
        # A response from any other server at this address must not count as permission.
        if not isinstance(record.get("id"), str) or "status" not in record:
            raise ServiceUnavailable(
                f"the response ({status}) is not an action", status=status, code="UNREADABLE_ANSWER"
            )
        if about is not None and record["id"] != about:
            raise _another(record)
        return cast(ActionRecord, record)


def _events(lines: Iterator[bytes]) -> Iterator[Event]:
    """https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation"""
    last, kind = "", "message"
    data: List[bytes] = []
    try:
        for line in lines:
            if not line:
                if data or last:
                    yield {"id": last, "event": kind, "data": json.loads(b"\n".join(data)) if data else None}
                kind, data = "message", []
                continue
            name, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if name == b"data":
                data.append(value)
            elif name == b"event":
                kind = value.decode()
            elif name == b"id" and b"\0" not in value:
                last = value.decode()
    except (ValueError, RecursionError) as error:
        raise ServiceUnavailable(f"an event cannot be read: {error}", status=200, code="UNREADABLE_ANSWER") from error


def _is_new(event_id: str, last: Optional[str]) -> bool:
    numbers = (event_id, last or "")
    return not all(one.isascii() and one.isdigit() and len(one) <= 16 for one in numbers) or int(event_id) > int(numbers[1])


def _another(record: Mapping[str, Any]) -> ServiceUnavailable:
    return ServiceUnavailable(f"{record['id']} is not the requested action", code="UNREADABLE_ANSWER")


def _same(asked: Any, answered: Any) -> bool:
    """Returns True if both are the same JSON. In Python, True equals 1; in JSON, it does not."""
    if isinstance(asked, dict) and isinstance(answered, dict):
        left, right = as_object(asked), as_object(answered)
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(asked, list) and isinstance(answered, list):
        one, other = cast(List[Any], asked), cast(List[Any], answered)
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(asked, bool) or isinstance(answered, bool):
        return asked is answered
    return bool(asked == answered)


def new_attempt() -> str:
    """Returns 128 random bits that identify one start."""
    return secrets.token_hex(16)


def _request(action: Mapping[str, Any]) -> Dict[str, Any]:
    names = {name: action.get(name) for name in ("agent_id", "tool", "operation", "authority")}
    return {**names, "params": action.get("params") or {}, "context": action.get("context") or {}}


def _authority_of(record: Mapping[str, Any]) -> Optional[str]:
    named = as_object(record.get("chain")).get("authority")
    return named if isinstance(named, str) else None


def _part(value: str) -> str:
    if not value:
        raise AssentError("the action has no id", code="NO_ID")
    return quote(value, safe="")


class AsyncAssent:
    """Assent for asyncio. Each call runs in a thread. If it is cancelled, the thread finishes and its result is ignored."""

    def __init__(
        self,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        *,
        timeout: float = 30.0,
        ssl_context: Optional[ssl.SSLContext] = None,
        session_token: Optional[str] = None,
        authority: Optional[str] = None,
    ) -> None:
        self.sync = Assent(
            url,
            api_key,
            timeout=timeout,
            ssl_context=ssl_context,
            session_token=session_token,
            authority=authority,
        )

    async def submit(
        self,
        *,
        agent_id: str,
        tool: str,
        operation: str,
        params: Optional[Mapping[str, Any]] = None,
        context: Optional[Mapping[str, Any]] = None,
        meta: Optional[Mapping[str, Any]] = None,
        join: bool = True,
        wait: float = 0,
        permit: bool = False,
        idempotency_key: Optional[str] = None,
        authority: Optional[str] = None,
    ) -> ActionRecord:
        return await asyncio.to_thread(
            lambda: self.sync.submit(
                agent_id=agent_id,
                tool=tool,
                operation=operation,
                params=params,
                context=context,
                meta=meta,
                join=join,
                wait=wait,
                permit=permit,
                idempotency_key=idempotency_key,
                authority=authority,
            )
        )

    async def agent(self) -> str:
        return await asyncio.to_thread(self.sync.agent)

    async def action(self, action_id: str) -> ActionRecord:
        return await asyncio.to_thread(self.sync.action, action_id)

    async def wait(self, action_id: str, seconds: float) -> ActionRecord:
        return await asyncio.to_thread(self.sync.wait, action_id, seconds)

    async def permit(self, action_id: str) -> ActionRecord:
        return await asyncio.to_thread(self.sync.permit, action_id)

    async def start(
        self,
        action_id: str,
        permit: Optional[str] = None,
        attempt: Optional[str] = None,
        request_hash: Optional[str] = None,
        inspects: bool = False,
    ) -> ActionRecord:
        return await asyncio.to_thread(self.sync.start, action_id, permit, attempt, request_hash, inspects)

    async def result(
        self,
        action_id: str,
        *,
        success: bool,
        error: Optional[str] = None,
        meta: Optional[Mapping[str, Any]] = None,
        usage: Optional[Mapping[str, float]] = None,
        attempt: Optional[str] = None,
    ) -> ActionRecord:
        return await asyncio.to_thread(
            lambda: self.sync.result(
                action_id, success=success, error=error, meta=meta, usage=usage, attempt=attempt
            )
        )

    async def inspect(self, action_id: str, output: Any) -> Dict[str, Any]:
        return await asyncio.to_thread(self.sync.inspect, action_id, output)

    async def ask(self, action_id: str, question: str) -> ActionRecord:
        return await asyncio.to_thread(self.sync.ask, action_id, question)

    async def answer(self, action_id: str, answer: str, number: Optional[int] = None) -> ActionRecord:
        return await asyncio.to_thread(self.sync.answer, action_id, answer, number)

    async def cancel(self, action_id: str) -> ActionRecord:
        return await asyncio.to_thread(self.sync.cancel, action_id)

    async def submit_plan(
        self,
        actions: Sequence[Mapping[str, Any]],
        *,
        ordered: bool = False,
        stop_on_failure: bool = False,
        idempotency_key: Optional[str] = None,
    ) -> PlanRecord:
        return await asyncio.to_thread(
            lambda: self.sync.submit_plan(
                actions, ordered=ordered, stop_on_failure=stop_on_failure, idempotency_key=idempotency_key
            )
        )

    async def plan(self, plan_id: str) -> PlanRecord:
        return await asyncio.to_thread(self.sync.plan, plan_id)

    async def cancel_plan(self, plan_id: str, reason: Optional[str] = None) -> PlanRecord:
        return await asyncio.to_thread(self.sync.cancel_plan, plan_id, reason)

    async def lift_rejection(self, action_id: str, reason: Optional[str] = None) -> ActionRecord:
        return await asyncio.to_thread(self.sync.lift_rejection, action_id, reason)

    async def vote(self, action_id: str, approve: bool, reason: Optional[str] = None) -> ActionRecord:
        return await asyncio.to_thread(self.sync.vote, action_id, approve, reason)

    async def actions(self, **filters: str) -> AsyncIterator[ActionRecord]:
        source = self.sync.actions(**filters)
        while (record := await asyncio.to_thread(next, source, None)) is not None:
            yield record

    async def events(self, after: Optional[str] = None, **filters: str) -> AsyncIterator[Event]:
        source = self.sync.events(after, **filters)
        while True:
            yield await asyncio.to_thread(next, source)

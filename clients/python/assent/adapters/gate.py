"""Submits a tool call for an adapter, and records its start if it is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional

from ..admit import DEFAULT_WAIT, Caller, Run, admit
from ..client import Assent
from ..errors import AssentError, Denied, NotJson, Pending
from ..govern import error_text, log, reportable
from ..transport import to_json


#: Computes what a call used, which limits count, from its result and the name of its tool.
Usage = Callable[[Any, str], Mapping[str, float]]


@dataclass(frozen=True)
class Verdict:
    """If `allowed`, the call may run once, now. Otherwise `text` tells the model what happened and what to do."""

    allowed: bool
    pending: bool
    text: str
    action_id: Optional[str] = None
    run: Optional[Run] = None


def ask(
    client: Assent,
    *,
    agent_id: Optional[str] = None,
    tool: str,
    operation: str,
    params: Mapping[str, Any],
    meta: Optional[Dict[str, Any]] = None,
    wait: float = DEFAULT_WAIT,
    caller: Optional[Caller] = None,
) -> Verdict:
    """
    Submits a call and returns the verdict. Does not raise for errors of the service: without a recorded start, the call is not
    allowed. It is not allowed either if its arguments changed in the meantime.
    """
    try:
        asked: Any = to_json(params)
        if not isinstance(asked, dict):
            raise NotJson("they are not an object")
        agent = agent_id if agent_id is not None else client.agent()
        request: Dict[str, Any] = {"agent_id": agent, "tool": tool, "operation": operation, "params": asked, "meta": meta}
        run = admit(client, request, wait, caller)
        if not unchanged(asked, params):
            run.not_run("the arguments changed during the request")
            return Verdict(False, False, "Not run: the arguments changed during the request.", run.action["id"])
        return Verdict(True, False, "", run.action["id"], run)
    except NotJson as error:
        return Verdict(False, False, f"Not run: the arguments are not JSON: {error}")
    except Pending as pending:
        text = f"Not run: waits for approval ({pending.action_id}). It is not refused: call again with exactly the same arguments."
        return Verdict(False, True, text, pending.action_id)
    except Denied as denied:
        return Verdict(False, False, str(denied), denied.action["id"])
    except AssentError as error:
        return Verdict(False, False, f"Not run: nothing could be decided ({error.code}). It was not refused; try again later.")


def unchanged(asked: Any, params: Any) -> bool:
    try:
        return repr(to_json(params)) == repr(asked)
    except NotJson:
        return False


def report(
    client: Assent,
    verdict: Verdict,
    error: Optional[BaseException] = None,
    *,
    usage: Optional[Usage] = None,
    name: str = "",
    value: Any = None,
) -> None:
    """Reports the result of a call. Ignores failures, because the call has already run."""
    if verdict.action_id is None:
        return
    used: Optional[Mapping[str, float]] = None
    try:
        used = reportable(usage(value, name)) if usage is not None else None
    except Exception as problem:
        log.warning("the usage could not be reported [action %s]: %s", verdict.action_id, problem)
    try:
        client.result(verdict.action_id, success=error is None, error=None if error is None else error_text(error), usage=used)
    except AssentError:
        pass

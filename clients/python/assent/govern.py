"""A function that runs only with a permission that was just given, once."""

from __future__ import annotations

import copy
import functools
import inspect
import logging
from typing import Any, Awaitable, Callable, Dict, Optional, TypeVar, Union, cast

from .client import Assent, AsyncAssent
from .errors import AssentError, Denied, Pending
from .records import ActionRecord
from .transport import to_json

log = logging.getLogger("assent")
Function = TypeVar("Function", bound=Callable[..., Any])

#: Seconds after which a caller that was told to come back does so.
COME_BACK = 10.0


def govern(
    client: Union[Assent, AsyncAssent],
    *,
    agent_id: str,
    tool: str,
    operation: Optional[str] = None,
    context: Optional[Dict[str, Any]] = None,
    meta: Optional[Callable[[], Dict[str, Any]]] = None,
    wait: float = 0,
) -> Callable[[Function], Function]:
    """
    The function asks first, with its arguments by name as `params`, and runs when it was allowed or approved and its start
    was recorded. Raises Denied; Pending after `wait` seconds, and then the same call later joins the same action; and
    AssentError where nothing could be decided. In each of these cases it did not run.

    It runs with a copy of what was asked: nobody changes the arguments in between.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        name = operation or function.__name__
        if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in signature.parameters.values()):
            raise TypeError("a governed function takes no *args: policies know arguments by name")
        if inspect.iscoroutinefunction(function) and not isinstance(client, AsyncAssent):
            raise TypeError("a coroutine function needs an AsyncAssent")

        def ask(args: tuple, kwargs: Dict[str, Any]) -> Dict[str, Any]:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return {
                "agent_id": agent_id,
                "tool": tool,
                "operation": name,
                "params": to_json(_flat(bound)),
                "context": context,
                "meta": meta() if meta is not None else None,
                "wait": wait,
            }

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def governed_async(*args: Any, **kwargs: Any) -> Any:
                own = cast(AsyncAssent, client)
                request = ask(args, kwargs)
                action = _startable(await own.submit(**request))
                await _refusal(own.start(action["id"]), action)
                try:
                    value = await _run(function, signature, request["params"])
                except BaseException as error:
                    await _report(own.result(action["id"], success=False, error=_words(error)))
                    raise
                await _report(own.result(action["id"], success=True))
                return value

            return cast(Function, governed_async)

        @functools.wraps(function)
        def governed(*args: Any, **kwargs: Any) -> Any:
            own = client.sync if isinstance(client, AsyncAssent) else client
            request = ask(args, kwargs)
            action = _startable(own.submit(**request))
            try:
                own.start(action["id"])
            except AssentError as error:
                raise _started_by_no_one(error, action) from error
            try:
                value = _run(function, signature, request["params"])
            except BaseException as error:
                _told(lambda: own.result(action["id"], success=False, error=_words(error)))
                raise
            _told(lambda: own.result(action["id"], success=True))
            return value

        return cast(Function, governed)

    return decorate


def _flat(bound: inspect.BoundArguments) -> Dict[str, Any]:
    """Arguments by name; those of `**more` beside the others, where none of them has the name."""
    params: Dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            params.update({key: item for key, item in value.items() if key not in params})
        else:
            params[name] = value
    return params


def _run(function: Callable[..., Any], signature: inspect.Signature, params: Dict[str, Any]) -> Any:
    args, kwargs = [], dict(copy.deepcopy(params))
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and name in kwargs:
            args.append(kwargs.pop(name))
    return function(*args, **kwargs)


def _startable(action: ActionRecord) -> ActionRecord:
    status = action["status"]
    if status in ("allowed", "approved"):
        return action
    if status == "pending_approval":
        raise Pending(action, COME_BACK)
    raise Denied(action.get("reason", status), code=action.get("reason_code", status), action=action)


def _started_by_no_one(error: AssentError, action: ActionRecord) -> AssentError:
    """What was allowed a moment ago and is not any more is denied; a service that did not answer stays what it is."""
    if error.status in (403, 409, 410):
        return Denied(str(error), code=error.code, action=action)
    return error


async def _refusal(started: Awaitable[Any], action: ActionRecord) -> None:
    try:
        await started
    except AssentError as error:
        raise _started_by_no_one(error, action) from error


def _told(report: Callable[[], Any]) -> None:
    try:
        report()
    except AssentError as error:
        # It ran, whatever the log knows of it: the caller gets what it gave.
        log.warning("the result was not reported: %s", error)


async def _report(reported: Awaitable[Any]) -> None:
    try:
        await reported
    except AssentError as error:
        log.warning("the result was not reported: %s", error)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:1000]

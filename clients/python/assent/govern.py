"""Decorates functions so that each call runs only after the service allows it and records its start."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import logging
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, TypeVar, Union, cast

from .admit import DEFAULT_WAIT, Caller, Run, admit, in_thread
from .client import Assent, AsyncAssent
from .errors import AssentError, NotJson, OutputWithheld
from .records import ActionRecord
from .transport import to_json

log = logging.getLogger("assent")
Function = TypeVar("Function", bound=Callable[..., Any])


def govern(
    client: Union[Assent, AsyncAssent],
    *,
    tool: str,
    agent_id: Optional[str] = None,
    operation: Optional[str] = None,
    context: Optional[Dict[str, Any]] = None,
    meta: Optional[Callable[[], Dict[str, Any]]] = None,
    wait: float = DEFAULT_WAIT,
    record: Optional[Callable[[Any], Dict[str, Any]]] = None,
    usage: Optional[Callable[[Any], Mapping[str, float]]] = None,
    on_unreported: Optional[Callable[[Exception, ActionRecord], None]] = None,
) -> Callable[[Function], Function]:
    """
    Returns a decorator. The decorated function first submits an action whose `params` map names to arguments. It runs if
    the action is allowed or approved and its start is recorded. Raises Denied; Pending after `wait` seconds (the same call
    then joins the same action later); and AssentError if there is no decision. In each of these cases the function did not
    run. If the service may still have recorded a start, the client reports that the function did not run.

    The function runs with a copy of the submitted arguments, so that other code cannot change them in between. `agent_id`
    defaults to the agent that the key is bound to. `record` selects the part of a result to store, such as ids and amounts.
    `usage` returns what a call used, such as {"cost_usd": 0.02, "tokens": 900}, for limits.
    `on_unreported` is called if the function ran and its result, or its `record` or `usage`, could not be reported; by
    default the client logs a warning.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        name = operation or getattr(function, "__name__", None)
        if name is None or name == "<lambda>":
            raise TypeError("the governed function has no name; pass the name of its action as operation")
        if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in signature.parameters.values()):
            raise TypeError("a governed function cannot have *args, because policies read arguments by name")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a generator runs later and in parts; govern the functions that it calls")
        if inspect.iscoroutinefunction(function) and not isinstance(client, AsyncAssent):
            raise TypeError("a coroutine function needs an AsyncAssent")
        own = client.sync if isinstance(client, AsyncAssent) else client

        def params_of(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return cast(Dict[str, Any], to_json(_flat(bound), keep_decimals=True))

        def admitted(params: Dict[str, Any], caller: Optional[Caller] = None) -> Run:
            request = {
                "agent_id": agent_id if agent_id is not None else own.agent(),
                "tool": tool,
                "operation": name,
                "params": to_json(params),
                "context": context,
                "meta": meta() if meta is not None else None,
            }
            return admit(own, request, wait, caller, inspects=True)

        def report(run: Run, how: Callable[[], Dict[str, Any]]) -> None:
            # The function has run, so the caller gets its result even if reporting fails.
            try:
                own.result(run.action["id"], **how())
            except Exception as error:
                (on_unreported or _warn)(error, run.action)

        def computed(run: Run, part: Callable[[], Any]) -> Any:
            try:
                return part()
            except Exception as error:
                (on_unreported or _warn)(error, run.action)
                return None

        def succeeded(run: Run, value: Any) -> Any:
            """Reports the success. Returns the value, or its redacted form. Raises OutputWithheld."""
            verdict = inspected(own, run.action, value)
            kept = computed(run, lambda: to_json(record(value)) if record is not None else None)
            used = computed(run, lambda: reportable(usage(value)) if usage is not None else None)
            report(run, lambda: {"success": True, "meta": kept, "usage": used})
            if isinstance(verdict, OutputWithheld):
                raise verdict
            return value if verdict is None else verdict["output"]

        def failed(run: Run, error: BaseException) -> Optional[Exception]:
            """Reports the failure. Returns the error to raise instead, if rules inspect the output and change it."""
            # A cancellation must stay one, so it is not inspected, and only its name is reported.
            is_cancelled = isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit))
            text = type(error).__name__ if is_cancelled else _describe(error)
            verdict = None if is_cancelled else inspected(own, run.action, text)
            shown = text if verdict is None else "the error is withheld" if isinstance(verdict, OutputWithheld) else str(verdict["output"])
            # The agent can read the report.
            report(run, lambda: {"success": False, "error": _clip(shown)})
            if verdict is None:
                return None
            if isinstance(verdict, OutputWithheld):
                return verdict
            return RuntimeError(shown) if shown != text or _has_more(error, text) else None

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def governed_async(*args: Any, **kwargs: Any) -> Any:
                params = params_of(args, kwargs)
                run = await in_thread(lambda caller: admitted(params, caller))
                try:
                    value = _begun(await _run(function, signature, params, len(args)))
                except BaseException as error:
                    other = await asyncio.to_thread(failed, run, error)
                    if other is None:
                        raise
                else:
                    return await asyncio.to_thread(succeeded, run, value)
                # Outside of `except`, so that the new error does not refer to the old one.
                raise other

            return cast(Function, governed_async)

        @functools.wraps(function)
        def governed(*args: Any, **kwargs: Any) -> Any:
            params = params_of(args, kwargs)
            run = admitted(params)
            try:
                value = _begun(_run(function, signature, params, len(args)))
            except BaseException as error:
                other = failed(run, error)
                if other is None:
                    raise
            else:
                return succeeded(run, value)
            raise other

        return cast(Function, governed)

    return decorate


def inspected(client: Assent, action: ActionRecord, value: Any) -> Union[None, Dict[str, Any], OutputWithheld]:
    """
    Sends the output to the service if its action has `inspect`; otherwise returns None. Returns the inspection, whose `output`
    is a copy that may be passed on, or the error to raise if the output is withheld or cannot be inspected.
    """
    if cast(Dict[str, Any], action).get("inspect") is not True:
        return None
    try:
        # The value itself can have attributes that JSON does not represent, and can change later.
        output = to_json(value, keep_decimals=True)
        inspection = client.inspect(action["id"], to_json(output))
    except NotJson:
        return OutputWithheld("it is not plain JSON, so it could not be inspected", action)
    except AssentError as error:
        return OutputWithheld(f"the service gave no verdict ({error.code})", action)
    except Exception as error:
        return OutputWithheld(f"it could not be inspected ({type(error).__name__})", action)
    if inspection["verdict"] == "allow":
        return {**inspection, "output": output}
    if inspection["verdict"] == "redact":
        return inspection
    return OutputWithheld(str(inspection.get("reason") or "a rule withholds it"), action)


def reportable(usage: Mapping[str, float]) -> Dict[str, float]:
    """Returns the usage. Raises TypeError for a usage with which the service would reject the whole result."""
    amounts: Dict[Any, Any] = dict(usage)
    if len(amounts) > 16:
        raise TypeError(f"usage has {len(amounts)} amounts; at most 16 can be reported")
    for name, amount in amounts.items():
        if not isinstance(name, str) or re.fullmatch("[a-z][a-z0-9_]{0,31}", name) is None:
            raise TypeError(f"usage has the name {name!r}; use a name such as cost_usd")
        if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not 0 <= amount <= 1_000_000_000:
            raise TypeError(
                f"usage.{name} must be a number from 0 to 1,000,000,000; got {amount!r}. The result was reported without usage, "
                "so the reserves of limits count"
            )
    return amounts


def _begun(value: Any) -> Any:
    """Returns the value. Raises TypeError for a coroutine or generator, whose body would run after the result was reported."""
    if inspect.iscoroutine(value) or inspect.isgenerator(value):
        value.close()
    elif not inspect.isasyncgen(value):
        return value
    raise TypeError("not run: a governed function returned a coroutine or a generator, which runs later")


def _flat(bound: inspect.BoundArguments) -> Dict[str, Any]:
    """
    Returns the arguments, keyed by name, with the arguments of `**more`. Raises TypeError if one of these has the name of a
    positional-only parameter, because policies could read only one of the two.
    """
    params: Dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            for key in value:
                if key in params:
                    raise TypeError(f"not run: the keyword argument '{key}' has the name of a positional-only parameter; rename one of them")
            params.update(value)
        else:
            params[name] = value
    return params


def _run(function: Callable[..., Any], signature: inspect.Signature, params: Dict[str, Any], positional: int) -> Any:
    """Runs the function. Passes as many arguments by position as the caller did, because decorators below can read them so."""
    args: List[Any] = []
    kwargs = dict(copy.deepcopy(params))
    for place, (name, parameter) in enumerate(signature.parameters.items()):
        if (parameter.kind is inspect.Parameter.POSITIONAL_ONLY or place < positional) and name in kwargs:
            args.append(kwargs.pop(name))
    return function(*args, **kwargs)


def error_text(error: BaseException) -> str:
    """
    Returns the error as text of at most 9,000 characters without lone surrogates, because the service rejects longer text
    and lone surrogates.
    """
    return _clip(_describe(error))


def _clip(text: str) -> str:
    return text[:9000]


def _describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}".encode("utf-8", "replace").decode()
    except Exception:
        return f"{type(error).__name__}, which has no text"


def _has_more(error: BaseException, text: str) -> bool:
    """Returns whether an error can contain more than its inspected text, such as a cause, a note or a response."""
    if vars(error) or error.__cause__ is not None or error.__context__ is not None:
        return True
    return any(not isinstance(one, (str, int)) or str(one) not in text for one in error.args)


def _warn(error: Exception, action: ActionRecord) -> None:
    log.warning("the function has run, but its result could not be reported [action %s]: %s", action.get("id"), error)

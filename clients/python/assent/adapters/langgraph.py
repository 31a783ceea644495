"""LangChain and LangGraph: a `wrap_tool_call` for `ToolNode(tools, wrap_tool_call=…)` or an agent's middleware."""

from __future__ import annotations

import asyncio
import inspect
from importlib import import_module
from typing import Any, Callable, Optional

from ..admit import DEFAULT_WAIT, Caller, in_thread
from ..client import Assent, AsyncAssent
from .gate import Usage, Verdict, ask, report


def wrap_tool_call(
    client: Assent,
    *,
    agent_id: Optional[str] = None,
    tool: str = "langgraph",
    wait: float = DEFAULT_WAIT,
    usage: Optional[Usage] = None,
) -> Callable[..., Any]:
    """Returns a `wrap_tool_call`. Its request has `tool_call` with `name`, `args` and `id`; a refusal is a ToolMessage with status `error`."""

    def wrapped(request: Any, handler: Callable[[Any], Any]) -> Any:
        verdict = _ask(client, request.tool_call, agent_id, tool, wait)
        if not verdict.allowed:
            return _refusal(request.tool_call, verdict)
        try:
            value = handler(request)
            if inspect.iscoroutine(value):
                value.close()
                raise TypeError("not run: the handler is asynchronous; use awrap_tool_call")
        except BaseException as error:
            report(client, verdict, error)
            raise
        report(client, verdict, usage=usage, name=request.tool_call["name"], value=value)
        return value

    return wrapped


def awrap_tool_call(
    client: AsyncAssent,
    *,
    agent_id: Optional[str] = None,
    tool: str = "langgraph",
    wait: float = DEFAULT_WAIT,
    usage: Optional[Usage] = None,
) -> Callable[..., Any]:
    """Returns a wrapper for `ToolNode(tools, awrap_tool_call=…)` and asynchronous agents."""

    async def wrapped(request: Any, handler: Callable[[Any], Any]) -> Any:
        verdict = await in_thread(lambda caller: _ask(client.sync, request.tool_call, agent_id, tool, wait, caller))
        if not verdict.allowed:
            return _refusal(request.tool_call, verdict)
        try:
            value = await handler(request)
        except BaseException as error:
            await asyncio.to_thread(report, client.sync, verdict, error)
            raise
        await asyncio.to_thread(report, client.sync, verdict, usage=usage, name=request.tool_call["name"], value=value)
        return value

    return wrapped


def _ask(client: Assent, call: Any, agent_id: Optional[str], tool: str, wait: float, caller: Optional[Caller] = None) -> Verdict:
    return ask(
        client,
        agent_id=agent_id,
        tool=tool,
        operation=call["name"],
        params=call["args"],
        meta={"tool_call_id": str(call.get("id"))},
        wait=wait,
        caller=caller,
    )


def _refusal(call: Any, verdict: Verdict) -> Any:
    messages: Any = import_module("langchain_core.messages")
    return messages.ToolMessage(content=verdict.text, tool_call_id=call.get("id"), name=call["name"], status="error")

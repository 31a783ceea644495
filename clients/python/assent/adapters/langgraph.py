"""LangChain and LangGraph: a `wrap_tool_call` for `ToolNode(tools, wrap_tool_call=…)` or an agent's middleware."""

from __future__ import annotations

from typing import Any, Callable

from ..client import Assent
from .gate import ask, report


def wrap_tool_call(client: Assent, *, agent_id: str, tool: str = "langgraph", wait: float = 0) -> Callable[..., Any]:
    """The request has `tool_call` with `name`, `args` and `id`; a refusal is a ToolMessage with status `error`."""

    def wrapped(request: Any, handler: Callable[[Any], Any]) -> Any:
        call = request.tool_call
        verdict = ask(
            client,
            agent_id=agent_id,
            tool=tool,
            operation=call["name"],
            params=call["args"],
            meta={"tool_call_id": str(call.get("id"))},
            wait=wait,
        )
        if not verdict.allowed:
            from langchain_core.messages import ToolMessage

            return ToolMessage(
                content=verdict.text, tool_call_id=call.get("id"), name=call["name"], status="error"
            )
        try:
            value = handler(request)
        except BaseException as error:
            report(client, verdict, error)
            raise
        report(client, verdict)
        return value

    return wrapped

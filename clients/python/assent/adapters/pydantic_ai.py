"""Pydantic AI: wraps a toolset, so that its calls run only after the service allows them."""

from __future__ import annotations

import asyncio
import copy
from importlib import import_module
from typing import Any, Optional

from ..admit import DEFAULT_WAIT, in_thread
from ..client import AsyncAssent
from .gate import Usage, ask, report


def governed_toolset(
    client: AsyncAssent,
    wrapped: Any,
    *,
    agent_id: Optional[str] = None,
    tool: str = "pydantic-ai",
    wait: float = DEFAULT_WAIT,
    usage: Optional[Usage] = None,
) -> Any:
    """
    Returns a WrapperToolset. A refusal is the tool's result for the model. Ignores approvals from a user interface: each call
    is submitted to the service.
    """
    toolset: Any = import_module("pydantic_ai.toolsets").WrapperToolset

    class Governed(toolset):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, given: Any) -> Any:
            # Run a copy of the submitted arguments, which other code cannot change.
            args = copy.deepcopy(tool_args)
            verdict = await in_thread(
                lambda caller: ask(
                    client.sync,
                    agent_id=agent_id,
                    tool=tool,
                    operation=name,
                    params=args,
                    meta={"tool_call_id": str(getattr(ctx, "tool_call_id", None))},
                    wait=wait,
                    caller=caller,
                )
            )
            if not verdict.allowed:
                return verdict.text
            try:
                parent: Any = super()
                value: Any = await parent.call_tool(name, args, ctx, given)
            except BaseException as error:
                await asyncio.to_thread(report, client.sync, verdict, error)
                raise
            await asyncio.to_thread(report, client.sync, verdict, usage=usage, name=name, value=value)
            return value

    return Governed(wrapped)

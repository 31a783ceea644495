"""OpenAI Agents: a tool input guardrail, for `function_tool(tool_input_guardrails=[…])`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Optional, Union

from ..admit import DEFAULT_WAIT, in_thread
from ..client import Assent, AsyncAssent
from ..transport import read_object
from .gate import ask


def tool_input_guardrail(
    client: Union[Assent, AsyncAssent], *, agent_id: Optional[str] = None, tool: str = "openai-agents", wait: float = DEFAULT_WAIT
) -> Any:
    """
    Returns a guardrail that runs for every call, including resumed calls, and ignores approvals that the SDK's run state
    contains. It rejects calls that it cannot parse. The guardrail is not called when a call ends, so it reports no results.
    """
    agents: Any = import_module("agents")
    output: Any = agents.ToolGuardrailFunctionOutput

    own = client.sync if isinstance(client, AsyncAssent) else client

    async def check(data: Any) -> Any:
        call = data.context
        try:
            # Reject duplicate names: the tool parses the arguments again and might read them differently.
            params = read_object(call.tool_arguments or "{}")
        except ValueError as error:
            return output.reject_content(f"Not run: the arguments are not a JSON object: {error}")
        verdict = await in_thread(
            lambda caller: ask(
                own,
                agent_id=agent_id,
                tool=tool,
                operation=call.tool_name,
                params=params,
                meta={"tool_call_id": str(call.tool_call_id)},
                wait=wait,
                caller=caller,
            )
        )
        if verdict.allowed:
            return output.allow()
        return output.reject_content(verdict.text)

    return agents.ToolInputGuardrail(guardrail_function=check, name="assent")

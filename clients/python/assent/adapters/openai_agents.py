"""OpenAI Agents: a tool input guardrail, for `function_tool(tool_input_guardrails=[…])`."""

from __future__ import annotations

import json
from typing import Any

from ..client import Assent
from .gate import ask


def tool_input_guardrail(client: Assent, *, agent_id: str, tool: str = "openai-agents", wait: float = 0) -> Any:
    """
    Runs at every call, also at a resumed one: the run's own approvals are not looked at. A call that cannot be read is
    rejected. The guardrail does not see the end of a call, so its result is not reported.
    """
    from agents import ToolGuardrailFunctionOutput, ToolInputGuardrail

    def check(data: Any) -> Any:
        call = data.context
        try:
            params = json.loads(call.tool_arguments or "{}")
        except ValueError:
            return ToolGuardrailFunctionOutput.reject_content("Not run: the arguments are no JSON.")
        if not isinstance(params, dict):
            return ToolGuardrailFunctionOutput.reject_content("Not run: the arguments are no object.")
        verdict = ask(
            client,
            agent_id=agent_id,
            tool=tool,
            operation=call.tool_name,
            params=params,
            meta={"tool_call_id": str(call.tool_call_id)},
            wait=wait,
        )
        if verdict.allowed:
            return ToolGuardrailFunctionOutput.allow()
        return ToolGuardrailFunctionOutput.reject_content(verdict.text)

    return ToolInputGuardrail(guardrail_function=check, name="assent")

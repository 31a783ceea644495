"""CrewAI: a hook before each tool call."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, Optional

from ..admit import DEFAULT_WAIT
from ..client import Assent
from .gate import Verdict, ask


def before_tool_call(client: Assent, *, agent_id: Optional[str] = None, tool: str = "crewai", wait: float = DEFAULT_WAIT) -> Callable[[Any], Any]:
    """
    Returns a hook for `on(InterceptionPoint.PRE_TOOL_CALL)`. CrewAI ignores every exception except HookAborted and then runs
    the tool, so the hook raises HookAborted for every failure. It does not see the end of a call, so results are not reported.
    """
    hooks: Any = import_module("crewai.hooks")

    def hook(context: Any) -> Any:
        try:
            verdict = ask(
                client,
                agent_id=agent_id,
                tool=tool,
                operation=context.tool_name,
                params=context.tool_input,
                wait=wait,
            )
        except BaseException as error:
            verdict = Verdict(False, False, f"Not run: nothing could be decided ({type(error).__name__}).")
        if not verdict.allowed:
            raise hooks.HookAborted(reason=verdict.text, source="assent")
        return None

    return hook

"""Tests the adapters with fakes of the frameworks, whose packages are not in Debian. Everything else is real."""

import asyncio
import json
import sys
import threading
import types
import unittest
import uuid
from types import SimpleNamespace

from assent import Assent, AsyncAssent
from support import AGENT, Liar, admin, reply, until, vote


def module(name, **members):
    made = types.ModuleType(name)
    for key, value in members.items():
        setattr(made, key, value)
    sys.modules[name] = made


class ToolMessage(SimpleNamespace):
    pass


class Output(SimpleNamespace):
    @classmethod
    def allow(cls):
        return cls(kind="allow", message=None)

    @classmethod
    def reject_content(cls, message):
        return cls(kind="reject", message=message)


class HookAborted(Exception):
    def __init__(self, reason, source):
        super().__init__(reason)
        self.reason, self.source = reason, source


class WrapperToolset:
    def __init__(self, wrapped):
        self.wrapped = wrapped

    async def call_tool(self, name, tool_args, ctx, tool):
        return await self.wrapped.call_tool(name, tool_args, ctx, tool)


module("langchain_core")
module("langchain_core.messages", ToolMessage=ToolMessage)
module("agents", ToolGuardrailFunctionOutput=Output, ToolInputGuardrail=SimpleNamespace)
module("crewai")
module("crewai.hooks", HookAborted=HookAborted)
module("pydantic_ai")
module("pydantic_ai.toolsets", WrapperToolset=WrapperToolset)


class Adapter:
    """Each subclass runs a refund of `amount` for `order` and returns "done" or the text of the refusal."""

    ran: list
    wait = 0.0

    def call(self, client, amount, order):
        raise NotImplementedError

    def setUp(self):
        self.ran = []

    def test_allowed_runs_once(self):
        self.assertEqual(self.call(Assent(), 50, str(uuid.uuid4())), "done")
        self.assertEqual(len(self.ran), 1)

    def test_denied_never(self):
        self.assertIn("denied", self.call(Assent(), -1, str(uuid.uuid4())))
        self.assertEqual(self.ran, [])

    def test_pending_survives_a_restart_and_only_a_person_approves(self):
        order = str(uuid.uuid4())
        words = self.call(Assent(), 500, order)
        self.assertIn("waits for approval", words)
        identity = words.split("(")[1].split(")")[0]
        # The framework resumes the run: the call is submitted again.
        self.assertIn(identity, self.call(Assent(), 500, order))
        self.assertEqual(self.ran, [])
        vote(identity)
        self.assertEqual(self.call(Assent(), 500, order), "done")
        self.assertIn("waits", self.call(Assent(), 500, order))
        self.assertEqual(len(self.ran), 1)

    def test_a_rejection_reaches_the_model_while_it_waits_and_afterwards(self):
        order = str(uuid.uuid4())

        def pending():
            waiting = admin().actions(status="pending_approval")
            return next((action["id"] for action in waiting if action["params"].get("order") == order), None)

        approver = threading.Thread(target=lambda: vote(until(pending), False, "use the small refund instead"))
        approver.start()
        self.wait = 20
        for _ in range(2):
            self.assertRegex(self.call(Assent(), 500, order), "rejected by .+: use the small refund instead")
        approver.join()
        self.assertEqual(self.ran, [])

    def test_the_agent_is_the_keys_own_unless_told_otherwise(self):
        from assent.adapters.gate import ask

        params = {"amount": 50, "currency": "USD", "order": str(uuid.uuid4())}
        verdict = ask(Assent(), tool="stripe", operation="refund", params=params)
        self.assertEqual((verdict.allowed, Assent().action(verdict.action_id)["agent_id"]), (True, AGENT))

    def test_nothing_runs_while_nothing_can_be_decided(self):
        for answer in (reply(500, {}), reply(200, {}), reply(200, b"x")):
            with Liar(answer) as liar:
                self.assertIn("nothing could be decided", self.call(Assent(liar.url, "assent_x", timeout=0.5), 50, "o"))
        self.assertEqual(self.ran, [])


class LangGraph(Adapter, unittest.TestCase):
    def call(self, client, amount, order):
        from assent.adapters.langgraph import wrap_tool_call

        request = SimpleNamespace(
            tool_call={"name": "refund", "args": {"amount": amount, "currency": "USD", "order": order}, "id": "c1"}
        )

        def handler(_):
            self.ran.append(amount)
            return "done"

        answer = wrap_tool_call(client, agent_id=AGENT, tool="stripe", wait=self.wait)(request, handler)
        if isinstance(answer, ToolMessage):
            self.assertEqual((answer.status, answer.tool_call_id), ("error", "c1"))
            return answer.content
        return answer


    def test_a_limit_counts_the_usage_that_the_wrapper_reports(self):
        from assent.adapters.langgraph import awrap_tool_call, wrap_tool_call

        policy = """policy: python-usage
rules: [{ name: all, tool: graph, effect: allow }]
limits: [{ name: money, tool: graph, sum: usage.cost_usd, reserve: 1, at_most: 10, window: 24h }]
"""
        admin()._http.call("POST", "/v1/policies/import-yaml?activate=true", {"yaml": policy})

        def request(n):
            return SimpleNamespace(tool_call={"name": "read", "args": {"n": n}, "id": "c"})

        def usage(value, name):
            return {"cost_usd": value if name == "read" else 100}

        async def later(_):
            return 4

        options = {"agent_id": AGENT, "tool": "graph", "wait": 0, "usage": usage}
        wrapped = wrap_tool_call(Assent(), **options)
        self.assertEqual(wrapped(request(1), lambda _: 4), 4)
        # The invalid usage is not reported, so the limit counts its reserve.
        self.assertEqual(wrapped(request(2), lambda _: -1), -1)
        self.assertEqual(asyncio.run(awrap_tool_call(AsyncAssent(), **options)(request(3), later)), 4)
        self.assertEqual(wrapped(request(4), lambda _: 1), 1)
        self.assertEqual(wrapped(request(5), self.fail).status, "error")

    def test_arguments_that_change_meanwhile_do_not_run(self):
        from assent.adapters.langgraph import wrap_tool_call

        args = {"amount": 50, "currency": "USD", "order": str(uuid.uuid4())}
        request = SimpleNamespace(tool_call={"name": "refund", "args": args, "id": "c1"})
        client = Assent()
        start = client.start

        def changing(*given, **how):
            args["amount"] = 5000
            return start(*given, **how)

        client.start = changing
        answer = wrap_tool_call(client, agent_id=AGENT, tool="stripe", wait=0)(request, self.ran.append)
        self.assertIn("changed", answer.content)
        self.assertEqual(self.ran, [])
        until(lambda: next(client.actions(limit="1"))["status"] == "failed")

    def test_arguments_that_are_no_object(self):
        from assent.adapters.langgraph import wrap_tool_call

        for args in (None, [], "x"):
            request = SimpleNamespace(tool_call={"name": "refund", "args": args, "id": "c1"})
            answer = wrap_tool_call(Assent(), agent_id=AGENT, tool="reports", wait=0)(request, self.ran.append)
            self.assertIn("not JSON", answer.content)
        self.assertEqual(self.ran, [])

    def test_an_asynchronous_handler_is_none_of_the_synchronous_wrapper(self):
        from assent.adapters.langgraph import wrap_tool_call

        async def handler(_):
            self.ran.append(1)

        args = {"amount": 50, "currency": "USD", "order": str(uuid.uuid4())}
        request = SimpleNamespace(tool_call={"name": "refund", "args": args, "id": "c1"})
        with self.assertRaises(TypeError):
            wrap_tool_call(Assent(), agent_id=AGENT, tool="stripe", wait=0)(request, handler)
        self.assertEqual(self.ran, [])


class AsyncLangGraph(Adapter, unittest.TestCase):
    def call(self, client, amount, order):
        from assent.adapters.langgraph import awrap_tool_call

        async_client = AsyncAssent.__new__(AsyncAssent)
        async_client.sync = client
        args = {"amount": amount, "currency": "USD", "order": order}
        request = SimpleNamespace(tool_call={"name": "refund", "args": args, "id": "c1"})

        async def handler(_):
            self.ran.append(amount)
            return "done"

        answer = asyncio.run(awrap_tool_call(async_client, agent_id=AGENT, tool="stripe", wait=self.wait)(request, handler))
        return answer.content if isinstance(answer, ToolMessage) else answer


class OpenAIAgents(Adapter, unittest.TestCase):
    def call(self, client, amount, order):
        from assent.adapters.openai_agents import tool_input_guardrail

        guardrail = tool_input_guardrail(client, agent_id=AGENT, tool="stripe", wait=self.wait)
        arguments = json.dumps({"amount": amount, "currency": "USD", "order": order})
        context = SimpleNamespace(tool_name="refund", tool_arguments=arguments, tool_call_id="c1")
        answer = asyncio.run(guardrail.guardrail_function(SimpleNamespace(context=context)))
        if answer.kind == "allow":
            self.ran.append(amount)
            return "done"
        return answer.message

    def test_arguments_that_are_no_object(self):
        from assent.adapters.openai_agents import tool_input_guardrail

        guardrail = tool_input_guardrail(Assent(), agent_id=AGENT, tool="stripe", wait=0)
        twice = '{"currency": "USD", "amount": 5000, "amount": 50}'
        for arguments in ("[", "[]", "1", "\ud800", "[" * 200_000, twice, '{"amount": NaN}'):
            context = SimpleNamespace(tool_name="refund", tool_arguments=arguments, tool_call_id="c1")
            answer = asyncio.run(guardrail.guardrail_function(SimpleNamespace(context=context)))
            self.assertEqual(answer.kind, "reject", arguments)

    def test_other_tasks_go_on_while_a_person_is_asked(self):
        from assent.adapters.openai_agents import tool_input_guardrail

        guardrail = tool_input_guardrail(AsyncAssent(), agent_id=AGENT, tool="stripe", wait=20)
        arguments = f'{{"amount": 500, "currency": "USD", "order": "{uuid.uuid4()}"}}'
        context = SimpleNamespace(tool_name="refund", tool_arguments=arguments, tool_call_id="c1")

        async def both():
            asked = asyncio.ensure_future(guardrail.guardrail_function(SimpleNamespace(context=context)))
            waits = lambda: [one for one in Assent().actions(status="pending_approval") if one["params"] == json.loads(arguments)]
            action = await asyncio.to_thread(until, lambda: waits())
            vote(action[0]["id"])
            return await asked

        self.assertEqual(asyncio.run(both()).kind, "allow")


class CrewAI(Adapter, unittest.TestCase):
    def call(self, client, amount, order):
        from assent.adapters.crewai import before_tool_call

        hook = before_tool_call(client, agent_id=AGENT, tool="stripe", wait=self.wait)
        params = {"amount": amount, "currency": "USD", "order": order}
        try:
            hook(SimpleNamespace(tool_name="refund", tool_input=params))
        except HookAborted as aborted:
            return aborted.reason
        # CrewAI continues after every other exception, so the hook must not raise any.
        self.ran.append(amount)
        return "done"

    def test_every_other_failure_aborts_too(self):
        from assent.adapters.crewai import before_tool_call

        for context in (SimpleNamespace(), SimpleNamespace(tool_name="refund", tool_input=None)):
            with self.assertRaises(HookAborted):
                before_tool_call(Assent(), agent_id=AGENT, tool="stripe", wait=0)(context)


class PydanticAI(Adapter, unittest.TestCase):
    def call(self, client, amount, order):
        from assent.adapters.pydantic_ai import governed_toolset

        ran = self.ran

        class Tools:
            async def call_tool(self, name, tool_args, ctx, tool):
                ran.append(tool_args["amount"])
                return "done"

        async_client = AsyncAssent.__new__(AsyncAssent)
        async_client.sync = client
        toolset = governed_toolset(async_client, Tools(), agent_id=AGENT, tool="stripe", wait=self.wait)
        params = {"amount": amount, "currency": "USD", "order": order}
        # `tool_call_approved` is the run's own approval, which is ignored.
        context = SimpleNamespace(tool_call_id="c1", tool_call_approved=True)
        return asyncio.run(toolset.call_tool("refund", params, context, None))

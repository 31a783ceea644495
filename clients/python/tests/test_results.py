import asyncio
import unittest
from unittest import mock

from assent import Assent, AsyncAssent, Denied, OutputWithheld, RequestRefused, ServiceUnavailable, govern
from support import AGENT, admin

KEY = "AKIAIOSFODNN7EXAMPLE"
POLICY = """policy: python-results
rules:
  - { name: all, tool: notes, effect: allow }
  - { name: money, tool: budget, effect: allow }
results:
  - { name: keys, tool: notes, match: { pattern: 'AKIA[0-9A-Z]{16}' }, effect: redact }
  - { name: internal, tool: notes, match: { pattern: INTERNAL }, effect: withhold, reason: internal notes }
limits:
  - { name: spending, tool: budget, sum: usage.cost_usd, reserve: 1, at_most: 10, window: 24h }
"""


class Results(unittest.TestCase):
    """Rules for results apply to what a governed function returns or raises."""

    @classmethod
    def setUpClass(cls):
        admin()._http.call("POST", "/v1/policies/import-yaml?activate=true", {"yaml": POLICY})

    def setUp(self):
        self.client = Assent()

    def read(self, value, tool="notes", **options):
        @govern(self.client, agent_id=AGENT, tool=tool, operation="read", **options)
        def read():
            if isinstance(value, Exception):
                raise value
            return value

        return read()

    def withheld(self, value, words):
        with self.assertRaisesRegex(OutputWithheld, words) as raised:
            self.read(value)
        self.assertIsNone(raised.exception.__context__)

    def test_an_output_is_returned_redacted_or_withheld(self):
        self.assertEqual(self.read({"name": "Ada"}), {"name": "Ada"})
        self.assertEqual(self.read({"key": f"key {KEY}"}), {"key": "key [redacted]"})
        self.withheld("INTERNAL plan", "its output is withheld: internal notes")

    def test_an_error_is_inspected_too(self):
        with self.assertRaises(KeyError):
            self.read(KeyError("no customer"))
        with self.assertRaisesRegex(RuntimeError, r"no \[redacted\]"):
            self.read(ValueError(f"no {KEY}"))
        self.withheld(ValueError("INTERNAL"), "internal notes")
        newest = next(self.client.actions(limit="1"))
        self.assertEqual((newest["status"], "INTERNAL" in str(newest)), ("failed", False))

    def test_a_limit_counts_the_usage_that_govern_reports(self):
        heard = []
        options = {"usage": lambda value: {"cost_usd": value}, "on_unreported": lambda error, _: heard.append(str(error))}

        def spend(cost):
            return self.read(cost, tool="budget", **options)

        self.assertEqual((spend(4), heard), (4, []))
        # The invalid usage is not reported, so the limit counts its reserve.
        self.assertEqual(spend(-1), -1)
        self.assertIn("usage.cost_usd must be a number from 0", heard[0])
        self.assertEqual(next(self.client.actions(limit="1"))["status"], "succeeded")
        self.assertEqual(spend(4.5), 4.5)
        self.assertRaises(Denied, spend, 0)

    def test_without_a_verdict_the_output_is_withheld(self):
        self.withheld({"a": object()}, "not plain JSON")
        self.withheld("x" * 1_100_000, "no verdict")
        lost = ServiceUnavailable("lost", code="UNREACHABLE")
        with mock.patch.object(Assent, "inspect", side_effect=lost):
            self.withheld("hello", "no verdict .UNREACHABLE")

    def test_the_async_client_inspects(self):
        @govern(AsyncAssent(), agent_id=AGENT, tool="notes", operation="read")
        async def read():
            return "INTERNAL"

        with self.assertRaises(OutputWithheld):
            asyncio.run(read())

    def test_only_the_key_that_started_it_can_send_an_output(self):
        action = self.client.submit(agent_id=AGENT, tool="notes", operation="read", join=False)
        self.assertIs(action.get("inspect"), True)
        self.client.start(action["id"])
        with self.assertRaises(RequestRefused):
            admin().inspect(action["id"], "hello")
        self.assertEqual(self.client.inspect(action["id"], f"key {KEY}")["output"], "key [redacted]")
        self.client.result(action["id"], success=True)

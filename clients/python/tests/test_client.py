import asyncio
import itertools
import json
import os
import socket
import threading
import time
import unittest
import uuid
from decimal import Decimal
from unittest import mock

from assent import Assent, AsyncAssent, NotJson, RequestRefused, ServiceUnavailable, Unauthorized
from assent.transport import to_json
from support import AGENT, ALLOWED, PENDING, Liar, admin, reply, vote


def wish(**params):
    return {"agent_id": AGENT, "tool": "stripe", "operation": "refund", "params": {**PENDING, "customer": str(uuid.uuid4()), **params}}


class Submitting(unittest.TestCase):
    def setUp(self):
        self.client = Assent()

    def test_allowed_and_denied(self):
        allowed = self.client.submit(agent_id=AGENT, tool="stripe", operation="refund", params=ALLOWED, join=False)
        self.assertEqual(allowed["status"], "allowed")
        denied = self.client.submit(agent_id=AGENT, tool="crm", operation="delete_customer", params={"id": 7})
        self.assertEqual(denied["status"], "denied")

    def test_a_session_token_is_sent(self):
        forged = Assent(session_token="ses1_x")
        with self.assertRaises(RequestRefused) as refused:
            forged.submit(agent_id=AGENT, tool="stripe", operation="refund", params=ALLOWED, join=False)
        self.assertEqual(refused.exception.code, "INVALID_SESSION_TOKEN")

    def test_the_authority_is_sent(self):
        request = {"agent_id": AGENT, "tool": "stripe", "operation": "refund", "params": ALLOWED, "join": False}
        for client in (Assent(authority="none-such"), self.client):
            authority = None if client is not self.client else "none-such"
            denied = client.submit(**request, authority=authority)
            self.assertEqual((denied["status"], denied["reason_code"]), ("denied", "AUTHORITY_UNKNOWN"))
        self.assertEqual(Assent(authority="none-such").submit(**request, authority="")["status"], "allowed")
        plan = Assent(authority="none-such").submit_plan([{name: request[name] for name in request if name != "join"}])
        self.assertEqual(plan["actions"][0]["reason_code"], "AUTHORITY_UNKNOWN")
        with mock.patch.dict(os.environ, {"ASSENT_AUTHORITY": "none-such"}):
            self.assertEqual(Assent().submit(**request)["reason_code"], "AUTHORITY_UNKNOWN")

    def test_the_same_wish_joins(self):
        request = wish()
        first = self.client.submit(**request)
        self.assertEqual(self.client.submit(**request, meta={"trace": "b"})["id"], first["id"])
        self.assertNotEqual(self.client.submit(**{**request, "context": {"other": 1}})["id"], first["id"])

    def test_waits_for_a_person(self):
        request = wish()
        action = self.client.submit(**request)
        timer = threading.Timer(0.5, vote, [action["id"]])
        timer.start()
        self.assertEqual(self.client.submit(**request, wait=20)["status"], "approved")
        timer.join()

    def test_waits_on_after_a_restart_of_the_service(self):
        action = self.client.submit(**wish())
        seen = []

        def answer(handler):
            seen.append(handler.path)
            # More often than one call retries.
            if len(seen) > 8:
                reply(200, {**action, "status": "approved"})(handler)

        with Liar(answer) as service:
            record = Assent(url=service.url).wait(action["id"], 60)
        self.assertEqual(record["status"], "approved")

    def test_start_and_result_once(self):
        action = self.client.submit(agent_id=AGENT, tool="stripe", operation="refund", params=ALLOWED, join=False)
        self.assertEqual(self.client.start(action["id"])["status"], "executing")
        with self.assertRaises(RequestRefused) as again:
            self.client.start(action["id"])
        self.assertEqual(again.exception.code, "ACTION_NOT_STARTABLE")
        self.assertEqual(self.client.result(action["id"], success=True)["status"], "succeeded")

    def test_a_permit(self):
        action = self.client.submit(
            agent_id=AGENT, tool="stripe", operation="refund", params=ALLOWED, join=False, permit=True
        )
        self.assertEqual(self.client.start(action["id"], action["permit"])["status"], "executing")

    def test_a_plan_is_submitted_joined_and_cancelled(self):
        requests = [wish(), {"agent_id": AGENT, "tool": "stripe", "operation": "refund", "params": ALLOWED}]
        plan = self.client.submit_plan(requests, ordered=True, idempotency_key=str(uuid.uuid4()))
        self.assertEqual([action["status"] for action in plan["actions"]], ["pending_approval", "allowed"])
        self.assertEqual(self.client.submit(**requests[0])["id"], plan["actions"][0]["id"])
        self.assertEqual(self.client.plan(plan["id"])["ordered"], True)
        self.assertEqual(self.client.cancel_plan(plan["id"], "not today")["actions"][0]["status"], "cancelled")
        with self.assertRaises(RequestRefused) as again:
            self.client.cancel_plan(plan["id"])
        self.assertEqual(again.exception.code, "ACTION_NOT_PENDING")
        other = {**plan, "actions": list(reversed(plan["actions"]))}
        with Liar(reply(200, other)) as liar, self.assertRaises(ServiceUnavailable):
            Assent(liar.url, "assent_x", timeout=0.5).submit_plan(requests)

    def test_a_result_is_repeated_and_one_that_is_kept_already_is_as_good(self):
        action = self.client.submit(agent_id=AGENT, tool="stripe", operation="refund", params=ALLOWED, join=False)
        self.client.start(action["id"])
        for _ in range(2):
            self.assertEqual(self.client.result(action["id"], success=True)["status"], "succeeded")
        with self.assertRaises(RequestRefused):
            self.client.result(action["id"], success=False)
        with Liar(reply(503, {"code": "OVERLOADED"}, {"Retry-After": "0"})) as liar, self.assertRaises(ServiceUnavailable):
            Assent(liar.url, "assent_x", timeout=0.5).result("x", success=True)
        self.assertGreater(len(liar.paths), 1)

    def test_a_vote_and_the_agent_of_a_key(self):
        action = self.client.submit(**wish())
        with self.assertRaises(RequestRefused) as refused:
            self.client.vote(action["id"], True)
        self.assertEqual(refused.exception.code, "NO_TOKEN")
        self.assertEqual(admin().vote(action["id"], True, "fine")["status"], "approved")
        self.assertEqual(self.client.agent(), AGENT)
        with self.assertRaises(RequestRefused) as unbound:
            admin().agent()
        self.assertEqual(unbound.exception.code, "AGENT_UNBOUND")

    def test_lists_that_are_none_or_have_no_end(self):
        for page in ([], {"items": []}, {"actions": [{"id": "a"}], "next_cursor": "same"}):
            with Liar(reply(200, page)) as liar, self.assertRaises(ServiceUnavailable):
                list(Assent(liar.url, "assent_x").actions())

    def test_cancel_and_lists(self):
        action = self.client.submit(**wish())
        self.assertEqual(self.client.cancel(action["id"])["status"], "cancelled")
        cancelled = self.client.actions(status="cancelled", limit="1")
        self.assertIn(action["id"], [item["id"] for item in itertools.islice(cancelled, 50)])

    def test_events_resume(self):
        action = self.client.submit(**wish())
        seen = []
        for event in self.client.events(after="0"):
            seen.append(event)
            if event["data"]["action_id"] == action["id"]:
                break
        later = self.client.submit(**wish())
        for event in self.client.events(after=seen[-1]["id"]):
            self.assertNotEqual(event["data"].get("action_id"), action["id"])
            if event["data"].get("action_id") == later["id"]:
                break
        only = next(self.client.events(after="-1", action_id=later["id"], type="decision"))
        self.assertEqual((only["event"], only["data"]["action_id"]), ("message", later["id"]))

    def test_a_stream_that_cannot_be_read_is_made_again_and_gives_each_event_once(self):
        def block(seq, data):
            return f"id: {seq}\ndata: {data}\n\n".encode()

        streams = [block(4, "{"), block(5, '{"seq": 5}'), b"id: \xff\n\n", block(5, '{"seq": 5}') + block(6, '{"seq": 6}')]

        def answer(handler):
            body = streams[min(len(liar.paths), len(streams)) - 1]
            reply(200, body, {"Content-Type": "text/event-stream"})(handler)

        with Liar(answer) as liar, mock.patch("time.sleep"):
            streams.insert(0, block("9" * 5000, "{}"))
            self.assertEqual(next(Assent(liar.url, "assent_x").events(after="3"))["data"], {})
            liar.paths.clear()
            streams.pop(0)
            events = Assent(liar.url, "assent_x").events(after="3")
            self.assertEqual([next(events)["data"]["seq"] for _ in range(2)], [5, 6])
        self.assertGreater(len(liar.paths), 3)
        from assent.client import _events

        deep = b"data: " + b"[" * 200_000
        for lines in ([b"data: {", b""], [b"id: \xff", b""], [b"event: \xff"], [deep, b""]):
            with self.assertRaises(ServiceUnavailable) as unreadable:
                list(_events(iter(lines)))
            self.assertEqual(unreadable.exception.code, "UNREADABLE_ANSWER")

    def test_lists_for_asyncio(self):
        wished = self.client.submit(**wish())

        async def first():
            async for action in AsyncAssent().actions(limit="1"):
                return action["id"]

        self.assertEqual(asyncio.run(first()), wished["id"])


class Failing(unittest.TestCase):
    def client(self, url, timeout=2.0):
        return Assent(url, "assent_x", timeout=timeout)

    def test_a_wrong_key(self):
        with self.assertRaises(Unauthorized):
            Assent(api_key="assent_wrong").action(str(uuid.uuid4()))

    def test_a_refusal_says_why(self):
        with self.assertRaises(RequestRefused) as refused:
            Assent().submit(agent_id=AGENT, tool="", operation="x")
        self.assertEqual((refused.exception.status, refused.exception.code), (422, "VALIDATION_FAILED"))
        with self.assertRaises(RequestRefused) as missing:
            Assent().action(str(uuid.uuid4()))
        self.assertEqual(missing.exception.status, 404)

    def test_nobody_there(self):
        with self.assertRaises(ServiceUnavailable):
            self.client("http://127.0.0.1:9", timeout=0.5).submit(**wish())

    def test_an_address_without_a_service_is_given_up_soon_and_named(self):
        tries = []

        class Counted(socket.socket):
            def connect(self, address):
                tries.append(time.monotonic())
                super().connect(address)

        with mock.patch("socket.socket", Counted), self.assertRaises(ServiceUnavailable) as down:
            Assent("http://127.0.0.1:9", "assent_x").submit(**wish())
        self.assertEqual((down.exception.code, down.exception.status), ("UNREACHABLE", 0))
        self.assertIn("http://127.0.0.1:9 cannot be reached", str(down.exception))
        # The attempts are 0.1, 0.2, 0.4 and 0.8 seconds apart: the fifth is the last within two seconds.
        self.assertGreater(len(tries), 1)
        self.assertLess(len(tries), 6)

    def test_decimals_are_numbers_of_exactly_their_value(self):
        for value, number in (("50", 50), ("50.10", 50.1), ("1E+2", 100), ("-0.000001", -0.000001), ("-0", 0)):
            self.assertEqual(json.dumps(to_json(Decimal(value))), json.dumps(number))
        action = Assent().submit(agent_id=AGENT, tool="stripe", operation="refund", params={**ALLOWED, "amount": Decimal("49.90")})
        self.assertEqual((action["status"], action["params"]["amount"]), ("allowed", 49.9))
        for value in ("NaN", "Infinity", "9007199254740993", "1E+999999999", "0.12345678901234567891", "1E-400"):
            with self.assertRaises(NotJson):
                to_json(Decimal(value))

    def test_answers_that_are_none_of_the_service(self):
        for answer in (
            reply(200, b"<html>", {"Content-Type": "text/html"}),
            reply(200, b"{"),
            reply(200, []),
            reply(200, {"status": "allowed"}),
            reply(200, {"id": 5, "status": "allowed"}),
            reply(200, b"[" * 200_000),
            reply(500, {"code": "X"}),
            reply(204, b""),
        ):
            with Liar(answer) as liar, self.assertRaises(ServiceUnavailable):
                self.client(liar.url, timeout=0.5).start("x")

    def test_a_start_that_another_state_or_action_answers_has_not_begun(self):
        for record in ({"id": "x", "status": "approved"}, {"id": "y", "status": "executing"}):
            with Liar(reply(200, record)) as liar, self.assertRaises(ServiceUnavailable):
                self.client(liar.url).start("x")

    def test_answers_about_another_action_are_none(self):
        asked = {"id": "a", "status": "allowed", **wish(n=1, deep=[{"ok": True}]), "context": {}}
        others = {"agent_id": "x", "tool": "x", "operation": "x", "context": {"a": 1}}
        params = [{}, {**asked["params"], "n": 2}, {**asked["params"], "n": True}, {**asked["params"], "deep": [{"ok": 1}]}]
        request = {name: asked[name] for name in ("agent_id", "tool", "operation", "params")}
        with Liar(reply(200, asked)) as liar:
            self.assertEqual(self.client(liar.url).submit(**request)["id"], "a")
            for call in (self.client(liar.url).action, self.client(liar.url).permit, self.client(liar.url).cancel):
                with self.assertRaises(ServiceUnavailable):
                    call("b")
            with self.assertRaises(ServiceUnavailable):
                self.client(liar.url).wait("b", 0)
        for lie in [{name: value} for name, value in others.items()] + [{"params": value} for value in params]:
            with Liar(reply(200, {**asked, **lie})) as liar, self.assertRaises(ServiceUnavailable):
                self.client(liar.url).submit(**request)

    def test_no_redirect_is_followed(self):
        with Liar(reply(200, {"id": "a", "status": "executing"})) as other:
            with Liar(reply(307, {}, {"Location": f"{other.url}/v1"})) as liar:
                with self.assertRaises(ServiceUnavailable):
                    self.client(liar.url, timeout=0.5).start("x")
            self.assertEqual(other.paths, [])

    def test_a_slow_answer_ends(self):
        def drip(handler):
            handler.send_response(200)
            handler.send_header("Content-Type", "application/json")
            handler.end_headers()
            for _ in range(100):
                time.sleep(0.05)
                try:
                    handler.wfile.write(b" ")
                except OSError:
                    return

        with Liar(drip) as liar, self.assertRaises(ServiceUnavailable) as slow:
            self.client(liar.url, timeout=0.5).start("x")
        self.assertEqual(slow.exception.code, "TIMEOUT")

    def test_a_start_is_repeated_as_the_same_start_and_a_joined_submission_as_the_same_wish(self):
        busy = reply(503, {"code": "OVERLOADED"}, {"Retry-After": "0"})
        with Liar(busy) as liar, self.assertRaises(ServiceUnavailable):
            self.client(liar.url, timeout=0.5).start("x")
        self.assertGreater(len(liar.bodies), 1)
        self.assertEqual(len({json.loads(body)["attempt"] for body in liar.bodies}), 1)
        client = Assent()
        action = client.submit(agent_id=AGENT, tool="stripe", operation="refund", params=ALLOWED, join=False)
        for _ in range(2):
            self.assertEqual(client.start(action["id"], attempt="0123456789abcdef")["status"], "executing")
        with self.assertRaises(RequestRefused):
            client.start(action["id"])
        with Liar(busy) as liar, self.assertRaises(ServiceUnavailable):
            self.client(liar.url, timeout=0.5).submit(**wish())
        self.assertGreater(len(liar.paths), 1)
        with Liar(busy) as liar, self.assertRaises(ServiceUnavailable):
            self.client(liar.url, timeout=0.5).submit(**wish(), join=False)
        self.assertEqual(len(liar.paths), 1)

    def test_what_json_cannot_carry(self):
        for value in (float("nan"), float("inf"), 2**53, {1: 2}, object(), b"x", "\ud800", {"a": {1}}):
            with self.assertRaises(NotJson):
                Assent().submit(**wish(value=value))

    def test_settings(self):
        with mock.patch.dict(os.environ, {"ASSENT_URL": ""}):
            self.assertEqual(Assent(api_key="k").url, "http://127.0.0.1:8000")
        for url, key in (("ftp://x", "k"), ("http://a:b@x", "k"), ("http://x", ""), ("http://x", "a b")):
            with mock.patch.dict(os.environ, {"ASSENT_URL": "", "ASSENT_API_KEY": ""}), self.assertRaises(ValueError):
                Assent(url, key)

import asyncio
import functools
import threading
import unittest
import uuid
from decimal import Decimal
from unittest import mock

from assent import Assent, AsyncAssent, Denied, NotJson, Pending, ServiceUnavailable, govern
from support import AGENT, Liar, admin, reply, until, vote


#: The response of a service to the call of these tests, without its status.
ASKED = {
    "id": "a",
    "agent_id": AGENT,
    "tool": "stripe",
    "operation": "refund",
    "params": {"amount": 50, "currency": "USD"},
    "context": {},
}


class Governed(unittest.TestCase):
    def setUp(self):
        self.client = Assent()
        self.ran = []

    def refund(self, client=None, wait=0):
        @govern(client or self.client, agent_id=AGENT, tool="stripe", operation="refund", wait=wait)
        def refund(amount, currency="USD", **more):
            self.ran.append((amount, currency, more))
            if more.get("order", "").startswith("fail"):
                raise KeyError("no such charge")
            return "done"

        return refund

    def test_refuses_a_keyword_with_the_name_of_a_positional_only_parameter(self):
        ran = []

        @govern(self.client, agent_id=AGENT, tool="stripe", operation="refund")
        def refund(amount, /, **more):
            ran.append((amount, more))

        with self.assertRaisesRegex(TypeError, "keyword argument 'amount'"):
            refund(50, amount=5000)
        self.assertEqual(ran, [])
        refund(50, currency="USD")
        self.assertEqual(ran, [(50, {"currency": "USD"})])

    def test_passes_arguments_by_position_or_by_name_as_the_caller_did(self):
        @functools.singledispatch
        def refund(amount, currency="USD", *, order):
            return (amount, currency, order)

        @functools.wraps(refund)
        def wrapper(*args, **kwargs):
            return args, kwargs

        order = str(uuid.uuid4())
        governed = [
            govern(self.client, agent_id=AGENT, tool="stripe", operation="refund")(one) for one in (refund, wrapper)
        ]
        self.assertEqual(governed[0](50, order=order), (50, "USD", order))
        self.assertEqual(governed[1](50, "USD", order=order), ((50, "USD"), {"order": order}))
        self.assertEqual(governed[1](50, currency="USD", order=order), ((50,), {"currency": "USD", "order": order}))

    def test_runs_once_and_reports(self):
        order = str(uuid.uuid4())
        self.assertEqual(self.refund()(50, order=order), "done")
        self.assertEqual(self.ran, [(50, "USD", {"order": order})])
        newest = next(self.client.actions(limit="1"))
        self.assertEqual((newest["status"], newest["params"]["order"]), ("succeeded", order))

    def test_a_decimal_is_decided_as_a_number_and_runs_as_a_decimal(self):
        self.refund()(Decimal("49.90"), order=str(uuid.uuid4()))
        amount = self.ran[0][0]
        self.assertEqual((type(amount), str(amount)), (Decimal, "49.90"))
        self.assertEqual(next(self.client.actions(limit="1"))["params"]["amount"], 49.9)

    def test_a_denied_call_does_not_run(self):
        @govern(self.client, agent_id=AGENT, tool="crm")
        def delete_customer(id):
            self.ran.append(id)

        with self.assertRaises(Denied) as denied:
            delete_customer(7)
        self.assertEqual((denied.exception.action["status"], denied.exception.outcome), ("denied", "denied"))
        self.assertIn("denied by policy", str(denied.exception))
        self.assertEqual(self.ran, [])

    def test_a_pending_call_joins_and_runs_once_after_the_approval(self):
        order = str(uuid.uuid4())
        with self.assertRaises(Pending) as pending:
            self.refund()(500, order=order)
        with self.assertRaises(Pending) as again:
            self.refund(Assent())(500, order=order)
        self.assertEqual(again.exception.action_id, pending.exception.action_id)
        vote(pending.exception.action_id)
        self.assertEqual(self.ran, [])
        with self.assertRaises(Pending):
            self.refund()(501, order=order)
        self.assertEqual(self.refund()(500, order=order), "done")
        with self.assertRaises(Pending):
            self.refund()(500, order=order)
        self.assertEqual(len(self.ran), 1)

    def test_a_refusal_by_a_person(self):
        order = str(uuid.uuid4())
        with self.assertRaises(Pending) as pending:
            self.refund()(500, order=order)
        words = "use the\nsmall\u202e refund instead"
        threading.Timer(0.3, vote, [pending.exception.action_id, False, words]).start()
        with self.assertRaises(Denied) as rejected:
            self.refund(wait=20)(500, order=order)
        with self.assertRaises(Denied) as again:
            self.refund()(500, order=order)
        for error, by, words in (
            (rejected.exception, "person", "was rejected by"),
            (again.exception, "earlier_rejection", "was already rejected by"),
        ):
            self.assertEqual((error.outcome, error.action["denied_by"]), ("rejected", by))
            self.assertRegex(str(error), words + r" .+: use the small refund instead\. The same request is refused until 20")
        admin().lift_rejection(pending.exception.action_id)
        with self.assertRaises(Pending) as asked:
            self.refund()(500, order=order)
        self.assertNotEqual(asked.exception.action_id, pending.exception.action_id)
        self.assertEqual(self.ran, [])

    def test_an_approvers_question_ends_the_wait_and_is_answered(self):
        order = str(uuid.uuid4())
        with self.assertRaises(Pending) as pending:
            self.refund()(500, order=order)
        admin().ask(pending.exception.action_id, "Which\u202e customer?")
        with self.assertRaises(Pending) as asked:
            self.refund(wait=600)(500, order=order)
        self.assertEqual(asked.exception.action_id, pending.exception.action_id)
        self.assertRegex(str(asked.exception), r'asks about it \(question 1\): "Which customer\?"')
        answered = self.client.answer(asked.exception.action_id, "4711")
        self.assertEqual(answered["questions"][0]["answer"], "4711")

    def test_waits_for_half_a_minute_unless_told_otherwise(self):
        order = str(uuid.uuid4())
        action = self.client.submit(
            agent_id=AGENT, tool="stripe", operation="refund", params={"amount": 500, "currency": "USD", "order": order}
        )
        threading.Timer(0.5, vote, [action["id"]]).start()

        @govern(self.client, tool="stripe")
        def refund(amount, currency, order):
            return "done"

        self.assertEqual(refund(500, "USD", order), "done")

    def test_what_a_tool_raises_is_raised_and_reported(self):
        order = f"fail-{uuid.uuid4()}"
        with self.assertRaises(KeyError):
            self.refund()(50, order=order)
        newest = next(self.client.actions(limit="1"))
        self.assertEqual((newest["status"], newest["params"]["order"]), ("failed", order))

    def test_runs_with_what_was_asked(self):
        seen = []
        items = ["a"]

        @govern(self.client, agent_id=AGENT, tool="stripe", operation="refund", wait=0)
        def refund(amount, currency, items):
            seen.append(items)

        with self.assertRaises(Pending) as pending:
            refund(50, "USD", items)
        vote(pending.exception.action_id)
        refund(50, "USD", items)
        items.append("b")
        self.assertEqual(seen, [["a"]])

    def test_what_json_cannot_carry_does_not_run(self):
        with self.assertRaises(NotJson):
            self.refund()(float("nan"))
        self.assertEqual(self.ran, [])

    def test_nothing_runs_while_nothing_can_be_decided(self):
        key = "assent_x"
        for answer in (reply(500, {}), reply(200, {}), reply(200, {**ASKED, "status": "sideways"})):
            with Liar(answer) as liar, self.assertRaises((ServiceUnavailable, Denied)):
                self.refund(Assent(liar.url, key, timeout=0.5))(50)
        with self.assertRaises(ServiceUnavailable):
            self.refund(Assent("http://127.0.0.1:9", key, timeout=0.5))(50)
        self.assertEqual(self.ran, [])

    def test_nothing_runs_when_the_start_fails(self):
        def allowed_but_not_started(handler):
            if handler.path.endswith("/start"):
                reply(503, {"code": "STORAGE_UNAVAILABLE"})(handler)
            else:
                reply(200, {**ASKED, "status": "allowed"})(handler)

        with Liar(allowed_but_not_started) as liar, self.assertRaises(ServiceUnavailable):
            self.refund(Assent(liar.url, "assent_x", timeout=1))(50)
        self.assertIn("POST /v1/actions/a/start", liar.paths)
        self.assertEqual(self.ran, [])

    def test_a_start_without_an_answer_is_reported_as_not_run_under_its_attempt(self):
        def lost(handler):
            if handler.path.endswith("/start"):
                reply(200, b"<html>", {"Content-Type": "text/html"})(handler)
            else:
                reply(200, {**ASKED, "status": "allowed"})(handler)

        for client in (Assent, AsyncAssent):
            with Liar(lost) as liar:
                with self.assertRaises(ServiceUnavailable):
                    self.refund(client(liar.url, "assent_x", timeout=0.5))(50)
                results = until(lambda: [body for path, body in liar.seen() if path.endswith("/result")])
            starts = [body for path, body in liar.seen() if path.endswith("/start")]
            self.assertEqual(results[0]["success"], False)
            self.assertIn("not run", results[0]["error"])
            self.assertEqual({body["attempt"] for body in starts}, {results[0]["attempt"]})
        self.assertEqual(self.ran, [])

    def test_a_start_whose_answer_comes_too_late_runs_nothing(self):
        def started(handler):
            status = "executing" if handler.path.endswith("/start") else "allowed"
            reply(200, {**ASKED, "status": status})(handler)

        with Liar(started) as liar, mock.patch("assent.admit.LIVE", -1.0):
            with self.assertRaises(ServiceUnavailable):
                self.refund(Assent(liar.url, "assent_x"))(50)
            results = until(lambda: [body for path, body in liar.seen() if path.endswith("/result")])
        self.assertEqual(results[0]["success"], False)
        self.assertEqual(self.ran, [])

    def test_a_call_that_is_decided_again_and_needs_people_now_is_pending(self):
        decided = {"status": "allowed"}

        def answer(handler):
            if handler.path.endswith("/start"):
                decided["status"] = "pending_approval"
                reply(409, {"code": "ACTION_NOT_STARTABLE", "detail": "it waits for more people"})(handler)
            else:
                reply(200, {**ASKED, **decided})(handler)

        with Liar(answer) as liar, self.assertRaises(Pending):
            self.refund(Assent(liar.url, "assent_x"))(50)
        self.assertEqual(self.ran, [])

    def test_a_refusal_names_the_action_as_it_is_now(self):
        order = str(uuid.uuid4())
        with self.assertRaises(Pending) as pending:
            self.refund()(500, order=order)
        threading.Timer(0.3, self.client.cancel, [pending.exception.action_id]).start()
        with self.assertRaises(Denied) as cancelled:
            self.refund(wait=20)(500, order=order)
        self.assertEqual(cancelled.exception.action["status"], "cancelled")
        self.assertIn("was cancelled", str(cancelled.exception))

    def test_a_cancelled_task_leaves_nothing_started(self):
        client = AsyncAssent()
        sync = client.sync
        order = str(uuid.uuid4())

        @govern(client, agent_id=AGENT, tool="stripe", operation="refund")
        async def refund(amount, order, currency="USD"):
            self.ran.append(amount)

        async def scenario():
            entered = asyncio.Event()
            loop = asyncio.get_running_loop()
            go = threading.Event()
            start = sync.start

            def slow(*args, **how):
                record = start(*args, **how)
                loop.call_soon_threadsafe(entered.set)
                go.wait(10)
                return record

            sync.start = slow
            task = asyncio.ensure_future(refund(50, order))
            await entered.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            go.set()

        asyncio.run(scenario())
        newest = next(self.client.actions(limit="1"))
        until(lambda: self.client.action(newest["id"])["status"] == "failed")
        self.assertEqual(newest["params"]["order"], order)
        self.assertIn("not run", self.client.action(newest["id"])["result"]["error"])
        self.assertEqual(self.ran, [])

    def test_what_runs_later_is_refused(self):
        client = AsyncAssent()

        def generator(amount):
            yield amount

        async def stream(amount):
            yield amount

        for function in (generator, stream):
            with self.assertRaises(TypeError):
                govern(client, agent_id=AGENT, tool="stripe", operation="refund")(function)

        async def later():
            self.ran.append(1)

        for body in (later, lambda: (self.ran.append(1) for _ in "x")):
            @govern(self.client, agent_id=AGENT, tool="stripe", operation="refund")
            def refund(amount, currency, order):
                return body()

            order = str(uuid.uuid4())
            with self.assertRaises(TypeError):
                refund(50, "USD", order)
            newest = next(self.client.actions(limit="1"))
            self.assertEqual((newest["status"], newest["params"]["order"]), ("failed", order))
        self.assertEqual(self.ran, [])

    def test_an_error_that_json_cannot_carry_is_still_the_callers(self):
        @govern(self.client, agent_id=AGENT, tool="stripe", operation="refund")
        def refund(amount, currency, order):
            raise OSError("no file \udc80")

        order = str(uuid.uuid4())
        with self.assertRaises(OSError):
            refund(50, "USD", order)
        newest = next(self.client.actions(limit="1"))
        self.assertEqual((newest["status"], newest["params"]["order"]), ("failed", order))

    def test_the_agent_of_the_key_what_is_recorded_and_who_hears_of_a_lost_report(self):
        unreported = []

        def give(amount, currency, order):
            self.ran.append(order)
            return {"charge": "ch_1"}

        options = {"tool": "stripe", "operation": "refund", "record": lambda value: {"charge": value["charge"]}}
        order = str(uuid.uuid4())
        govern(self.client, **options)(give)(50, "USD", order)
        newest = next(self.client.actions(limit="1"))
        self.assertEqual((newest["agent_id"], newest["params"]["order"]), (AGENT, order))
        self.assertEqual(newest["result"]["meta"], {"charge": "ch_1"})

        def no_result(handler):
            if handler.path.endswith("/result"):
                reply(503, {"code": "STORAGE_UNAVAILABLE"})(handler)
            else:
                status = "executing" if handler.path.endswith("/start") else "allowed"
                reply(200, {**ASKED, "params": {"amount": 50, "currency": "USD", "order": order}, "status": status})(handler)

        with Liar(no_result) as liar:
            client = Assent(liar.url, "assent_x", timeout=0.5)
            lost = govern(client, agent_id=AGENT, **options, on_unreported=lambda error, action: unreported.append(action["id"]))
            self.assertEqual(lost(give)(50, "USD", order), {"charge": "ch_1"})
        self.assertEqual(unreported, ["a"])

    def test_two_calls_at_once_of_one_approval_run_once(self):
        order = str(uuid.uuid4())
        with self.assertRaises(Pending) as pending:
            self.refund()(500, order=order)
        vote(pending.exception.action_id)
        outcomes = []

        def call():
            try:
                outcomes.append(self.refund()(500, order=order))
            except (Denied, Pending) as error:
                outcomes.append(type(error).__name__)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(outcomes.count("done"), 1, outcomes)
        self.assertEqual(len(self.ran), 1)

    def test_a_function_of_no_names_is_refused(self):
        with self.assertRaises(TypeError):

            @govern(self.client, agent_id=AGENT, tool="stripe", operation="refund")
            def refund(*amounts):
                self.ran.append(amounts)

    def test_a_function_without_a_name_needs_an_operation(self):
        refund = functools.partial(lambda amount, currency: "done", currency="USD")
        for function in refund, (lambda amount: "done"):
            with self.assertRaisesRegex(TypeError, "pass the name of its action as operation"):
                govern(self.client, agent_id=AGENT, tool="stripe")(function)
        self.assertEqual(govern(self.client, agent_id=AGENT, tool="stripe", operation="refund")(refund)(50), "done")

    def test_async(self):
        client = AsyncAssent()

        @govern(client, agent_id=AGENT, tool="stripe", operation="refund", wait=0)
        async def refund(amount, order, currency="USD"):
            self.ran.append(amount)
            return order

        async def scenario():
            order = str(uuid.uuid4())
            self.assertEqual(await refund(amount=50, order=order), order)
            with self.assertRaises(Pending) as pending:
                await refund(amount=500, order=order)
            vote(pending.exception.action_id)
            self.assertEqual(await refund(amount=500, order=order), order)

        asyncio.run(scenario())
        self.assertEqual(self.ran, [50, 500])

    def test_a_coroutine_needs_the_async_client(self):
        with self.assertRaises(TypeError):

            @govern(self.client, agent_id=AGENT, tool="stripe", operation="refund")
            async def refund(amount):
                self.ran.append(amount)

    def test_an_admin_sees_what_ran(self):
        self.refund()(50)
        self.assertEqual(next(admin().actions(limit="1"))["agent_id"], AGENT)

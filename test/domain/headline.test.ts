/** The parameters that a summary of one line shows. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ActionRecord } from "../../clients/typescript/index.ts";
import { requestSummary } from "../../plugins/actions/cli/request-summary.ts";
import { findHeadline } from "../../src/domain/headline.ts";

type Params = Record<string, unknown>;
const headlineOf = (params: Params, first: readonly string[] = []): string | undefined =>
  findHeadline({ params, shown_first: first.map((name) => `/params/${name}`) })?.value;
const summaryOf = (params: Params, first: readonly string[] = []): string =>
  requestSummary({
    params,
    shown_first: first.map((name) => `/params/${name}`),
    preview: null,
    erased_at: null,
  } as unknown as ActionRecord);

test("an agent cannot displace the amount, or what the policy names, by adding a parameter", () => {
  const added = {
    "1": "x".repeat(500),
    a: "first",
    command: "ls",
    paths: ["a.txt"],
    urls: ["https://example.com"],
    total: 1,
    amount_paid: 2,
    costs: "y".repeat(500),
  };
  for (const params of [
    { amount: 500, customer: "cus_1", ...added },
    { ...added, amount: 500, customer: "cus_1" },
  ]) {
    assert.equal(headlineOf(params), "500");
    assert.match(summaryOf(params), /^\{"amount":500,/);
    assert.equal(headlineOf(params, ["customer", "amount"]), "cus_1");
    assert.match(summaryOf(params, ["customer", "amount"]), /^\{"customer":"cus_1","amount":500,/);
    assert.equal(headlineOf(params, ["order/id", "amount/value"]), "500", "the policy names a part, or what is absent");
  }
  assert.match(summaryOf({ note: "n".repeat(500), amount: 500 }, ["note", "amount"]), /^\{"note":"n+…,"amount":500\}$/);
});

test("an amount has its currency or unit, if another parameter states it", () => {
  assert.equal(headlineOf({ amount: 120, currency: "EUR" }), "120 EUR");
  assert.equal(headlineOf({ currency: "usd", refundAmount: "120.50", refundCurrency: "EUR" }), "120.50 EUR");
  assert.equal(headlineOf({ total: 3, unit: "kg" }), "3 kg");
  for (const params of [
    { amount: "120 EUR", currency: "USD" },
    { amount: 120, currency: "a text that hides the amount" },
    { amount: 120, currency: 978 },
    { amount: 120, from_currency: "USD" },
    { amount: true, currency: "EUR" },
  ])
    assert.equal(headlineOf(params), String(params.amount));
});

test("without an amount, the command, the files or the URLs say what a coding agent does", () => {
  assert.equal(summaryOf({ cwd: "/w", command: "git  push" }), "git push");
  assert.equal(summaryOf({ workspace: "/w", paths: ["a", "b"], command: "true" }, ["workspace", "paths"]), "a b");
  assert.equal(summaryOf({ paths: ["a.txt"], reason: "x" }, ["reason"]), '{"reason":"x","paths":["a.txt"]}');
  assert.equal(headlineOf({ list: [1], empty: "", isForced: true }), "true");
  assert.equal(headlineOf({ list: [1], none: null }), undefined);
});

/** Requests of the same shape: their columns, what they have in common, and outliers. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { groupByShape, scoreOutliers } from "../../../plugins/console/app/inbox/group-requests.ts";

const refund = (id: string, params: Record<string, unknown>, context: Record<string, unknown> = {}) => ({
  id,
  agent_id: "support-bot",
  tool: "stripe",
  operation: "refund",
  params,
  context,
  shown_first: ["/params/amount"],
});

describe("groups of requests", () => {
  it("have the same tool, operation and member names, and differ in their columns, the policy's first", () => {
    const groups = groupByShape([
      refund("1", { customer: "cus_1", amount: 10, currency: "USD" }),
      refund("2", { customer: "cus_2", amount: 20, currency: "USD" }),
      refund("3", { customer: "cus_3", amount: 30, currency: "USD", note: "x" }),
      refund("4", { customer: "cus_4", amount: 30, currency: "USD" }, { ticket: "T-1" }),
    ]);
    assert.deepEqual(
      groups.map(({ rows, columns, common }) => [rows.map(({ action }) => action.id), columns, common]),
      [
        [["1", "2"], ["amount", "customer"], [{ name: "currency", text: "USD" }]],
        [
          ["3"],
          [],
          [
            { name: "amount", text: "30" },
            { name: "customer", text: "cus_3" },
            { name: "currency", text: "USD" },
            { name: "note", text: "x" },
          ],
        ],
        [
          ["4"],
          [],
          [
            { name: "amount", text: "30" },
            { name: "customer", text: "cus_4" },
            { name: "currency", text: "USD" },
            { name: "context.ticket", text: "T-1" },
          ],
        ],
      ],
    );
  });

  it("have a column for each pinned fact that differs, because a vote is about it", () => {
    const pinned = (id: string, total: number) => ({
      ...refund(id, { a: id, b: id, c: id, d: id, e: id, amount: 1 }),
      pins: [
        { policy: "payments", path: "facts.invoice.total", value: total },
        { policy: "payments", path: "facts.invoice.status", value: "open" },
        { policy: "other", path: "facts.invoice.status", value: id },
      ],
    });
    const [group] = groupByShape([pinned("1", 10), pinned("2", 20)]);
    const status = "facts.invoice.status";
    assert.deepEqual(group?.columns.slice(0, 2), ["facts.invoice.total", `${status} (other)`]);
    assert.deepEqual(group?.common[0], { name: `${status} (payments)`, text: "open" });
    assert.deepEqual(
      group?.rows.map(({ cells }) => cells.slice(0, 2).map(({ text }) => text)),
      [
        ["10", "1"],
        ["20", "2"],
      ],
    );
  });

  it("put outliers first and report how much of a long value is missing", () => {
    const amounts = [10, 12, 11, 900, 13];
    const [group] = groupByShape(amounts.map((amount, i) => refund(String(i), { amount, note: "n".repeat(80 + i) })));
    assert.deepEqual(
      group?.rows.map(({ action }) => action.id),
      ["3", "0", "1", "2", "4"],
    );
    assert.deepEqual(
      group?.rows.map(({ cells }) => cells[0]?.isOutlier),
      [true, false, false, false, false],
    );
    assert.match(group?.rows[1]?.cells[1]?.text ?? "", /^n{60}… 20 more characters$/);
  });

  it("name the members that have no column, which the amount has", () => {
    const names = ["a", "b", "c", "d", "e", "f", "total"];
    const params = (n: number) => Object.fromEntries(names.map((name) => [name, n]));
    const [group] = groupByShape([refund("1", params(1)), refund("2", params(2))]);
    assert.deepEqual(
      [group?.columns, group?.moreColumns],
      [
        ["total", "a", "b", "c", "d"],
        ["e", "f"],
      ],
    );
  });
});

describe("outliers", () => {
  it("are far from the median, or rare among repeated values", () => {
    const isOutlier = (values: unknown[]) => scoreOutliers(values).map((score) => score >= 1);
    assert.deepEqual(isOutlier([5, 5, 5, 6]), [false, false, false, true]);
    assert.deepEqual(isOutlier([1, 2, 3, 4, 100]), [false, false, false, false, true]);
    assert.deepEqual(isOutlier(["a", "b", "c"]), [false, false, false]);
    assert.deepEqual(isOutlier([...Array.from({ length: 11 }, () => "USD"), "EUR"]).lastIndexOf(true), 11);
    assert.deepEqual(isOutlier([1, 9]), [false, false]);
    // One production deployment among five staging deployments, but not one value against two.
    assert.deepEqual(isOutlier([...Array.from({ length: 5 }, () => "staging"), "production"]).lastIndexOf(true), 5);
    assert.deepEqual(isOutlier(["a", "a", "b"]), [false, false, false]);
  });
});

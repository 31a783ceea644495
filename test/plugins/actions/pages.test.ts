/** Pages of lists have a limit in bytes. A page ends at the limit, and its cursor continues without a gap. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { readPage } from "../../../src/http/resource/paging.ts";
import { needs } from "../../support/features.ts";
import { ALLOWED, ASKED, startService, type Answer, type Service } from "../../support/service.ts";

let service: Service;
const allowed: string[] = [];
const asked: string[] = [];
before(async () => {
  service = await startService({ change: ({ server }) => (server.max_page_bytes = 65_536) });
  const submit = async (body: object): Promise<string> =>
    (await service.call("POST", "/v1/actions", { body })).body.id as string;
  for (let i = 0; i < 100; i++) allowed.push(await submit(ALLOWED));
  for (let i = 0; i < 3; i++) allowed.push(await submit({ ...ALLOWED, context: { pad: "ä".repeat(14_000) } }));
  for (let i = 0; i < 5; i++) asked.push(await submit({ ...ASKED, context: { pad: "x".repeat(30_000) } }));
  asked.push(await submit({ ...ASKED, context: { pad: "x".repeat(65_000) } }));
});
after(() => service.close());

const get = (path: string): Promise<Answer> => service.call("GET", path, { key: service.admin });

/** Returns the ids on each page. */
async function walk(path: string): Promise<string[][]> {
  const pages: string[][] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const answer: Answer = await get(`${path}${cursor === "" ? "" : `&cursor=${cursor}`}`);
    assert.equal(answer.status, 200);
    assert.ok(pages.length < 50);
    pages.push(answer.body.actions.map((action: { id: string }) => action.id));
    cursor = answer.body.next_cursor as string | null;
    assert.equal(answer.headers.has("link"), cursor !== null);
  }
  return pages;
}

describe("a page", () => {
  it("a page of actions ends at its byte limit, and all pages together contain each action once", async () => {
    const pages = await walk("/v1/actions?limit=1000");
    assert.deepEqual(pages.flat(), [...allowed, ...asked].reverse());
    assert.deepEqual(
      pages.slice(0, 4).map((page) => page.length),
      // One fills a page alone; the next two fit together.
      [1, 2, 2, 2],
    );
  });

  it("a search finds each action with all words once, on several pages, and refuses an offset", async () => {
    const tool = ASKED.tool.toUpperCase();
    const pages = await walk(`/v1/actions?limit=2&q=${tool}%20xxxxxxxx`);
    assert.deepEqual(pages.flat(), [...asked].reverse());
    assert.deepEqual(await walk("/v1/actions?q=nowhere"), [[]]);
    assert.deepEqual(await walk(`/v1/actions?q=${(asked[0] ?? "").slice(0, 30)}`), [[asked[0]]]);
    for (const filter of ["q=x", "decision=allow", "policy=payments", "rule=x", "has_rule=false", "answer=any"])
      assert.equal((await get(`/v1/actions?${filter}&offset=1`)).status, 422, filter);
  });

  it("a search by decision, policy and rule finds each action once, on several pages", async () => {
    assert.deepEqual((await walk("/v1/actions?limit=2&decision=require_approval")).flat(), [...asked].reverse());
    assert.deepEqual(await walk("/v1/actions?decision=deny"), [[]]);
    const { policy, rule } = (await get(`/v1/actions/${asked[0]}`)).body;
    const query = new URLSearchParams({ policy, rule, limit: "2" });
    assert.deepEqual((await walk(`/v1/actions?${query}`)).flat(), [...asked].reverse());
    assert.deepEqual(await walk(`/v1/actions?policy=${policy}&rule=another`), [[]]);
    assert.equal((await get("/v1/actions?decision=maybe")).status, 422);
  });

  it("a page of small actions ends at its count limit, however many rows are read at once", async () => {
    const pages = await walk(
      `/v1/actions?limit=97&status=allowed&until=${new Date(Date.now() + 60_000).toISOString()}`,
    );
    assert.deepEqual(pages.flat(), [...allowed].reverse());
  });

  it("a page of approvals ends at its byte limit", async () => {
    const pages = await walk("/v1/approvals?limit=1000");
    assert.deepEqual(pages.flat().sort(), [...asked].sort());
    assert.ok(pages.length >= 3);
    assert.equal((await get("/v1/approvals?limit=1000")).body.total, 6);
  });

  it("a page requested by offset is rejected if it would be cut, because the next offset would skip rows", async () => {
    const cut = await get("/v1/actions?limit=10&offset=0");
    assert.deepEqual([cut.status, cut.body.code, cut.body.errors[0].parameter], [422, "VALIDATION_FAILED", "limit"]);
    assert.equal((await get("/v1/actions?limit=1&offset=0")).status, 200);
    const whole = await get("/v1/actions?limit=90&offset=10");
    assert.equal(whole.body.actions.length, 90);
    assert.equal(whole.body.actions[0].id, [...allowed, ...asked].reverse()[10]);
  });

  it("a page of events ends at its byte limit, and the next begins after it", needs("events"), async () => {
    const { size } = await service.runtime.host.ledger.head();
    const seen: number[] = [];
    for (let next = -1; seen.length < size;) {
      const { body } = await service.call("GET", `/v1/events/page?limit=1000&after=${next}`, {
        key: service.admin,
      });
      assert.ok(body.events.length > 0 && body.events.length < 100, String(body.events.length));
      seen.push(...body.events.map(({ seq }: { seq: number }) => seq));
      next = body.next_after as number;
    }
    assert.deepEqual(
      seen,
      Array.from({ length: size }, (_, i) => i),
    );
  });

  it("a page reads only a few rows past its end", async () => {
    let rows = 0;
    let turns = 0;
    const page = await readPage<number>(
      "test",
      { limit: 1000, bytes: 10_000 },
      {
        async read(last, limit) {
          rows += limit;
          return Array.from({ length: limit }, (_, i) => (last ?? 0) + i + 1);
        },
        size: () => 1000,
        position: (row) => row,
        render: (row) => ({ row }),
        turn: async () => void turns++,
        hold: () => undefined,
      },
    );
    assert.deepEqual([page.items.length, page.next_cursor !== null, turns], [10, true, 1]);
    assert.ok(rows <= 64, String(rows));
  });

  it("a page is read in slices of bounded size, each in its own turn, and reading stops when the budget is used", async () => {
    const [held, slices]: [number[], number[]] = [[], []];
    let turns = 0;
    const read = (room: number) =>
      readPage<number>(
        "slices",
        { limit: 1000, bytes: 10_000_000 },
        {
          async read(last, limit) {
            slices.push(limit);
            return Array.from({ length: limit }, (_, i) => (last ?? 0) + i + 1);
          },
          size: () => 100_000,
          position: (row) => row,
          render: (row) => ({ row }),
          turn: async () => void turns++,
          hold(bytes) {
            held.push(bytes);
            if (held.reduce((a, b) => a + b) > room) throw new Error("no room");
          },
        },
      );
    await assert.rejects(read(3_000_000), /^Error: no room$/);
    assert.deepEqual(slices, [21, 2, 2, 2, 2]);
    // The first slice is rendered in several turns.
    assert.ok(turns >= slices.length + 6, String(turns));
    // Expected bytes are reserved before each read, and corrected after it.
    assert.deepEqual(held.slice(0, 4), [21 * 1024, 21 * 100_000, 2 * 101_024, 0]);
  });
});

it("a page is refused before it reads if rows like the last ones would not fit", async () => {
  let reads = 0;
  const page = (hold: (bytes: number) => void) =>
    readPage<number>(
      "large rows",
      { limit: 50, bytes: 10_000_000 },
      {
        read: (_after, limit) => {
          reads++;
          return Promise.resolve(Array.from({ length: Math.min(limit, 5) }, (_, i) => i));
        },
        size: () => 100_000,
        position: (row) => row,
        render: (row) => ({ row }),
        turn: () => Promise.resolve(),
        hold,
      },
    );
  let held = 0;
  await page((bytes) => (held += bytes));
  assert.deepEqual([reads, Math.round(held)], [1, 5 * 101_024]);
  const refuse = (bytes: number): void => {
    if (bytes > 1_000_000) throw new Error("too many bytes");
  };
  await assert.rejects(page(refuse), /too many bytes/);
  assert.equal(reads, 1);
});

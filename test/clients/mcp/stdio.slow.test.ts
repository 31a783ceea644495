/** `assent mcp proxy` on standard input and output, with the official client and a server of the official package. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { needs } from "../../support/features.ts";
import { startStdioProxy, setUp, type Proxied, type Refused, type Setup } from "../../support/mcp.ts";
import { until } from "../../support/wait.ts";

for (const era of ["2025-11-25", "2026-07-28"] as const)
  describe(`a client of ${era}`, () => {
    let setup: Setup;
    let proxy: Proxied;
    before(async () => {
      setup = await setUp();
      proxy = await startStdioProxy(setup, {
        flags: ["--name", "notes", "--wait", "0"],
        client: { versionNegotiation: { mode: era === "2025-11-25" ? "legacy" : { pin: "2026-07-28" } } },
      });
    });
    after(async () => {
      await proxy?.close();
      await setup?.close();
    });
    const call = async (name: string, given: Record<string, unknown> = {}): Promise<Refused> =>
      (await proxy.client.callTool({ name, arguments: given })) as unknown as Refused;

    test("sees the server's tools, instructions, resources and prompts unchanged", async () => {
      const { tools } = await proxy.client.listTools();
      assert.deepEqual(
        tools.map(({ name }) => name),
        ["echo", "write", "forbidden", "slow", "ask", "broken", "placed", "typed"],
      );
      assert.equal(tools[0]?.description, "Says what it is told.");
      assert.match(proxy.client.getInstructions() as string, /\n\nUse echo\.$/, proxy.log());
      assert.equal((await proxy.client.listResources()).resources[0]?.uri, "note://one");
      assert.deepEqual(
        (await proxy.client.listPrompts()).prompts.map(({ name }) => name),
        ["greet"],
      );
    });

    test("an allowed call is made with exactly its arguments, and its action has started and ended", async () => {
      const given = { text: "ä\u2028", deep: { list: [1, -0.5, null, true] } };
      const result = await call("echo", given);
      assert.deepEqual(JSON.parse(result.content[0]?.text as string), given);
      await until("the action succeeded", async () => (await setup.actions())[0]?.["status"] === "succeeded");
      const [action = {}] = await setup.actions();
      assert.equal(action["tool"], "mcp.notes");
      assert.equal(action["operation"], "echo");
      assert.deepEqual(action["params"], given);
      assert.deepEqual((action["context"] as { mcp: { annotations: unknown } }).mcp.annotations, {
        readOnlyHint: true,
      });
      assert.equal((action["meta"] as { mcp: { client: { name: string } } }).mcp.client.name, "test");
    });

    test("a denied call does not reach the server, and the model is told so", async () => {
      const result = await call("forbidden");
      assert.equal(result.isError, true);
      assert.match(result.content[0]?.text as string, /not made.*denied/s);
      assert.equal(result.structuredContent?.status, "denied");
      assert.ok(!setup.record().some(({ name }) => name === "forbidden"));
    });

    test("a pending call is not made; once it is approved, the same call is, once; another one waits again", async () => {
      const first = await call("write", { n: 100 });
      assert.equal(first.isError, true);
      assert.equal(first.structuredContent?.status, "pending_approval");
      assert.match(first.content[0]?.text as string, /not made.*not refused.*same arguments/s);
      const again = await call("write", { n: 100 });
      assert.equal(again.structuredContent?.action_id, first.structuredContent?.action_id);
      await setup.decide(true);
      const other = await call("write", { n: 101 });
      assert.notEqual(other.structuredContent?.action_id, first.structuredContent?.action_id);
      assert.equal((await call("write", { n: 100 })).isError, undefined);
      assert.equal((await call("write", { n: 100 })).structuredContent?.status, "pending_approval");
      assert.equal(
        setup.record().filter(({ name, given }) => name === "write" && (given as { n: number }).n === 100).length,
        1,
      );
      assert.ok(!setup.record().some(({ given }) => (given as { n?: number } | undefined)?.n === 101));
    });

    test(
      "an approver's question refuses the call at once, and the model answers it with the proxy's own tool",
      needs("questions"),
      async () => {
        const action_id = (await call("write", { n: 103 })).structuredContent?.action_id as string;
        const { admin: key } = setup.service;
        await setup.service.call("POST", `/v1/actions/${action_id}/questions`, {
          key,
          body: { question: "Why so many?" },
        });
        const asked = await call("write", { n: 103 });
        assert.equal(asked.structuredContent?.action_id, action_id);
        assert.match(asked.content[0]?.text as string, /asks about it \(question 1\): "Why so many\?".*assent_answer/);
        const names = (await proxy.client.listTools()).tools.map(({ name }) => name);
        assert.equal(names.at(-1), "assent_answer");
        const answered = await call("assent_answer", { approval: action_id, answer: "a year's worth" });
        assert.equal(answered.isError, false);
        const { body } = await setup.service.call("GET", `/v1/actions/${action_id}`, { key });
        assert.equal(body.questions[0].answer, "a year's worth");
        assert.equal((await call("assent_answer", { approval: action_id, answer: "more" })).isError, true);
        await setup.service.call("POST", `/v1/actions/${action_id}/cancel`, { key });
      },
    );

    test("a tool's error is passed on and reported", async () => {
      assert.equal((await call("broken")).content[0]?.text, "it broke");
      await until("the action failed", async () => (await setup.actions())[0]?.["status"] === "failed");
    });

    test("resources and prompts are decided, too", async () => {
      const read = await proxy.client.readResource({ uri: "note://one" });
      assert.equal((read.contents[0] as { text: string }).text, "a note");
      await proxy.client.getPrompt({ name: "greet" });
      const operations = (await setup.actions()).map(({ operation }) => operation);
      assert.ok(operations.includes("resources/read") && operations.includes("prompts/get"), String(operations));
    });

    test("an output schema of the tool does not hide a refusal from the client", async () => {
      assert.deepEqual((await call("typed")).structuredContent, { n: 1 });
    });

    test("progress and the end of the tool reach the client", async () => {
      const seen: number[] = [];
      const result = (await proxy.client.callTool(
        { name: "slow" },
        { onprogress: ({ progress }) => void seen.push(progress) },
      )) as unknown as Refused;
      assert.equal(result.content[0]?.text, "done");
      assert.ok(seen.includes(1) && seen.includes(49), String(seen));
    });

    test("a cancelled call is cancelled at the server, and its action failed", async () => {
      const abort = new AbortController();
      const running = proxy.client.callTool({ name: "slow", arguments: { cancelled: true } }, { signal: abort.signal });
      await until("the call arrived", () =>
        setup
          .record()
          .some(
            ({ name, given }) => name === "slow" && (given as { cancelled?: boolean } | undefined)?.cancelled === true,
          ),
      );
      abort.abort();
      await assert.rejects(running);
      await until("it was cancelled", () => setup.record().some(({ name }) => name === "slow was cancelled"));
      await until("the action failed", async () => (await setup.actions())[0]?.["status"] === "failed");
    });
  });

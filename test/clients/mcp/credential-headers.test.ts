/** Credentials that the proxy puts into the headers of one call. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fillCredentialHeaders, findTemplateFault } from "../../../clients/mcp/decisions/credential-headers.ts";
import { runGovernedCall, type UpstreamCall } from "../../../clients/mcp/decisions/governed-call.ts";
import { readServerConfig } from "../../../clients/mcp/config/proxy-config.ts";
import { openHttpChannel, type HttpChannel } from "../../../clients/mcp/transport/http-channel.ts";
import { startReceiver, type Receiver } from "../../support/receiver.ts";

const TEMPLATES = { Authorization: "Bearer {token}" };

describe("headers with a credential", () => {
  test("contain its members", () => {
    assert.deepEqual(fillCredentialHeaders({ A: "{a}:{b}", B: "x {a}" }, { a: "1", b: "2" }), { A: "1:2", B: "x 1" });
  });

  test("are refused without a credential, and with members that no header can carry", () => {
    const secrets = [null, {}, { token: 1 }, { token: "a\r\nX-Other: b" }, { token: "é" }, { other: "x" }];
    for (const secret of secrets) assert.throws(() => fillCredentialHeaders(TEMPLATES, secret));
    assert.throws(() => fillCredentialHeaders({ A: "{constructor}" }, {}));
  });

  test("are refused in the configuration if they name no member, and for servers that are processes", () => {
    assert.equal(findTemplateFault(TEMPLATES), null);
    assert.equal(findTemplateFault(TEMPLATES), null, "also the second time");
    assert.match(findTemplateFault({ "X-Key": "fixed" }) ?? "", /X-Key names no member/);
    assert.match(findTemplateFault({ "X Key": "{a}" }) ?? "", /not the name of a header/);
    assert.throws(
      () => readServerConfig("files", { command: "node", credential_headers: TEMPLATES }),
      /credential_headers need url/,
    );
  });
});

describe("a call to a server over HTTP", () => {
  let receiver: Receiver;
  let channel: HttpChannel;
  before(async () => {
    receiver = await startReceiver();
    receiver.answer = (_, response) => void response.writeHead(202).end();
    const target = {
      url: `http://127.0.0.1:${receiver.port}/mcp`,
      headers: { Authorization: "Bearer configured", "X-Other": "stays" },
      credentialHeaders: TEMPLATES,
      oauth: null,
      signIns: null,
      exchange: null,
      subject: null,
    };
    channel = await openHttpChannel("tracker", target, () => undefined);
  });
  after(async () => {
    await channel.close();
    await receiver.close();
  });

  test("contains only the credential of this call", async () => {
    const send = (id: number, credentialHeaders?: Record<string, string>) =>
      channel
        .send({ jsonrpc: "2.0", id, method: "tools/call", params: {} }, { credentialHeaders })
        .catch(() => undefined);
    await send(1, { Authorization: "Bearer for-one-call" });
    await send(2);
    const [first, second] = receiver.received.filter(({ method }) => method === "POST");
    assert.deepEqual([first?.headers.authorization, first?.headers["x-other"]], ["Bearer for-one-call", "stays"]);
    assert.equal(second?.headers.authorization, "Bearer configured");
    for (const { headers } of receiver.received)
      assert.deepEqual(
        Object.keys(headers).filter((name) => name.startsWith("assent")),
        [],
      );
  });

  test("is not sent to another server to which this one redirects, which would get the configured headers", async () => {
    const other = await startReceiver();
    const { answer } = receiver;
    receiver.answer = (_, response) =>
      void response.writeHead(307, { location: `http://127.0.0.1:${other.port}/mcp` }).end();
    try {
      const message = { jsonrpc: "2.0", id: 3, method: "tools/call", params: {} } as const;
      await assert.rejects(channel.send(message), /status 307/);
      await assert.rejects(channel.send(message, { credentialHeaders: { Authorization: "Bearer x" } }));
      assert.deepEqual(other.received, []);
    } finally {
      receiver.answer = answer;
      await other.close();
    }
  });

  test("is not made when the start issued no credential, and is reported as not run", async () => {
    const reported: [boolean, string | undefined][] = [];
    const config = readServerConfig("tracker", { url: "http://127.0.0.1:1/", credential_headers: TEMPLATES });
    const upstream = {
      config,
      request: () => assert.fail("the call was made"),
    } as unknown as UpstreamCall["upstream"];
    const gate = {
      decide: async () => ({
        mayRun: true,
        id: "an-action",
        secret: null,
        report: (...said: [boolean, string?]) => reported.push([said[0], said[1]]),
      }),
    } as unknown as Parameters<typeof runGovernedCall>[4]["gate"];
    const call = { upstream, method: "tools/call", params: {}, id: 1, operation: "x", decidedParams: {}, context: {} };
    const caller = { info: {}, signal: new AbortController().signal } as Parameters<typeof runGovernedCall>[1];
    const reply = await runGovernedCall(call, caller, () => Promise.reject(new Error("unused")), null, {
      gate,
      session: "s",
      hideDenied: false,
      offerAuthority: false,
    });
    assert.ok("error" in reply);
    assert.match(reply.error.message, /no credential/);
    assert.deepEqual(
      reported.map(([success]) => success),
      [false],
    );
  });
});

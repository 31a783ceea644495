/** Sessions of AWS STS, from a look-alike built from the API reference. */
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import plugin from "../../../plugins/credentials-aws/index.ts";
import { fillSessionPolicy, findPolicyFault } from "../../../plugins/credentials-aws/session-policy.ts";
import type { ToolCredentialIssuer, Host } from "../../../src/plugin.ts";
import { startReceiver, type Receiver, type Received } from "../../support/receiver.ts";

const POLICY = {
  Version: "2012-10-17",
  Statement: [{ Effect: "Allow", Action: ["s3:GetObject"], Resource: "arn:aws:s3:::{params.bucket}/*" }],
};
const OPTIONS = {
  tools: ["s3"],
  operations: ["get"],
  role_arn: "arn:aws:iam::123456789012:role/agents",
  region: "eu-central-1",
  access_key_id: "AKIDEXAMPLE",
  secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  policy: POLICY,
  valid_seconds: 900,
};
const ACTION = {
  id: "0192f8a0-0000-7000-8000-000000000001",
  agent_id: "bot",
  tool: "s3",
  operation: "get",
  params: { bucket: "reports-2026" },
};
const ANSWER = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/agents/x</Arn><AssumedRoleId>AROA:x</AssumedRoleId></AssumedRoleUser>
<Credentials><AccessKeyId>ASIAEXAMPLE</AccessKeyId><SecretAccessKey>secret/with+signs=</SecretAccessKey>
<SessionToken>token//==</SessionToken><Expiration>2030-01-01T00:15:00Z</Expiration></Credentials>
</AssumeRoleResult></AssumeRoleResponse>`;

/** Recomputes Signature Version 4 (AWS General Reference) over what arrived. */
function signatureOf({ headers, body }: Received): string {
  const date = String(headers["x-amz-date"]);
  const scope = `${date.slice(0, 8)}/${OPTIONS.region}/sts/aws4_request`;
  const signed = /SignedHeaders=([^,]+)/.exec(String(headers.authorization))?.[1] ?? "";
  const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
  const canonical = [
    "POST",
    "/",
    "",
    ...signed.split(";").map((name) => `${name}:${String(headers[name]).trim()}`),
    "",
    signed,
    hash(body),
  ].join("\n");
  const mac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
  const key = [date.slice(0, 8), OPTIONS.region, "sts", "aws4_request"].reduce<string | Buffer>(
    mac,
    `AWS4${OPTIONS.secret_access_key}`,
  );
  return mac(key, ["AWS4-HMAC-SHA256", date, scope, hash(canonical)].join("\n")).toString("hex");
}

describe("the issuer of AWS sessions", () => {
  let sts: Receiver;
  let issuer: ToolCredentialIssuer;
  before(async () => {
    sts = await startReceiver();
    const options = { issuers: { reports: { ...OPTIONS, endpoint: `http://127.0.0.1:${sts.port}/` } } };
    const { credentialIssuers } = (await plugin.setup?.({} as Host, options)) ?? {};
    issuer = credentialIssuers?.[0] as ToolCredentialIssuer;
  });
  after(() => sts.close());
  beforeEach(() => {
    sts.received.length = 0;
    sts.answer = (_, response) => void response.end(ANSWER);
  });
  const issue = (params: object = ACTION.params) =>
    issuer.issue({ ...ACTION, params: params as typeof ACTION.params }, AbortSignal.timeout(5000));

  test("assumes the role with the action's id as session name and a policy for the action", async () => {
    const { secret, expires_at, revocation } = await issue();
    assert.deepEqual(secret, {
      access_key_id: "ASIAEXAMPLE",
      secret_access_key: "secret/with+signs=",
      session_token: "token//==",
      region: "eu-central-1",
    });
    assert.deepEqual([new Date(expires_at).toISOString(), revocation], ["2030-01-01T00:15:00.000Z", null]);
    const [request] = sts.received;
    const sent = Object.fromEntries(new URLSearchParams(request?.body));
    assert.equal(JSON.parse(sent["Policy"] ?? "").Statement[0].Resource, "arn:aws:s3:::reports-2026/*");
    const { Policy: _, ...rest } = sent;
    assert.deepEqual(rest, {
      Action: "AssumeRole",
      Version: "2011-06-15",
      RoleArn: OPTIONS.role_arn,
      RoleSessionName: ACTION.id,
      DurationSeconds: "900",
    });
  });

  test("signs the request with Signature Version 4", async () => {
    await issue();
    const [request] = sts.received;
    const signature = /Signature=([0-9a-f]{64})$/.exec(String(request?.headers.authorization))?.[1];
    assert.equal(signature, signatureOf(request as Received));
  });

  test("fails when STS refuses, answers with something else, or redirects", async () => {
    for (const [status, body] of [
      [403, "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"],
      [200, "<html>hello</html>"],
      [200, ANSWER.replace(/<SessionToken>.*<\/SessionToken>/, "")],
    ] as const) {
      sts.answer = (_, response) => void response.writeHead(status).end(body);
      await assert.rejects(issue(), /STS/);
    }
    sts.answer = (_, response) => void response.writeHead(307, { location: "http://127.0.0.1:1/" }).end();
    await assert.rejects(issue());
  });

  test("asks for nothing when a parameter would select more than it names", async () => {
    for (const bucket of [
      "*",
      "a*",
      "a/../b",
      "..",
      "${aws:username}",
      'x"',
      "",
      "a b",
      "a?",
      "é",
      1.5,
      ["a"],
      {},
      null,
    ])
      await assert.rejects(issue({ bucket }), /"bucket"/, JSON.stringify(bucket));
    await assert.rejects(issue({}), /"bucket"/);
    assert.deepEqual(sts.received, []);
  });

  test("is refused at start with a policy that has no statements, is too long, or has another placeholder", () => {
    assert.match(findPolicyFault({}) ?? "", /Statement/);
    assert.match(findPolicyFault({ Statement: [], x: "y".repeat(2048) }) ?? "", /2048/);
    assert.match(findPolicyFault({ Statement: ["{params.a.b}"] }) ?? "", /\{params\.a\.b\}/);
    assert.match(findPolicyFault({ Statement: [{ "x/{params.a}": "y" }] }) ?? "", /name of a member/);
    assert.equal(findPolicyFault(POLICY), null);
  });

  test("takes no parameter from the prototype", () => {
    assert.throws(() => fillSessionPolicy({ Statement: ["{params.constructor}"] }, {}), /"constructor"/);
  });
});

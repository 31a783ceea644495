/** Stands in for an ntfy server while you try the plugin: prints every message, one a line. */
import { createServer } from "node:http";

let count = 0;

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  console.log(body);
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify({ id: `message-${++count}` }));
});
server.listen(Number(process.env.NTFY_PORT ?? 8090), "127.0.0.1", () =>
  console.log(`waiting for messages on http://127.0.0.1:${server.address().port}`),
);

"""An MCP server that behaves as one on the official Python SDK (v2) does, with the standard library alone.

It speaks 2025-11-25 and 2026-07-28, over standard input and output or over HTTP. In 2025-11-25 its tools ask the client
for sampling and elicitation in the course of a call. In 2026-07-28 there is no channel for that: `elicit` and `sample`
fail, and `resolve` asks by a result that requires input. It appends to the file MCP_RECORD what reached it.
"""

import itertools
import json
import os
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODERN = "2026-07-28"
LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
VERSION = "io.modelcontextprotocol/protocolVersion"
INFO = {"name": "python-fixture", "version": "1.0.0"}
CAPABILITIES = {"tools": {"listChanged": False}}
TOOLS = [
    {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object", "properties": {}}}
    for name in ("echo", "elicit", "sample", "resolve", "slow")
]
FORM = {
    "mode": "form",
    "message": "What is your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}
MESSAGE = {"messages": [{"role": "user", "content": {"type": "text", "text": "Say hello."}}], "maxTokens": 10}

numbers = itertools.count(1)
writing = threading.Lock()


def record(name, given=None):
    with writing, open(os.environ["MCP_RECORD"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"name": name, "given": given}) + "\n")


def text(said, **more):
    return {"content": [{"type": "text", "text": said}], **more}


class RpcError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Call:
    """One request of the client. `ask` is None where the server cannot ask the client for anything."""

    def __init__(self, params, ask=None, is_gone=lambda: False):
        self.params, self.ask, self.is_gone = params, ask, is_gone

    def push(self, method, params):
        if self.ask is None:
            raise RuntimeError(f"Cannot send '{method}': this transport context has no back-channel")
        return self.ask(method, params)


def call_tool(call):
    name, given = call.params["name"], call.params.get("arguments") or {}
    if name not in [tool["name"] for tool in TOOLS]:
        return text(f"Unknown tool: {name}", isError=True)
    record(name, given)
    try:
        if name == "elicit":
            answer = call.push("elicitation/create", FORM)
            return text(f"{answer['action']} {answer.get('content', {}).get('name', '')}".strip())
        if name == "sample":
            return text(call.push("sampling/createMessage", MESSAGE)["content"]["text"])
        if name == "resolve":
            answers = call.params.get("inputResponses") or {}
            if call.ask is None and "name" not in answers:
                requests = {"name": {"method": "elicitation/create", "params": FORM}}
                return {"resultType": "input_required", "inputRequests": requests, "requestState": "1"}
            answer = answers.get("name") or call.push("elicitation/create", FORM)
            return text(f"{answer['action']} {answer.get('content', {}).get('name', '')}".strip())
        if name == "slow":
            while not call.is_gone():
                pass
            record("slow was cancelled")
    except RuntimeError as error:
        return text(f"Error executing tool {name}: {error}", isError=True)
    return text(json.dumps(given))


def handle(method, call, is_modern):
    if method == "initialize" and not is_modern:
        wanted = call.params.get("protocolVersion")
        version = wanted if wanted in LEGACY else LEGACY[0]
        return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO}
    if method == "server/discover" and is_modern:
        return {"supportedVersions": [MODERN], "capabilities": CAPABILITIES}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call_tool(call)
    if method == "ping":
        return {}
    raise RpcError(-32601, "Method not found")


def reply_to(message, ask=None, is_gone=lambda: False):
    """The answer to one request, as a message."""
    params = message.get("params") or {}
    is_modern = VERSION in (params.get("_meta") or {})
    try:
        result = handle(message["method"], Call(params, None if is_modern else ask, is_gone), is_modern)
    except RpcError as error:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": error.code, "message": str(error)}}
    if is_modern:
        meta = {"_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
        cached = {} if message["method"] == "tools/call" else {"ttlMs": 0, "cacheScope": "private"}
        result = {"resultType": "complete", **cached, **result, **meta}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Questions:
    """Requests of the server that the client has not answered."""

    def __init__(self):
        self.waiting = {}

    def ask(self, send):
        def asking(method, params):
            number = f"server-{next(numbers)}"
            answers = self.waiting[number] = queue.Queue()
            send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            answer = answers.get()
            if "error" in answer:
                raise RuntimeError(answer["error"]["message"])
            return answer["result"]

        return asking

    def answer(self, message):
        answers = self.waiting.pop(message.get("id"), None)
        if answers is not None:
            answers.put(message)


def serve_lines():
    questions = Questions()

    def send(message):
        with writing:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            questions.answer(message)
        elif "id" in message:
            # A tool that waits for the client must not keep its answer from being read.
            work = threading.Thread(target=lambda asked: send(reply_to(asked, questions.ask(send))), args=[message])
            work.daemon = True
            work.start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    questions = Questions()

    def log_message(self, *_):
        pass

    def send_json(self, status, value=None, headers=()):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, content in [*headers, ("Content-Type", "application/json"), ("Content-Length", str(len(body)))]:
            self.send_header(name, content)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_json(405)

    def do_DELETE(self):
        self.send_json(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_modern = self.headers.get("MCP-Protocol-Version") == MODERN
        if "id" not in message or "method" not in message:
            if "method" in message:
                record(message["method"])
            if is_modern:
                # The entry for 2026-07-28 takes single requests only.
                error = {"code": -32600, "message": "Body must be a single JSON-RPC request object"}
                return self.send_json(400, {"jsonrpc": "2.0", "id": None, "error": error})
            self.questions.answer(message)
            return self.send_json(202)
        if message["method"] == "initialize":
            return self.send_json(200, reply_to(message), [("Mcp-Session-Id", "the-session")])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

        def send(event):
            self.wfile.write(f"event: message\r\ndata: {json.dumps(event)}\r\n\r\n".encode())
            self.wfile.flush()

        def is_gone():
            try:
                threading.Event().wait(0.05)
                self.wfile.write(b": ping\r\n\r\n")
                self.wfile.flush()
                return False
            except OSError:
                return True

        reply = reply_to(message, self.questions.ask(send), is_gone)
        if not self.wfile.closed:
            try:
                send(reply)
            except OSError:
                pass


if sys.argv[1] == "stdio":
    serve_lines()
else:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()

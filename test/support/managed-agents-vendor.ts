/** A look-alike of Claude Managed Agents, built from its published pages. */

type Json = Record<string, unknown>;

/** Number of the last event. Ids are unique at the vendor, too. */
let last = 0;

/** A vendor whose sessions stop before each tool call, and run it after a confirmation. */
export class Vendor {
  readonly sessions = new Map<string, { status: string; events: Json[]; open: Set<string> }>();
  readonly ran: string[] = [];
  /** The agent of all sessions, as the vendor lists it. */
  agent: Json = {};
  /** Answers every request with this, if set. */
  broken: Response | null = null;

  /** Lets the agent of a session make calls. Returns the ids of their events. */
  call(session: string, ...calls: Json[]): string[] {
    const found = this.sessions.get(session) ?? { status: "running", events: [], open: new Set<string>() };
    this.sessions.set(session, found);
    const events = calls.map((call) => ({ type: "agent.tool_use", id: `sevt_${++last}`, ...call }));
    found.events.push({ type: "session.status_running", id: `sevt_${++last}` }, ...events);
    for (const { id } of events) found.open.add(id);
    found.events.push({
      type: "session.status_idle",
      id: `sevt_${++last}`,
      stop_reason: { type: "requires_action", event_ids: [...found.open] },
    });
    found.status = "idle";
    return events.map(({ id }) => id);
  }

  readonly serve = async (request: Request): Promise<Response> => {
    if (this.broken !== null) return this.broken.clone();
    const { pathname, searchParams } = new URL(request.url);
    const { headers } = request;
    if (headers.get("x-api-key") !== "vendor-key" || headers.get("anthropic-beta") !== "managed-agents-2026-04-01")
      return Response.json({ type: "error" }, { status: 401 });
    if (pathname === "/v1/sessions")
      return this.page(
        [...this.sessions].map(([id, { status }]) => ({ id, status, agent: this.agent })),
        searchParams,
      );
    const [, id] = /^\/v1\/sessions\/([^/]+)\/events$/.exec(pathname) ?? [];
    const session = this.sessions.get(id ?? "");
    if (session === undefined) return Response.json({ type: "error" }, { status: 404 });
    if (request.method === "GET") return this.page([...session.events].reverse(), searchParams);
    for (const event of ((await request.json()) as { events: Json[] }).events) {
      if (event["type"] !== "user.tool_confirmation" || !session.open.delete(String(event["tool_use_id"])))
        return Response.json({ type: "error" }, { status: 400 });
      // A confirmation without the thread of the call goes to another thread, in which no such call waits.
      const asked = session.events.find(({ id }) => id === event["tool_use_id"]);
      if (asked?.["session_thread_id"] !== event["session_thread_id"])
        return Response.json({ type: "error" }, { status: 400 });
      session.events.push({ ...event, id: `sevt_${++last}` });
      if (event["result"] === "allow") this.ran.push(String(event["tool_use_id"]));
    }
    if (session.open.size === 0) session.status = "running";
    return Response.json({ data: [] });
  };

  /** Pages have two items, so that the worker must follow them. */
  private page(items: Json[], query: URLSearchParams): Response {
    const from = Number(query.get("page") ?? "0");
    const next = from + 2 < items.length ? String(from + 2) : null;
    return Response.json({ data: items.slice(from, from + 2), next_page: next });
  }

  answers(session: string): Json[] {
    return this.sessions.get(session)?.events.filter(({ type }) => type === "user.tool_confirmation") ?? [];
  }
}

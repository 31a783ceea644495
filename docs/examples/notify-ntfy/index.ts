/** Notifies people through an ntfy server (https://ntfy.sh). A channel's `to` names a topic. */
import { definePlugin, NotifierError, Type, type Message } from "assent/plugin";

export default definePlugin({
  name: "notify-ntfy",
  options: Type.Object(
    {
      server: Type.String({
        pattern: "^https?://",
        description: "Address of the ntfy server, such as https://ntfy.sh.",
      }),
      token: Type.Optional(Type.String({ minLength: 1, description: "Access token, for topics that are not public." })),
    },
    { additionalProperties: false },
  ),
  setup: (_host, { server, token }) => ({
    notifiers: [
      {
        name: "notify-ntfy",
        check: (to) =>
          /^[A-Za-z0-9_-]{1,64}$/.test(to)
            ? null
            : `"${to}" is not an ntfy topic: up to 64 letters, digits, "_" and "-"`,
        async deliver(message, signal) {
          const response = await fetch(server, {
            method: "POST",
            headers: {
              "Content-Type": "application/json",
              ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
            },
            body: JSON.stringify({ topic: message.to, ...wordsOf(message) }),
            // The message contains a link and the headers a token, so do not follow redirects to other servers.
            redirect: "manual",
            signal,
          });
          if (!response.ok) {
            await response.body?.cancel();
            throw refused(response);
          }
          const { id } = (await response.json()) as { id?: unknown };
          return typeof id === "string" ? { reference: id } : undefined;
        },
      },
    ],
  }),
});

/** Returns the error of a refused message: permanent, for example after a wrong token, unless the server is busy or broken. */
function refused({ status, headers }: Response): NotifierError {
  const seconds = Number(headers.get("retry-after") ?? 0);
  const permanent = status < 500 && status !== 408 && status !== 429;
  return new NotifierError(`ntfy answered ${status}`, { permanent, retryAfterMs: seconds > 0 ? seconds * 1000 : null });
}

/** Returns the message in the words of ntfy. Priority 4 makes a sound; 5 repeats it until someone looks. */
function wordsOf(message: Message): { title: string; message: string; priority?: number; click?: string } {
  if (message.kind === "event")
    return { title: `ledger: ${message.event.type}`, message: `entry ${message.event.seq}` };
  if (message.kind === "notice") {
    const { title, opening } = message.notice;
    return { title, message: opening, priority: 5, click: message.link };
  }
  const { agent_id, tool, operation, reason, status } = message.action;
  if (!("link" in message)) return { title: `${status}: ${tool} ${operation}`, message: `asked for by ${agent_id}` };
  return {
    title: `${agent_id} asks for ${tool} ${operation}`,
    message: reason,
    priority: message.kind === "approval_requested" ? 4 : 5,
    click: message.link,
  };
}

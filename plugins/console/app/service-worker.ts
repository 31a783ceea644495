/**
 * The service worker: shows the notifications that the service pushes to this device, and opens their requests in the
 * console. It does not store data, and it does not intercept or send requests. It does not import modules, because
 * their addresses change with the version and its own address does not.
 */

/** The payload of a push message (plugins/users/push/push-notice.ts). */
interface PushNotice {
  title: string;
  body: string;
  path: string;
  tag: string;
  silent: boolean;
}

interface WorkerEvent {
  data?: { json(): unknown } | null;
  notification?: { data: unknown; close(): void };
  waitUntil(work: Promise<unknown>): void;
}

/** The members of a service worker's global scope that this file uses. */
interface WorkerScope {
  addEventListener(type: "push" | "notificationclick", listener: (event: WorkerEvent) => void): void;
  registration: Pick<ServiceWorkerRegistration, "showNotification">;
  clients: {
    matchAll(filter: {
      type: "window";
      includeUncontrolled: true;
    }): Promise<{ url: string; focus(): Promise<unknown> }[]>;
    openWindow(url: string): Promise<unknown>;
  };
}

/** Notification for a push message that cannot be read, because every push must show a notification. */
const UNREADABLE: PushNotice = {
  title: "Assent",
  body: "Open the console to see what is pending.",
  path: "/#/",
  tag: "unreadable",
  silent: false,
};
/** Icon in the folder of this version's files. The service replaces `{base}` with the folder. */
const ICON = "{base}/icon-192.png";

const worker = globalThis as unknown as WorkerScope;

worker.addEventListener("push", (event) => {
  const { title, body, path, tag, silent } = readNotice(event);
  const options = { body, tag, silent, icon: ICON, data: path, ...(silent ? {} : { renotify: true }) };
  event.waitUntil(worker.registration.showNotification(title, options));
});

worker.addEventListener("notificationclick", (event) => {
  event.notification?.close();
  event.waitUntil(open(pathOf(event.notification?.data)));
});

/**
 * Focuses the window that shows the path, or opens a new one. Does not reuse a window with a different page, because
 * that page may contain a draft.
 */
async function open(path: string): Promise<void> {
  const { href } = new URL(path, location.origin);
  const windows = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const shown = windows.find(({ url }) => url === href);
  await (shown === undefined ? worker.clients.openWindow(href) : shown.focus());
}

function readNotice({ data }: WorkerEvent): PushNotice {
  try {
    const { title, body, path, tag, silent } = (data?.json() ?? {}) as Partial<Record<keyof PushNotice, unknown>>;
    if (typeof title !== "string" || typeof body !== "string" || typeof tag !== "string") return UNREADABLE;
    return { title, body, path: pathOf(path), tag, silent: silent === true };
  } catch {
    return UNREADABLE;
  }
}

/** Returns the path of a console page; the default path if the value is not the path of a console page. */
function pathOf(path: unknown): string {
  return typeof path === "string" && path.startsWith("/#/") ? path : UNREADABLE.path;
}

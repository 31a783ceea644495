/**
 * Opens the sockets of postgres.js. If postgres.js opened its own sockets, it would reconnect and run the queued
 * statements of a transaction on a new connection, outside any transaction. `PostgresSession` therefore opens only one
 * socket. This module also ensures that errors on sockets that postgres.js no longer uses do not end the process.
 */
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";

export interface Address {
  host: string;
  port: number;
  /** Path of a Unix socket, which replaces host and port. */
  path?: string;
  /** The TLS setting in the URL, as postgres.js parses it: https://github.com/porsager/postgres#ssl. */
  tls: boolean | "require" | "allow" | "prefer" | "verify-full" | ConnectionOptions;
}

/** https://www.postgresql.org/docs/current/protocol-message-formats.html: SSLRequest. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);

/**
 * Returns a connected socket, encrypted if required. Rejects if one of the steps (connection, TLS request, TLS
 * handshake) takes longer than `ms` milliseconds.
 */
export async function openSocket({ host, port, path, tls }: Address, ms: number): Promise<Socket> {
  if (path !== undefined) return awaitConnection(connect(path), "connect", ms);
  const socket = await awaitConnection(connect(port, host), "connect", ms);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, 60_000);
  return startTls(socket, host, tls, ms);
}

async function startTls(socket: Socket, host: string, tls: Address["tls"], ms: number): Promise<Socket> {
  if (tls === false) return socket;
  const answer = await new Promise<number>((resolve, reject) => {
    const timer = setTimeout(() => done(timeoutError(ms)), ms);
    const done = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const closed = (): void => done(new Error("the server closed the connection after the TLS request"));
    socket.once("error", done);
    socket.once("close", closed);
    socket.once("data", (chunk: Buffer) => {
      clearTimeout(timer);
      socket.removeListener("close", closed);
      socket.pause();
      // Only one byte may arrive before the TLS handshake. More bytes may come from a man in the middle
      // (CVE-2021-23222).
      if (chunk.length !== 1)
        return done(new Error("the server sent more than one byte in response to the TLS request"));
      resolve(chunk[0] as number);
    });
    socket.write(SSL_REQUEST);
  });
  if (answer !== 0x53) {
    if (tls === "prefer" || tls === "allow") return socket.resume();
    socket.destroy();
    throw new Error("the server does not support TLS");
  }
  const trusting = tls === "require" || tls === "allow" || tls === "prefer";
  const secured = connectTls({
    socket,
    ...(isIP(host) === 0 ? { servername: host } : { host }),
    ...(trusting ? { rejectUnauthorized: false } : {}),
    ...(typeof tls === "object" ? tls : {}),
  });
  try {
    return await awaitConnection(secured, "secureConnect", ms);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function awaitConnection<T extends Socket | TLSSocket>(socket: T, event: string, ms: number): Promise<T> {
  ignoreLateErrors(socket);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(timeoutError(ms)), ms);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const closed = (): void => fail(new Error("the connection was closed before it was established"));
    socket.once("error", fail);
    socket.once("close", closed);
    socket.once(event, () => {
      clearTimeout(timer);
      socket.removeListener("error", fail);
      socket.removeListener("close", closed);
      resolve(socket);
    });
  });
}

function timeoutError(ms: number): Error {
  return Object.assign(new Error(`no connection within ${ms} ms`), { code: "CONNECT_TIMEOUT" });
}

/**
 * Ignores late errors. Postgres.js removes all listeners from a closed socket, and an error without a listener would
 * end the process.
 */
function ignoreLateErrors(socket: Socket): void {
  const ignore = (): void => {};
  socket.on("error", ignore);
  const remove = socket.removeAllListeners.bind(socket);
  socket.removeAllListeners = (...events) => {
    remove(...events);
    socket.on("error", ignore);
    return socket;
  };
}

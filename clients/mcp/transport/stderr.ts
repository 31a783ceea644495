/** Maximum size of output that no one has read. Bytes. */
const MAX_UNREAD_BYTES = 1024 * 1024;

/** Whether the host that started the proxy reads its standard error. If it does not, output must be dropped. */
export const isStderrRead = (): boolean => process.stderr.writableLength <= MAX_UNREAD_BYTES;

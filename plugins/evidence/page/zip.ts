/** Writes ZIP files without compression. Pure. */

/** Limit of the format without its extension for large files. */
const MAX_BYTES = 0xffff_ffff;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb8_8320 : value >>> 1;
  return value;
});

function crc32(chunks: readonly Uint8Array[]): number {
  let value = 0xffff_ffff;
  for (const chunk of chunks)
    for (const byte of chunk) value = (TABLE[(value ^ byte) & 0xff] as number) ^ (value >>> 8);
  return (value ^ 0xffff_ffff) >>> 0;
}

/** Returns numbers as little-endian bytes: `[value, size]`. */
function pack(fields: readonly (readonly [value: number, size: 2 | 4])[]): Uint8Array {
  const bytes = new Uint8Array(fields.reduce((sum, [, size]) => sum + size, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [value, size] of fields) {
    if (size === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += size;
  }
  return bytes;
}

/** 1 January 1980, the first date of the format, so that equal files give equal archives. */
const DATE = 0x21;
/** The version of the format that reads need, and the flag for names in UTF-8. */
const [VERSION, UTF8] = [20, 0x800];

/**
 * Returns the pieces of an archive. Throws RangeError if it would exceed 4 GiB.
 * @param files the content of each file, in pieces, keyed by name
 */
export function createZip(files: ReadonlyMap<string, readonly Uint8Array[]>): Uint8Array[] {
  const archive: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const [name, pieces] of files) {
    const encoded = new TextEncoder().encode(name);
    const size = sizeOf(pieces);
    const commonFields = [
      [VERSION, 2],
      [UTF8, 2],
      [0, 2],
      [0, 2],
      [DATE, 2],
      [crc32(pieces), 4],
      [size, 4],
      [size, 4],
      [encoded.length, 2],
      [0, 2],
    ] as const;
    const header = [pack([[0x0403_4b50, 4], ...commonFields]), encoded];
    const record = pack([[0x0201_4b50, 4], [VERSION, 2], ...commonFields, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]]);
    archive.push(...header, ...pieces);
    directory.push(record, encoded);
    offset += sizeOf(header) + size;
    if (offset > MAX_BYTES) throw new RangeError("the archive would exceed 4 GiB");
  }
  const count = files.size;
  const end = pack([
    [0x0605_4b50, 4],
    [0, 2],
    [0, 2],
    [count, 2],
    [count, 2],
    [sizeOf(directory), 4],
    [offset, 4],
    [0, 2],
  ]);
  return [...archive, ...directory, end];
}

const sizeOf = (chunks: readonly Uint8Array[]): number => chunks.reduce((sum, { length }) => sum + length, 0);

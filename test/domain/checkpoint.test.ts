import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  formatCheckpoint,
  formatVkey,
  isNoteName,
  computeKeyId,
  NoteError,
  openCheckpoint,
  openNote,
  parseCheckpoint,
  parseVkey,
  signCheckpoint,
  signNote,
  type NoteErrorReason,
} from "../../src/domain/checkpoint.ts";
import { concatBytes, fromHex, toBase64, toHex, utf8 } from "../../src/domain/hash.ts";
import { ed25519, signerOf } from "../support/signer.ts";

const log = signerOf("example.com/decisions");
const other = signerOf("example.com/other", 100);
const impostor = signerOf("example.com/decisions", 200);
const ROOT = fromHex("5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
const TEXT = "first\nsecond\n";
const NOTE = signNote(TEXT, log);

const line = (name: string, bytes: Uint8Array): string => `\u2014 ${name} ${toBase64(bytes)}\n`;
const signatureOf = (note: string): string => note.slice(note.lastIndexOf("\n\n") + 2);

function refuses(reason: NoteErrorReason, work: () => unknown, what?: string): void {
  assert.throws(
    work,
    (error) => {
      assert.ok(error instanceof NoteError, String(error));
      assert.equal(error.reason, reason, `${what ?? ""}: ${error.message}`);
      return true;
    },
    what,
  );
}

describe("opening notes", () => {
  test("one valid signature suffices, in any position among others", () => {
    const foreign = line("witness.example", concatBytes(Uint8Array.of(1, 2, 3, 4), new Uint8Array(76)));
    assert.equal(openNote(NOTE, [log.vkey], ed25519), TEXT);
    assert.equal(openNote(`${TEXT}\n${foreign}${signatureOf(NOTE)}${foreign}`, [log.vkey], ed25519), TEXT);
    assert.equal(openNote(`${NOTE}${signatureOf(signNote(TEXT, other))}`, [other.vkey], ed25519), TEXT);
    assert.equal(openNote(`${NOTE}${signatureOf(signNote(TEXT, other))}`, [log.vkey, other.vkey], ed25519), TEXT);
  });

  test("a known key with a bad signature rejects the note, even if another signature is valid", () => {
    const wrong = signatureOf(signNote("another text\n", other));
    refuses("bad_signature", () => openNote(`${NOTE}${wrong}`, [log.vkey, other.vkey], ed25519));
    refuses("bad_signature", () => openNote(`${TEXT}\n${wrong}${signatureOf(NOTE)}`, [log.vkey, other.vkey], ed25519));
    assert.equal(openNote(`${NOTE}${wrong}`, [log.vkey], ed25519), TEXT, "unless it is not known");
  });

  test("a second signature of a known key is verified too", () => {
    refuses("bad_signature", () =>
      openNote(`${NOTE}${signatureOf(signNote("another text\n", log))}`, [log.vkey], ed25519),
    );
  });

  test("the same name with a different key is unknown", () => {
    refuses("unknown_key", () => openNote(signNote(TEXT, impostor), [log.vkey], ed25519));
    refuses("unknown_key", () => openNote(NOTE, [], ed25519));
    refuses("unknown_key", () => openNote(NOTE, [other.vkey], ed25519));
  });

  test("a key's id and signature under a different name are unknown", () => {
    const bytes = concatBytes(computeKeyId(log.name, 1, log.publicKey), log.sign(utf8(TEXT)));
    refuses("unknown_key", () => openNote(`${TEXT}\n${line("example.com/elsewhere", bytes)}`, [log.vkey], ed25519));
    assert.equal(openNote(`${TEXT}\n${line(log.name, bytes)}`, [log.vkey], ed25519), TEXT);
  });

  test("the log's key id before another key's signature does not verify", () => {
    const forged = concatBytes(computeKeyId(log.name, 1, log.publicKey), impostor.sign(utf8(TEXT)));
    refuses("bad_signature", () => openNote(`${TEXT}\n${line(log.name, forged)}`, [log.vkey], ed25519));
  });

  test("every bit of a signature, and every character of the text, counts", () => {
    const bytes = concatBytes(computeKeyId(log.name, 1, log.publicKey), log.sign(utf8(TEXT)));
    for (let bit = 32; bit < bytes.length * 8; bit++) {
      const flipped = bytes.slice();
      flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7));
      refuses(
        "bad_signature",
        () => openNote(`${TEXT}\n${line(log.name, flipped)}`, [log.vkey], ed25519),
        `bit ${bit}`,
      );
    }
    for (let bit = 0; bit < 32; bit++) {
      const flipped = bytes.slice();
      flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7));
      refuses(
        "unknown_key",
        () => openNote(`${TEXT}\n${line(log.name, flipped)}`, [log.vkey], ed25519),
        `bit ${bit} of the key id`,
      );
    }
    for (let i = 0; i < TEXT.length - 1; i++) {
      refuses(
        "bad_signature",
        () => openNote(`${TEXT.slice(0, i)}X${TEXT.slice(i + 1)}\n${signatureOf(NOTE)}`, [log.vkey], ed25519),
        `character ${i}`,
      );
    }
    for (const length of [1, 63, 65]) {
      refuses(
        "bad_signature",
        () =>
          openNote(
            `${TEXT}\n${line(log.name, concatBytes(bytes.subarray(0, 4), new Uint8Array(length)))}`,
            [log.vkey],
            ed25519,
          ),
        `${length} bytes`,
      );
    }
  });

  test("text and signatures are separated by the last blank line", () => {
    const text = "a\n\nb\n\n\nc\n";
    assert.equal(openNote(signNote(text, log), [log.vkey], ed25519), text);
    const looksSigned = `x\n\n${line(other.name, new Uint8Array(68))}`;
    assert.equal(openNote(signNote(looksSigned, log), [log.vkey], ed25519), looksSigned);
    refuses(
      "unknown_key",
      () => openNote(signNote(looksSigned, log), [other.vkey], ed25519),
      "a line inside the text is no signature",
    );
  });

  test("other forms of a note are malformed", () => {
    const signature = signatureOf(NOTE);
    const base64 = signature.slice(signature.lastIndexOf(" ") + 1, -1);
    for (const [what, note] of Object.entries({
      empty: "",
      "no signatures": TEXT,
      "no signatures behind the blank line": `${TEXT}\n`,
      "two blank lines and nothing": `${TEXT}\n\n`,
      "no blank line": `${TEXT}${signature}`,
      "no newline at the end": NOTE.slice(0, -1),
      "a blank line at the end": `${NOTE}\n`,
      CRLF: NOTE.replaceAll("\n", "\r\n"),
      "a hyphen for the dash": NOTE.replace("\u2014", "-"),
      "an en dash": NOTE.replace("\u2014", "\u2013"),
      "two spaces": NOTE.replace("decisions ", "decisions  "),
      "a third word": `${NOTE.slice(0, -1)} more\n`,
      "no name": `${TEXT}\n\u2014  ${base64}\n`,
      "a plus in the name": `${NOTE}${line("a+b", new Uint8Array(68))}`,
      "a no-break space in the name": `${NOTE}${line("a\u00a0b", new Uint8Array(68))}`,
      "words that are no signature": `${NOTE}hello\n`,
      "a stranger's signature in another base64": `${NOTE}\u2014 witness.example AAAAAAB=\n`,
      "a stranger's signature without padding": `${NOTE}\u2014 witness.example AAAAAAA\n`,
      "a stranger's signature of a key id only": `${NOTE}${line("witness.example", new Uint8Array(4))}`,
      "a tab": NOTE.replace("first", "fir\tst"),
      "a null": NOTE.replace("first", "fir\u0000st"),
      "an escape in a name": `${NOTE}${line("a\u001bb", new Uint8Array(68))}`,
      "half a surrogate pair": NOTE.replace("first", "fir\ud800st"),
    }))
      refuses("malformed", () => openNote(note, [log.vkey], ed25519), what);
  });

  test("too many signatures are rejected before any is verified", () => {
    let checked = 0;
    const counting: typeof ed25519 = (...args) => {
      checked++;
      return ed25519(...args);
    };
    const flood = (lines: number): string => `${TEXT}\n${signatureOf(NOTE).repeat(lines)}`;
    refuses("malformed", () => openNote(flood(101), [log.vkey], counting));
    assert.equal(checked, 0);
    assert.equal(openNote(flood(100), [log.vkey], counting), TEXT);
  });
});

describe("signing notes", () => {
  test("only text that can be opened again is signed", () => {
    for (const text of ["", "no newline", "tab\t\n", "cr\r\n", "nul\u0000\n", "half \ud83d\n"])
      refuses("malformed", () => signNote(text, log), JSON.stringify(text));
    for (const text of ["\n", "\n\n", "ends blank\n\n", "€ 😂 \u007f\n"])
      assert.equal(openNote(signNote(text, log), [log.vkey], ed25519), text, JSON.stringify(text));
  });

  test("names must not contain white space, plus or control characters", () => {
    for (const name of [
      "",
      " ",
      "a b",
      "a+b",
      "a\tb",
      "a\nb",
      "a\u0000b",
      "a\u007fb",
      "a\u0085b",
      "a\u00a0b",
      "a\u2003b",
      "a\ud800b",
    ]) {
      assert.equal(isNoteName(name), false, JSON.stringify(name));
      refuses("bad_key", () => signNote(TEXT, { ...log, name }), JSON.stringify(name));
      refuses("bad_key", () => formatVkey(name, log.publicKey), JSON.stringify(name));
    }
    for (const name of ["a", "example.com/log", "münchen.example/lög", "😂"])
      assert.equal(isNoteName(name), true, name);
  });
});

describe("verifier keys", () => {
  test("parse to the name, id and key that they were formatted from", () => {
    assert.equal(log.vkey, "example.com/decisions+d0c41141+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4");
    const { name, id, publicKey } = parseVkey(log.vkey);
    assert.deepEqual([name, toHex(id), publicKey], ["example.com/decisions", "d0c41141", log.publicKey]);
    assert.deepEqual(computeKeyId(name, 1, publicKey), id);
  });

  test("the id is compared with name and key", () => {
    refuses("bad_key", () => parseVkey(log.vkey.replace("decisions", "decision")), "another name");
    refuses(
      "bad_key",
      () => parseVkey(`${log.name}+d0c41141+${other.vkey.split("+").slice(2).join("+")}`),
      "another key",
    );
    refuses("bad_key", () => parseVkey(log.vkey.replace("+d0c41141", "+D0C41141")), "uppercase");
    refuses("bad_key", () => parseVkey(log.vkey.replace("+d0c41141", "+0d0c41141")), "nine digits");
  });

  test("a key of small order, for which anyone can sign, is rejected", () => {
    for (const first of [0, 1, 0x80])
      refuses(
        "bad_key",
        () => parseVkey(formatVkey("n", Uint8Array.of(first & 1, ...new Uint8Array(30), first & 0x80))),
        `${first}`,
      );
  });

  test("other kinds of keys, lengths and encodings are rejected, with the key quoted", () => {
    const of = (type: number, length: number): string => {
      const key = new Uint8Array(length).fill(7);
      return `n+${toHex(computeKeyId("n", type, key))}+${toBase64(concatBytes(Uint8Array.of(type), key))}`;
    };
    assert.equal(parseVkey(of(1, 32)).name, "n");
    for (const text of [
      of(4, 32),
      of(2, 32),
      of(1, 31),
      of(1, 33),
      of(1, 0),
      `${of(1, 32)}\n`,
      ` ${of(1, 32)}`,
      "",
      "n",
      "n+00000000",
      "n+00000000+",
      "+00000000+AQ==",
    ])
      refuses("bad_key", () => parseVkey(text), JSON.stringify(text));
    assert.throws(() => parseVkey("garbage"), /"garbage" is not a verifier key/);
  });
});

describe("checkpoints", () => {
  test("parse to the origin, size and root that they were formatted from, up to the largest size", () => {
    for (const size of [0, 1, 8, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
      const checkpoint = { origin: log.name, size, root: ROOT };
      assert.deepEqual(parseCheckpoint(formatCheckpoint(checkpoint)), checkpoint);
      assert.deepEqual(openCheckpoint(signCheckpoint(checkpoint, log), log.vkey, ed25519), checkpoint);
    }
  });

  test("a size must be a plain decimal number", () => {
    for (const size of [
      "",
      "00",
      "08",
      "+8",
      "-8",
      "-0",
      " 8",
      "8 ",
      "8.0",
      "8e0",
      "0x8",
      "٨",
      "8n",
      "1_000",
      "9007199254740992",
      "9007199254740993",
      "10000000000000000",
      "99999999999999999999",
    ]) {
      refuses("bad_checkpoint", () => parseCheckpoint(`o\n${size}\n${toBase64(ROOT)}\n`), JSON.stringify(size));
    }
  });

  test("a root must be 32 bytes in canonical base64", () => {
    for (const root of [
      "",
      "AAAA",
      toBase64(ROOT.subarray(1)),
      toBase64(concatBytes(ROOT, Uint8Array.of(0))),
      toBase64(ROOT).slice(0, -1),
      toBase64(ROOT).replace("yg=", "yh="),
      toHex(ROOT),
      ` ${toBase64(ROOT)}`,
    ]) {
      refuses("bad_checkpoint", () => parseCheckpoint(`o\n8\n${root}\n`), JSON.stringify(root));
    }
  });

  test("have three lines, optional extensions, no empty line, and a final newline", () => {
    const root = toBase64(ROOT);
    assert.equal(parseCheckpoint(`o\n8\n${root}\nextension one\nand two\n`).size, 8);
    for (const text of [
      "",
      "\n",
      "o\n",
      "o\n8\n",
      `o\n8\n${root}`,
      `\n8\n${root}\n`,
      `o\n8\n${root}\n\n`,
      `o\n8\n${root}\n\nx\n`,
      `o\n8\n${root}\nx`,
      `o\n\n8\n${root}\n`,
      `8\n${root}\no\n`,
    ]) {
      refuses("bad_checkpoint", () => parseCheckpoint(text), JSON.stringify(text));
    }
  });

  test("a checkpoint of another log signed with this log's key is rejected", () => {
    refuses("wrong_origin", () =>
      openCheckpoint(signNote(formatCheckpoint({ origin: other.name, size: 8, root: ROOT }), log), log.vkey, ed25519),
    );
    refuses("bad_checkpoint", () => openCheckpoint(signNote("hello\n", log), log.vkey, ed25519));
    refuses("unknown_key", () =>
      openCheckpoint(signCheckpoint({ origin: log.name, size: 8, root: ROOT }, impostor), log.vkey, ed25519),
    );
  });

  test("text that could not be read again is not written", () => {
    for (const wrong of [
      { origin: "" },
      { origin: "a b" },
      { origin: "a\nb" },
      { size: -1 },
      { size: 0.5 },
      { size: 2 ** 53 },
      { size: Number.NaN },
      { root: ROOT.subarray(1) },
    ]) {
      refuses(
        "bad_checkpoint",
        () => formatCheckpoint({ origin: log.name, size: 8, root: ROOT, ...wrong }),
        JSON.stringify(wrong),
      );
    }
  });
});

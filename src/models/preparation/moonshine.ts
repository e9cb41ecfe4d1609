/** Moonshine's vocabulary in the form that sherpa-onnx reads: lines `BASE64(piece) id`. */
import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DownloadError } from "../../errors.ts";

/** Turns `tokenizer.bin` (of the Python package) or `tokenizer.json` (of the hub) into `tokens.txt`. */
export async function prepareMoonshine(directory: string): Promise<void> {
  const bin = join(directory, "tokenizer.bin");
  const json = join(directory, "tokenizer.json");
  const pieces = existsSync(bin) ? piecesOfBin(await readFile(bin)) : piecesOfJson(await readFile(json, "utf8"));
  await writeFile(join(directory, "tokens.txt"), moonshineTokens(pieces));
  for (const source of [bin, json]) await rm(source, { force: true });
}

export function moonshineTokens(pieces: readonly Uint8Array[]): string {
  return `${pieces.map((piece, id) => `${Buffer.from(piece).toString("base64")} ${id}`).join("\n")}\n`;
}

/**
 * `tokenizer.bin` holds each piece as a length byte and its bytes; a piece of 128 bytes or more has two length bytes,
 * the low 7 bits first. Id is position.
 * @throws {DownloadError} download_failed when a piece runs over the end.
 */
export function piecesOfBin(bin: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bin.length; ) {
    let length = bin[at++]!;
    if (length >= 128) length = (bin[at++] ?? 0) * 128 + length - 128;
    if (at + length > bin.length) {
      throw new DownloadError("download_failed", `tokenizer.bin ends inside piece ${pieces.length}`);
    }
    pieces.push(bin.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

interface TokenizerJson {
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
  readonly added_tokens?: readonly { readonly id: number; readonly content: string }[];
}

/** A byte piece is written `<0x0A>` there. @throws {DownloadError} download_failed when an id has no piece. */
export function piecesOfJson(text: string): Uint8Array[] {
  const { model, added_tokens } = JSON.parse(text) as TokenizerJson;
  const pieces: (Uint8Array | undefined)[] = [];
  for (const [piece, id] of Object.entries(model.vocab)) {
    const byte = /^<0x([0-9A-F]{2})>$/.exec(piece)?.[1];
    pieces[id] = byte === undefined ? Buffer.from(piece) : Buffer.from(byte, "hex");
  }
  for (const { id, content } of added_tokens ?? []) pieces[id] = Buffer.from(content);
  return Array.from(pieces, (piece, id) => {
    if (piece === undefined) throw new DownloadError("download_failed", `tokenizer.json has no piece ${id}`);
    return piece;
  });
}

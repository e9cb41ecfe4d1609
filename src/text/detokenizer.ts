/**
 * Token ids, one by one, as text. The text after each token equals the decoding of the whole list, without decoding the
 * list again: what an answer costs grows with its length, not with its square.
 */
import type { Tokenizer } from "@huggingface/tokenizers";

export interface TextStep {
  /** The new end of the text; where a token changes what was there, what the token says by itself. */
  readonly delta: string;
  /** Cumulative, and authoritative. Bytes that are no whole character (yet) show as U+FFFD. */
  readonly text: string;
}

/** One text. The rule for `delta` is the VoiceChat wire's. Ids outside the vocabulary say nothing. */
export class Detokenizer {
  readonly #decoder: StepDecoder;
  #settled = "";
  #tail = "";

  constructor(tokenizer: Tokenizer) {
    const type = (tokenizer.decoder?.config as { readonly type?: string } | undefined)?.type;
    this.#decoder = type === "ByteLevel" ? new ByteLevelDecoder(tokenizer) : new WindowDecoder(tokenizer);
  }
  /** Cumulative, as in the last step. */
  get text(): string {
    return this.#settled + this.#tail;
  }
  /** The part of the text that no later token changes: all but an incomplete character at its end. */
  get settledText(): string {
    return this.#settled;
  }
  push(tokenId: number): TextStep {
    const before = this.#tail;
    const { settled, tail } = this.#decoder.push(tokenId);
    const after = settled + tail;
    this.#settled += settled;
    this.#tail = tail;
    const delta = after.startsWith(before) ? after.slice(before.length) : this.#decoder.alone(tokenId);
    return { delta, text: this.text };
  }
}

interface StepDecoder {
  /** What is new behind the text settled so far: a part that stays, and a tail that later tokens may change. */
  push(tokenId: number): { readonly settled: string; readonly tail: string };
  /** The decoding of this token alone. */
  alone(tokenId: number): string;
}

/** Tokens are bytes written in 256 stand-in characters: UTF-8 decodes as a stream. */
class ByteLevelDecoder implements StepDecoder {
  readonly #tokenizer: Tokenizer;
  readonly #utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
  /** The bytes of a character that has begun; at most 3. */
  #begun: readonly number[] = [];

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }
  push(tokenId: number): { settled: string; tail: string } {
    const bytes = [...this.#begun, ...this.#bytesOf(tokenId)];
    const complete = bytes.length - begunBytes(bytes);
    this.#begun = bytes.slice(complete);
    const settled = this.#utf8.decode(Uint8Array.from(bytes.slice(0, complete)));
    return { settled, tail: this.#begun.length === 0 ? "" : "\ufffd" };
  }
  alone(tokenId: number): string {
    return this.#utf8.decode(Uint8Array.from(this.#bytesOf(tokenId)));
  }
  /** A token with any other character (an added one) stands for its own text. */
  #bytesOf(tokenId: number): readonly number[] {
    const token: string | undefined = this.#tokenizer.id_to_token(tokenId);
    if (token === undefined) return [];
    const bytes = Array.from(token, (char) => BYTE_OF_CHAR.get(char));
    return bytes.every((byte) => byte !== undefined) ? bytes : [...new TextEncoder().encode(token)];
  }
}

/** How many bytes at the end are the beginning of a character that more bytes could complete. */
function begunBytes(bytes: readonly number[]): number {
  for (let count = 1; count <= Math.min(3, bytes.length); count++) {
    const lead = bytes[bytes.length - count]!;
    if (lead >= 0x80 && lead < 0xc0) continue;
    const length =
      lead >= 0xf0 && lead <= 0xf4 ? 4 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xc2 && lead < 0xe0 ? 2 : 1;
    return count < length && secondByteFits(lead, bytes[bytes.length - count + 1]) ? count : 0;
  }
  return 0;
}

/** Some second bytes would make an overlong form, a surrogate, or a code point beyond the last. */
function secondByteFits(lead: number, second: number | undefined): boolean {
  if (second === undefined) return true;
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second < 0xa0;
  if (lead === 0xf0) return second >= 0x90;
  return lead !== 0xf4 || second < 0x90;
}

/** GPT-2's stand-ins: printable Latin-1 bytes as themselves, the others from U+0100 on, in order. */
const BYTE_OF_CHAR: ReadonlyMap<string, number> = (() => {
  const chars = new Map<string, number>();
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    chars.set(String.fromCharCode(printable ? byte : next++), byte);
  }
  return chars;
})();

/**
 * Any other decoder: only the last tokens are decoded again, behind the one in front of them, which tells the decoder that
 * they do not begin the text.
 */
class WindowDecoder implements StepDecoder {
  /** Where no character is complete for so long, none will be. */
  static readonly #windowTokensMax = 32;
  readonly #tokenizer: Tokenizer;
  #window: number[] = [];
  /** Length of what the window's first token says, which is settled; 0 at the beginning of the text. */
  #contextLength = 0;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }
  push(tokenId: number): { settled: string; tail: string } {
    if (this.#tokenizer.id_to_token(tokenId) === undefined) return { settled: "", tail: this.#unsettled() };
    this.#window.push(tokenId);
    const tail = this.#unsettled();
    if (tail.endsWith("\ufffd") && this.#window.length < WindowDecoder.#windowTokensMax) return { settled: "", tail };
    this.#window = [tokenId];
    this.#contextLength = this.alone(tokenId).length;
    return { settled: tail, tail: "" };
  }
  alone(tokenId: number): string {
    return this.#tokenizer.id_to_token(tokenId) === undefined ? "" : this.#decode([tokenId]);
  }
  #unsettled(): string {
    return this.#window.length === 0 ? "" : this.#decode(this.#window).slice(this.#contextLength);
  }
  #decode(tokenIds: number[]): string {
    return this.#tokenizer.decode(tokenIds, { skip_special_tokens: false, clean_up_tokenization_spaces: false });
  }
}

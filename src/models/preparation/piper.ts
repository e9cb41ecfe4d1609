/** A Piper voice in the form that sherpa-onnx reads: metadata inside the model file, and `tokens.txt`. */
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DownloadError } from "../../errors.ts";

/** The parts of a voice's json that matter here. */
interface PiperConfig {
  readonly audio: { readonly sample_rate: number };
  readonly espeak: { readonly voice: string };
  readonly language?: { readonly code?: string; readonly name_english?: string };
  readonly num_speakers?: number;
  readonly phoneme_id_map: Readonly<Record<string, readonly number[]>>;
}

/** Appends the metadata to `model.onnx` and writes `tokens.txt`, both from `model.onnx.json`. */
export async function preparePiper(directory: string): Promise<void> {
  const model = join(directory, "model.onnx");
  const config = piperConfig(await readFile(`${model}.json`, "utf8"));
  await appendFile(model, metadataProps(piperMetadata(config)));
  await writeFile(join(directory, "tokens.txt"), piperTokens(config));
}

function piperConfig(json: string): PiperConfig {
  const config = JSON.parse(json) as PiperConfig;
  if (typeof config.audio?.sample_rate === "number" && config.espeak?.voice && config.phoneme_id_map) return config;
  throw new DownloadError("download_failed", "model.onnx.json is not the description of a Piper voice");
}

/** Lines `phoneme id`. */
function piperTokens(config: Pick<PiperConfig, "phoneme_id_map">): string {
  const lines = Object.entries(config.phoneme_id_map).map(([phoneme, ids]) => `${phoneme} ${ids[0]}`);
  return `${lines.join("\n")}\n`;
}

function piperMetadata(config: PiperConfig): Record<string, string> {
  return {
    model_type: "vits",
    comment: "piper",
    language: config.language?.name_english ?? "English",
    voice: config.espeak.voice,
    has_espeak: "1",
    n_speakers: String(config.num_speakers ?? 1),
    sample_rate: String(config.audio.sample_rate),
    add_blank: "1",
  };
}

/**
 * Entries of `ModelProto.metadata_props` (field 14, each a `StringStringEntryProto` of key 1 and value 2) as protobuf.
 * Repeated fields may lie anywhere in a message, so appending these bytes to a model file adds the entries.
 */
export function metadataProps(entries: Readonly<Record<string, string>>): Uint8Array {
  const messages = Object.entries(entries).map(([key, value]) =>
    lengthDelimited(14, Buffer.concat([lengthDelimited(1, Buffer.from(key)), lengthDelimited(2, Buffer.from(value))])),
  );
  return Buffer.concat(messages);
}

function lengthDelimited(field: number, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from([(field << 3) | 2]), varint(bytes.length), bytes]);
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 128) return Uint8Array.from([...bytes, rest]);
    bytes.push((rest & 127) | 128);
  }
}

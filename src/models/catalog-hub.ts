/** Models that only the Hugging Face hub has. Sizes are approximate; digests are the hub's own, at download time. */
import type { CatalogModel, HubSource, ModelPart, SourceFile } from "./model.ts";

const MB = 1_000_000;

interface HubEntry {
  readonly name: string;
  readonly part: ModelPart;
  readonly description: string;
  readonly licence: string;
  readonly bytes: number;
  readonly repository: string;
  /** Role -> path in the repository, kept in the model's directory. */
  readonly roles: Readonly<Record<string, string>>;
}

/** Files keep their paths; a role whose path ends in `/` is a folder. */
function fromHub(entry: HubEntry): CatalogModel {
  const { repository, roles, ...rest } = entry;
  const files: SourceFile[] = Object.values(roles).map((path) => ({ from: path, to: path }));
  const source: HubSource = { kind: "hf", repository, revision: "main", files };
  const trimmed = Object.entries(roles).map(([role, path]) => [role, path.replace(/\/$/, "")] as const);
  return { ...rest, roles: Object.fromEntries(trimmed), assets: [[source]] };
}

const PARAKEET_ROLES = {
  encoder: "encoder.int8.onnx",
  decoder: "decoder.int8.onnx",
  joiner: "joiner.int8.onnx",
  tokens: "tokens.txt",
};

const STT: readonly HubEntry[] = [
  {
    name: "parakeet-tdt-v2",
    part: "stt",
    description: "Parakeet TDT 0.6B v2, English, 8-bit: very accurate, with punctuation",
    licence: "CC-BY-4.0",
    bytes: 661 * MB,
    repository: "csukuangfj/sherpa-onnx-nemo-parakeet-tdt-0.6b-v2-int8",
    roles: PARAKEET_ROLES,
  },
  {
    name: "parakeet-tdt-v3",
    part: "stt",
    description: "Parakeet TDT 0.6B v3, 25 European languages, 8-bit",
    licence: "CC-BY-4.0",
    bytes: 671 * MB,
    repository: "csukuangfj/sherpa-onnx-nemo-parakeet-tdt-0.6b-v3-int8",
    roles: PARAKEET_ROLES,
  },
  {
    name: "whisper-turbo",
    part: "stt",
    description: "Whisper large-v3-turbo, 99 languages, 8-bit",
    licence: "MIT",
    bytes: 1_037 * MB,
    repository: "csukuangfj/sherpa-onnx-whisper-turbo",
    roles: { encoder: "turbo-encoder.int8.onnx", decoder: "turbo-decoder.int8.onnx", tokens: "turbo-tokens.txt" },
  },
  {
    name: "moonshine-base-en",
    part: "stt",
    description: "Moonshine base, English, 8-bit: better than tiny, still fast",
    licence: "MIT",
    bytes: 287 * MB,
    repository: "csukuangfj/sherpa-onnx-moonshine-base-en-int8",
    roles: {
      preprocessor: "preprocess.onnx",
      encoder: "encode.int8.onnx",
      uncachedDecoder: "uncached_decode.int8.onnx",
      cachedDecoder: "cached_decode.int8.onnx",
      tokens: "tokens.txt",
    },
  },
  {
    name: "paraformer",
    part: "stt",
    description: "Paraformer, Chinese and English, 8-bit",
    licence: "LicenseRef-FunASR-Model-1.1",
    bytes: 228 * MB,
    repository: "csukuangfj/sherpa-onnx-paraformer-zh-2023-09-14",
    roles: { model: "model.int8.onnx", tokens: "tokens.txt" },
  },
];

const LLM: readonly HubEntry[] = [
  {
    name: "qwen3-4b",
    part: "llm",
    description: "Qwen3 4B Instruct 2507, 4-bit: the best answers here; wants 4 GB of memory and a fast machine",
    licence: "Apache-2.0",
    bytes: 2_497 * MB,
    repository: "unsloth/Qwen3-4B-Instruct-2507-GGUF",
    roles: { model: "Qwen3-4B-Instruct-2507-Q4_K_M.gguf" },
  },
  {
    name: "qwen3-1.7b",
    part: "llm",
    description: "Qwen3 1.7B, 4-bit",
    licence: "Apache-2.0",
    bytes: 1_107 * MB,
    repository: "unsloth/Qwen3-1.7B-GGUF",
    roles: { model: "Qwen3-1.7B-Q4_K_M.gguf" },
  },
  {
    name: "qwen3-0.6b",
    part: "llm",
    description: "Qwen3 0.6B, 4-bit",
    licence: "Apache-2.0",
    bytes: 397 * MB,
    repository: "unsloth/Qwen3-0.6B-GGUF",
    roles: { model: "Qwen3-0.6B-Q4_K_M.gguf" },
  },
  {
    name: "smollm2-1.7b",
    part: "llm",
    description: "SmolLM2 1.7B Instruct, 4-bit",
    licence: "Apache-2.0",
    bytes: 1_056 * MB,
    repository: "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF",
    roles: { model: "smollm2-1.7b-instruct-q4_k_m.gguf" },
  },
  {
    name: "smollm2-360m",
    part: "llm",
    description: "SmolLM2 360M Instruct, 8-bit",
    licence: "Apache-2.0",
    bytes: 386 * MB,
    repository: "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF",
    roles: { model: "smollm2-360m-instruct-q8_0.gguf" },
  },
];

const TTS: readonly HubEntry[] = [
  {
    name: "kokoro",
    part: "tts",
    description: "Kokoro 82M v0.19, 11 English voices, 24 kHz: natural; slow without a fast CPU",
    licence: "Apache-2.0 AND GPL-3.0-or-later",
    bytes: 370 * MB,
    repository: "csukuangfj/kokoro-en-v0_19",
    roles: { model: "model.onnx", voices: "voices.bin", tokens: "tokens.txt", dataDir: "espeak-ng-data/" },
  },
  {
    name: "kitten",
    part: "tts",
    description: "Kitten nano v0.1, 8 English voices, 24 kHz: small",
    licence: "Apache-2.0 AND GPL-3.0-or-later",
    bytes: 43 * MB,
    repository: "csukuangfj/kitten-nano-en-v0_1-fp16",
    roles: { model: "model.fp16.onnx", voices: "voices.bin", tokens: "tokens.txt", dataDir: "espeak-ng-data/" },
  },
];

export const HUB_MODELS: readonly CatalogModel[] = [...STT, ...LLM, ...TTS].map(fromHub);

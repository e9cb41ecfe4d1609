/**
 * Models that only the Hugging Face hub has. Digests are those that several public projects give alike for the same
 * revision; where none stands, the hub's own at download time holds.
 */
import type { CatalogModel, HubSource, ModelPart, SourceFile } from "./model.ts";

const MB = 1_000_000;

/** Role, path in the repository (a folder ends in `/`), size, sha256. */
type HubFile = readonly [role: string, path: string, bytes?: number, sha256?: string];

interface HubEntry {
  readonly name: string;
  readonly part: ModelPart;
  readonly description: string;
  readonly licence: string;
  readonly bytes: number;
  readonly repository: string;
  readonly revision: string;
  readonly files: readonly HubFile[];
}

/** Files keep their paths. */
function fromHub({ repository, revision, files, ...rest }: HubEntry): CatalogModel {
  const source: HubSource = { kind: "hf", repository, revision, files: files.map(sourceFile) };
  const roles = files.map(([role, path]) => [role, path.replace(/\/$/, "")] as const);
  return { ...rest, roles: Object.fromEntries(roles), assets: [[source]] };
}

function sourceFile([, path, bytes, sha256]: HubFile): SourceFile {
  return { from: path, to: path, ...(bytes !== undefined && { bytes }), ...(sha256 !== undefined && { sha256 }) };
}

const STT: readonly HubEntry[] = [
  {
    name: "parakeet-tdt-v2",
    part: "stt",
    description: "Parakeet TDT 0.6B v2, English, 8-bit: very accurate, with punctuation",
    licence: "CC-BY-4.0",
    bytes: 661_190_513,
    repository: "csukuangfj/sherpa-onnx-nemo-parakeet-tdt-0.6b-v2-int8",
    revision: "1ab9323565ddb038682214b292f588070a538ce2",
    files: [
      ["encoder", "encoder.int8.onnx", 652_184_296, "a32b12d17bbbc309d0686fbbcc2987b5e9b8333a7da83fa6b089f0a2acd651ab"],
      ["decoder", "decoder.int8.onnx", 7_257_753, "b6bb64963457237b900e496ee9994b59294526439fbcc1fecf705b31a15c6b4e"],
      ["joiner", "joiner.int8.onnx", 1_739_080, "7946164367946e7f9f29a122407c3252b680dbae9a51343eb2488d057c3c43d2"],
      ["tokens", "tokens.txt", 9_384, "ec182b70dd42113aff6c5372c75cac58c952443eb22322f57bbd7f53977d497d"],
    ],
  },
  {
    name: "parakeet-tdt-v3",
    part: "stt",
    description: "Parakeet TDT 0.6B v3, 25 European languages, 8-bit",
    licence: "CC-BY-4.0",
    bytes: 670_478_772,
    repository: "csukuangfj/sherpa-onnx-nemo-parakeet-tdt-0.6b-v3-int8",
    revision: "2bda32ec70b097a55adaa07d9a7173915b43cc78",
    files: [
      ["encoder", "encoder.int8.onnx", 652_184_281, "acfc2b4456377e15d04f0243af540b7fe7c992f8d898d751cf134c3a55fd2247"],
      ["decoder", "decoder.int8.onnx", 11_845_275, "179e50c43d1a9de79c8a24149a2f9bac6eb5981823f2a2ed88d655b24248db4e"],
      ["joiner", "joiner.int8.onnx", 6_355_277, "3164c13fc2821009440d20fcb5fdc78bff28b4db2f8d0f0b329101719c0948b3"],
      ["tokens", "tokens.txt", 93_939, "d58544679ea4bc6ac563d1f545eb7d474bd6cfa467f0a6e2c1dc1c7d37e3c35d"],
    ],
  },
  {
    name: "whisper-turbo",
    part: "stt",
    description: "Whisper large-v3-turbo, 99 languages, 8-bit",
    licence: "MIT",
    bytes: 1_036_613_791,
    repository: "csukuangfj/sherpa-onnx-whisper-turbo",
    revision: "2ca6ff69fc878651b770880507669577ac41c2ff",
    files: [
      [
        "encoder",
        "turbo-encoder.int8.onnx",
        674_716_297,
        "b02dcdf54f348741e93fe732b67d933c8dcb6735655f710640143081db38878b",
      ],
      [
        "decoder",
        "turbo-decoder.int8.onnx",
        361_080_764,
        "20accd02388482eb3a46bd615631adfdc85e1eb2c7db9ea3f02a40ffe6b81547",
      ],
      ["tokens", "turbo-tokens.txt", 816_730, "b34b360dbb493e781e479794586d661700670d65564001f23024971d1f2fa126"],
    ],
  },
  {
    name: "moonshine-base-en",
    part: "stt",
    description: "Moonshine base, English, 8-bit: better than tiny, still fast",
    licence: "MIT",
    bytes: 286_929_760,
    repository: "csukuangfj/sherpa-onnx-moonshine-base-en-int8",
    revision: "052b0798ad1bf046a140fdd4efcd9426530fa3f5",
    files: [
      [
        "preprocessor",
        "preprocess.onnx",
        14_077_290,
        "ffa630d395c5ccf76f5d4954be5b882df76aaf6491519ec01fd82ea7a3819fb2",
      ],
      ["encoder", "encode.int8.onnx", 50_311_494, "7e38770f776f2e5583a53b052936005df2ba5c833d7e09c2a5fd796b94bf73e2"],
      [
        "uncachedDecoder",
        "uncached_decode.int8.onnx",
        122_120_451,
        "c01f4b35093bcac20d352d23a75a539e772964579f9d024a90e5e6f09cae9987",
      ],
      [
        "cachedDecoder",
        "cached_decode.int8.onnx",
        99_983_837,
        "2db74e51cedf64a8b1be3c8192e0bb5e4923af0e90bd9e87f8e8771873f8ea03",
      ],
      ["tokens", "tokens.txt", 436_688, "1165c2aeb9f72f457a83be2d459a09054f27490acd9b41bd43794dfd25e296ea"],
    ],
  },
  {
    name: "paraformer",
    part: "stt",
    description: "Paraformer, Chinese and English, 8-bit",
    licence: "Apache-2.0",
    bytes: 243_446_974,
    repository: "csukuangfj/sherpa-onnx-paraformer-zh-2023-09-14",
    revision: "def027084691107096b5ebba69785756d63de6c5",
    files: [
      ["model", "model.int8.onnx", 243_371_218, "f36a0433bcf096bd6d6f11b80a3ac8bed110bdca632fe0d731df8d1a84475945"],
      ["tokens", "tokens.txt", 75_756, "59aba8873a2ed1e122c25fee421e25f283b63290efbde85c1f01a853d83cb6e6"],
    ],
  },
];

const LLM: readonly HubEntry[] = [
  {
    name: "qwen3-4b",
    part: "llm",
    description: "Qwen3 4B Instruct 2507, 4-bit: the best answers here; wants 4 GB of memory and a fast machine",
    licence: "Apache-2.0",
    bytes: 2_497_281_120,
    repository: "unsloth/Qwen3-4B-Instruct-2507-GGUF",
    revision: "main",
    files: [
      [
        "model",
        "Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
        2_497_281_120,
        "3605803b982cb64aead44f6c1b2ae36e3acdb41d8e46c8a94c6533bc4c67e597",
      ],
    ],
  },
  {
    name: "qwen3-1.7b",
    part: "llm",
    description: "Qwen3 1.7B, 4-bit",
    licence: "Apache-2.0",
    bytes: 1_107_409_472,
    repository: "unsloth/Qwen3-1.7B-GGUF",
    revision: "d7f544eead698dbd1f15126ef60b45a1e1933222",
    files: [
      [
        "model",
        "Qwen3-1.7B-Q4_K_M.gguf",
        1_107_409_472,
        "b139949c5bd74937ad8ed8c8cf3d9ffb1e99c866c823204dc42c0d91fa181897",
      ],
    ],
  },
  {
    name: "qwen3-0.6b",
    part: "llm",
    description: "Qwen3 0.6B, 4-bit",
    licence: "Apache-2.0",
    bytes: 396_705_472,
    repository: "unsloth/Qwen3-0.6B-GGUF",
    revision: "50968a4468ef4233ed78cd7c3de230dd1d61a56b",
    files: [
      [
        "model",
        "Qwen3-0.6B-Q4_K_M.gguf",
        396_705_472,
        "ac2d97712095a558e31573f62f466a3f9d93990898b0ec79d7c974c1780d524a",
      ],
    ],
  },
  {
    name: "smollm2-1.7b",
    part: "llm",
    description: "SmolLM2 1.7B Instruct, 4-bit",
    licence: "Apache-2.0",
    bytes: 1_056 * MB,
    repository: "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF",
    revision: "main",
    files: [["model", "smollm2-1.7b-instruct-q4_k_m.gguf"]],
  },
  {
    name: "smollm2-360m",
    part: "llm",
    description: "SmolLM2 360M Instruct, 8-bit",
    licence: "Apache-2.0",
    bytes: 386 * MB,
    repository: "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF",
    revision: "main",
    files: [["model", "smollm2-360m-instruct-q8_0.gguf"]],
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
    revision: "92805c485745946a0d945562d3aba19e7cbb2104",
    files: [
      ["model", "model.onnx", 345_555_491, "10ff414106a038ce7e9e0126c6461e4dc8a86efaa89dc91d2009d69fe635e339"],
      ["voices", "voices.bin", 5_755_904, "a372c67b056ef0b695c375d39b99630d23fb07ad4c8d87aa32a19a62fca523ad"],
      ["tokens", "tokens.txt"],
      ["dataDir", "espeak-ng-data/"],
    ],
  },
  {
    name: "kitten",
    part: "tts",
    description: "Kitten nano v0.1, 8 English voices, 24 kHz: small",
    licence: "Apache-2.0 AND GPL-3.0-or-later",
    bytes: 43 * MB,
    repository: "csukuangfj/kitten-nano-en-v0_1-fp16",
    revision: "main",
    files: [
      ["model", "model.fp16.onnx"],
      ["voices", "voices.bin"],
      ["tokens", "tokens.txt"],
      ["dataDir", "espeak-ng-data/"],
    ],
  },
];

export const HUB_MODELS: readonly CatalogModel[] = [...STT, ...LLM, ...TTS].map(fromHub);

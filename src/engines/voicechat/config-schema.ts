/**
 * What config.json may hold. Absent keys take the reference's defaults; what this port does not compute is refused here,
 * before a single weight is read.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { GROUP_SIZE } from "../../checkpoint/mlx-quant.ts";
import { CheckpointError } from "../../errors.ts";
import type { LayerKind, VoiceChatConfig } from "./config.ts";
import { brokenRule } from "./config-rules.ts";

/**
 * Reads and checks `directory`/config.json.
 * @throws {CheckpointError} `checkpoint_unreadable` without the file; `checkpoint_corrupt` when it is not JSON, a value
 * has the wrong type or size, or two values contradict each other; `checkpoint_unsupported` for another model, speaker or
 * variant.
 */
export function readConfig(directory: string): VoiceChatConfig {
  const path = join(directory, "config.json");
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const what = code === "ENOENT" ? "missing; is this a converted MLX checkpoint?" : `cannot be read (${code})`;
    throw new CheckpointError("checkpoint_unreadable", `${path}: ${what}`, { cause });
  }
  let json: unknown;
  try {
    // Python writes bare Infinity, which JSON does not have; 1e999 reads as the same number.
    json = JSON.parse(text.replace(/([:,[]\s*)Infinity/g, "$11e999"));
  } catch (cause) {
    throw new CheckpointError("checkpoint_corrupt", `${path}: not valid JSON`, { cause });
  }
  return parseConfig(json, path);
}

/** As `readConfig`, of JSON already read; `path` is for messages. */
export function parseConfig(json: unknown, path: string): VoiceChatConfig {
  const modelType = (json as { model_type?: unknown } | null)?.model_type;
  if (modelType !== "nemotron_voicechat") {
    throw unsupported(path, `model_type is ${JSON.stringify(modelType)}, only "nemotron_voicechat" is run`);
  }
  const parsed = CONFIG.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new CheckpointError("checkpoint_corrupt", `${path}: ${issue?.path.join(".")}: ${issue?.message}`);
  }
  refuseOthers(parsed.data, path);
  const { quantization: _, ...data } = parsed.data;
  const config = camelKeys(data);
  const { encoder } = config.audioConfig;
  const context = parsed.data.audio_config.encoder.att_context_size;
  const leftFrames = (Array.isArray(context[0]) ? context[0][0] : context[0]) as number;
  const { textConfig: text } = config;
  const complete: VoiceChatConfig = {
    ...config,
    audioConfig: { ...config.audioConfig, encoder: { ...encoder, leftFrames } },
    textConfig: {
      ...text,
      headDim: text.headDim ?? text.hiddenSize / text.numAttentionHeads,
      timeStepLimit: text.timeStepLimit ?? [0, Number.POSITIVE_INFINITY],
      layers: [...text.hybridOverridePattern] as LayerKind[],
    },
  };
  const broken = brokenRule(complete);
  if (broken !== null) throw new CheckpointError("checkpoint_corrupt", `${path}: ${broken}`);
  return complete;
}

const unsupported = (path: string, what: string): CheckpointError =>
  new CheckpointError("checkpoint_unsupported", `${path}: ${what}`);

/** Variants that the reference knows and this port does not compute. */
function refuseOthers(config: z.infer<typeof CONFIG>, path: string): void {
  const { encoder, preprocessor } = config.audio_config;
  const tts = config.tts_config;
  const context = encoder.att_context_size.flat();
  const rules: readonly (readonly [boolean, string])[] = [
    [
      config.speaker !== "Aria",
      `speaker is ${JSON.stringify(config.speaker)}, only "Aria" has its voice in the checkpoint`,
    ],
    [
      /[^M*-]/.test(config.text_config.hybrid_override_pattern),
      "hybrid_override_pattern has layers other than M, * and -",
    ],
    [encoder.conv_context_size !== "causal", "conv_context_size is not causal"],
    [encoder.conv_norm_type !== "layer_norm", `conv_norm_type is ${encoder.conv_norm_type}, not layer_norm`],
    [
      encoder.self_attention_model !== "rel_pos",
      `self_attention_model is ${encoder.self_attention_model}, not rel_pos`,
    ],
    [encoder.att_context_style !== "chunked_limited", "att_context_style is not chunked_limited"],
    [
      (context[0] ?? -1) < 1 || (context[0] ?? 0) > CONTEXT_FRAMES_MAX || context[1] !== 0,
      `att_context_size is not a left context of 1 to ${CONTEXT_FRAMES_MAX} frames without look-ahead`,
    ],
    [encoder.xscaling, "xscaling is on"],
    [encoder.subsampling_factor !== 8 || !encoder.causal_downsampling, "subsampling is not causal by 8"],
    [
      preprocessor.normalize !== "NA" || preprocessor.window !== "hann",
      "the preprocessor normalizes, or its window is not hann",
    ],
    [
      !tts.use_gated_fusion_for_text_audio || !tts.use_subword_flag_emb,
      "tts_config lacks gated fusion or subword flags",
    ],
    [
      !tts.use_bos_eos_emb || !tts.use_audio_prompt_frozen_projection,
      "tts_config lacks bos/eos flags or the prompt projection",
    ],
    [
      config.tts_config.num_quantizers !== config.codec_config.num_quantizers,
      "tts_config and codec_config differ in num_quantizers",
    ],
  ];
  const broken = rules.find(([isBroken]) => isBroken);
  if (broken !== undefined) throw unsupported(path, broken[1]);
  refuseQuantization(config.quantization ?? {}, path);
}

/** The entry itself speaks for all modules, and may hold an object for one. The tensors say which ones are quantized. */
function refuseQuantization(entry: Readonly<Record<string, unknown>>, path: string): void {
  for (const { group_size: group = GROUP_SIZE, bits = 4, mode = "affine" } of [
    entry,
    ...Object.values(entry).filter(isRecord),
  ]) {
    if (group !== GROUP_SIZE || (bits !== 4 && bits !== 8) || mode !== "affine") {
      throw unsupported(
        path,
        `quantization is ${mode} by ${bits} bits in groups of ${group}; affine by 4 or 8 in groups of ${GROUP_SIZE} is run`,
      );
    }
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Far more than any model has, and little enough to hold until the tensors have been compared. */
const SIZE_MAX = 1_000_000;
const FEW_MAX = 1_000;
const CONTEXT_FRAMES_MAX = 1_000;

const size = z.number().int().positive().max(SIZE_MAX);
const count = (standard: number, max: number = SIZE_MAX): z.ZodDefault<z.ZodNumber> =>
  z.number().int().positive().max(max).default(standard);
const few = (standard: number): z.ZodDefault<z.ZodNumber> => count(standard, FEW_MAX);
const real = (standard: number): z.ZodDefault<z.ZodNumber> => z.number().default(standard);
const positive = (standard: number): z.ZodDefault<z.ZodNumber> => z.number().positive().default(standard);
const nonNegative = (standard: number): z.ZodDefault<z.ZodNumber> => z.number().nonnegative().default(standard);
const flag = (standard: boolean): z.ZodDefault<z.ZodBoolean> => z.boolean().default(standard);
/** Transformers writes numbers that JSON does not have as `{"__float__": "Infinity"}`. */
const limit = z.preprocess(
  (value) => Number((value as { __float__?: unknown } | null)?.__float__ ?? value),
  z.custom<number>((value) => typeof value === "number" && !Number.isNaN(value), "not a number"),
);

const PREPROCESSOR = z.object({
  sample_rate: count(16_000),
  features: count(128),
  n_fft: count(512),
  window_size: positive(0.025),
  window_stride: positive(0.01),
  window: z.string().default("hann"),
  preemph: nonNegative(0.97),
  normalize: z.string().default("NA"),
  log_zero_guard_value: positive(2 ** -24),
});

const ENCODER = z.object({
  feat_in: count(128),
  n_layers: few(24),
  d_model: count(1024),
  n_heads: count(8),
  ff_expansion_factor: few(4),
  subsampling_factor: count(8),
  subsampling_conv_channels: count(256),
  conv_kernel_size: few(9),
  causal_downsampling: flag(true),
  conv_context_size: z.unknown().default("causal"),
  conv_norm_type: z.string().default("layer_norm"),
  self_attention_model: z.string().default("rel_pos"),
  att_context_style: z.string().default("chunked_limited"),
  att_context_size: z
    .array(z.union([z.number().int(), z.array(z.number().int()).length(2)]))
    .min(1)
    .default([[70, 0]]),
  use_bias: flag(false),
  xscaling: flag(false),
});

const AUDIO = z.object({
  preprocessor: PREPROCESSOR.prefault({}),
  encoder: ENCODER.prefault({}),
  decoder: z
    .object({ pred_hidden: count(640), pred_rnn_layers: few(2), vocab_size: count(1024), blank_as_pad: flag(true) })
    .prefault({}),
  joint: z
    .object({
      joint_hidden: count(640),
      activation: z
        .string()
        .toLowerCase()
        .pipe(z.enum(["relu", "sigmoid", "tanh"]))
        .default("relu"),
      encoder_hidden: count(1024),
      pred_hidden: count(640),
      num_classes: count(1024),
    })
    .prefault({}),
  output_dim: count(4480),
  max_symbols: few(10),
});

const TEXT = z.object({
  vocab_size: size,
  hidden_size: size,
  intermediate_size: size,
  num_attention_heads: size,
  num_key_value_heads: size,
  head_dim: size.nullish(),
  attention_bias: flag(false),
  mamba_num_heads: size,
  mamba_head_dim: size,
  mamba_proj_bias: flag(false),
  ssm_state_size: size,
  conv_kernel: size,
  n_groups: size,
  use_conv_bias: flag(true),
  mlp_bias: flag(false),
  layer_norm_epsilon: positive(1e-5),
  time_step_limit: z.tuple([limit, limit]).nullish(),
  hybrid_override_pattern: z
    .union([z.string(), z.array(z.string()).transform((list) => list.join(""))])
    .refine((pattern) => pattern.length <= FEW_MAX, `expected at most ${FEW_MAX} layers`),
});

const CHARACTER = z.object({
  hidden_size: count(1152),
  intermediate_size: count(4608),
  num_hidden_layers: few(1),
  num_attention_heads: count(16),
  num_key_value_heads: count(16),
  head_dim: count(72),
  rms_norm_eps: positive(1e-6),
  query_pre_attn_scalar: positive(256),
  attn_logit_softcapping: positive(50),
  rope_base: positive(10_000),
  char_vocab_size: count(257),
});

const MOG = z.object({
  intermediate_size: count(4608),
  low_rank: count(64),
  min_log_std: real(-4),
  num_layers: few(3),
  num_predictions: count(1024),
  eps: positive(1e-6),
});

const TTS = z.object({
  hidden_size: count(1152),
  intermediate_size: count(4608),
  num_hidden_layers: few(28),
  num_attention_heads: count(16),
  num_key_value_heads: count(16),
  head_dim: count(72),
  sliding_window: count(7500),
  sliding_window_pattern: count(6),
  rms_norm_eps: positive(1e-6),
  query_pre_attn_scalar: positive(256),
  rope_global_base_freq: positive(1_000_000),
  rope_local_base_freq: positive(10_000),
  latent_size: count(512),
  num_quantizers: few(31),
  codebook_size: count(1024),
  num_iterations: few(8),
  guidance_scale: real(0.2),
  top_p: positive(0.95),
  noise_scale: nonNegative(0.001),
  exponent: positive(3),
  use_gated_fusion_for_text_audio: flag(true),
  use_subword_flag_emb: flag(true),
  use_bos_eos_emb: flag(true),
  use_audio_prompt_frozen_projection: flag(true),
  character_encoder: CHARACTER.prefault({}),
  mog_head: MOG.prefault({}),
});

const CODEC = z.object({
  sample_rate: count(22_050),
  base_channels: count(384),
  channel_multipliers: z.array(size).default([1, 2, 4]),
  downsample_rates: z.array(size).default([7, 7, 9]),
  blocks_per_stage: few(3),
  block_kernel_size: few(7),
  latent_dim: count(512),
  n_fft: count(16),
  hop_length: count(4),
  num_quantizers: few(31),
  codebook_size: count(1024),
});

const id = (standard: number): z.ZodDefault<z.ZodNumber> => z.number().int().nonnegative().default(standard);

const CONFIG = z.object({
  text_config: TEXT,
  audio_config: AUDIO.prefault({}),
  tts_config: TTS.prefault({}),
  codec_config: CODEC.prefault({}),
  bos_token_id: id(1),
  eos_token_id: id(2),
  pad_token_id: id(12),
  silence_token_id: id(11),
  rnnt_blank_id: id(1024),
  input_sample_rate: count(16_000),
  output_sample_rate: count(22_050),
  frame_duration: positive(0.08),
  function_channel_weight: real(2),
  default_system_prompt: z.string().default(""),
  rnnt_vocabulary: z.array(z.string()).default([]),
  speaker: z.string().default("Aria"),
  quantization: z.record(z.string(), z.unknown()).nullish(),
});

type CamelCase<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Text;
type CamelKeys<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { [Key in keyof T as CamelCase<Key & string>]: CamelKeys<T[Key]> }
    : T;

/** Object keys from snake_case to camelCase, all the way down. */
function camelKeys<T>(value: T): CamelKeys<T> {
  if (Array.isArray(value) || typeof value !== "object" || value === null) return value as CamelKeys<T>;
  const entries = Object.entries(value).map(([key, inner]) => [
    key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
    camelKeys(inner),
  ]);
  return Object.fromEntries(entries) as CamelKeys<T>;
}

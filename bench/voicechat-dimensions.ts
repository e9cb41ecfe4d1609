/** The published dimensions of VoiceChat, and every tensor of a checkpoint of that size. */

const PATTERN = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-";
const VOCABULARY = 131_072;
const LLM = {
  hidden: 4480,
  mlp: 15_680,
  heads: 40,
  keyHeads: 8,
  headDim: 128,
  mambaHeads: 128,
  mambaDim: 80,
  state: 128,
  groups: 8,
};
const ENCODER = { layers: 24, width: 1024, heads: 8, channels: 256, kernel: 9, left: 70 };
const RNNT = { hidden: 640, joint: 640, classes: 1024 };
const TTS = {
  hidden: 1152,
  mlp: 4608,
  layers: 28,
  heads: 16,
  headDim: 72,
  latent: 512,
  lowRank: 64,
  mogLayers: 3,
  components: 1024,
  promptFrames: 37,
};
const CODEC = { channels: 384, multipliers: [1, 2, 4], rates: [7, 7, 9], blocks: 3, kernel: 7, books: 31, codes: 1024 };

export type Bits = 4 | 8;

/** What a tensor holds: decides dtype and values. */
export type Kind =
  | "weight"
  | "norm"
  | "offsetNorm"
  | "bias"
  | "aLog"
  | "packed"
  | "scale"
  | "quantBias"
  | "integer"
  | "hole";

export interface PlannedTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly kind: Kind;
}

/** All tensors of the language model quantized to `bits`, in file order. */
export const plannedTensors = (bits: Bits): PlannedTensor[] => [
  ...languagePlan(bits),
  ...perceptionPlan(),
  ...rnntPlan(),
  ...speechPlan(),
  ...codecPlan(),
];

const plan = (kind: Kind, name: string, ...shape: number[]): PlannedTensor => ({ name, shape, kind });

function quantized(
  name: string,
  rows: number,
  columns: number,
  bits: Bits,
  kind: "packed" | "hole" = "packed",
): PlannedTensor[] {
  return [
    plan(kind, `${name}.weight`, rows, (columns * bits) / 32),
    plan("scale", `${name}.scales`, rows, columns / 64),
    plan("quantBias", `${name}.biases`, rows, columns / 64),
  ];
}

function languagePlan(bits: Bits): PlannedTensor[] {
  const { hidden, mlp, heads, keyHeads, headDim, mambaHeads, mambaDim, state, groups } = LLM;
  const inner = mambaHeads * mambaDim;
  const convolved = inner + 2 * groups * state;
  const layers = [...PATTERN].flatMap((kind, layer) => {
    const name = `stt_model.llm.layers.${layer}`;
    const matrix = (leaf: string, rows: number, columns: number): PlannedTensor[] =>
      quantized(`${name}.mixer.${leaf}`, rows, columns, bits);
    const norm = plan("norm", `${name}.norm.weight`, hidden);
    if (kind === "-") return [norm, ...matrix("up_proj", mlp, hidden), ...matrix("down_proj", hidden, mlp)];
    if (kind === "*") {
      const rows = { q_proj: heads, k_proj: keyHeads, v_proj: keyHeads };
      const qkv = Object.entries(rows).flatMap(([leaf, count]) => matrix(leaf, count * headDim, hidden));
      return [norm, ...qkv, ...matrix("o_proj", hidden, heads * headDim)];
    }
    return [
      norm,
      ...matrix("in_proj", inner + convolved + mambaHeads, hidden),
      ...matrix("out_proj", hidden, inner),
      plan("weight", `${name}.mixer.conv1d.weight`, convolved, 1, 4),
      plan("bias", `${name}.mixer.conv1d.bias`, convolved),
      plan("aLog", `${name}.mixer.A_log`, mambaHeads),
      plan("norm", `${name}.mixer.D`, mambaHeads),
      plan("bias", `${name}.mixer.dt_bias`, mambaHeads),
      plan("norm", `${name}.mixer.norm.weight`, inner),
    ];
  });
  return [
    // Only the rows of a few tokens are ever read: a hole in the file stands for the table.
    ...quantized("stt_model.embed_tokens", VOCABULARY, hidden, bits, "hole"),
    ...quantized("stt_model.lm_head", VOCABULARY, hidden, bits),
    ...quantized("stt_model.function_head", VOCABULARY, hidden, bits),
    plan("norm", "stt_model.llm.norm_f.weight", hidden),
    ...layers,
  ];
}

function perceptionPlan(): PlannedTensor[] {
  const { layers, width, heads, channels, kernel } = ENCODER;
  const root = "stt_model.perception";
  const norm = (name: string): PlannedTensor[] => [
    plan("norm", `${name}.weight`, width),
    plan("bias", `${name}.bias`, width),
  ];
  const convolution = (index: number, inputs: number, size: number): PlannedTensor[] => [
    plan("weight", `${root}.encoder.pre_encode.conv.${index}.weight`, channels, inputs, size, size),
    plan("bias", `${root}.encoder.pre_encode.conv.${index}.bias`, channels),
  ];
  const blocks = Array.from({ length: layers }, (_, layer): PlannedTensor[] => {
    const name = `${root}.encoder.layers.${layer}`;
    const forward = ["feed_forward1", "feed_forward2"].flatMap((leaf) => [
      plan("weight", `${name}.${leaf}.linear1.weight`, 4 * width, width),
      plan("weight", `${name}.${leaf}.linear2.weight`, width, 4 * width),
    ]);
    const attention = ["linear_q", "linear_k", "linear_v", "linear_out", "linear_pos"].map((leaf) =>
      plan("weight", `${name}.self_attn.${leaf}.weight`, width, width),
    );
    const biases = ["u", "v"].map((leaf) => plan("weight", `${name}.self_attn.pos_bias_${leaf}`, heads, width / heads));
    const norms = [
      "norm_feed_forward1",
      "norm_self_att",
      "norm_conv",
      "norm_feed_forward2",
      "norm_out",
      "conv.batch_norm",
    ];
    return [
      ...forward,
      ...attention,
      ...biases,
      ...norms.flatMap((leaf) => norm(`${name}.${leaf}`)),
      plan("weight", `${name}.conv.pointwise_conv1.weight`, 2 * width, width, 1),
      plan("weight", `${name}.conv.pointwise_conv2.weight`, width, width, 1),
      plan("weight", `${name}.conv.depthwise_conv.weight`, width, 1, kernel),
    ];
  });
  return [
    ...convolution(0, 1, 3),
    ...[2, 5].flatMap((index) => [...convolution(index, 1, 3), ...convolution(index + 1, channels, 1)]),
    plan("weight", `${root}.encoder.pre_encode.out.weight`, width, channels * 17),
    plan("bias", `${root}.encoder.pre_encode.out.bias`, width),
    ...blocks.flat(),
    plan("weight", `${root}.proj.weight`, LLM.hidden, width),
    plan("bias", `${root}.proj.bias`, LLM.hidden),
  ];
}

function rnntPlan(): PlannedTensor[] {
  const { hidden, joint, classes } = RNNT;
  const lstm = [0, 1].flatMap((layer) =>
    ["ih", "hh"].flatMap((leaf) => [
      plan("weight", `stt_model.rnnt_decoder.prediction.dec_rnn.lstm.weight_${leaf}_l${layer}`, 4 * hidden, hidden),
      plan("bias", `stt_model.rnnt_decoder.prediction.dec_rnn.lstm.bias_${leaf}_l${layer}`, 4 * hidden),
    ]),
  );
  const linear = (name: string, rows: number, columns: number): PlannedTensor[] => [
    plan("weight", `stt_model.rnnt_joint.${name}.weight`, rows, columns),
    plan("bias", `stt_model.rnnt_joint.${name}.bias`, rows),
  ];
  return [
    ...lstm,
    plan("weight", "stt_model.rnnt_decoder.prediction.embed.weight", classes + 1, hidden),
    ...linear("enc", joint, ENCODER.width),
    ...linear("pred", joint, hidden),
    ...linear("joint_net.2", classes + 1, joint),
  ];
}

const VOICE = "tts_model.tts_model";

const gatedMlp = (name: string): PlannedTensor[] => [
  plan("weight", `${name}.gate_proj.weight`, TTS.mlp, TTS.hidden),
  plan("weight", `${name}.up_proj.weight`, TTS.mlp, TTS.hidden),
  plan("weight", `${name}.down_proj.weight`, TTS.hidden, TTS.mlp),
];

const attention = (name: string): PlannedTensor[] => [
  ...["q", "k", "v"].map((leaf) => plan("weight", `${name}.${leaf}_proj.weight`, TTS.heads * TTS.headDim, TTS.hidden)),
  plan("weight", `${name}.o_proj.weight`, TTS.hidden, TTS.heads * TTS.headDim),
];

const offsetNorms = (name: string, leaves: readonly string[], size: number = TTS.hidden): PlannedTensor[] =>
  leaves.map((leaf) => plan("offsetNorm", `${name}.${leaf}.weight`, size));

function speechPlan(): PlannedTensor[] {
  const { hidden, layers, headDim, latent, promptFrames } = TTS;
  const norms = [
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
  ];
  const blocks = Array.from({ length: layers }, (_, layer) => {
    const name = `${VOICE}.backbone.layers.${layer}`;
    return [
      ...attention(`${name}.self_attn`),
      ...gatedMlp(`${name}.mlp`),
      ...offsetNorms(`${name}.self_attn`, ["q_norm", "k_norm"], headDim),
      ...offsetNorms(name, norms),
    ];
  });
  const fusion = `${VOICE}.gated_fusion_audio_text`;
  return [
    ...blocks.flat(),
    ...offsetNorms(`${VOICE}.backbone`, ["norm"]),
    ...subwordPlan(),
    ...mixturePlan(),
    ...["audio_proj", "text_proj"].flatMap((leaf) => [
      plan("weight", `${fusion}.${leaf}.weight`, hidden, hidden),
      plan("bias", `${fusion}.${leaf}.bias`, hidden),
    ]),
    plan("bias", `${fusion}.gate`, hidden),
    plan("bias", `${fusion}.residual_scale`),
    ...offsetNorms(fusion, ["final_norm"]),
    plan("weight", `${VOICE}.rvq_embs`, CODEC.books, CODEC.codes, latent),
    plan("weight", `${VOICE}.embed_code.weight`, hidden, latent),
    plan("weight", `${VOICE}.audio_prompt_projection_W`, hidden, hidden),
    plan("bias", `${VOICE}.bos_emb`, hidden),
    plan("bias", `${VOICE}.null_emb`, hidden),
    plan("weight", "tts_model.audio_prompt_latents.Aria", 1, promptFrames, hidden),
    plan("integer", "tts_model._control_codes", 3),
    plan("integer", "tts_model.codec_silence_tokens", CODEC.books),
  ];
}

function subwordPlan(): PlannedTensor[] {
  const { hidden } = TTS;
  const root = `${VOICE}.embed_subword`;
  const layer = `${root}.backbone.encoder.layers.0`;
  const norms = ["self_attn", "feedforward"].flatMap((part) => [`pre_${part}_layernorm`, `post_${part}_layernorm`]);
  return [
    ...attention(`${layer}.self_attn`),
    ...gatedMlp(`${layer}.mlp`),
    ...offsetNorms(layer, norms),
    ...offsetNorms(`${root}.backbone.encoder`, ["norm"]),
    plan("weight", `${root}.embed_tokens.weight`, 257, hidden),
    plan("weight", `${root}.proj_embedding.weight`, hidden, hidden),
    plan("weight", `${root}.subword_flag_emb.cont_emb.weight`, 2, hidden),
    plan("integer", `${root}.subword_flag_emb.is_continuation`, VOCABULARY + 1),
    plan("integer", `${root}.subword_flag_emb.pad_tensor`),
    plan("weight", `${root}.bos_eos_emb.special_emb.weight`, 3, hidden),
    plan("integer", `${root}.bos_eos_emb.special_flags`, VOCABULARY),
    plan("integer", `${root}.bos_eos_emb.pad_tensor`),
  ];
}

function mixturePlan(): PlannedTensor[] {
  const { hidden, latent, lowRank, mogLayers, components } = TTS;
  const root = `${VOICE}.mog_head`;
  const layers = Array.from({ length: mogLayers }, (_, layer) => [
    ...gatedMlp(`${root}.mlp_stack.${layer}.mlp`),
    ...offsetNorms(`${root}.mlp_stack.${layer}`, ["pre_norm", "post_norm"]),
  ]);
  return [
    ...layers.flat(),
    plan("offsetNorm", `${root}.mlp_stack.${mogLayers}.weight`, hidden),
    plan("weight", `${root}.low_mat`, components, latent, lowRank),
    plan("weight", `${root}.proj_logits.weight`, components, hidden),
    plan("weight", `${root}.proj_mus.weight`, components * lowRank, hidden),
    plan("weight", `${root}.proj_else.weight`, latent, hidden),
    plan("weight", `${root}.proj_logs.weight`, 1, hidden),
  ];
}

/** Encoder: 18 spectrum channels up to the latent, by strided convolutions; the decoder mirrors it. */
function codecPlan(): PlannedTensor[] {
  const { channels, multipliers, rates, blocks, kernel, books, codes } = CODEC;
  const root = "tts_model.audio_codec";
  const widths = multipliers.map((multiplier) => channels * multiplier);
  const block = (name: string, width: number): PlannedTensor[] => [
    plan("weight", `${name}.dwconv.weight`, width, 1, kernel),
    plan("bias", `${name}.dwconv.bias`, width),
    plan("norm", `${name}.norm.weight`, width),
    plan("bias", `${name}.norm.bias`, width),
    plan("weight", `${name}.pwconv1.weight`, 4 * width, width, 1),
    plan("bias", `${name}.pwconv1.bias`, 4 * width),
    plan("weight", `${name}.pwconv2.weight`, width, 4 * width, 1),
    plan("bias", `${name}.pwconv2.bias`, width),
  ];
  const encoder: PlannedTensor[] = [];
  const decoder: PlannedTensor[] = [];
  const last = (blocks + 1) * widths.length;
  for (const [stage, width] of widths.entries()) {
    const at = stage * (blocks + 1);
    const before = stage === 0 ? 18 : (widths[stage - 1] as number);
    encoder.push(
      plan(
        "weight",
        `${root}.encoder.layers.${at}.weight`,
        width,
        before,
        stage === 0 ? 1 : (rates[stage - 1] as number),
      ),
    );
    const mirrored = widths.length - 1 - stage;
    const out = widths[mirrored] as number;
    const into = stage === 0 ? TTS.latent : (widths[mirrored + 1] as number);
    decoder.push(plan("weight", `${root}.decoder.layers.${at}.weight`, into, out, rates[mirrored] as number));
    for (let index = 1; index <= blocks; index++) {
      encoder.push(...block(`${root}.encoder.layers.${at + index}`, width));
      decoder.push(...block(`${root}.decoder.layers.${at + index}`, out));
    }
  }
  encoder.push(
    plan(
      "weight",
      `${root}.encoder.layers.${last}.weight`,
      TTS.latent,
      widths.at(-1) as number,
      rates.at(-1) as number,
    ),
  );
  decoder.push(plan("weight", `${root}.decoder.layers.${last}.weight`, 18, channels, 1));
  const quantizers = Array.from({ length: books }, (_, book) => [
    plan("weight", `${root}.prvq.mus_list.${book}`, codes, TTS.latent),
    plan("norm", `${root}.prvq._variance_list.${book}.variance`),
  ]);
  return [...encoder, ...decoder, ...quantizers.flat()];
}

/** The least that config.json must say: the rest are the reference's defaults, which are these dimensions. */
export function config(bits: Bits): unknown {
  return {
    model_type: "nemotron_voicechat",
    text_config: {
      vocab_size: VOCABULARY,
      hidden_size: LLM.hidden,
      intermediate_size: LLM.mlp,
      num_attention_heads: LLM.heads,
      num_key_value_heads: LLM.keyHeads,
      head_dim: LLM.headDim,
      mamba_num_heads: LLM.mambaHeads,
      mamba_head_dim: LLM.mambaDim,
      ssm_state_size: LLM.state,
      conv_kernel: 4,
      n_groups: LLM.groups,
      hybrid_override_pattern: PATTERN,
    },
    rnnt_vocabulary: Array.from({ length: RNNT.classes }, (_, symbol) => `▁${symbol}`),
    quantization: { group_size: 64, bits },
  };
}

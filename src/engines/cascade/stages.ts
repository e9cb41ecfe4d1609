/** The five stages of a cascade, loaded. */
import type { Llm } from "./llm/llm.ts";
import type { Stt } from "./stt/stt.ts";
import type { Tts } from "./tts/tts.ts";
import type { TurnModel } from "./turn/turn.ts";
import type { Vad } from "./vad/vad.ts";

export interface Stages {
  readonly vad: Vad;
  /** Null where there is no turn-end model: `semantic_vad` then waits for silence. */
  readonly turn: TurnModel | null;
  readonly stt: Stt;
  readonly llm: Llm;
  readonly tts: Tts;
}

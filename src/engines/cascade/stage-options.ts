/** What may be asked of the cascade's stages. */
import type { ModelProgress } from "../../models/progress.ts";
import type { ModelStore } from "../../models/store.ts";
import type { Log } from "../../util/log.ts";
import type { RecognizerKind } from "./sherpa.ts";

type VadName = "silero" | "energy";
type SttName = RecognizerKind | "openai";
type LlmName = "auto" | "local" | "chat-completions" | "responses-api";
type TtsName = "piper" | "kokoro" | "flite" | "openai";

/** A null model is the default of the stage; a null address is that of OpenAI. */
export interface CascadeStageOptions {
  readonly vad: VadName;
  readonly stt: SttName;
  readonly sttModel: string | null;
  readonly sttBaseUrl: string | null;
  readonly sttApiKey: string | null;
  readonly llm: LlmName;
  /** A catalog name, the path of a .gguf file, or a service's own name. */
  readonly llmModel: string | null;
  readonly llmBaseUrl: string | null;
  readonly llmApiKey: string | null;
  /** How the model calls functions; `auto` asks it natively, and shows them in the prompt where a service refuses that. */
  readonly llmTools: "auto" | "native" | "prompted";
  readonly tts: TtsName;
  readonly ttsModel: string | null;
  readonly ttsBaseUrl: string | null;
  readonly ttsApiKey: string | null;
  /** Threads of one model; at most the number of cores. */
  readonly threads: number;
  readonly store: Pick<ModelStore, "ensure" | "model">;
  readonly log: Log;
  readonly signal?: AbortSignal;
  readonly onProgress?: (event: ModelProgress) => void;
  /** For services; a test may bring its own. */
  readonly fetch?: typeof globalThis.fetch;
  /** Told what was chosen for the language model, and why. */
  readonly onChoice?: (choice: { readonly stage: "llm"; readonly name: string; readonly reason: string }) => void;
}

/**
 * `antiphon/voicechat`: a checkpoint and its live sessions, in the caller's own process. Apart from `index.ts`, so that a
 * server's main process loads no model runtime.
 */

export { type ModelOptions, VoiceChatModel } from "./engines/voicechat/model.ts";
export { generateOffline, type OfflineOptions, type OfflineResult } from "./engines/voicechat/offline.ts";
export {
  type FrameTiming,
  type StreamOptions,
  type VoiceChatEvent,
  VoiceChatStream,
} from "./engines/voicechat/stream.ts";
export { AppError, type ErrorCode } from "./errors.ts";

/** A full-duplex engine without a model: each frame takes as long, and says as much, as a test wants. */
import type { Engine, EngineEvent, EngineSettings, EngineStream } from "../../src/engines/engine.ts";
import { ClientError } from "../../src/errors.ts";
import { Queue } from "../../src/util/queue.ts";
import { CAPABILITIES } from "./scripted-engine.ts";

export interface DuplexEngineOptions {
  /** What each frame is said to have taken. */
  readonly frameMs?: number;
  /** Called before each frame is answered. */
  readonly beforeFrame?: (frameIndex: number) => void;
  /** Characters of text that each frame brings. */
  readonly textLength?: number;
  /** Hears, and says nothing at all. */
  readonly mute?: boolean;
  /** Refuses what goes beyond. */
  readonly framesMax?: number;
  /** Never works off what it is given. */
  readonly stuck?: boolean;
  /** `events` takes what the model is to say out of turn. */
  readonly onOpen?: (settings: EngineSettings, events: Queue<EngineEvent>) => void;
}

export function duplexEngine(options: DuplexEngineOptions = {}): Engine {
  const { onOpen } = options;
  return {
    capabilities: { ...CAPABILITIES, turnTaking: "model", acceptsText: false, outputHz: 22_050, sessionsMax: 1 },
    open: async (settings) => {
      const events = new Queue<EngineEvent>(100_000);
      onOpen?.(settings, events);
      return stream(options, events);
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

function stream(options: DuplexEngineOptions, events: Queue<EngineEvent>): EngineStream {
  const { frameMs = 10, textLength = 0, mute = false, stuck = false, framesMax = Number.POSITIVE_INFINITY } = options;
  let frameIndex = 0;
  let endSample = 0;
  const end = (type: "frame.done" | "frame.cancelled"): void => {
    events.push({ type, frameIndex });
    events.close();
  };
  return {
    events,
    get backlogSamples() {
      return stuck ? endSample : 0;
    },
    push(pcm) {
      for (let at = 0; !mute && at + 1280 <= pcm.length; at += 1280, frameIndex++) {
        if (frameIndex === framesMax) {
          endSample += pcm.length;
          const error = new ClientError("context_limit", "the stream exceeds its frames");
          return void events.push({ type: "input.refused", endSample, error });
        }
        options.beforeFrame?.(frameIndex);
        const stageMs = { perception: frameMs / 2, language: frameMs / 2 };
        events.push({ type: "frame.timing", frameIndex, totalMs: frameMs, stageMs });
        const text = "x".repeat(textLength);
        if (textLength > 0) events.push({ type: "frame.text", frameIndex, tokenId: 1, delta: "", text });
        events.push({ type: "frame.audio", frameIndex, pcm: new Float32Array(1764), hz: 22_050, audioCodes: [1] });
      }
      endSample += pcm.length;
      if (!stuck) events.push({ type: "input.consumed", endSample });
    },
    send(command) {
      if (command.type === "input.finish") end("frame.done");
      if (command.type === "input.abort") end("frame.cancelled");
    },
    finish: () => end("frame.done"),
    [Symbol.asyncDispose]: async () => events.close(),
  };
}

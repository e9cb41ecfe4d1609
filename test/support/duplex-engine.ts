/** A full-duplex engine without a model: each frame takes as long, and says as much, as a test wants. */
import type { Engine, EngineEvent, EngineSettings, EngineStream } from "../../src/engines/engine.ts";
import { Queue } from "../../src/util/queue.ts";
import { CAPABILITIES } from "./scripted-engine.ts";

export interface DuplexEngineOptions {
  /** What each frame is said to have taken. */
  readonly frameMs?: number;
  /** Characters of text that each frame brings. */
  readonly textLength?: number;
  /** Hears, and says nothing at all. */
  readonly mute?: boolean;
  readonly onOpen?: (settings: EngineSettings) => void;
}

export function duplexEngine(options: DuplexEngineOptions = {}): Engine {
  const { frameMs = 10, textLength = 0, mute = false, onOpen } = options;
  return {
    capabilities: { ...CAPABILITIES, turnTaking: "model", acceptsText: false, outputHz: 22_050, sessionsMax: 1 },
    open: async (settings) => {
      onOpen?.(settings);
      return stream(frameMs, textLength, mute);
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

function stream(frameMs: number, textLength: number, mute: boolean): EngineStream {
  const events = new Queue<EngineEvent>(100_000);
  let frameIndex = 0;
  let endSample = 0;
  const end = (type: "frame.done" | "frame.cancelled"): void => {
    events.push({ type, frameIndex });
    events.close();
  };
  return {
    events,
    backlogSamples: 0,
    push(pcm) {
      for (let at = 0; !mute && at + 1280 <= pcm.length; at += 1280, frameIndex++) {
        const stageMs = { perception: frameMs / 2, language: frameMs / 2 };
        events.push({ type: "frame.timing", frameIndex, totalMs: frameMs, stageMs });
        const text = "x".repeat(textLength);
        if (textLength > 0) events.push({ type: "frame.text", frameIndex, tokenId: 1, delta: "", text });
        events.push({ type: "frame.audio", frameIndex, pcm: new Float32Array(1764), hz: 22_050, audioCodes: [1] });
      }
      endSample += pcm.length;
      events.push({ type: "input.consumed", endSample });
    },
    send(command) {
      if (command.type === "input.finish") end("frame.done");
      if (command.type === "input.abort") end("frame.cancelled");
    },
    finish: () => end("frame.done"),
    [Symbol.asyncDispose]: async () => events.close(),
  };
}

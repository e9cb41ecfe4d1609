/**
 * The stages on their real models, loaded once for this file. Media time only: a busy machine makes it slow, not wrong.
 * The models come from the cache that the tests share, or from the package registries.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Resampler } from "../../../src/audio/resample.ts";
import { Cascade } from "../../../src/engines/cascade/cascade.ts";
import { loadStages } from "../../../src/engines/cascade/registry.ts";
import type { Stages } from "../../../src/engines/cascade/stages.ts";
import { FliteTts } from "../../../src/engines/cascade/tts/flite.ts";
import { VAD_FRAME_SAMPLES } from "../../../src/engines/cascade/vad/vad.ts";
import type { EngineEvent, EngineStream } from "../../../src/engines/engine.ts";
import { silentLog } from "../../../src/util/log.ts";
import { testModelStore } from "../../support/model-store.ts";
import { wordErrors } from "../../support/word-errors.ts";
import { REQUEST, SETTINGS } from "./scripted.ts";

type ResponseEnded = Extract<EngineEvent, { type: "response.ended" }>;

const HZ = 16_000;
const QUESTION = "What is the capital of France?";
const signal = new AbortController().signal;
const MODEL_MS = 180_000;

let stages: Stages;
let cascade: Cascade;
let flite: FliteTts;
let question: Float32Array;

/** Another voice than the one that answers. */
async function spoken(text: string, voice = "slt"): Promise<Float32Array> {
  for await (const { pcm, hz } of flite.speak({ text, voice, speed: 1, urgency: "first", signal })) {
    expect(hz).toBe(HZ);
    return pcm;
  }
  throw new Error("nothing was said");
}

const silence = (ms: number): Float32Array =>
  Float32Array.from({ length: (ms * HZ) / 1_000 }, (_, i) => 2e-4 * Math.sin(i * i));

beforeAll(async () => {
  const store = testModelStore();
  const none = {
    sttModel: null,
    sttBaseUrl: null,
    sttApiKey: null,
    llmModel: null,
    llmBaseUrl: null,
    llmApiKey: null,
    llmTools: "auto",
  } as const;
  const tts = { ttsModel: null, ttsBaseUrl: null, ttsApiKey: null };
  const names = { vad: "silero", stt: "moonshine", llm: "local", tts: "piper" } as const;
  const files = await store.ensure("flite");
  flite = await FliteTts.load(files.file("model"), silentLog);
  stages = await loadStages({ ...none, ...tts, ...names, threads: 2, store, log: silentLog });
  cascade = new Cascade({ stages, sessionsMax: 8, models: ["test"], log: silentLog });
  question = await spoken(QUESTION);
}, MODEL_MS);

afterAll(async () => {
  await cascade?.[Symbol.asyncDispose]();
  await flite?.[Symbol.asyncDispose]();
});

describe("Silero VAD", () => {
  it("hears speech, and neither silence nor noise", async () => {
    const vad = stages.vad.stream();
    const whole = (pcm: Float32Array): Float32Array => pcm.subarray(0, pcm.length - (pcm.length % VAD_FRAME_SAMPLES));
    const quiet = await vad.push(whole(silence(960)));
    const loud = await vad.push(whole(question));
    let seed = 1;
    const noise = new Float32Array(HZ).map(() => {
      seed = (seed * 16_807) % 2_147_483_647;
      return (seed / 2_147_483_647 - 0.5) * 0.05;
    });
    const hiss = await stages.vad.stream().push(whole(noise));
    expect(Math.max(...quiet)).toBeLessThan(0.3);
    expect(loud.filter((probability) => probability > 0.5).length).toBeGreaterThan(loud.length * 0.6);
    expect(hiss.filter((probability) => probability > 0.5).length).toBeLessThan(3);
  });
});

describe("Smart Turn", () => {
  it("tells a finished question from an unfinished sentence", async () => {
    const finished = await spoken("Can you tell me what the weather is like in Paris today?");
    const unfinished = await spoken("I would like to order a pizza with, um,");
    const pad = silence(200);
    const probability = (pcm: Float32Array): Promise<number> => {
      const joined = new Float32Array(pcm.length + pad.length);
      joined.set(pcm);
      joined.set(pad, pcm.length);
      return stages.turn?.complete(joined) ?? Promise.resolve(0);
    };
    expect(await probability(finished)).toBeGreaterThan(0.5);
    expect(await probability(unfinished)).toBeLessThan(0.5);
  });
});

describe("a session", () => {
  /** Asks, answers the engine as a session does, and waits for the end of the answer. */
  async function ask(stream: EngineStream, audio: Float32Array[], responseId = "r1"): Promise<EngineEvent[]> {
    const events: EngineEvent[] = [];
    for (const chunk of audio) {
      for (let at = 0; at < chunk.length; at += 320) stream.push(chunk.subarray(at, at + 320));
    }
    for await (const event of stream.events) {
      events.push(event);
      if (event.type === "transcript.completed" && event.text !== "") {
        const content = [{ type: "audio", transcript: event.text }] as const;
        const items = [{ type: "message", id: "i", role: "user", content, interrupted: false }] as const;
        stream.send({ type: "respond", request: { ...REQUEST, responseId, items, outputTokensMax: 60 } });
      }
      if (event.type === "response.ended") return events;
    }
    return events;
  }
  const only = <Type extends EngineEvent["type"]>(events: readonly EngineEvent[], type: Type) =>
    events.filter((event): event is Extract<EngineEvent, { type: Type }> => event.type === type);

  it("answers a spoken question aloud, and says what it writes", async () => {
    const stream = await cascade.open(SETTINGS, signal);
    const events = await ask(stream, [silence(500), question, silence(900)]);
    await stream[Symbol.asyncDispose]();
    expect(only(events, "transcript.completed")[0]?.text).toBe(QUESTION);
    const deltas = only(events, "transcript.delta").map(({ delta }) => delta);
    expect(deltas.join("").replace(/\W/g, "").toLowerCase()).toBe(QUESTION.replace(/\W/g, "").toLowerCase());
    const speech = only(events, "response.speech");
    const text = speech.map((chunk) => chunk.text).join("");
    expect(text).toContain("Paris");
    expect(only(events, "response.ended")[0]).toMatchObject({ status: "completed" });
    // What was spoken, heard again, is what was written.
    const resampler = new Resampler(speech[0]?.hz ?? HZ, HZ);
    const heard = speech.flatMap(({ pcm }) => [...resampler.push(pcm)]).concat([...resampler.flush()]);
    const again = await stages.stt.transcribe({
      pcm: Float32Array.from(heard),
      language: null,
      prompt: null,
      urgency: "final",
    });
    expect(again).toContain("Paris");
  }, 60_000);

  it("goes on after the model's process was killed in the middle of an answer", async () => {
    const stream = await cascade.open(SETTINGS, signal);
    stream.send({
      type: "respond",
      request: { ...REQUEST, responseId: "long", instructions: "Tell a very long story.", modalities: ["text"] },
    });
    // The call is under way: the model reads its prompt.
    process.kill((stages.llm as unknown as { readonly pid: number }).pid, "SIGKILL");
    let ended: EngineEvent | null = null;
    for await (const event of stream.events) {
      if (event.type === "response.ended") {
        ended = event;
        break;
      }
    }
    expect(ended).toMatchObject({ status: "failed", error: { code: "worker_died" } });
    await stream[Symbol.asyncDispose]();
    // Each answer that comes before the process is back waits for it, within a limit that a busy machine may exceed.
    for (let next: ResponseEnded | undefined; next?.status !== "completed"; ) {
      if (next !== undefined) expect(next).toMatchObject({ status: "failed", error: { code: "worker_died" } });
      const later = await cascade.open(SETTINGS, signal);
      next = only(await ask(later, [silence(500), question, silence(900)]), "response.ended")[0];
      await later[Symbol.asyncDispose]();
      expect(next).toBeDefined();
    }
  }, 180_000);

  it("is one of several that share the models, and each gets its own answer", async () => {
    const questions = [
      "What is the capital of France?",
      "What is the capital of Italy?",
      "What is the capital of Spain?",
    ];
    const audio = [];
    for (const text of questions) audio.push(await spoken(text, "rms"));
    const answers = await Promise.all(
      audio.map(async (pcm, i) => {
        const stream = await cascade.open(SETTINGS, signal);
        const events = await ask(stream, [silence(400), pcm, silence(900)], `r${i}`);
        await stream[Symbol.asyncDispose]();
        return only(events, "transcript.completed")[0]?.text ?? "";
      }),
    );
    for (const [i, answer] of answers.entries()) {
      const country = questions[i]?.split(" ").at(-1)?.replace("?", "") ?? "";
      expect(answer).toContain(country);
    }
  }, 90_000);
});

describe("the beginning of an utterance", () => {
  /** What a session hears of a script of samples and orders. */
  async function heard(script: readonly (Float32Array | "audible" | "quiet")[]): Promise<string[]> {
    const stream = await cascade.open(SETTINGS, signal);
    for (const step of script) {
      if (step === "audible" || step === "quiet") stream.send({ type: "playback", audible: step === "audible" });
      else for (let at = 0; at < step.length; at += 320) stream.push(step.subarray(at, at + 320));
    }
    stream.finish();
    const texts: string[] = [];
    for await (const event of stream.events) if (event.type === "transcript.completed") texts.push(event.text);
    return texts;
  }
  /** The first 250 ms rise from a tenth of the loudness. */
  const softly = (pcm: Float32Array): Float32Array => pcm.map((x, i) => x * Math.min(1, 0.1 + (0.9 * i) / (0.25 * HZ)));
  const QUESTIONS = [
    "Is it going to rain tomorrow?",
    "Are there any good restaurants nearby?",
    "Open the window in the kitchen.",
    "Every morning I drink a glass of water.",
    "Under which name is the reservation?",
    "How old is the universe?",
    "Where can I buy a new phone?",
    "Who was the first man on the moon?",
  ];
  /** Every first word is there; of all words one in ten may be the recognizer's own mistake. */
  function expectWhole(texts: readonly string[], questions: readonly string[]): void {
    const first = (text: string): string | undefined => text.split(/\W+/)[0];
    expect(texts.map(first)).toEqual(questions.map(first));
    const errors = texts.map((text, i) => wordErrors(questions[i] ?? "", text));
    const sum = (key: "errors" | "words"): number => errors.reduce((all, each) => all + each[key], 0);
    expect(sum("errors") / sum("words")).toBeLessThanOrEqual(0.1);
  }
  let spokenQuestions: Float32Array[];
  beforeAll(async () => {
    spokenQuestions = [];
    for (const text of QUESTIONS) spokenQuestions.push(await spoken(text, "rms"));
  }, MODEL_MS);

  // A peer dropped the audio between the first voiced frame and its decision that this is speech.
  it.each<[string, (pcm: Float32Array) => readonly (Float32Array | "audible" | "quiet")[]]>([
    ["as people speak", (pcm) => [silence(600), pcm, silence(800)]],
    ["softly", (pcm) => [silence(600), softly(pcm), silence(800)]],
    ["in the very first moment of a session", (pcm) => [pcm, silence(800)]],
    ["while an answer is heard", (pcm) => [silence(600), "audible", silence(400), pcm, "quiet", silence(800)]],
    [
      "in the last moments of an answer",
      (pcm) => [
        silence(600),
        "audible",
        silence(400),
        pcm.subarray(0, 3_200),
        "quiet",
        pcm.subarray(3_200),
        silence(800),
      ],
    ],
  ])(
    "is heard: %s",
    async (_, script) => {
      const results = await Promise.all(spokenQuestions.map(async (pcm) => (await heard(script(pcm))).join(" ")));
      expectWhole(results, QUESTIONS);
    },
    120_000,
  );

  it("is heard right behind the end of another", async () => {
    const [first, ...others] = spokenQuestions as [Float32Array, ...Float32Array[]];
    const results = await Promise.all(
      others.map((pcm) => heard([silence(600), first, silence(520), pcm, silence(800)])),
    );
    for (const texts of results) expect(texts).toHaveLength(2);
    const seconds = results.map((texts) => texts[1] ?? "");
    expectWhole(seconds, QUESTIONS.slice(1));
  }, 120_000);
});

describe("the local model", () => {
  it("calls a function when it must, in the shape that was asked for", async () => {
    const tools = [
      {
        name: "set_light",
        description: "Sets a light",
        parameters: {
          type: "object",
          properties: { room: { type: "string" }, on: { type: "boolean" } },
          required: ["room", "on"],
        },
      },
    ];
    const stream = await cascade.open(SETTINGS, signal);
    stream.send({ type: "respond", request: { ...REQUEST, tools, toolChoice: "required", outputTokensMax: 80 } });
    const events: EngineEvent[] = [];
    for await (const event of stream.events) {
      events.push(event);
      if (event.type === "response.ended") break;
    }
    await stream[Symbol.asyncDispose]();
    const call = events.find((event) => event.type === "tool.completed");
    expect(call).toMatchObject({ name: "set_light" });
    expect(JSON.parse(call?.type === "tool.completed" ? call.argumentsJson : "{}")).toMatchObject({
      room: expect.any(String),
      on: expect.any(Boolean),
    });
  }, 60_000);
});

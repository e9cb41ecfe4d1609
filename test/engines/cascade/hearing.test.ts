import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../src/errors.ts";
import { audio, Gate, HZ, openScripted, SERVER_VAD, SETTINGS, settle } from "./scripted.ts";

const SPEECH = 0.9;
const ms = (samples: number): number => (samples * 1000) / HZ;

describe("server_vad", () => {
  it("gives start, stop and transcript of one utterance, in order and with their times", async () => {
    const session = await openScripted();
    await session.hear(audio(992, 0), audio(1_600, SPEECH), audio(704, 0));
    expect(session.types()).toEqual(["speech.started", "speech.stopped", "transcript.delta", "transcript.completed"]);
    const [started] = session.of("speech.started");
    const [stopped] = session.of("speech.stopped");
    expect(ms(started?.startSample ?? 0)).toBe(992 - 300);
    expect(ms(started?.atSample ?? 0)).toBe(992 + 64);
    // Frames are 32 ms long: the first at whose end 500 ms are silent.
    expect(ms(stopped?.endSample ?? 0)).toBe(992 + 1_600 + 512);
    expect(session.of("transcript.completed")[0]).toMatchObject({ segmentId: "seg_1", text: "hello there" });
  });

  it("transcribes the segment with its padding and without the silence that ended it", async () => {
    const session = await openScripted();
    await session.hear(audio(992, 0), audio(1_600, SPEECH), audio(704, 0));
    const [request] = session.stages.stt.requests;
    expect(session.stages.stt.requests).toHaveLength(1);
    expect(ms(request?.pcm.length ?? 0)).toBe(300 + 1_600 + 128);
  });

  it("is the same for every way to cut the audio", async () => {
    const whole = new Float32Array([
      ...audio(500, 0),
      ...audio(700, SPEECH),
      ...audio(200, 0),
      ...audio(400, SPEECH),
      ...audio(1_000, 0),
      ...audio(100, SPEECH),
      ...audio(800, 0),
    ]);
    const reference = await openScripted();
    await reference.hear(whole);
    expect(reference.of("speech.stopped")).toHaveLength(2);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 40 }), async (sizes) => {
        const session = await openScripted();
        for (let at = 0, i = 0; at < whole.length; i++) {
          const size = sizes[i % sizes.length] ?? 1;
          session.stream.push(whole.subarray(at, at + size));
          at += size;
          if (i % 7 === 0) await settle();
        }
        await settle();
        expect(session.events.filter(({ type }) => type.startsWith("speech."))).toEqual(
          reference.events.filter(({ type }) => type.startsWith("speech.")),
        );
        expect(session.of("transcript.completed")).toEqual(reference.of("transcript.completed"));
      }),
      { numRuns: 15, seed: 7 },
    );
  });

  it("honours the session's silence and threshold", async () => {
    const settings = { ...SETTINGS, turnDetection: { ...SERVER_VAD, silenceMs: 200, threshold: 0.7 } };
    const session = await openScripted(settings);
    await session.hear(audio(320, 0.6), audio(320, 0.8), audio(320, 0));
    expect(session.of("speech.started")).toHaveLength(1);
    const [stopped] = session.of("speech.stopped");
    expect(ms(stopped?.endSample ?? 0)).toBe(640 + 224);
  });

  it("does not take a single click for speech", async () => {
    const session = await openScripted();
    await session.hear(audio(320, 0), audio(32, SPEECH), audio(320, 0));
    expect(session.events).toEqual([]);
  });

  it("counts a short answer while the assistant is silent", async () => {
    const session = await openScripted();
    await session.hear(audio(320, 0), audio(128, 0.6), audio(640, 0));
    expect(session.of("transcript.completed")).toMatchObject([{ text: "hello there" }]);
  });

  // The assistant's own voice, coming back through the room, interrupted it.
  it("hears less while the assistant is audible, and for the echo after it", async () => {
    const session = await openScripted();
    session.send({ type: "playback", audible: true });
    await session.hear(audio(320, 0.6), audio(96, SPEECH), audio(320, 0));
    session.send({ type: "playback", audible: false });
    await session.hear(audio(128, 0.6));
    expect(session.events).toEqual([]);
    await session.hear(audio(320, 0.6));
    expect(session.of("speech.started")).toHaveLength(1);
  });

  it("lets real speech through while the assistant is audible", async () => {
    const session = await openScripted();
    session.send({ type: "playback", audible: true });
    await session.hear(audio(320, 0), audio(192, SPEECH));
    expect(session.of("speech.started")).toHaveLength(1);
  });

  // A question that follows right after another lost its beginning: the padding was cut at the last segment's end.
  it("keeps the beginning of an utterance that follows right after another", async () => {
    const session = await openScripted();
    await session.hear(audio(320, 0), audio(640, SPEECH), audio(512, 0), audio(640, SPEECH), audio(640, 0));
    const [first, second] = session.of("speech.started");
    const [stopped] = session.of("speech.stopped");
    expect(first?.segmentId).toBe("seg_1");
    // The reported times do not overlap; the audio reaches back into the silence.
    expect(second?.startSample).toBe(stopped?.endSample);
    expect(ms(session.stages.stt.requests.at(-1)?.pcm.length ?? 0)).toBe(300 + 640 + 128);
  });
});

describe("a pause", () => {
  it("begins the final transcript in advance, so that it is there when the turn ends", async () => {
    const session = await openScripted();
    await session.hear(audio(640, SPEECH), audio(160, 0));
    expect(session.stages.stt.requests.map(({ urgency }) => urgency)).toEqual(["final"]);
    expect(session.of("speech.stopped")).toEqual([]);
    await session.hear(audio(400, 0));
    expect(session.stages.stt.requests).toHaveLength(1);
    expect(session.of("transcript.completed")).toHaveLength(1);
  });

  it("in which speech resumes throws that transcript away", async () => {
    const session = await openScripted();
    const early = new Gate<string>();
    session.stages.stt.answer = () => early.promise;
    await session.hear(audio(640, SPEECH), audio(256, 0));
    const [guess] = session.stages.stt.requests;
    session.stages.stt.answer = async () => "the whole sentence";
    await session.hear(audio(640, SPEECH), audio(640, 0));
    expect(guess?.signal?.aborted).toBe(true);
    early.resolve("the whole");
    await settle();
    expect(session.of("transcript.completed")).toMatchObject([{ text: "the whole sentence" }]);
    expect(session.of("speech.stopped")).toHaveLength(1);
  });

  it("is not ended by a single click", async () => {
    const session = await openScripted();
    await session.hear(audio(640, SPEECH), audio(256, 0), audio(32, SPEECH), audio(256, 0));
    expect(session.of("speech.stopped")).toHaveLength(1);
    expect(session.stages.stt.requests).toHaveLength(1);
  });
});

describe("transcription", () => {
  // A recognizer asked about noise makes words up.
  it("is never asked about audio without voice", async () => {
    const session = await openScripted();
    await session.hear(audio(320, 0), audio(64, SPEECH), audio(704, 0));
    expect(session.stages.stt.requests).toEqual([]);
    expect(session.of("transcript.completed")).toMatchObject([{ text: "" }]);
  });

  it("that fails is reported, and the session goes on", async () => {
    const session = await openScripted();
    session.stages.stt.answer = async () => {
      throw new EngineError("stt", "out of memory");
    };
    await session.hear(audio(640, SPEECH), audio(640, 0));
    expect(session.of("transcript.failed")).toMatchObject([{ segmentId: "seg_1", error: { code: "stt_failed" } }]);
    session.stages.stt.answer = async () => "again";
    await session.hear(audio(640, SPEECH), audio(640, 0));
    expect(session.of("transcript.completed")).toMatchObject([{ segmentId: "seg_2", text: "again" }]);
  });

  it("is tried once more when its process died", async () => {
    const session = await openScripted();
    let calls = 0;
    session.stages.stt.answer = async () => {
      calls += 1;
      if (calls === 1) throw new EngineError("stt", "ended", { code: "worker_died", retryable: true });
      return "survived";
    };
    await session.hear(audio(640, SPEECH), audio(640, 0));
    expect(session.of("transcript.completed")).toMatchObject([{ text: "survived" }]);
  });

  it("gives words out as two hypotheses agree, never twice, one call at a time", async () => {
    const hypotheses = ["what", "what is a", "what is the cap", "what is the capital of", "what is the capital of"];
    let running = 0;
    const session = await openScripted(SETTINGS, ({ stt }) => {
      stt.partials = true;
      stt.answer = async ({ urgency }) => {
        expect(running).toBe(0);
        running += 1;
        await Promise.resolve();
        running -= 1;
        return urgency === "final"
          ? "What is the capital of France?"
          : (hypotheses.shift() ?? "what is the capital of");
      };
    });
    for (let i = 0; i < 6; i++) await session.hear(audio(416, SPEECH));
    const early = session.of("transcript.delta").map(({ delta }) => delta);
    expect(early.join("")).toBe("what is the capital of");
    await session.hear(audio(640, 0));
    const all = session.of("transcript.delta").map(({ delta }) => delta);
    expect(all.join("")).toBe("what is the capital of France?");
    expect(session.of("transcript.completed")).toMatchObject([{ text: "What is the capital of France?" }]);
  });

  it("gives no deltas where nobody wants them", async () => {
    const session = await openScripted({ ...SETTINGS, transcription: null }, ({ stt }) => {
      stt.partials = true;
    });
    await session.hear(audio(2_000, SPEECH), audio(640, 0));
    expect(session.of("transcript.delta")).toEqual([]);
    expect(session.of("transcript.completed")).toHaveLength(1);
    expect(session.stages.stt.requests).toHaveLength(1);
  });

  it("of long speech is made in pieces, cut at a pause, and joined", async () => {
    const session = await openScripted(SETTINGS, ({ stt }) => {
      let piece = 0;
      stt.answer = async () => `piece ${++piece}`;
    });
    await session.hear(audio(9_600, SPEECH), audio(320, 0), audio(4_000, SPEECH), audio(640, 0));
    const seconds = session.stages.stt.requests.map(({ pcm }) => pcm.length / HZ);
    expect(Math.max(...seconds)).toBeLessThanOrEqual(12);
    expect(seconds[0]).toBeGreaterThan(9.6);
    expect(seconds[0]).toBeLessThan(10.3);
    const { text } = session.of("transcript.completed")[0] ?? { text: "" };
    expect(text.startsWith("piece ")).toBe(true);
    expect(text.split("piece")).toHaveLength(3);
  });
});

describe("push to talk", () => {
  const settings = { ...SETTINGS, turnDetection: { type: "none" } } as const;

  it("leaves out the silence of whoever presses the key and thinks first", async () => {
    // Moonshine heard nothing at all in a question behind two seconds of silence.
    const session = await openScripted(settings);
    await session.hear(audio(4_000, 0), audio(1_600, SPEECH), audio(96, 0));
    session.send({ type: "input.commit", segmentId: "a" });
    await settle();
    const lengths = session.stages.stt.requests.map(({ pcm }) => ms(pcm.length));
    expect(lengths).toEqual([480 + 1_600 + 96]);
  });

  it("transcribes exactly what was heard since the last commit", async () => {
    const session = await openScripted(settings);
    await session.hear(audio(1_000, SPEECH));
    session.send({ type: "input.commit", segmentId: "a" });
    // Heard after the commit, however late the commit is worked off.
    session.stream.push(audio(501, SPEECH));
    session.send({ type: "input.commit", segmentId: "b" });
    await settle();
    expect(session.types()).not.toContain("speech.started");
    expect(session.of("transcript.completed")).toMatchObject([
      { segmentId: "a", text: "hello there", audioSeconds: 1 },
      { segmentId: "b", text: "hello there", audioSeconds: 0.501 },
    ]);
    expect(session.stages.stt.requests.map(({ pcm }) => ms(pcm.length))).toEqual([1_000, 501]);
  });

  it("says that nothing was said in silence, and after nothing at all", async () => {
    const session = await openScripted(settings);
    await session.hear(audio(2_000, 0));
    session.send({ type: "input.commit", segmentId: "a" });
    session.send({ type: "input.commit", segmentId: "b" });
    await settle();
    const completed = session.of("transcript.completed").sort((a, b) => a.segmentId.localeCompare(b.segmentId));
    expect(completed).toMatchObject([
      { segmentId: "a", text: "", audioSeconds: 2 },
      { segmentId: "b", text: "", audioSeconds: 0 },
    ]);
    expect(session.stages.stt.requests).toEqual([]);
  });

  it("forgets what was cleared", async () => {
    const session = await openScripted(settings);
    await session.hear(audio(3_000, SPEECH));
    session.send({ type: "input.clear" });
    await session.hear(audio(320, SPEECH));
    session.send({ type: "input.commit", segmentId: "a" });
    await settle();
    expect(session.of("transcript.completed")).toMatchObject([{ segmentId: "a", audioSeconds: 0.32 }]);
  });
});

describe("a recording", () => {
  it("is transcribed beside the stream, which does not notice", async () => {
    const session = await openScripted();
    await session.hear(audio(640, SPEECH));
    session.stream.transcribe?.("rec", new Float32Array([...audio(320, 0), ...audio(1_000, SPEECH), ...audio(320, 0)]));
    await session.hear(audio(640, SPEECH), audio(700, 0));
    expect(session.of("speech.started")).toHaveLength(1);
    const completed = session.of("transcript.completed").sort((a, b) => a.segmentId.localeCompare(b.segmentId));
    expect(completed).toMatchObject([
      { segmentId: "rec", text: "hello there" },
      { segmentId: "seg_1", text: "hello there" },
    ]);
  });

  it("of silence says nothing", async () => {
    const session = await openScripted();
    session.stream.transcribe?.("rec", audio(1_000, 0));
    await settle();
    expect(session.of("transcript.completed")).toMatchObject([{ segmentId: "rec", text: "" }]);
    expect(session.stages.stt.requests).toEqual([]);
  });
});

describe("clear under server_vad", () => {
  it("drops the open segment without a trace", async () => {
    const session = await openScripted();
    await session.hear(audio(640, SPEECH));
    session.send({ type: "input.clear" });
    await session.hear(audio(1_000, 0));
    expect(session.types()).toEqual(["speech.started"]);
    await session.hear(audio(640, SPEECH), audio(640, 0));
    expect(session.of("transcript.completed")).toMatchObject([{ segmentId: "seg_2" }]);
  });
});

describe("semantic_vad", () => {
  const settings = { ...SETTINGS, turnDetection: { type: "semantic_vad", eagerness: "high" } } as const;

  it("ends the turn at the pause when the model says that it is complete", async () => {
    const session = await openScripted(settings);
    await session.hear(audio(320, 0), audio(1_000, SPEECH), audio(320, 0));
    expect(session.of("speech.stopped")).toHaveLength(1);
    // What it was asked about ends at the pause, and begins before the speech.
    const [asked] = session.stages.turn.asked;
    expect(ms(asked?.length ?? 0)).toBeGreaterThanOrEqual(1_500);
  });

  it("waits when it is not, and asks again at the next pause", async () => {
    const session = await openScripted(settings, ({ turn }) => {
      turn.answer = async () => 0.1;
    });
    await session.hear(audio(1_000, SPEECH), audio(1_000, 0));
    expect(session.of("speech.stopped")).toEqual([]);
    session.stages.turn.answer = async () => 0.9;
    await session.hear(audio(1_000, SPEECH), audio(320, 0));
    expect(session.stages.turn.asked).toHaveLength(2);
    expect(session.of("speech.stopped")).toHaveLength(1);
    expect(session.of("speech.started")).toHaveLength(1);
  });

  it.each([
    ["high", 2_000],
    ["medium", 4_000],
    ["auto", 4_000],
    ["low", 8_000],
  ] as const)("waits at most so long with eagerness %s: %i ms", async (eagerness, waitMs) => {
    const session = await openScripted(
      { ...SETTINGS, turnDetection: { type: "semantic_vad", eagerness } },
      (stages) => {
        stages.turn.answer = async () => 0;
      },
    );
    await session.hear(audio(640, SPEECH), audio(waitMs - 64, 0));
    expect(session.of("speech.stopped")).toEqual([]);
    await session.hear(audio(128, 0));
    expect(session.of("speech.stopped")).toHaveLength(1);
  });

  it("ignores an answer that comes when the user already speaks on", async () => {
    const gate = new Gate<number>();
    const session = await openScripted(settings, ({ turn }) => {
      turn.answer = () => gate.promise;
    });
    await session.hear(audio(640, SPEECH), audio(320, 0), audio(640, SPEECH));
    gate.resolve(1);
    await session.hear(audio(320, SPEECH));
    expect(session.of("speech.stopped")).toEqual([]);
  });

  it("still ends the turn by silence when the model fails", async () => {
    const session = await openScripted(settings, ({ turn }) => {
      turn.answer = async () => {
        throw new EngineError("turn", "no memory");
      };
    });
    await session.hear(audio(640, SPEECH), audio(2_100, 0));
    expect(session.of("speech.stopped")).toHaveLength(1);
  });
});

describe("audio that stops arriving in mid-speech", () => {
  // A muted microphone left the detector in speech, and the assistant silent, for ever.
  it("closes the turn after a while", async () => {
    const session = await openScripted();
    await session.hear(audio(1_000, SPEECH));
    session.clock.advance(1_400);
    await settle();
    expect(session.of("speech.stopped")).toEqual([]);
    session.clock.advance(200);
    await settle();
    expect(session.of("speech.stopped")).toHaveLength(1);
    expect(session.of("transcript.completed")).toHaveLength(1);
  });

  it("does nothing when nobody was speaking", async () => {
    const session = await openScripted();
    await session.hear(audio(1_000, 0));
    session.clock.advance(10_000);
    await settle();
    expect(session.events).toEqual([]);
    expect(session.clock.pendingCount).toBe(0);
  });
});

describe("new settings", () => {
  it("take effect where they stand in the stream", async () => {
    const session = await openScripted();
    await session.hear(audio(640, SPEECH));
    session.send({
      type: "settings.set",
      settings: { ...SETTINGS, turnDetection: { ...SERVER_VAD, silenceMs: 1_000 } },
    });
    await session.hear(audio(800, 0));
    expect(session.of("speech.stopped")).toEqual([]);
    await session.hear(audio(320, 0));
    expect(session.of("speech.stopped")).toHaveLength(1);
  });

  it("that turn detection off end open speech", async () => {
    const session = await openScripted();
    await session.hear(audio(640, SPEECH));
    session.send({ type: "settings.set", settings: { ...SETTINGS, turnDetection: { type: "none" } } });
    await settle();
    expect(session.types()).toEqual(["speech.started", "speech.stopped", "transcript.delta", "transcript.completed"]);
  });
});

describe("the end", () => {
  it("answers what is pending, then ends the events", async () => {
    const session = await openScripted();
    await session.hear(audio(640, SPEECH));
    session.stream.push(audio(100, SPEECH));
    session.stream.finish();
    session.stream.finish();
    await session.reading;
    expect(session.types()).toEqual(["speech.started", "speech.stopped", "transcript.delta", "transcript.completed"]);
    session.stream.push(audio(100, SPEECH));
    session.send({ type: "input.clear" });
    expect(session.stages.llm.forgotten).toEqual(["stream_1"]);
  });

  it("by disposal is silent and at once", async () => {
    const session = await openScripted(SETTINGS, ({ stt }) => {
      stt.answer = () => new Gate<string>().promise;
    });
    await session.hear(audio(640, SPEECH), audio(640, 0));
    await session.stream[Symbol.asyncDispose]();
    await session.stream[Symbol.asyncDispose]();
    await session.reading;
    expect(session.types()).toEqual(["speech.started", "speech.stopped"]);
    expect(session.stages.stt.requests.every(({ signal }) => signal?.aborted === true)).toBe(true);
  });

  it("frees the place", async () => {
    const session = await openScripted();
    const signal = new AbortController().signal;
    const second = await session.cascade.open(SETTINGS, signal);
    await expect(session.cascade.open(SETTINGS, signal)).rejects.toMatchObject({ code: "session_limit_reached" });
    await second[Symbol.asyncDispose]();
    await (await session.cascade.open(SETTINGS, signal))[Symbol.asyncDispose]();
  });
});

describe("two hours of audio, faster than real time", () => {
  it("leave no queue behind", async () => {
    const session = await openScripted();
    const minute = new Float32Array(60 * HZ);
    for (let at = 0; at < minute.length; at += 4 * HZ) minute.fill(SPEECH, at, at + 2 * HZ);
    let backlogMax = 0;
    for (let i = 0; i < 120; i++) {
      session.stream.push(minute);
      backlogMax = Math.max(backlogMax, session.stream.backlogSamples);
      while (session.stream.backlogSamples > 10 * HZ) await settle();
    }
    await settle();
    expect(backlogMax).toBeLessThanOrEqual(71 * HZ);
    expect(session.stream.backlogSamples).toBeLessThan(512);
    expect(session.of("transcript.completed")).toHaveLength(120 * 15);
  });

  it("are dropped loudly, not kept, when the writer heeds nothing, and time goes on", async () => {
    const session = await openScripted();
    for (let i = 0; i < 10; i++) session.stream.push(audio(60_000, 0));
    expect(session.stream.backlogSamples).toBeLessThanOrEqual(120 * HZ);
    await settle();
    await session.hear(audio(640, SPEECH), audio(640, 0));
    const [started] = session.of("speech.started");
    // There is nothing before it that could be its padding.
    expect(started?.startSample).toBe(600 * HZ);
  });

  it("wait where the words wait: hearing goes on when transcripts come", async () => {
    const gate = new Gate<string>();
    const session = await openScripted(SETTINGS, ({ stt }) => {
      stt.answer = () => gate.promise;
    });
    const utterance = [audio(640, SPEECH), audio(640, 0)];
    for (let i = 0; i < 20; i++) await session.hear(...utterance);
    expect(session.stream.backlogSamples).toBeGreaterThan(10 * HZ);
    expect(session.stages.stt.requests.length).toBeLessThanOrEqual(7);
    gate.resolve("at last");
    await settle();
    expect(session.stream.backlogSamples).toBeLessThan(512);
    expect(session.of("transcript.completed")).toHaveLength(20);
  });
});

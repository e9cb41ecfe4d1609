/** Telephone audio, in and out. */
import { alawToFloat, floatToAlaw, floatToMulaw, mulawToFloat } from "../../audio/g711.ts";
import { resample } from "../../audio/resample.ts";
import { QUESTION_HZ } from "../question.ts";
import type { Requirement } from "../requirement.ts";
import { expect } from "../unmet.ts";
import { at, shown, textAt } from "../wire.ts";
import { say } from "./saying.ts";

const TELEPHONE_HZ = 8000;

const CODECS = {
  pcmu: { encode: floatToMulaw, decode: mulawToFloat },
  pcma: { encode: floatToAlaw, decode: alawToFloat },
} as const;

/**
 * How alike neighbouring samples are, -1 to 1. Speech at 8,000 Hz has more than 0.5; bytes of another format, read as
 * if they were of this one, are noise: near 0.
 */
function smoothness(pcm: Float32Array): number {
  let [energy, product] = [0, 0];
  for (let i = 1; i < pcm.length; i++) {
    energy += pcm[i]! * pcm[i]!;
    product += pcm[i]! * pcm[i - 1]!;
  }
  return energy === 0 ? 0 : product / energy;
}
const SMOOTHNESS_MIN = 0.4;

const spoken = (codec: keyof typeof CODECS): Requirement => ({
  id: `format.${codec}-out`,
  title: `with output format audio/${codec} the audio of an answer is ${codec} at 8,000 Hz`,
  level: "MUST",
  source: "session.update, audio.output.format",
  run: async ({ open }) => {
    const type = `audio/${codec}`;
    const said = await say(await open({ audio: { output: { format: { type } } } }), { output_modalities: ["audio"] });
    const pcm = CODECS[codec].decode(said.audio);
    expect(pcm.length > 0, "audio", "none");
    const value = smoothness(pcm);
    expect(
      value > SMOOTHNESS_MIN,
      `${codec} that decodes to speech`,
      `noise (likeness of neighbours ${value.toFixed(2)})`,
    );
    const told = at(said.done, "response.audio.output.format.type");
    expect(told === type, `response.audio.output.format ${type}`, shown(told));
    return `${Math.round(pcm.length / 8)} ms, likeness of neighbours ${value.toFixed(2)}`;
  },
});

const heard = (codec: keyof typeof CODECS): Requirement => ({
  id: `format.${codec}-in`,
  title: `with input format audio/${codec} speech in ${codec} at 8,000 Hz is heard and transcribed`,
  level: "MUST",
  source: "session.update, audio.input.format",
  run: async ({ open, question }) => {
    const turn_detection = { type: "server_vad", create_response: false };
    const input = { format: { type: `audio/${codec}` }, transcription: { model: "whisper-1" }, turn_detection };
    const peer = await open({ audio: { input } });
    const pcm = resample(question.pcm, QUESTION_HZ, TELEPHONE_HZ);
    await peer.say({ pcm, hz: TELEPHONE_HZ, encode: CODECS[codec].encode }, { beforeMs: 500, afterMs: 1500 });
    const startMs = at(await peer.next("input_audio_buffer.speech_started"), "audio_start_ms");
    expect(Number(startMs) <= 1000, "audio_start_ms up to 1000", shown(startMs));
    const completed = await peer.next("conversation.item.input_audio_transcription.completed");
    const transcript = textAt(completed, "transcript");
    expect(transcript.trim() !== "", "words", "an empty transcript");
    return `${transcript.length} characters`;
  },
});

export const FORMAT_REQUIREMENTS: readonly Requirement[] = [
  spoken("pcmu"),
  spoken("pcma"),
  heard("pcmu"),
  heard("pcma"),
];

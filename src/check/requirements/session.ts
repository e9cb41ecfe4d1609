/** The session's configuration: told whole, merged, honoured or refused. */

import type { Requirement } from "../requirement.ts";
import { expect } from "../unmet.ts";
import { at, shown, textAt, typesOf } from "../wire.ts";

/** What clients read of a configuration without looking whether it is there. */
const WHOLE_PATHS: readonly string[] = [
  "id",
  "object",
  "type",
  "model",
  "instructions",
  "output_modalities",
  "audio.input.format.type",
  "audio.input.turn_detection",
  "audio.output.format.type",
  "audio.output.voice",
  "audio.output.speed",
  "tools",
  "tool_choice",
  "max_output_tokens",
];

function expectWhole(session: unknown): string {
  const missing = WHOLE_PATHS.filter((path) => at(session, path) === undefined);
  expect(missing.length === 0, "the whole effective configuration", `one without ${missing.join(", ")}`);
  return `${WHOLE_PATHS.length} of ${WHOLE_PATHS.length} fields that clients read`;
}

/** What an event or its session says at `path`. */
function expectAt(event: unknown, path: string, value: unknown): void {
  const found = at(event, path);
  const same = JSON.stringify(found) === JSON.stringify(value);
  expect(same, `${path} ${shown(value)}`, shown(found));
}

const TOOL = {
  type: "function",
  name: "look_up",
  description: "Looks up.",
  parameters: { type: "object", properties: {} },
};

export const SESSION_REQUIREMENTS: readonly Requirement[] = [
  {
    id: "session.created",
    title: "the first event is session.created with the whole effective configuration",
    level: "MUST",
    source: "session.created",
    run: async ({ open }) => {
      const peer = await open();
      const first = peer.events[0];
      expect(first?.type === "session.created", "session.created as the first event", typesOf(peer.events.slice(0, 1)));
      expectAt(first, "session.type", "realtime");
      return expectWhole(at(first, "session"));
    },
  },
  {
    id: "session.default-audio",
    title: "audio is PCM16 at 24,000 Hz both ways unless the client asks for another format",
    level: "MUST",
    source: "session.created, audio.input.format and audio.output.format",
    run: async ({ open }) => {
      const { session } = (await open()).events[0] as unknown as { readonly session: unknown };
      for (const way of ["input", "output"])
        expectAt(session, `audio.${way}.format`, { type: "audio/pcm", rate: 24000 });
      return "audio/pcm at 24000 both ways";
    },
  },
  {
    id: "session.default-vad",
    title:
      "turn detection is server_vad with threshold 0.5, 300 ms before, 500 ms of silence, answers and interruptions on",
    level: "SHOULD",
    source: "session.created, audio.input.turn_detection",
    run: async ({ open }) => {
      const turn = at((await open()).events[0], "session.audio.input.turn_detection");
      const defaults = {
        type: "server_vad",
        threshold: 0.5,
        prefix_padding_ms: 300,
        silence_duration_ms: 500,
        create_response: true,
        interrupt_response: true,
      };
      for (const [key, value] of Object.entries(defaults)) {
        expect(at(turn, key) === value, `turn_detection.${key} to be ${value}`, shown(at(turn, key)));
      }
      return "all six defaults";
    },
  },
  {
    id: "session.updated",
    title: "session.update is answered by session.updated with the whole effective configuration",
    level: "MUST",
    source: "session.update, session.updated",
    run: async ({ open }) => {
      const peer = await open();
      const { session } = (await peer.update({ instructions: "Be brief." })) as unknown as {
        readonly session: unknown;
      };
      expectAt(session, "instructions", "Be brief.");
      return expectWhole(session);
    },
  },
  {
    id: "session.merge",
    title: "an update changes the fields that it names and leaves all others",
    level: "MUST",
    source: "session.update: only the fields that are present are updated",
    run: async ({ open }) => {
      const peer = await open({ instructions: "Be brief.", audio: { output: { speed: 1.2 } } });
      const before = at(await peer.fence(), "session");
      const turn_detection = { type: "server_vad", silence_duration_ms: 700 };
      const after = at(await peer.update({ audio: { input: { turn_detection } } }), "session");
      expectAt(after, "audio.input.turn_detection.silence_duration_ms", 700);
      for (const path of ["instructions", "audio.output", "audio.input.format", "output_modalities", "tool_choice"]) {
        expectAt(after, path, at(before, path));
      }
      return "one field changed, the others as they were";
    },
  },
  {
    id: "session.refused-whole",
    title: "an update that is refused changes nothing",
    level: "MUST",
    source: "error: a refused event has no effect",
    run: async ({ open }) => {
      const peer = await open({ instructions: "Be brief." });
      const session = { type: "realtime", instructions: "Be long.", audio: { output: { speed: 99 } } };
      const error = await peer.refusal(peer.send({ type: "session.update", session }));
      const after = await peer.fence();
      expectAt(after, "session.instructions", "Be brief.");
      return textAt(error, "error.message");
    },
  },
  {
    id: "session.push-to-talk",
    title: "turn_detection null switches detection off, and the configuration says null",
    level: "MUST",
    source: "session.update, audio.input.turn_detection",
    run: async ({ open }) => {
      const peer = await open();
      const updated = await peer.update({ audio: { input: { turn_detection: null } } });
      expectAt(updated, "session.audio.input.turn_detection", null);
      return "null";
    },
  },
  {
    id: "session.semantic-vad",
    title: "semantic_vad is taken with each eagerness",
    level: "SHOULD",
    source: "session.update, audio.input.turn_detection",
    run: async ({ open }) => {
      const peer = await open();
      for (const eagerness of ["low", "medium", "high", "auto"]) {
        const updated = await peer.update({
          audio: { input: { turn_detection: { type: "semantic_vad", eagerness } } },
        });
        expectAt(updated, "session.audio.input.turn_detection.eagerness", eagerness);
      }
      return "low, medium, high, auto";
    },
  },
  {
    id: "session.tools",
    title: "tools and all four forms of tool_choice are taken and told back",
    level: "MUST",
    source: "session.update, tools and tool_choice",
    run: async ({ open }) => {
      const peer = await open({ tools: [TOOL] });
      for (const tool_choice of ["none", "required", { type: "function", name: TOOL.name }, "auto"]) {
        const updated = await peer.update({ tool_choice });
        expectAt(updated, "session.tool_choice", tool_choice);
        expectAt(updated, "session.tools.0.name", TOOL.name);
      }
      return "none, required, a named function, auto";
    },
  },
  {
    id: "session.formats",
    title: "audio/pcmu and audio/pcma are taken, independently for input and output",
    level: "MUST",
    source: "session.update, audio.input.format and audio.output.format",
    run: async ({ open }) => {
      const peer = await open();
      for (const [input, output] of [
        ["audio/pcmu", "audio/pcm"],
        ["audio/pcma", "audio/pcmu"],
        ["audio/pcm", "audio/pcma"],
      ]) {
        const format = (type: string | undefined) => (type === "audio/pcm" ? { type, rate: 24000 } : { type });
        const audio = { input: { format: format(input) }, output: { format: format(output) } };
        const updated = await peer.update({ audio });
        expectAt(updated, "session.audio.input.format.type", input);
        expectAt(updated, "session.audio.output.format.type", output);
      }
      return "three pairs";
    },
  },
  {
    id: "session.max-tokens",
    title: "max_output_tokens takes 1 to 4096 and inf, and refuses what is beyond",
    level: "MUST",
    source: "session.update, max_output_tokens",
    run: async ({ open }) => {
      const peer = await open();
      for (const max_output_tokens of [1, 4096, "inf"]) {
        expectAt(await peer.update({ max_output_tokens }), "session.max_output_tokens", max_output_tokens);
      }
      const session = { type: "realtime", max_output_tokens: 0 };
      return textAt(await peer.refusal(peer.send({ type: "session.update", session })), "error.message");
    },
  },
  {
    id: "session.truncation",
    title: "truncation takes auto, disabled and a retention ratio",
    level: "SHOULD",
    source: "session.update, truncation",
    run: async ({ open }) => {
      const peer = await open();
      for (const truncation of ["disabled", { type: "retention_ratio", retention_ratio: 0.8 }, "auto"]) {
        expectAt(await peer.update({ truncation }), "session.truncation", truncation);
      }
      return "disabled, retention_ratio 0.8, auto";
    },
  },
  {
    id: "session.voice",
    title: "a voice that the server does not have is refused",
    level: "SHOULD",
    source: "session.update, audio.output.voice",
    run: async ({ open }) => {
      const peer = await open();
      const session = { type: "realtime", audio: { output: { voice: "check-no-such-voice" } } };
      return textAt(await peer.refusal(peer.send({ type: "session.update", session })), "error.message");
    },
  },
];

/**
 * OpenAI's Agents SDK for JavaScript, used as its documentation shows. Runs one scenario against `ANTIPHON_WS` and prints
 * what it saw as JSON. Plain JavaScript, so that the newest SDK runs it too, on the Node that it wants.
 */
import { readFileSync } from "node:fs";
import { RealtimeAgent, RealtimeSession, tool } from "@openai/agents-realtime";
import { z } from "zod";

const [scenario, questionFile] = process.argv.slice(2);
const asked = [];

const getWeather = tool({
  name: "get_weather",
  description: "Says how the weather is in a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => {
    asked.push(city);
    return `sunny in ${city}`;
  },
});
const poet = new RealtimeAgent({ name: "Poet", instructions: "You are a poet.", handoffDescription: "Writes poems." });
const agent = new RealtimeAgent({
  name: "Assistant",
  instructions: "You are a helpful assistant.",
  tools: [getWeather],
  handoffs: [poet],
});
const session = new RealtimeSession(agent, { transport: "websocket" });

const seen = { errors: [], events: [], audioBytes: 0, interruptions: 0, histories: 0, added: 0 };
session.on("error", (error) => seen.errors.push(error));
session.on("audio", ({ data }) => {
  seen.audioBytes += data.byteLength;
});
session.on("audio_interrupted", () => {
  seen.interruptions += 1;
});
session.on("history_updated", () => {
  seen.histories += 1;
});
session.on("history_added", () => {
  seen.added += 1;
});
session.on("agent_tool_end", (_context, _agent, { name }, result) => seen.events.push(["tool", name, result]));
session.on("agent_handoff", (_context, from, to) => seen.events.push(["handoff", from.name, to.name]));

/** The next time that `event` is emitted by the transport. */
const next = (event) => new Promise((resolve) => session.transport.once(event, resolve));
/** Until `condition` holds, looked at whenever something has happened. */
function until(condition) {
  return new Promise((resolve) => {
    const look = () =>
      setImmediate(() => {
        if (!condition()) return;
        session.transport.off("*", look);
        session.off("history_updated", look);
        resolve();
      });
    session.transport.on("*", look);
    session.on("history_updated", look);
    look();
  });
}
const messages = (role) => session.history.filter((item) => item.type === "message" && item.role === role);
const answers = () =>
  messages("assistant").filter(({ status, content }) => status !== "in_progress" && content[0]?.transcript);

/** The recorded question, and the silence after it. */
function speak({ commit = false } = {}) {
  const pcm = readFileSync(questionFile);
  for (let at = 0; at < pcm.length; at += 9600) {
    const piece = pcm.subarray(at, at + 9600);
    const isLast = at + 9600 >= pcm.length;
    session.sendAudio(piece.buffer.slice(piece.byteOffset, piece.byteOffset + piece.length), {
      commit: commit && isLast,
    });
  }
}
const heard = () => messages("user").some(({ content }) => content[0].type === "input_audio" && content[0].transcript);

const scenarios = {
  /** A text message, a tool, its result spoken. */
  async tools() {
    session.sendMessage("How is the weather in Paris?");
    await until(() => answers().some(({ content }) => content[0].transcript.includes("sunny")));
  },
  /** A question from the microphone. */
  async audio() {
    speak();
    await until(() => answers().length > 0 && heard());
  },
  /** The application stops a long answer. */
  async interrupt() {
    session.sendMessage("Tell me a long story.");
    await next("audio");
    await new Promise((resolve) => setTimeout(resolve, 700));
    session.interrupt();
    await until(() => answers().length > 0);
    session.sendMessage("Thank you.");
    await until(() => answers().length > 1);
  },
  /** The user speaks over a long answer. */
  async bargeIn() {
    session.sendMessage("Tell me a long story.");
    await next("audio");
    // Some of it is heard first: of an answer that nobody heard, nothing stays in the history.
    await new Promise((resolve) => setTimeout(resolve, 700));
    speak();
    await until(() => answers().at(-1)?.content[0].transcript.includes("Paris") && heard());
  },
  /** The application edits the history. */
  async history() {
    session.sendMessage("My name is Ada.");
    await until(() => answers().length > 0);
    session.updateHistory((history) => history.filter((item) => item.role !== "assistant"));
    await until(() => messages("assistant").length === 0);
    session.updateHistory((history) =>
      history.map((item) =>
        item.role === "user" ? { ...item, content: [{ type: "input_text", text: "My name is Bob." }] } : item,
      ),
    );
    await until(() => messages("user").some(({ content }) => content[0].text === "My name is Bob."));
    session.sendMessage("What did I say?");
    await until(() => answers().length > 0);
  },
  async handoff() {
    session.sendMessage("I want to hear a poem.");
    await until(() => session.currentAgent.name === "Poet" && answers().length > 0);
  },
  async image() {
    session.addImage(`data:image/png;base64,${Buffer.from("not really").toString("base64")}`);
    await until(() => answers().length > 0);
  },
  /** Push to talk. */
  async pushToTalk() {
    session.transport.updateSessionConfig({ audio: { input: { turnDetection: null } } });
    await next("session.updated");
    speak({ commit: true });
    session.transport.requestResponse();
    await until(() => answers().length > 0 && heard());
  },
};

await session.connect({ apiKey: "any", url: process.env.ANTIPHON_WS });
await next("session.updated");
let muted = null;
try {
  session.mute(true);
} catch (error) {
  muted = error.message;
}
await scenarios[scenario]();
const { errors, ...rest } = seen;
const usage = { input: session.usage.inputTokens, output: session.usage.outputTokens };
console.log(
  JSON.stringify({ ...rest, errors: errors.map(({ error }) => error), asked, muted, usage, history: session.history }),
);
session.close();

/** The talk page: one button, a conversation, and everything that can get in its way. */
import { Call } from "./call.ts";
import { Captions } from "./captions.ts";
import { type ClientEvent, type RealtimeConnection, unreachable } from "./connection.ts";
import { Controls } from "./controls.ts";
import { Details } from "./details.ts";
import { element } from "./page.ts";
import { ProblemPanel } from "./problem-panel.ts";
import {
  connectionGone,
  connectionLost,
  keyWanted,
  keyWrong,
  mediaBlocked,
  type Problem,
  type ProblemAction,
  TalkFailure,
} from "./problems.ts";
import { askServer, type ServerFacts } from "./server.ts";
import { type Settings, SettingsDialog, sessionOf } from "./settings.ts";
import { type Conversation, type ServerEvent, TalkModel } from "./talk-model.ts";
import { VoiceChatModel } from "./voicechat-model.ts";

/** Pauses before the attempts to get a lost call back. */
const RECONNECT_SECONDS = [1, 2, 4, 8, 15];
/** Servers that are full or away are asked again this often. */
const RETRIES_MAX = 20;
/** Shorter than this, a press was a slip. */
const HOLD_MS_MIN = 250;
/** What was said last is still on its way when the button is let go. */
const HOLD_TAIL_MS = 200;
const OVER_WEBSOCKET =
  "WebRTC did not get through: calls go over a WebSocket now. The settings can make that the rule.";
/** Refusals of what is no longer so: the page and the server changed their minds at the same time. */
const HARMLESS = [
  "response_cancel_not_active",
  "invalid_truncation",
  "item_not_found",
  "input_audio_buffer_commit_empty",
];

class App {
  #model: Conversation = new TalkModel();
  readonly #captions = new Captions();
  readonly #details = new Details();
  readonly #settings = new SettingsDialog(
    (now, before) => this.#settingsChanged(now, before),
    async () => (await this.#learn().catch(() => null))?.voices ?? [],
  );
  readonly #problem = new ProblemPanel((action) => this.#act(action));
  readonly #controls = new Controls({
    toggle: () => (this.#isIdle ? void this.#begin(true) : this.#end()),
    interrupt: () => this.#interrupt(),
    mute: (isMuted) => this.#call?.connection.setMicrophone(!isMuted),
    hold: (isHeld) => (isHeld ? this.#holdStarted() : this.#holdEnded()),
    say: (text) => void this.#say(text),
    levels: () => ({
      input: this.#call?.connection.inputLevel() ?? 0,
      output: this.#call?.connection.outputLevel() ?? 0,
    }),
  });
  #call: Call | null = null;
  /** Null until the server has told; forgotten with a call that failed. */
  #facts: ServerFacts | null = null;
  /** Set while a call is being opened. */
  #opening: AbortController | null = null;
  #withMicrophone = true;
  #retryCount = 0;
  #isReconnecting = false;
  #holdStartMs = 0;
  /** WebRTC did not get through: while the page is open, calls go another way. */
  #isWebRtcBlocked = false;
  /** The settings were opened for the key: with it, the call goes on. */
  #isKeyWanted = false;
  /** The browser asks the user for the microphone. */
  #isAsking = false;
  /** The session of the settings as the server has it. */
  #sentSession = "";

  constructor() {
    this.#render();
    // Whatever is in the way is said when a call begins.
    void this.#learn().catch(() => {});
    addEventListener("pagehide", () => this.#release());
  }

  get #isIdle(): boolean {
    return this.#call === null && this.#opening === null;
  }
  get #isPushToTalk(): boolean {
    return !this.#isDuplex && this.#settings.settings.turns === "push";
  }
  get #isDuplex(): boolean {
    return document.body.dataset["dialect"] === "voicechat";
  }
  get #transport(): Settings["transport"] {
    return this.#isWebRtcBlocked ? "websocket" : this.#settings.settings.transport;
  }
  /** @throws {TalkFailure} */
  async #learn(): Promise<ServerFacts> {
    this.#facts ??= await askServer(this.#settings.settings.key);
    document.body.dataset["dialect"] = this.#facts.dialect;
    this.#render();
    return this.#facts;
  }

  /** A new conversation. */
  async #begin(withMicrophone: boolean): Promise<void> {
    this.#model = this.#isDuplex ? new VoiceChatModel() : new TalkModel();
    this.#captions.clear();
    this.#withMicrophone = withMicrophone;
    this.#isReconnecting = false;
    this.#retryCount = 0;
    await this.#connect();
  }

  async #connect(): Promise<void> {
    const startMs = performance.now();
    const opening = new AbortController();
    this.#opening = opening;
    this.#problem.hide();
    this.#details.began();
    this.#render();
    try {
      const call = await this.#open(opening.signal, () => this.#details.connected(performance.now() - startMs));
      if (opening.signal.aborted) return call.close();
      this.#call = call;
      this.#connected(call);
    } catch (error) {
      if (!opening.signal.aborted) this.#failed(error);
    } finally {
      if (this.#opening === opening) this.#opening = null;
      this.#render();
    }
  }

  #open(signal: AbortSignal, created: () => void): Promise<Call> {
    const facts = this.#learn();
    // Its failure is waited for with the call; until then it is nobody's.
    facts.catch(() => {});
    return Call.open({
      settings: { ...this.#settings.settings, transport: this.#transport },
      withMicrophone: this.#withMicrophone,
      knownFacts: this.#facts,
      facts,
      session: (facts) => this.#sessionFor(facts),
      asking: (isAsking) => {
        this.#isAsking = isAsking;
        this.#render();
      },
      listener: {
        received: (event) => {
          if (event.type === "session.created") created();
          this.#received(event);
        },
        sent: (event) => this.#details.add("sent", event),
        playing: (isPlaying) => {
          this.#model.setPlaying(isPlaying, performance.now());
          this.#render();
        },
        note: (text) => this.#captions.note(text),
        lost: (problem) => this.#lost(problem),
      },
      signal,
    });
  }

  #sessionFor(facts: ServerFacts): Readonly<Record<string, unknown>> {
    this.#expect(facts);
    const session = sessionOf(this.#settings.settings, facts.dialect);
    this.#sentSession = JSON.stringify(session);
    return session;
  }

  /** A page that was open before the server could tell its dialect. */
  #expect({ dialect }: ServerFacts): void {
    const isExpected =
      dialect === "voicechat" ? this.#model instanceof VoiceChatModel : this.#model instanceof TalkModel;
    if (!isExpected) this.#model = dialect === "voicechat" ? new VoiceChatModel() : new TalkModel();
  }

  #connected({ connection, microphone }: Call): void {
    connection.setMicrophone(!this.#isPushToTalk && !this.#controls.isMuted);
    // What was chosen while the call was being opened.
    this.#updateSession();
    microphone?.getAudioTracks()[0]?.addEventListener("ended", () => {
      this.#captions.note("The microphone was taken away. End the call and start again to choose another.");
    });
    if (this.#isReconnecting && !this.#isDuplex) this.#restoreHistory(connection);
    this.#isReconnecting = false;
    this.#retryCount = 0;
  }

  /** The new session learns what was said in the lost one. */
  #restoreHistory(connection: RealtimeConnection): void {
    for (const { itemId, speaker, text, heardLength } of this.#model.captions) {
      const said = text.slice(0, heardLength ?? text.length).trim();
      if (said === "") continue;
      const role = speaker === "you" ? "user" : "assistant";
      const content = [{ type: speaker === "you" ? "input_text" : "output_text", text: said }];
      connection.send({ type: "conversation.item.create", item: { id: itemId, type: "message", role, content } });
    }
  }

  #received(event: ServerEvent): void {
    this.#details.add("received", event);
    const wanted = this.#model.apply(event, performance.now());
    if (wanted !== null) this.#send({ type: "conversation.item.retrieve", item_id: wanted.retrieve });
    if (event.type === "error") {
      const { code, message } = event["error"] as { code: string; message: string };
      if (code === "voice_locked") this.#captions.note("The new voice speaks from the next call on.");
      else if (!HARMLESS.includes(code) && this.#call !== null) this.#captions.note(message);
    }
    if (event.type === "response.done") {
      const { status_details: details } = event["response"] as { status_details?: { error?: { code: string } } };
      if (details?.error !== undefined) this.#captions.note(`The answer failed (${details.error.code}).`);
    }
    this.#render();
  }

  #send(event: ClientEvent): void {
    this.#call?.connection.send(event);
  }

  #failed(error: unknown): void {
    const { problem } = error instanceof TalkFailure ? error : unreachable(error);
    this.#facts = null;
    if (this.#isReconnecting && problem === mediaBlocked) this.#isWebRtcBlocked = true;
    if (this.#isReconnecting && this.#retryCount < RECONNECT_SECONDS.length) {
      this.#scheduleReconnect();
      return;
    }
    const isExhausted = this.#retryCount >= RETRIES_MAX || (this.#isReconnecting && problem.retrySeconds !== null);
    this.#show(isExhausted ? { ...(this.#isReconnecting ? connectionGone : problem), retrySeconds: null } : problem);
  }

  #show(problem: Problem): void {
    const known = problem === keyWanted && this.#settings.settings.key !== "" ? keyWrong : problem;
    const actions = known.actions.filter((action) => !(this.#isDuplex && action === "type"));
    this.#problem.show({ ...known, actions });
  }

  #lost(problem: Problem | null): void {
    this.#facts = null;
    this.#release();
    if (problem !== null) this.#show(problem);
    else this.#scheduleReconnect();
    this.#render();
  }

  #scheduleReconnect(): void {
    this.#isReconnecting = true;
    this.#problem.show(connectionLost(RECONNECT_SECONDS[this.#retryCount] ?? 15, !this.#isDuplex));
  }

  #act(action: ProblemAction): void {
    if (action === "retry") {
      this.#retryCount += 1;
      void this.#connect();
    }
    if (action === "type") {
      this.#withMicrophone = false;
      element("message").focus();
    }
    if (action === "settings") this.#settings.open();
    if (action === "key") {
      this.#isKeyWanted = true;
      this.#settings.open("key");
    }
    if (action === "websocket") {
      this.#isWebRtcBlocked = true;
      void this.#connect().then(() => this.#call !== null && this.#captions.note(OVER_WEBSOCKET));
    }
  }

  #end(): void {
    this.#opening?.abort(new DOMException("ended by the user", "AbortError"));
    this.#opening = null;
    this.#isReconnecting = false;
    this.#problem.hide();
    this.#release();
    this.#render();
  }

  #release(): void {
    this.#call?.close();
    this.#call = null;
    this.#model.disconnected();
  }

  #interrupt(): void {
    if (this.#model.responseId !== null) this.#send({ type: "response.cancel" });
    if (this.#model.isPlaying) this.#call?.connection.silence();
  }

  #holdStarted(): void {
    if (this.#call === null) return;
    this.#interrupt();
    this.#send({ type: "input_audio_buffer.clear" });
    this.#call.connection.setMicrophone(true);
    this.#holdStartMs = performance.now();
  }

  #holdEnded(): void {
    const call = this.#call;
    const heldMs = performance.now() - this.#holdStartMs;
    setTimeout(() => {
      if (call === null || this.#call !== call || this.#controls.isHeld) return;
      call.connection.setMicrophone(false);
      if (heldMs < HOLD_MS_MIN) {
        this.#send({ type: "input_audio_buffer.clear" });
        this.#controls.hint("Hold while you speak");
        return;
      }
      this.#send({ type: "input_audio_buffer.commit" });
      this.#respond();
    }, HOLD_TAIL_MS);
  }

  /** Text works without a call, and without a microphone. */
  async #say(text: string): Promise<void> {
    if (this.#isIdle) await this.#begin(false);
    this.#interrupt();
    this.#send({
      type: "conversation.item.create",
      item: { type: "message", role: "user", content: [{ type: "input_text", text }] },
    });
    this.#respond();
  }

  #respond(): void {
    if (this.#call === null) return;
    this.#model.turnEnded(performance.now());
    this.#send({ type: "response.create" });
    this.#render();
  }

  #settingsChanged(now: Settings, before: Settings): void {
    if (now.key !== before.key) {
      this.#facts = null;
      if (this.#isKeyWanted) void this.#connect();
      else void this.#learn().catch(() => {});
    }
    this.#isKeyWanted = false;
    const isChanged = this.#updateSession();
    if (now.transport !== before.transport) this.#isWebRtcBlocked = false;
    const needsCall = now.transport !== before.transport || now.deviceId !== before.deviceId || now.key !== before.key;
    if (this.#call !== null && needsCall && !(this.#isDuplex && isChanged))
      this.#captions.note("The new connection settings hold from the next call on.");
    this.#render();
  }

  /** Tells a running session what it does not know yet; true if there was something. */
  #updateSession(): boolean {
    if (this.#call === null) return false;
    const session = sessionOf(this.#settings.settings, this.#isDuplex ? "voicechat" : "openai");
    if (JSON.stringify(session) === this.#sentSession) return false;
    if (this.#isDuplex) {
      this.#captions.note("The new settings hold from the next call on.");
      return true;
    }
    this.#sentSession = JSON.stringify(session);
    this.#send({ type: "session.update", session });
    this.#call.connection.setMicrophone(!this.#isPushToTalk && !this.#controls.isMuted);
    return true;
  }

  #render(): void {
    this.#captions.render(this.#model.captions);
    this.#details.renderLatency(this.#model.turns);
    this.#controls.render({
      phase: this.#call !== null ? this.#model.phase : this.#opening !== null ? "connecting" : "idle",
      isAsking: this.#isAsking,
      isReconnecting: this.#isReconnecting,
      hasMicrophone: this.#call !== null && this.#call.microphone !== null,
      isPushToTalk: this.#isPushToTalk,
      isDuplex: this.#isDuplex,
      transport: this.#call === null ? null : this.#isDuplex ? "websocket" : this.#transport,
    });
  }
}

new App();

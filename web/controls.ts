/** The buttons, the state in words, and the ring that breathes with the voices. */
import { element } from "./page.ts";
import type { Phase } from "./talk-model.ts";

export interface ControlState {
  readonly phase: Phase | "idle" | "connecting";
  /** Connecting waits for the user to let the page use the microphone. */
  readonly isAsking: boolean;
  /** A call was lost and is to come back. */
  readonly isReconnecting: boolean;
  readonly hasMicrophone: boolean;
  readonly isPushToTalk: boolean;
  /** The model hears and speaks at once: it cannot be told to stop, and reads no text. */
  readonly isDuplex: boolean;
  readonly transport: "webrtc" | "websocket" | null;
}

export interface ControlActions {
  toggle(): void;
  interrupt(): void;
  mute(isMuted: boolean): void;
  hold(isHeld: boolean): void;
  say(text: string): void;
  levels(): { readonly input: number; readonly output: number };
}

const WORDS: Readonly<Record<ControlState["phase"], string>> = {
  idle: "Ready",
  connecting: "Connecting",
  listening: "Listening",
  hearing: "Hearing you",
  thinking: "Thinking",
  speaking: "Speaking",
};
const HINT_MS = 1800;
const METER_MS = 250;

export class Controls {
  readonly #actions: ControlActions;
  readonly #talk = element<HTMLButtonElement>("talk");
  readonly #mute = element<HTMLButtonElement>("mute");
  readonly #stop = element<HTMLButtonElement>("stop");
  readonly #hold = element<HTMLButtonElement>("hold");
  readonly #meter = element<HTMLMeterElement>("level");
  readonly #message = element<HTMLInputElement>("message");
  #state: ControlState = {
    phase: "idle",
    isAsking: false,
    isReconnecting: false,
    hasMicrophone: false,
    isPushToTalk: false,
    isDuplex: false,
    transport: null,
  };
  #hintTimer = 0;
  #hint = "";
  #level = 0;
  #meterMs = 0;
  isMuted = false;
  isHeld = false;

  constructor(actions: ControlActions) {
    this.#actions = actions;
    this.#talk.addEventListener("click", () => actions.toggle());
    this.#stop.addEventListener("click", () => actions.interrupt());
    this.#mute.addEventListener("click", () => this.#toggleMute());
    element<HTMLFormElement>("compose").addEventListener("submit", (event) => this.#submit(event));
    this.#hold.addEventListener("pointerdown", (event) => {
      this.#hold.setPointerCapture(event.pointerId);
      this.#setHeld(true);
    });
    for (const end of ["pointerup", "pointercancel", "blur"]) {
      this.#hold.addEventListener(end, () => this.#setHeld(false));
    }
    // A long press on a phone wants a menu; here it wants to talk.
    this.#hold.addEventListener("contextmenu", (event) => event.preventDefault());
    addEventListener("keydown", (event) => this.#key(event, true));
    addEventListener("keyup", (event) => this.#key(event, false));
    addEventListener("blur", () => this.#setHeld(false));
    requestAnimationFrame((nowMs) => this.#draw(nowMs));
  }

  render(state: ControlState): void {
    this.#state = state;
    const isOpen = state.phase !== "idle" && state.phase !== "connecting";
    document.body.dataset["phase"] = state.phase;
    const label = state.phase === "idle" ? "Start talking" : isOpen ? "End the call" : "Cancel";
    setText(element("talk-label"), label);
    this.#talk.title = label;
    setText(element("phase"), this.#words());
    const link = element("link");
    link.hidden = state.transport === null;
    setText(link, state.transport === "websocket" ? "WebSocket" : "WebRTC");
    this.#stop.hidden = !isOpen || state.isDuplex;
    element("compose").hidden = state.isDuplex;
    this.#stop.disabled = state.phase !== "speaking" && state.phase !== "thinking";
    this.#mute.hidden = !isOpen || !state.hasMicrophone || state.isPushToTalk;
    this.#hold.hidden = !(isOpen && state.isPushToTalk && state.hasMicrophone);
    if (this.#hold.hidden) this.#setHeld(false);
  }

  /** Something to know for a moment, in place of the state. */
  hint(text: string): void {
    this.#hint = text;
    clearTimeout(this.#hintTimer);
    this.#hintTimer = setTimeout(() => {
      this.#hint = "";
      setText(element("phase"), this.#words());
    }, HINT_MS);
    setText(element("phase"), text);
  }

  #words(): string {
    const { phase, isAsking, isReconnecting, isPushToTalk, hasMicrophone } = this.#state;
    if (this.#hint !== "") return this.#hint;
    if (this.isHeld) return WORDS.hearing;
    if (isReconnecting) return phase === "idle" ? "Not connected" : "Reconnecting";
    if (phase === "connecting" && isAsking) return "Allow the microphone to go on";
    if (phase !== "listening") return WORDS[phase];
    if (!hasMicrophone) return "Type a message";
    if (isPushToTalk) return "Your turn";
    return this.isMuted ? "Muted" : WORDS.listening;
  }

  #toggleMute(): void {
    this.isMuted = !this.isMuted;
    this.#mute.setAttribute("aria-pressed", String(this.isMuted));
    this.#actions.mute(this.isMuted);
    this.render(this.#state);
  }

  #setHeld(isHeld: boolean): void {
    if (isHeld === this.isHeld || (isHeld && this.#hold.hidden)) return;
    this.isHeld = isHeld;
    this.#hold.dataset["held"] = String(isHeld);
    this.#actions.hold(isHeld);
    setText(element("phase"), this.#words());
  }

  #key(event: KeyboardEvent, isDown: boolean): void {
    const target = event.target as HTMLElement;
    if (document.querySelector("dialog[open]") !== null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && isDown && !this.#stop.disabled && !this.#stop.hidden) this.#actions.interrupt();
    const isOther = target.matches("input, textarea, select, summary, button:not(#hold)");
    const isHoldKey = event.key === " " || (event.key === "Enter" && target === this.#hold);
    if (!isHoldKey || (isOther && isDown) || this.#hold.hidden) return;
    event.preventDefault();
    if (!event.repeat) this.#setHeld(isDown);
  }

  #submit(event: SubmitEvent): void {
    event.preventDefault();
    const text = this.#message.value.trim();
    if (text === "" || this.#state.phase === "connecting") return;
    this.#message.value = "";
    this.#actions.say(text);
  }

  #draw(nowMs: number): void {
    const { input, output } = this.#actions.levels();
    const target = this.#state.phase === "speaking" ? output : this.isMuted ? 0 : input;
    // Up at once, down gently.
    this.#level = Math.max(target, this.#level * 0.88);
    this.#talk.style.setProperty("--level", this.#level.toFixed(3));
    if (nowMs - this.#meterMs > METER_MS) {
      this.#meterMs = nowMs;
      this.#meter.value = Math.round(input * 20) / 20;
    }
    requestAnimationFrame((nextMs) => this.#draw(nextMs));
  }
}

/** A status that is written again is read aloud again. */
function setText(target: HTMLElement, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

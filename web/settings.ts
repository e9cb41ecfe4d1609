/** The choices that outlive the page, and the dialog that makes them. */
import { listMicrophones } from "./microphone.ts";
import { element, make } from "./page.ts";
import type { ServerFacts } from "./server.ts";

export interface Settings {
  readonly voice: string;
  readonly instructions: string;
  /** Of a full-duplex model: the same seed, instructions and audio give the same answer. */
  readonly seed: number;
  readonly turns: "semantic" | "silence" | "push";
  readonly transport: "webrtc" | "websocket";
  readonly deviceId: string;
  readonly key: string;
}

const DEFAULTS: Settings = {
  voice: "",
  instructions: "",
  seed: 0,
  turns: "semantic",
  transport: "webrtc",
  deviceId: "",
  key: "",
};
const STORE = "antiphon.settings";

export class SettingsDialog {
  readonly #dialog = element<HTMLDialogElement>("settings");
  readonly #form = this.#dialog.querySelector("form") as HTMLFormElement;
  readonly #voice = element<HTMLSelectElement>("voice");
  readonly #device = element<HTMLSelectElement>("device");
  readonly #onChange: (settings: Settings, before: Settings) => void;
  readonly #voices: () => Promise<readonly string[]>;
  #settings: Settings = load();

  constructor(onChange: (settings: Settings, before: Settings) => void, voices: () => Promise<readonly string[]>) {
    this.#onChange = onChange;
    this.#voices = voices;
    element("open-settings").addEventListener("click", () => this.open());
    this.#dialog.addEventListener("close", () => this.#read());
    // A click beside the dialog closes it, as its form would.
    this.#dialog.addEventListener("click", ({ target }) => {
      if (target === this.#dialog) this.#dialog.close();
    });
  }

  get settings(): Settings {
    return this.#settings;
  }

  /** Begins at `field`, or at the top. */
  open(field: "key" | null = null): void {
    this.#write();
    void this.#offerMicrophones();
    void this.#offerVoices();
    this.#dialog.showModal();
    if (field !== null) element(field).focus();
  }

  change(change: Partial<Settings>): void {
    const before = this.#settings;
    this.#settings = { ...before, ...change };
    save(this.#settings);
    this.#onChange(this.#settings, before);
  }

  /** The voices of the server, as far as it tells. */
  async #offerVoices(): Promise<void> {
    const voices = await this.#voices();
    offer(this.#voice, this.#settings.voice, [["", "Default"], ...voices.map((id) => [id, id] as const)]);
  }

  async #offerMicrophones(): Promise<void> {
    const devices = await listMicrophones();
    const choices = devices.map(({ deviceId, label }) => [deviceId, label] as const);
    offer(this.#device, this.#settings.deviceId, [["", "System default"], ...choices]);
  }

  #write(): void {
    const { voice, instructions, seed, turns, transport, deviceId, key } = this.#settings;
    offer(this.#voice, voice, [["", "Default"]]);
    offer(this.#device, deviceId, [["", "System default"]]);
    element<HTMLTextAreaElement>("instructions").value = instructions;
    element<HTMLInputElement>("seed").value = String(seed);
    element<HTMLInputElement>("key").value = key;
    (this.#form.elements.namedItem("turns") as RadioNodeList).value = turns;
    (this.#form.elements.namedItem("transport") as RadioNodeList).value = transport;
  }

  #read(): void {
    this.change({
      voice: this.#voice.value,
      instructions: element<HTMLTextAreaElement>("instructions").value.trim(),
      seed: Math.max(0, Math.trunc(Number(element<HTMLInputElement>("seed").value)) || 0),
      turns: (this.#form.elements.namedItem("turns") as RadioNodeList).value as Settings["turns"],
      transport: (this.#form.elements.namedItem("transport") as RadioNodeList).value as Settings["transport"],
      deviceId: this.#device.value,
      key: element<HTMLInputElement>("key").value.trim(),
    });
  }
}

/** A session of these settings, in the words of `session.update`. */
export function sessionOf(settings: Settings, dialect: ServerFacts["dialect"]): Readonly<Record<string, unknown>> {
  const { instructions, voice, turns, seed } = settings;
  if (dialect === "voicechat") return { ...(instructions === "" ? {} : { system_prompt: instructions }), seed };
  const detection = { semantic: { type: "semantic_vad" }, silence: { type: "server_vad" }, push: null }[turns];
  return {
    type: "realtime",
    output_modalities: ["audio"],
    ...(instructions === "" ? {} : { instructions }),
    audio: {
      input: { transcription: {}, turn_detection: detection },
      ...(voice === "" ? {} : { output: { voice } }),
    },
  };
}

/** The choices of `select`, with the one that is set even where it is not among them. */
function offer(select: HTMLSelectElement, chosen: string, choices: readonly (readonly [string, string])[]): void {
  const all = choices.some(([value]) => value === chosen) ? choices : [...choices, [chosen, chosen] as const];
  select.replaceChildren(
    ...all.map(([value, label]) => {
      const option = make("option", "", label);
      option.value = value;
      return option;
    }),
  );
  select.value = chosen;
}

function load(): Settings {
  try {
    const stored = JSON.parse(localStorage.getItem(STORE) ?? "{}") as Partial<Settings>;
    return { ...DEFAULTS, ...stored, key: sessionStorage.getItem(STORE) ?? "" };
  } catch {
    return DEFAULTS;
  }
}

/** The key stays with the tab. */
function save({ key, ...rest }: Settings): void {
  try {
    localStorage.setItem(STORE, JSON.stringify(rest));
    sessionStorage.setItem(STORE, key);
  } catch {
    // A browser that keeps nothing forgets the choices with the page, no more.
  }
}

/** What the talk page makes heard, recorded in the page: the remote track of a call, or what its worklet plays. */
import type { Page } from "playwright-core";

// Functions given to the page run there; tests are compiled without the browser's types.
// biome-ignore lint/suspicious/noExplicitAny: see above
declare const window: any;

export const SOUND_HZ = 24_000;

/** Before the page loads, in a context with `bypassCSP`: the recorder is no script of the page. */
export async function recordSound(page: Page): Promise<void> {
  await page.addInitScript(record);
}

/** All since the page was loaded, at `SOUND_HZ`. */
export async function takeSound(page: Page): Promise<Float32Array> {
  const bytes = Buffer.from(await page.evaluate(() => window.takeSound()), "base64");
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

/** A voice came, and a second of quiet after it: what is buffered plays on when the server has sent everything. */
export async function untilHeard(page: Page): Promise<void> {
  await page.waitForFunction(() => window.hasHeardAll());
}

/** In the page. */
function record(): void {
  const chunks: Float32Array[] = [];
  const source = `registerProcessor("recorder", class extends AudioWorkletProcessor {
    process([[samples]]) {
      if (samples !== undefined) this.port.postMessage(samples.slice());
      return true;
    }
  })`;
  // Its output, which is silence, only makes the browser run it.
  const recorder = async (context: typeof window): Promise<typeof window> => {
    await context.audioWorklet.addModule(window.URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    const node = new window.AudioWorkletNode(context, "recorder");
    node.port.onmessage = ({ data }: { data: Float32Array }) => chunks.push(data);
    node.connect(context.destination);
    return node;
  };
  const Peer = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Peer {
    constructor(...given: unknown[]) {
      super(...given);
      (this as unknown as typeof window).addEventListener("track", async ({ track }: { track: unknown }) => {
        const context = new window.AudioContext({ sampleRate: 24_000 });
        context.createMediaStreamSource(new window.MediaStream([track])).connect(await recorder(context));
      });
    }
  };
  const connect = window.AudioNode.prototype.connect;
  window.AudioNode.prototype.connect = function (target: unknown, ...given: unknown[]) {
    const isPlayer = this instanceof window.AudioWorkletNode && this.numberOfInputs === 0;
    if (isPlayer && target === this.context.destination)
      void recorder(this.context).then((node) => connect.call(this, node));
    return connect.call(this, target, ...given);
  };
  const isLoud = (chunk: Float32Array): boolean => chunk.some((x) => Math.abs(x) > 0.02);
  window.hasHeardAll = () => {
    const last = chunks.findLastIndex(isLoud);
    const quiet = chunks.slice(last + 1).reduce((samples, chunk) => samples + chunk.length, 0);
    return last >= 0 && quiet > 24_000;
  };
  window.takeSound = () => {
    let text = "";
    for (const chunk of chunks) for (const byte of new Uint8Array(chunk.buffer)) text += String.fromCharCode(byte);
    return window.btoa(text);
  };
}

/** The part of sherpa-onnx-node that `sherpa.ts` uses; the package has no types of its own. */
declare module "sherpa-onnx-node" {
  export interface OfflineStream {
    acceptWaveform(wave: { samples: Float32Array; sampleRate: number }): void;
  }
  export class OfflineRecognizer {
    static createAsync(config: unknown): Promise<OfflineRecognizer>;
    createStream(): OfflineStream;
    setConfig(config: unknown): void;
    decodeAsync(stream: OfflineStream): Promise<{ text: string }>;
  }
  export class OfflineTts {
    static createAsync(config: unknown): Promise<OfflineTts>;
    readonly numSpeakers: number;
    readonly sampleRate: number;
    generateAsync(request: {
      text: string;
      sid: number;
      speed: number;
      enableExternalBuffer: boolean;
      onProgress?: (info: { samples: Float32Array; progress: number }) => boolean;
    }): Promise<{ samples: Float32Array; sampleRate: number }>;
  }
  const sherpa: { OfflineRecognizer: typeof OfflineRecognizer; OfflineTts: typeof OfflineTts };
  export default sherpa;
}

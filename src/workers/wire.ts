/** Messages between the host and a worker process, and errors as plain values. */
import { AppError, EngineError, type EngineStage, type ErrorCode, type ErrorDetails } from "../errors.ts";

export type ToWorker =
  | { readonly type: "load"; readonly moduleUrl: string; readonly options: unknown }
  | { readonly type: "call"; readonly id: number; readonly name: string; readonly input: unknown }
  | { readonly type: "cancel"; readonly id: number };

export type FromWorker =
  | { readonly type: "ready"; readonly methods: readonly string[] }
  | { readonly type: "load-failed"; readonly error: PlainError }
  | { readonly type: "part"; readonly id: number; readonly part: unknown }
  | { readonly type: "result"; readonly id: number; readonly output: unknown }
  | { readonly type: "error"; readonly id: number; readonly error: PlainError };

export interface PlainError {
  /** Null for an error that is not ours. */
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly details: ErrorDetails;
  readonly retryable: boolean;
}

export function plainError(error: unknown): PlainError {
  if (error instanceof AppError) {
    return { code: error.code, message: error.message, details: error.details, retryable: error.retryable };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { code: null, message, details: {}, retryable: false };
}

/** The error that the caller sees: of the worker's stage, under the code it was raised with. */
export function engineError(stage: EngineStage, plain: PlainError): EngineError {
  return new EngineError(stage, plain.message, {
    ...(plain.code === null ? {} : { code: plain.code }),
    details: plain.details,
    retryable: plain.retryable,
  });
}

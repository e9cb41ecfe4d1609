/** An AppError in the shapes that OpenAI's clients read: a JSON body over HTTP, an `error` event on a session. */
import { type AppError, ClientError } from "../errors.ts";
import type { IdSource } from "../util/ids.ts";

interface ErrorObject {
  readonly type: string;
  readonly code: string;
  readonly message: string;
  readonly param?: string;
}

function errorObject(error: AppError): ErrorObject {
  const param = error instanceof ClientError ? error.param : null;
  const { wireType } = error.entry;
  return { type: wireType, code: error.code, message: error.message, ...(param === null ? {} : { param }) };
}

/** HTTP wants `param` always. */
export interface ErrorBody {
  readonly error: Omit<ErrorObject, "param"> & { readonly param: string | null };
}

export function errorBody(error: AppError): ErrorBody {
  const { param, ...object } = errorObject(error);
  return { error: { ...object, param: param ?? null } };
}

/** For a peer that is refused before it has a session. */
export function errorEvent(error: AppError, ids: IdSource): string {
  return JSON.stringify({ type: "error", event_id: ids("event"), error: errorObject(error) });
}

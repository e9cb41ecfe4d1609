/** Where the server stands between its start and its end, as `/health` tells it. */

import type { Engine } from "../engines/engine.ts";
import { type AppError, CapacityError } from "../errors.ts";

export class Readiness {
  #engine: Engine | null = null;
  #waitingFor: readonly string[] = ["the engine"];
  #failure: AppError | null = null;

  /** What is not ready yet: stages and models, in words. */
  loading(waitingFor: readonly string[]): void {
    this.#waitingFor = waitingFor;
  }
  ready(engine: Engine): void {
    this.#engine = engine;
    this.#waitingFor = [];
  }
  failed(error: AppError): void {
    this.#failure = error;
  }
  get isReady(): boolean {
    return this.#engine !== null;
  }
  /** Also once it is ready: what of the engine is being restarted. */
  get waitingFor(): readonly string[] {
    return this.#engine?.recovering ?? this.#waitingFor;
  }
  get failure(): AppError | null {
    return this.#failure;
  }
  /** @throws {AppError} server_loading, or why the engine did not come up. */
  engine(): Engine {
    if (this.#engine !== null) return this.#engine;
    if (this.#failure !== null) throw this.#failure;
    throw new CapacityError("server_loading", `Still loading: ${this.#waitingFor.join(", ")}. Try again in a moment.`, {
      retryable: true,
    });
  }
}

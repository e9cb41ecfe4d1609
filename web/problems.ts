/** What can go wrong, each with what to do about it. */

export interface Problem {
  readonly title: string;
  readonly advice: string;
  /** What the page offers. It takes the first by itself after `retrySeconds`, if any. */
  readonly actions: readonly ProblemAction[];
  readonly retrySeconds: number | null;
}

export type ProblemAction = "retry" | "type" | "websocket" | "settings" | "key" | "dismiss";

/** A failure that the page knows how to explain. */
export class TalkFailure extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.title);
    this.problem = problem;
  }
}

const problem = (
  title: string,
  advice: string,
  actions: readonly ProblemAction[],
  retrySeconds: number | null = null,
): Problem => ({ title, advice, actions, retrySeconds });

/** Why there is no microphone. */
export function microphoneProblem(error: unknown): Problem {
  const name = error instanceof DOMException ? error.name : "";
  if (name === "NotAllowedError" || name === "SecurityError") {
    return problem(
      "The microphone is blocked",
      "Allow it for this page, by the icon beside the address, then try again.",
      ["retry", "type"],
    );
  }
  if (name === "NotFoundError" || name === "OverconstrainedError") {
    return problem("No microphone was found", "Connect one, or choose another in the settings, then try again.", [
      "retry",
      "settings",
      "type",
    ]);
  }
  if (name === "NotReadableError" || name === "AbortError") {
    return problem(
      "The microphone does not answer",
      "Another program may be using it. Close that program, then try again.",
      ["retry", "type"],
    );
  }
  return problem("The microphone cannot be used", error instanceof Error ? error.message : String(error), [
    "retry",
    "type",
  ]);
}

export const microphoneSilent: Problem = problem(
  "The microphone does not answer",
  "Connect it again or choose another in the settings, then try again.",
  ["retry", "settings", "type"],
);

export const insecurePage: Problem = problem(
  "This page may not use the microphone",
  "Browsers allow it only on https or on localhost. Start the server with --tls self-signed and open its https address.",
  ["type"],
);

export const mediaBlocked: Problem = problem(
  "The call does not get through",
  "The network between here and the server blocks WebRTC. A WebSocket goes where web pages go.",
  ["websocket", "retry"],
  5,
);

export const callSlow: Problem = problem(
  "The call did not open in time",
  "The server or the network is very busy.",
  ["retry", "dismiss"],
  4,
);

export const serverAway: Problem = problem(
  "The server does not answer",
  "Check that antiphon serve is running and that you are online.",
  ["retry", "dismiss"],
  4,
);

export const keyWanted: Problem = problem("The server wants an API key", "Whoever runs it has the key.", [
  "key",
  "dismiss",
]);

export const keyWrong: Problem = problem(
  "The server does not take this API key",
  "Look for a missing or wrong letter, or ask whoever runs the server.",
  ["key", "dismiss"],
);

/** What the server said no with. `code` is its error code, or "" where there was none. */
export function refusal(code: string, message: string, retrySeconds: number | null): Problem {
  if (code === "session_limit_reached" || code === "server_busy") {
    return problem(
      "The server is full",
      "All of its sessions are in use. A place may come free in a moment.",
      ["retry", "dismiss"],
      retrySeconds ?? 5,
    );
  }
  if (code === "server_loading") {
    return problem("The models are still loading", "The first start takes a while.", ["retry", "dismiss"], 3);
  }
  if (code === "server_draining") {
    return problem("The server is restarting", "It takes no new calls just now.", ["retry", "dismiss"], 5);
  }
  if (code === "invalid_api_key") {
    return keyWanted;
  }
  if (code === "idle_timeout") {
    return problem("The call was closed", "Nothing was heard for a long time.", ["retry", "dismiss"]);
  }
  if (code === "not_implemented") {
    return problem("This server has no WebRTC", message, ["websocket", "dismiss"]);
  }
  return problem("The server refused the call", message === "" ? code : message, ["retry", "dismiss"]);
}

/** Why a full-duplex session ends: its error codes, and two that close codes stand for. */
export function duplexProblem(code: string, message: string): Problem {
  if (code === "session_initialization_failed") {
    return problem("The settings were refused", message, ["settings", "retry"]);
  }
  if (code === "inference_error") return problem("The session has ended", message, ["retry", "dismiss"]);
  if (code === "model_failed") {
    return problem("The model failed", "The server's log says why.", ["retry", "dismiss"]);
  }
  return refusal(code, message, null);
}

/** A call that ran and broke off. */
export const connectionLost = (retrySeconds: number, isKept: boolean): Problem =>
  problem(
    "The connection was lost",
    isKept ? "Your conversation is kept." : "The next session begins anew.",
    ["retry", "dismiss"],
    retrySeconds,
  );

export const connectionGone: Problem = problem(
  "The connection was lost",
  "Reconnecting did not work. Check the network and the server, then try again.",
  ["retry", "dismiss"],
);

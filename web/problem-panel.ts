/** What went wrong and what to do, with a countdown where the page tries again by itself. */
import { element, make } from "./page.ts";
import type { Problem, ProblemAction } from "./problems.ts";

const LABELS: Readonly<Record<ProblemAction, string>> = {
  retry: "Try again",
  type: "Type instead",
  websocket: "Use a WebSocket",
  settings: "Settings",
  key: "Enter the key",
  dismiss: "Close",
};

interface Offer {
  readonly action: ProblemAction;
  readonly button: HTMLButtonElement;
}

export class ProblemPanel {
  readonly #panel = element("problem");
  readonly #onAction: (action: ProblemAction) => void;
  #timer = 0;

  constructor(onAction: (action: ProblemAction) => void) {
    this.#onAction = onAction;
  }

  show(problem: Problem): void {
    clearInterval(this.#timer);
    element("problem-title").textContent = problem.title;
    const isTypingOffered = problem.actions.includes("type");
    element("problem-advice").textContent = problem.advice + (isTypingOffered ? " You can also type." : "");
    const buttons = problem.actions.map((action, index) => {
      const button = make("button", index === 0 ? "primary" : "quiet", LABELS[action]);
      button.type = "button";
      button.addEventListener("click", () => {
        this.hide();
        this.#onAction(action);
      });
      return { action, button };
    });
    element("problem-actions").replaceChildren(...buttons.map(({ button }) => button));
    this.#panel.hidden = false;
    const first = buttons[0];
    if (problem.retrySeconds !== null && first !== undefined) this.#countDown(problem.retrySeconds, first);
  }

  hide(): void {
    clearInterval(this.#timer);
    // Focus does not vanish with the button that had it.
    if (this.#panel.contains(document.activeElement)) element("talk").focus();
    this.#panel.hidden = true;
  }

  /** The button counts, the announcement does not repeat. */
  #countDown(seconds: number, { action, button }: Offer): void {
    let left = seconds;
    const label = (): void => {
      button.textContent = `${LABELS[action]} (${left} s)`;
    };
    label();
    this.#timer = setInterval(() => {
      left -= 1;
      if (left > 0) return label();
      this.hide();
      this.#onAction(action);
    }, 1000);
  }
}

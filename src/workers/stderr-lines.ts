/** Cuts what a child prints into lines for the log: long lines are cut short, and a flood is counted instead of kept. */

const LINE_CHARACTERS_MAX = 500;
const LINES_MAX = 1_000;

export class StderrLines {
  readonly #write: (line: string) => void;
  #rest = "";
  #lines = 0;
  constructor(write: (line: string) => void) {
    this.#write = write;
  }
  push(chunk: Uint8Array): void {
    const pieces = (this.#rest + Buffer.from(chunk).toString("utf8")).split("\n");
    this.#rest = (pieces.pop() ?? "").slice(0, LINE_CHARACTERS_MAX);
    for (const piece of pieces) this.#line(piece.trim());
  }
  #line(line: string): void {
    if (line === "") return;
    this.#lines += 1;
    if (this.#lines < LINES_MAX) this.#write(line.slice(0, LINE_CHARACTERS_MAX));
    else if (this.#lines === LINES_MAX) this.#write("further output of this process is not logged");
  }
}

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Chunker, type ChunkerOptions, type Clause } from "../../src/text/chunker.ts";
import { chunkSizes } from "../support/chunks.ts";

function clausesOf(text: string, sizes: readonly number[] = [1], options: ChunkerOptions = {}): Clause[] {
  const chunker = new Chunker(options);
  const clauses: Clause[] = [];
  const usable = sizes.some((size) => size > 0) ? sizes : [1];
  for (let at = 0, i = 0; at < text.length; i++) {
    const size = usable[i % usable.length]!;
    clauses.push(...chunker.push(text.slice(at, at + size)));
    at += size;
  }
  return [...clauses, ...chunker.finish()];
}

const texts = (text: string, options?: ChunkerOptions): string[] => clausesOf(text, [1], options).map((c) => c.text);
const spoken = (text: string): string[] =>
  clausesOf(text)
    .map((clause) => clause.spoken)
    .filter((said) => said !== "");

describe("the first clause", () => {
  it("is a short sentence at once", () => {
    expect(texts("Sure! The capital of France is Paris.")[0]).toBe("Sure! ");
  });
  it("ends at a comma, a colon or a dash after a few words", () => {
    expect(texts("The capital of France, as you may know, is Paris.")[0]).toBe("The capital of France, ");
    expect(texts("Here is the answer: forty-two it is, my friend.")[0]).toBe("Here is the answer: ");
    expect(texts("That is easy — you just have to press it.")[0]).toBe("That is easy — ");
  });
  it("does not end at the comma behind the first word", () => {
    expect(texts("Well, that depends on the weather, I think.")[0]).toBe("Well, that depends on the weather, ");
  });
  it("ends after ten words at the latest, where a speaker may breathe", () => {
    const [first] = texts("The largest planet of our whole solar system is called Jupiter because the Romans liked it");
    expect(first!.trim().split(" ").length).toBeLessThanOrEqual(10);
    expect(texts("I would really love to show you that because it is very nice to see")[0]).toBe(
      "I would really love to show you that ",
    );
  });
  it("comes as soon as the next word begins, not later", () => {
    const chunker = new Chunker();
    expect(chunker.push("The capital of France,")).toEqual([]);
    expect(chunker.push(" ")).toEqual([]);
    expect(chunker.push("i")).toEqual([{ text: "The capital of France, ", spoken: "The capital of France," }]);
  });
  it("comes early in an enumeration of numbers too", () => {
    expect(texts("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20.")[0]).toBe("1, 2, 3, ");
    expect(texts("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27")[0]!.length).toBeLessThan(
      60,
    );
  });
  it("is not used up by what cannot be said", () => {
    const clauses = clausesOf("```\ncode\n```\n😀\nSure! And more of it follows here.");
    expect(clauses.find((clause) => clause.spoken !== "")!.spoken).toBe("Sure!");
  });
});

describe("later clauses", () => {
  const opening = "This is the beginning of a rather long answer, and it gives the voice something to say first. ";
  it("are sentences, short ones joined", () => {
    const rest = "Yes. No. Maybe so. It depends on a great many things that nobody can know today. The end.";
    expect(texts(opening + rest).slice(-2)).toEqual([
      "Yes. No. Maybe so. It depends on a great many things that nobody can know today. ",
      "The end.",
    ]);
  });
  it("are divided at a pause where they grow too long", () => {
    const long = `${"a word and ".repeat(12)}then, ${"some more of it ".repeat(20)}`;
    const clauses = texts(opening + long, { clauseCharsMax: 200 });
    expect(Math.max(...clauses.map((text) => text.length))).toBeLessThan(220);
    expect(clauses.some((text) => text.endsWith("then, "))).toBe(true);
  });
});

describe("a clause does not end inside", () => {
  it.each([
    ["a number", "It is 3.14 or so, and it costs $1,000.50 or 1 000 times that much in all."],
    ["a title", "I have met Dr. Smith and Mr. J. R. Jones yesterday."],
    ["an abbreviation", "Bring fruit, e.g. apples, i.e. what grows here in the U.S. today."],
    ["an address", "Go to https://a.b/c,d.e now."],
    ["a link", "See [the docs, or so. Yes](https://e.com/a b) now."],
    ["inline code", "Run `a, b. C` now, please do it."],
    ["a date", "It was on Nov. 30, 2026 here."],
    ["a formula", "So \\(a, b. C\\) holds for all of them."],
  ])("%s", (_, text) => {
    const ends = texts(text, { firstWordsMin: 1, joinChars: 1 }).slice(0, -1);
    for (const end of ends) {
      expect(end).not.toMatch(/\b(?:Dr|Mr|J|R|e\.g|i\.e|Nov|U\.S)\. $|\d[.,] ?$|\$$/);
      expect(end).not.toMatch(/https?:\S*$|\[[^\]]*$|\([^)]*$/);
      expect((end.match(/`/g) ?? []).length % 2).toBe(0);
    }
  });
  it("an item and its number", () => {
    expect(texts("1. Mix the flour and water. 2. Bake it.\n")[0]).toMatch(/^1\. Mix/);
  });
  it("quotation marks behind a full stop", () => {
    expect(texts('He said "Go now." Then he left the house.')[0]).toBe('He said "Go now." ');
  });
});

describe("what cannot be said", () => {
  it("is passed on without being spoken", () => {
    const text = "Here you are:\n\n```python\nprint('hi, there')\n# and. So\n```\nThat is it.";
    expect(spoken(text)).toEqual(["Here you are:", "That is it."]);
    expect(texts(text).join("")).toBe(text);
  });
  it("includes a code block that never ends, and one inside a list", () => {
    expect(spoken("Look:\n~~~\nx = 1\n```\ny = 2")).toEqual(["Look:"]);
    expect(spoken("Look:\n- ```\n  x = 1\n  ```\nDone.")).toEqual(["Look:", "Done."]);
    expect(spoken("Look:\r\n```js\r\n```python\r\nx = 1\r\n```\r\nDone.")).toEqual(["Look:", "Done."]);
  });
  it("is not a sentence that goes on in the next clause", () => {
    const [first] = clausesOf("- The largest planet of our whole solar system is called Jupiter because of that");
    expect(first!.spoken).not.toMatch(/\.$/);
  });
  it("says tables row by row", () => {
    expect(spoken("| Name | Age |\n|---|---|\n| Ann, B. | 30 |\n").join(" ")).toBe("Name, Age. Ann, B. thirty.");
  });
});

it("does not wait for the end of what only looked like a link, code or a tag", () => {
  for (const opened of ["rock `n roll", "the range [0, 1)", "if a <b"]) {
    const text = `Look at ${opened} is what it says, ${"and on it goes with that, ".repeat(6)}`;
    expect(texts(text)[0]!.length).toBeLessThan(110);
  }
});

it("divides scripts without spaces at their own stops", () => {
  expect(texts("你好。今天天气很好，我们去公园吧！好的")).toEqual([
    "你好。",
    "今天天气很好，",
    "我们去公园吧！",
    "好的",
  ]);
});

it("divides text without any spaces at some point", () => {
  const clauses = texts("x".repeat(5000));
  expect(Math.max(...clauses.map((text) => text.length))).toBeLessThanOrEqual(1000);
  expect(clauses.join("").length).toBe(5000);
});

it("begins a new text after finish", () => {
  const chunker = new Chunker();
  chunker.push("```\nopen code");
  chunker.finish();
  expect(chunker.push("Sure! And")).toEqual([{ text: "Sure! ", spoken: "Sure!" }]);
  expect(chunker.finish()).toEqual([{ text: "And", spoken: "And" }]);
  expect(chunker.finish()).toEqual([]);
});

const fragments = fc.constantFrom(
  ..."Yes|. |, |! |? |: | — |\n|\n\n| and |because | the |3.14|$1,000|Dr. |e.g. |Nov 30, 2026|http://a.b/c,d|`a, b`|```\n|~~~\n|- |1. |[x](|)|**|_|| a |😀|。|你好，|\ud83d|\ude00|\" |'|(|)|<b>|word |another |something |\t|  |\\(x|\\)".split(
    "|",
  ),
);
const writing = fc.array(fragments, { maxLength: 120 }).map((parts) => parts.join(""));

it("loses nothing, and divides alike for every chunking", () => {
  fc.assert(
    fc.property(writing, chunkSizes(40), (text, sizes) => {
      const clauses = clausesOf(text, sizes);
      expect(clauses.map((clause) => clause.text).join("")).toBe(text);
      expect(clauses).toEqual(clausesOf(text, [text.length + 1]));
      expect(clauses.every((clause) => clause.text !== "")).toBe(true);
    }),
    { seed: 13, numRuns: 500 },
  );
});

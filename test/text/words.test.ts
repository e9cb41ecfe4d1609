import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { heardText, wordSpans, words } from "../../src/text/words.ts";
import { wordErrors } from "../support/word-errors.ts";

describe("words", () => {
  it.each([
    ["Hello, World!", ["hello", "world"]],
    ["don’t 'quote' it's", ["don't", "quote", "it's"]],
    ["a well-known 3.14, 1,000 and 15:30.", ["a", "well", "known", "3.14", "1,000", "and", "15:30"]],
    ["Ünïcode ﬁne ＡＢＣ", ["ünïcode", "fine", "abc"]],
    ["你好 world です", ["你", "好", "world", "で", "す"]],
    ["— … !", []],
    ["", []],
  ])("%j", (text, expected) => {
    expect(words(text)).toEqual(expected);
  });
  it("says where each word is", () => {
    const text = "  Oh, it's 5.";
    expect(wordSpans(text).map(({ start, end }) => text.slice(start, end))).toEqual(["Oh", "it's", "5"]);
  });
});

describe("wordErrors", () => {
  it.each([
    ["the cat sat", "the cat sat", 0, 0, 0],
    ["the cat sat", "The cat, sat!", 0, 0, 0],
    ["the cat sat", "the dog sat", 1, 0, 0],
    ["the cat sat", "the sat", 0, 1, 0],
    ["the cat sat", "the big cat sat", 0, 0, 1],
    ["the cat sat", "", 0, 3, 0],
    ["It is 25 km & 5%.", "it is twenty-five kilometers and five percent", 0, 0, 0],
  ])("%j against %j", (reference, hypothesis, substitutions, deletions, insertions) => {
    expect(wordErrors(reference, hypothesis)).toMatchObject({ substitutions, deletions, insertions });
  });
  it("is a rate over the words of the reference", () => {
    expect(wordErrors("one two three four", "one two three")).toMatchObject({ words: 4, rate: 0.25 });
    expect(wordErrors("one", "two three")).toMatchObject({ words: 1, rate: 2 });
    expect(wordErrors("", "")).toMatchObject({ words: 0, rate: 0 });
    expect(wordErrors("", "noise")).toMatchObject({ words: 0, rate: 1 });
  });
  it("counts the fewest errors: never more than replacing all", () => {
    const text = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 12 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        const there = wordErrors(a.join(" "), b.join(" "));
        const back = wordErrors(b.join(" "), a.join(" "));
        const errors = there.substitutions + there.deletions + there.insertions;
        expect(errors).toBe(back.substitutions + back.deletions + back.insertions);
        expect(errors).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(errors).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
        expect(there.words + there.insertions - there.deletions).toBe(b.length);
      }),
      { seed: 15 },
    );
  });
});

describe("heardText", () => {
  const text = "The capital of France is Paris, which is on the Seine. (It is big.)";
  it("is a beginning of the text that grows with the fraction, on word boundaries", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true }), (a, b) => {
        const [less, more] = [heardText(text, Math.min(a, b)), heardText(text, Math.max(a, b))];
        expect(text.startsWith(more)).toBe(true);
        expect(more.startsWith(less)).toBe(true);
        expect(/[\p{L}\p{N}]$/u.test(more) && /^[\p{L}\p{N}]/u.test(text.slice(more.length))).toBe(false);
      }),
      { seed: 16, numRuns: 300 },
    );
  });
  it("keeps the punctuation behind the last word, and opens nothing", () => {
    expect(heardText("Yes, I do. Really", 0.3)).toBe("Yes,");
    expect(heardText("one two (three four)", 0.45)).toBe("one two");
  });
  it("counts a word of which more than half was heard", () => {
    expect(heardText("abcdefghi abcdefghi", 0.2)).toBe("");
    expect(heardText("abcdefghi abcdefghi", 0.3)).toBe("abcdefghi");
    expect(heardText("abcdefghi abcdefghi", 0.7)).toBe("abcdefghi");
    expect(heardText("abcdefghi abcdefghi", 0.8)).toBe("abcdefghi abcdefghi");
  });
  it("takes all, nothing, and fractions that are none", () => {
    expect(heardText(text, 1)).toBe(text);
    expect(heardText(text, 7)).toBe(text);
    expect(heardText(text, 0)).toBe("");
    expect(heardText(text, Number.NaN)).toBe("");
    expect(heardText("", 0.5)).toBe("");
    expect(heardText("…!", 0.5)).toBe("");
  });
  it("gives no time to what is written and not said", () => {
    const code = "```js\nconst a = await import('everything');\n```\n";
    expect(heardText(`${code}Stop. Go`, 0.5)).toBe(`${code}Stop.`);
    const link = "See [the docs](https://example.com/a/very/long/path-that-nobody-says) now";
    expect(heardText(link, 0.5)).toBe("See [the");
    expect(heardText(link, 0.8)).toBe(link.slice(0, -" now".length));
    expect(heardText("Go to https://a.io/b/c/d/e/f/g/h/i/j now", 0.99)).toBe(
      "Go to https://a.io/b/c/d/e/f/g/h/i/j now",
    );
  });
  it("gives long words and pauses their time", () => {
    expect(heardText("I internationalize", 0.3)).toBe("I");
    expect(heardText("Stop. Go", 0.5)).toBe("Stop.");
    expect(heardText("你好，世界", 0.5)).toBe("你好，");
  });
});

import { describe, expect, it } from "vitest";
import { cardinal, decimal, digitByDigit, ordinal, plural, year } from "../../src/text/number-words.ts";

describe("number words", () => {
  it.each([
    ["0", "zero"],
    ["10", "ten"],
    ["19", "nineteen"],
    ["80", "eighty"],
    ["101", "one hundred one"],
    ["999", "nine hundred ninety-nine"],
    ["1000", "one thousand"],
    ["10010", "ten thousand ten"],
    ["1000001", "one million one"],
    ["00012", "twelve"],
    [
      "999999999999999999",
      `nine hundred ninety-nine quadrillion nine hundred ninety-nine trillion nine hundred ninety-nine billion nine hundred ninety-nine million nine hundred ninety-nine thousand nine hundred ninety-nine`,
    ],
  ])("cardinal %s", (digits, words) => {
    expect(cardinal(digits)).toBe(words);
  });
  it("reads digits where there is no word for the size", () => {
    expect(cardinal("1".repeat(25))).toBe(Array(25).fill("one").join(" "));
  });
  it.each([
    ["1", "first"],
    ["5", "fifth"],
    ["8", "eighth"],
    ["9", "ninth"],
    ["12", "twelfth"],
    ["30", "thirtieth"],
    ["42", "forty-second"],
    ["1000", "one thousandth"],
  ])("ordinal %s", (digits, words) => {
    expect(ordinal(digits)).toBe(words);
  });
  it.each([
    ["1600", "sixteen hundred"],
    ["1776", "seventeen seventy-six"],
    ["1901", "nineteen oh one"],
    ["2000", "two thousand"],
    ["2009", "two thousand nine"],
    ["2010", "twenty ten"],
    ["2100", "twenty-one hundred"],
  ])("year %s", (digits, words) => {
    expect(year(digits)).toBe(words);
  });
  it("reads decimals and digits, and makes plurals", () => {
    expect(decimal("1,234.50")).toBe("one thousand two hundred thirty-four point five zero");
    expect(digitByDigit("0451")).toBe("zero four five one");
    expect([plural("twenty"), plural("hundred"), plural("six")]).toEqual(["twenties", "hundreds", "sixes"]);
  });
});

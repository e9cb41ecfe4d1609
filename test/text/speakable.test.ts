import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { speakable } from "../../src/text/speakable.ts";

/** What is written, and what is said. */
const CASES: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  "plain text": [
    ["Hello, how are you?", "Hello, how are you?"],
    ["  spaced \n out\ttext ", "spaced out text"],
    ["Let's go — it's “late”…", "Let's go, it's late…"],
    ["He left (quietly).", "He left, quietly."],
    ["What?! No!!!", "What? No!"],
    ["the dogs' tails and 'quoted' words", "the dogs tails and quoted words"],
    ["well-known state-of-the-art", "well-known state-of-the-art"],
    ["a\u200bb\u00a0c\u00ad", "ab c"],
    ["naïve café, Zürich, 東京", "naïve café, Zürich, 東京"],
    ["", ""],
    ["...", ""],
    [" \n\n ", ""],
  ],
  markdown: [
    ["# Heading\nText", "Heading. Text"],
    ["## What is it? ##", "What is it?"],
    ["Title\n=====\nText", "Title. Text"],
    ["**Bold**, *italic*, ***both***, __bold__ and _italic_.", "Bold, italic, both, bold and italic."],
    ["~~gone~~ stays", "gone stays"],
    ["cut off **in the mid", "cut off in the mid"],
    ["dle** of it", "dle of it"],
    ["- one thing\n- another\n* third\n+ fourth", "one thing. another. third. fourth."],
    ["Buy:\n\n- [ ] milk\n- [x] eggs", "Buy: milk. eggs."],
    ["Ingredients\n- milk", "Ingredients. milk."],
    ["1. Mix\n2. Bake", "one. Mix. two. Bake."],
    ["> quoted\n> > twice", "quoted twice"],
    ["Use `npm install` now", "Use npm install now"],
    ["call `my_list.reverse()` or `std::sort`", "call my list dot reverse or std sort"],
    ["Before\n```js\nconst a = 1;\n```\nafter", "Before after"],
    ["Before\n~~~\nx\n```\ny\n~~~\nafter", "Before after"],
    ["Open\n```python\nprint(1)", "Open"],
    ["Look:\n- ```\n  x = 1\n  ```\nDone.", "Look: Done."],
    ["```", ""],
    ["---", ""],
    ["* * *", ""],
    ["[the docs](https://example.com/a_(b)) are good", "the docs are good"],
    ["![a cat](cat.png)", "a cat"],
    ["[text][ref] here", "text here"],
    ["| Name | Age |\n|:--|--:|\n| Ann | 30 |", "Name, Age. Ann, thirty."],
    ["<b>bold</b><br>next", "bold, next"],
    ["a<!-- hidden -->b", "ab"],
    ["Tom &amp; Ann &#39;s &lt;3", "Tom and Ann s less than three"],
    ["\\*not italic\\*", "not italic"],
    ["snake_case_name", "snake case name"],
    ["2 * 3 * 4", "two times three times four"],
    ["First paragraph\n\nSecond paragraph", "First paragraph. Second paragraph"],
  ],
  "emoji and citations": [
    ["Great 😀👍🏽! 👨‍👩‍👧", "Great!"],
    ["🇫🇷 France", "France"],
    ["Press 1️⃣", "Press one"],
    ["😀", ""],
    ["It is so [1][2], they say [3, 4].", "It is so, they say."],
    ["It is so【5†source】.", "It is so."],
    ["A note[^1].", "A note."],
  ],
  addresses: [
    ["See https://www.example.com/path?q=1.", "See example dot com."],
    ["See http://localhost:8080/x, please", "See localhost, please"],
    ["www.my-site.org", "my dash site dot org"],
    ["<https://example.com>", "example dot com"],
    ["Go to example.com/help now", "Go to example dot com now"],
    ["Mail bob.smith_1+x@mail.example.com!", "Mail bob dot smith underscore one plus x at mail dot example dot com!"],
    ["Node.js and config.ts", "Node dot js and config dot ts"],
    ["192.168.0.1", "one nine two dot one six eight dot zero dot one"],
  ],
  numbers: [
    ["0", "zero"],
    ["7 and 13 and 42 and 100", "seven and thirteen and forty-two and one hundred"],
    ["1,234.5", "one thousand two hundred thirty-four point five"],
    ["1000000", "one million"],
    ["12,345,678", "twelve million three hundred forty-five thousand six hundred seventy-eight"],
    ["1,000,000,000", "one billion"],
    ["3.14159", "three point one four one five nine"],
    ["0.05", "zero point zero five"],
    [".5", "zero point five"],
    ["007", "zero zero seven"],
    ["-5 and −2.5", "minus five and minus two point five"],
    ["12345678901", "one two three four five six seven eight nine zero one"],
    [
      "1st, 2nd, 3rd, 4th, 12th, 20th, 21st, 100th",
      "first, second, third, fourth, twelfth, twentieth, twenty-first, one hundredth",
    ],
    ["5-10 people", "five to ten people"],
    ["5 – 10 people", "five to ten people"],
    ["pages 10–20", "pages ten to twenty"],
    ["1/2 cup", "one half cup"],
    ["3/4 and 2/3 and 7/8", "three quarters and two thirds and seven eighths"],
    ["1 1/2 cups", "one and a half cups"],
    ["2½ cups", "two and a half cups"],
    ["10/10", "ten out of ten"],
    ["24/7", "twenty-four seven"],
    ["2x faster", "two times faster"],
    ["3x4", "three by four"],
    ["3 × 4", "three times four"],
    ["#1", "number one"],
    ["No. 5", "number five"],
    ["GPT-4, B2B, H2O, 3D, mp3, COVID-19", "GPT four, B two B, H two O, three D, mp three, COVID nineteen"],
    ["v1.2.3 and v2", "version one point two point three and version two"],
    ["1080p", "ten eighty p"],
    ["5k and 3.5M", "five thousand and three point five million"],
    ["7.9B people in room 4B with a 4K TV", "seven point nine billion people in room four B with a four K TV"],
    ["C6H12O6 and CO₂", "C six H twelve O six and CO two"],
    ["50/50", "fifty fifty"],
    ["10⁶ and 10⁻³", "ten to the power of six and ten to the power of minus three"],
    ["Step 2: go", "Step two: go"],
    ["one,2,three", "one,two,three"],
  ],
  "money and measures": [
    ["$5.99", "five dollars and ninety-nine cents"],
    ["$1", "one dollar"],
    ["$1.01", "one dollar and one cent"],
    ["$0.05", "five cents"],
    ["$5.00", "five dollars"],
    ["$1,000.50", "one thousand dollars and fifty cents"],
    ["€1.2M", "one point two million euros"],
    ["€20", "twenty euros"],
    ["20 €", "twenty euros"],
    ["£3.50", "three pounds and fifty pence"],
    ["¥500", "five hundred yen"],
    ["$1.5 million", "one point five million dollars"],
    ["$3k", "three thousand dollars"],
    ["$2B", "two billion dollars"],
    ["$5-10", "five to ten dollars"],
    ["$5–$10", "five to ten dollars"],
    ["-$3", "minus three dollars"],
    ["$5/month", "five dollars per month"],
    ["20 USD, EUR 5", "twenty U S dollars, five euros"],
    ["50¢", "fifty cents"],
    ["$12.50–$15.00", "twelve dollars and fifty cents to fifteen dollars"],
    ["1/2 tsp and 2 1/4 tbsp", "one half teaspoon and two and a quarter tablespoons"],
    ["5 min. of rest", "five minutes of rest"],
    ["24 cookies @ 120 kcal", "twenty-four cookies at one hundred twenty kilocalories"],
    ["50%", "fifty percent"],
    ["12.5 %", "twelve point five percent"],
    ["5–10%", "five to ten percent"],
    ["5 km and 1 km", "five kilometers and one kilometer"],
    ["a 5-km run", "a five-kilometer run"],
    ["20°C, -5 °F, 90°", "twenty degrees Celsius, minus five degrees Fahrenheit, ninety degrees"],
    [
      "60 mph, 100km/h, 9.8 m/s",
      "sixty miles per hour, one hundred kilometers per hour, nine point eight meters per second",
    ],
    ["16 GB at 3.2GHz", "sixteen gigabytes at three point two gigahertz"],
    ["80 ms", "eighty milliseconds"],
    ["70kg (154 lbs)", "seventy kilograms, one hundred fifty-four pounds"],
    ["50 m²", "fifty square meters"],
    ["5'10\" tall", "five feet ten tall"],
    ["2 h 30 min", "two hours thirty minutes"],
  ],
  "dates and times": [
    ["2026-11-30", "November thirtieth, twenty twenty-six"],
    ["2026-11-30T15:05:00Z", "November thirtieth, twenty twenty-six, fifteen oh five U T C"],
    ["Nov 30, 2026", "November thirtieth, twenty twenty-six"],
    ["on November 3rd", "on November third"],
    ["30 November 2026", "the thirtieth of November, twenty twenty-six"],
    ["the 4th of July", "the fourth of July"],
    ["11/30/2026", "November thirtieth, twenty twenty-six"],
    ["30.11.2026", "November thirtieth, twenty twenty-six"],
    ["March 3-5, 2024", "March third to fifth, twenty twenty-four"],
    ["June 2024", "June twenty twenty-four"],
    ["Mon, Jan. 5", "Monday, January fifth"],
    ["2026-13-45", "two thousand twenty-six to thirteen to forty-five"],
    [
      "in 1905, 1066, 1900, 2000, 2007 and 2010",
      "in nineteen oh five, one thousand sixty-six, nineteen hundred, two thousand, two thousand seven and twenty ten",
    ],
    ["1990–2000", "nineteen ninety to two thousand"],
    ["1939-45", "nineteen thirty-nine to forty-five"],
    ["the 1980s and the '90s", "the nineteen eighties and the nineties"],
    ["in her 20s", "in her twenties"],
    ["a 30s timeout", "a thirty seconds timeout"],
    ["3:05 pm", "three oh five P M"],
    ["at 3 PM.", "at three P M."],
    ["9:00 a.m. sharp", "nine A M sharp"],
    ["9-5 pm", "nine to five P M"],
    ["15:30", "fifteen thirty"],
    ["9:00", "nine o'clock"],
    ["00:00", "midnight"],
    ["9:30–10:45", "nine thirty to ten forty-five"],
    ["1:02:03", "one oh two oh three"],
    ["a ratio of 16:9", "a ratio of sixteen to nine"],
  ],
  telephone: [
    ["Call (555) 123-4567.", "Call five five five, one two three, four five six seven."],
    ["1-800-555-0199", "one, eight zero zero, five five five, zero one nine nine"],
    ["+44 20 7946 0958", "plus four four, two zero, seven nine four six, zero nine five eight"],
    ["555-1234", "five five five, one two three four"],
  ],
  abbreviations: [
    ["fruit, e.g. apples", "fruit, for example, apples"],
    ["one, i.e., the first", "one, that is, the first"],
    ["apples, pears, etc.", "apples, pears, et cetera."],
    ["etc. and so on", "et cetera and so on"],
    ["cats vs. dogs", "cats versus dogs"],
    ["Dr. Smith and Mr. Jones and Mrs. Ray", "Doctor Smith and Mister Jones and Missus Ray"],
    ["12 Maple Dr. and Main St.", "twelve Maple Drive and Main Street"],
    ["St. Paul", "Saint Paul"],
    ["a Ph.D. student", "a P H D student"],
    ["the U.S. economy", "the U S economy"],
    ["w/o milk", "without milk"],
    ["approx. 5", "approximately five"],
    ["n/a", "not applicable"],
  ],
  signs: [
    ["AT&T, R & D", "AT and T, R and D"],
    ["2 + 2 = 4", "two plus two equals four"],
    ["5 - 3 = 2", "five minus three equals two"],
    ["a + b ≠ c", "a plus b does not equal c"],
    ["x <= 5 and y >= 3", "x is at most five and y is at least three"],
    ["a < b", "a is less than b"],
    [">100 and <5", "more than one hundred and less than five"],
    ["~5 people, ≈ 5", "about five people, about five"],
    ["±3", "plus or minus three"],
    ["x^2 + y^3 = z^n", "x squared plus y cubed equals z to the power of n"],
    ["5 m² or x²", "five square meters or x squared"],
    ["and/or, he/she, cat/dog, TCP/IP", "and or, he or she, cat slash dog, TCP IP"],
    ["C++ and C#", "C plus plus and C sharp"],
    ["A → B", "A to B"],
    ["\\(x = \\frac{1}{2}\\)", "x equals one over two"],
    ["$$\\sqrt{2}$$", "the square root of two"],
    ["@bob #fun", "at bob hashtag fun"],
    ["100% © 2024™", "one hundred percent twenty twenty-four"],
    ["§ 5", "section five"],
  ],
};

describe.each(Object.entries(CASES))("speakable: %s", (_, cases) => {
  it.each(cases)("%j", (written, said) => {
    expect(speakable(written)).toBe(said);
  });
});

describe("speakable", () => {
  const fragments = fc.constantFrom(
    ..."*_`#~|<>[](){}\\/^=+-–—.,:;!?'\"&%$€@°½\n \t0123456789".split(""),
    ..."a B é 東 😀 👍🏽 \ud800 \u200d 1️⃣ http:// www. ](  ``` $5 1/2 3:05 pm 2026-11-30 e.g. Dr. &amp; <b> \\frac{ [1] \u0000".split(
      " ",
    ),
  );
  const writing = fc.oneof(
    fc.array(fragments, { maxLength: 60 }).map((parts) => parts.join("")),
    fc.string({ unit: "binary", maxLength: 80 }),
  );
  it("never fails, leaves no markup, no digits and no doubled spaces, and says nothing rather than noise", () => {
    fc.assert(
      fc.property(writing, (text) => {
        const said = speakable(text);
        expect(said).not.toMatch(/[*_`#~|<>[\]{}\\^=+@&%$€/"()0-9]/);
        expect(said).not.toMatch(/\s\s|^\s|\s$/);
        expect(said).not.toMatch(/\p{Emoji_Presentation}/u);
        if (said !== "") expect(said).toMatch(/[\p{L}\p{N}]/u);
      }),
      { seed: 11, numRuns: 3000 },
    );
  });
  it("says again the same of what it said", () => {
    fc.assert(
      fc.property(fc.constantFrom(...Object.values(CASES).flat()), ([, said]) => {
        const again = speakable(said);
        expect(speakable(again)).toBe(again);
      }),
      { seed: 12 },
    );
  });
  it("leaves numbers and signs to voices of other languages, but no markup", () => {
    expect(speakable("**Es kostet** 5,99 € am 30.11.2026 [1]", "de")).toBe("Es kostet 5,99 am 30.11.2026");
    expect(speakable("# Título", "es-MX")).toBe("Título.");
  });
  it("takes very long and twisted input in a short time", () => {
    for (const piece of [
      "[",
      "](",
      "<a ",
      "【",
      "-",
      "- ",
      "1",
      "1,",
      "1.",
      "`",
      "*",
      "_ ",
      "$",
      "a.",
      "(",
      "\\",
      ":",
      "'",
      " ",
      "1/",
      "http://",
    ]) {
      const said = speakable(piece.repeat(20_000 / piece.length));
      expect(typeof said).toBe("string");
    }
  });
});

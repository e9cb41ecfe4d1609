import { describe, expect, test } from "vitest";
import { Playback } from "../../src/cli/playback.ts";
import { ManualClock } from "../../src/util/clock.ts";

const HZ = 1000;
const ms = (count: number, value = 1): Float32Array => new Float32Array(count).fill(value);

function setUp() {
  const clock = new ManualClock();
  const heard: number[] = [];
  const playback = new Playback(clock, { write: (pcm) => heard.push(...pcm) }, HZ);
  return { clock, heard, playback };
}

describe("playback", () => {
  test("hands over everything, in order, never far ahead of what is heard", () => {
    const { clock, heard, playback } = setUp();
    playback.add("a", ms(500, 1));
    playback.add("b", ms(500, 2));
    for (let now = 0; now < 1000; now += 20) {
      expect(heard.length).toBeGreaterThanOrEqual(Math.min(1000, now));
      expect(heard.length).toBeLessThanOrEqual(now + 180);
      clock.advance(20);
    }
    expect(heard).toEqual([...ms(500, 1), ...ms(500, 2)]);
  });

  test("an interruption drops the rest and says what was heard of the item that was playing", () => {
    const { clock, heard, playback } = setUp();
    playback.add("a", ms(300));
    playback.add("b", ms(1000));
    clock.advance(700);
    const before = heard.length;
    expect(playback.interrupt()).toEqual({ itemId: "b", ms: 400 });
    clock.advance(1000);
    expect(heard).toHaveLength(before);
  });

  test("with nothing playing there is nothing to interrupt", () => {
    const { clock, playback } = setUp();
    expect(playback.interrupt()).toBeNull();
    playback.add("a", ms(100));
    clock.advance(200);
    expect(playback.interrupt()).toBeNull();
  });

  test("an interruption before the first word was heard", () => {
    const { playback } = setUp();
    playback.add("a", ms(500));
    expect(playback.interrupt()).toEqual({ itemId: "a", ms: 0 });
  });

  test("is finished when the last sample has been heard, not when it was handed over", async () => {
    const { clock, playback } = setUp();
    playback.add("a", ms(100));
    let finished = false;
    const finish = playback.finish().then(() => {
      finished = true;
    });
    clock.advance(80);
    await Promise.resolve();
    expect(finished).toBe(false);
    clock.advance(40);
    await finish;
  });

  test("audio after a pause is heard from then on", () => {
    const { clock, heard, playback } = setUp();
    playback.add("a", ms(100));
    clock.advance(1000);
    playback.add("b", ms(1000));
    clock.advance(100);
    expect(playback.interrupt()).toEqual({ itemId: "b", ms: 100 });
    expect(heard.length).toBeLessThan(100 + 300);
  });
});

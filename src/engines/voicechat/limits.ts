/** Limits of one offline run: 20 minutes of recording, and 10 of silence for the answer. */
export const RECORDING_SECONDS_MAX = 1200;
export const EXTRA_SECONDS_MAX = 600;
/**
 * A system prompt takes a position of the timeline for each token, as a frame does: its time, and its rows in the caches.
 * This is half as many as a session of ten minutes has frames; far more characters than it can have are not even counted.
 */
export const PROMPT_TOKENS_MAX = 4096;
export const PROMPT_CHARACTERS_MAX = 65_536;

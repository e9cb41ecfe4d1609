/** Limits of one offline run: 20 minutes of recording, and 10 of silence for the answer. */
export const RECORDING_SECONDS_MAX = 1200;
export const EXTRA_SECONDS_MAX = 600;

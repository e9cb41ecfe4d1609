/** The user's microphone, without the assistant's echo in it. */
import { insecurePage, microphoneProblem, microphoneSilent, TalkFailure } from "./problems.ts";

/** A microphone that may be used and does not come in this time is stuck. */
const OPEN_MS_MAX = 15_000;

let permission: PermissionStatus | null = null;
// Browsers that cannot tell are asked each time.
void navigator.permissions
  ?.query({ name: "microphone" as PermissionName })
  .then((status) => {
    permission = status;
  })
  .catch(() => {});

/** True if the browser will ask nothing before it gives the microphone. */
export const isMicrophoneAllowed = (): boolean => permission?.state === "granted";

/** @throws {TalkFailure} saying what to do. */
export async function openMicrophone(deviceId: string): Promise<MediaStream> {
  if (navigator.mediaDevices === undefined) throw new TalkFailure(insecurePage);
  const opening = navigator.mediaDevices
    .getUserMedia({
      audio: {
        echoCancellation: true,
        noiseSuppression: true,
        autoGainControl: true,
        ...(deviceId === "" ? {} : { deviceId: { exact: deviceId } }),
      },
    })
    .catch((error: unknown) => {
      throw new TalkFailure(microphoneProblem(error));
    });
  return isMicrophoneAllowed() ? inTime(opening) : opening;
}

function inTime(opening: Promise<MediaStream>): Promise<MediaStream> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      opening.then(stopTracks, () => {});
      reject(new TalkFailure(microphoneSilent));
    }, OPEN_MS_MAX);
    opening.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

export function stopTracks(stream: MediaStream | null): void {
  for (const track of stream?.getTracks() ?? []) track.stop();
}

/** Names are empty until the page was allowed to listen. */
export async function listMicrophones(): Promise<readonly MediaDeviceInfo[]> {
  const devices = (await navigator.mediaDevices?.enumerateDevices().catch(() => [])) ?? [];
  return devices.filter((device) => device.kind === "audioinput" && device.deviceId !== "" && device.label !== "");
}

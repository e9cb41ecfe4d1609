/** The user's microphone, without the assistant's echo in it. */
import { insecurePage, microphoneProblem, TalkFailure } from "./problems.ts";

/** @throws {TalkFailure} saying what to do. */
export async function openMicrophone(deviceId: string): Promise<MediaStream> {
  if (navigator.mediaDevices === undefined) throw new TalkFailure(insecurePage);
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: {
        echoCancellation: true,
        noiseSuppression: true,
        autoGainControl: true,
        ...(deviceId === "" ? {} : { deviceId: { exact: deviceId } }),
      },
    });
  } catch (error) {
    throw new TalkFailure(microphoneProblem(error));
  }
}

/** Names are empty until the page was allowed to listen. */
export async function listMicrophones(): Promise<readonly MediaDeviceInfo[]> {
  const devices = (await navigator.mediaDevices?.enumerateDevices().catch(() => [])) ?? [];
  return devices.filter((device) => device.kind === "audioinput" && device.deviceId !== "" && device.label !== "");
}

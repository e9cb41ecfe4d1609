#!/usr/bin/env bash
# Makes test/fixtures/questions: spoken questions in voices that the server does not have (flite's slt, rms and awb; the
# server's own default is Piper). Needs flite, sox:
#
#     bash tools/make-questions.sh
set -euo pipefail
cd "$(dirname "$0")/../test/fixtures/questions"

say() {
  local name=$1 voice=$2 text=$3
  flite -voice "$voice" --setf duration_stretch=1.1 -t "$text" -o /tmp/question.wav
  # 16 kHz mono, level, with the silence that people leave around a sentence.
  sox /tmp/question.wav -r 16000 -c 1 -b 16 "$name.wav" norm -3 pad 0.25 0.15
  printf '  "%s": "%s"' "$name" "$text"
}

{
  echo "{"
  say capital slt "What is the capital of France?"; echo ","
  say week rms "How many days are there in a week?"; echo ","
  say sun slt "Is the sun a star?"; echo ","
  say story rms "Tell me a short story about a dog."; echo ","
  say sky rms "What color is the sky on a clear day?"; echo ","
  say author slt "Who wrote Romeo and Juliet?"; echo ","
  say animal slt "What is the largest animal on earth?"; echo ","
  say count awb "Please count from one to five."; echo ","
  say tea rms "How do you make a cup of tea?"; echo ","
  say moon rms "How far away is the moon?"; echo
  echo "}"
} > questions.json

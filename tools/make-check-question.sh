#!/usr/bin/env bash
# Makes assets/question.wav, which `antiphon check` says to a server: 16 kHz mono, without silence at its ends, so that
# its first and last sample are those of the speech. Needs flite, sox:
#
#     bash tools/make-check-question.sh
set -euo pipefail
cd "$(dirname "$0")/../assets"

flite -voice slt --setf duration_stretch=1.05 -t "What is the capital of France?" -o /tmp/question.wav
sox /tmp/question.wav -b 16 question.wav norm -3 silence 1 0.01 0.5% reverse silence 1 0.01 0.5% reverse

#!/bin/sh
# From nothing to a plan that rests on measurements: emulated datacenters up, checked, measured,
# planned on, and down again. Usage: demo_lab.sh RELAYD [REGIONS [MINUTES]]
# RELAYD is a command; no probe begins that would end after MINUTES (2 unless told otherwise), and
# what the time did not allow is no failure of the demonstration.
set -eu
relayd=$1
regions=${2:-12}
minutes=${3:-2}
name=demo-$$
folder=$(mktemp -d)
end() {
    $relayd measure lab down --name "$name" >/dev/null || true
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT TERM
db=$folder/store.db

run() {
    printf '\n$ relayd %s\n' "$*"
    $relayd "$@"
}
run measure lab up --regions "$regions" --name "$name"
RELAYD_FLEET=$($relayd measure lab status --name "$name" --json |
    sed -n 's/.*"fleet_file": "\([^"]*\)".*/\1/p')
export RELAYD_FLEET
run measure fleet check --db "$db"
code=0
run probe --db "$db" --connections 16 --parallel 6 --max-minutes "$minutes" --aggregate-time 4s --yes || code=$?
[ "$code" = 0 ] || [ "$code" = 5 ] || exit "$code"
src=$(sed -n 's/^region = "\(.*\)"/\1/p' "$RELAYD_FLEET" | sed -n 1p)
dst=$(sed -n 's/^region = "\(.*\)"/\1/p' "$RELAYD_FLEET" | sed -n 2p)
run plan --src "$src" --dst "$dst" --volume 1GB --connections 16 --db "$db"
run measure lab down --name "$name"

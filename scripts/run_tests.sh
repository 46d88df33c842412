#!/bin/sh
# Runs all tests; the argument is the interpreter to run them with.
# Those of the lab wait for real traffic most of the time. The others use that time, at the lowest
# priority, so that they disturb no measurement; what they say is printed afterwards.
set -u
python=$1
said=$(mktemp)
nice -n 19 "$python" -m pytest --ignore=tests/lab >"$said" 2>&1 &
others=$!
trap 'kill "$others" 2>/dev/null; rm -f "$said"; exit 130' INT TERM
"$python" -m pytest tests/lab -p no:cacheprovider
lab=$?
wait "$others"
rest=$?
cat "$said"
rm -f "$said"
[ "$lab" -eq 0 ] && [ "$rest" -eq 0 ]

#!/bin/bash
# A loop as scripts for agents have it: it counts in a JSON file, asks git what changed, and starts the command once a round. The bench compares ralph with
# it; nobody should use it. Usage: run-loop.sh ROUNDS COMMAND, in a repository.
set -euo pipefail

state=.ralph-state.json
[ -f "$state" ] || echo '{"iteration": 0, "idle": 0}' >"$state"

for ((round = 0; round < $1; round++)); do
    iteration=$(jq -r '.iteration' "$state")
    idle=$(jq -r '.idle' "$state")
    before=$(git rev-parse HEAD)
    sh -c "$2" </dev/null >.ralph-output.txt
    after=$(git rev-parse HEAD)
    changes=$(git status --porcelain)
    if [ "$before" = "$after" ] && [ -z "$changes" ]; then idle=$((idle + 1)); else idle=0; fi
    if grep -q '<promise>DONE</promise>' .ralph-output.txt; then break; fi
    jq --argjson n "$((iteration + 1))" --argjson idle "$idle" '.iteration = $n | .idle = $idle' "$state" >"$state.new"
    mv "$state.new" "$state"
done
echo "round $((iteration + 1)), idle for $idle"

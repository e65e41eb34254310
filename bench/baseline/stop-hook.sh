#!/bin/bash
# A stop hook as they are usually written: bash, sed, grep and jq. The bench compares ralph with it; nobody should use it.
#
# It has the peers' shape on purpose: the event is read whole, an absent loop costs no jq, and a loop that goes on costs several.
set -euo pipefail

input=$(cat)
cd "$CLAUDE_PROJECT_DIR"
state=.claude/ralph-loop.local.md
[[ -f $state ]] || exit 0

front=$(sed -n '/^---$/,/^---$/{ /^---$/d; p; }' "$state")
value() { grep "^$1:" <<<"$front" | sed "s/^$1: *//; s/^\"\(.*\)\"\$/\1/" || true; }
iteration=$(value iteration)
max=$(value max_iterations)
promise=$(value completion_promise)
owner=$(value session_id)

session=$(jq -r '.session_id // ""' <<<"$input")
[[ -z $owner || $owner == "$session" ]] || exit 0
[[ $iteration =~ ^[0-9]+$ && $max =~ ^[0-9]+$ ]] || { rm "$state"; exit 0; }
if [[ $max -gt 0 && $iteration -ge $max ]]; then
    rm "$state"
    exit 0
fi

transcript=$(jq -r '.transcript_path' <<<"$input")
text=$(grep '"type":"assistant"' "$transcript" | tail -n 100 |
    jq -rs '[.[].message.content[]? | select(.type == "text") | .text] | last // ""')
if [[ $(sed -n 's/.*<promise>\(.*\)<\/promise>.*/\1/p' <<<"$text") == "$promise" ]]; then
    rm "$state"
    exit 0
fi

next=$((iteration + 1))
prompt=$(awk '/^---$/ { n++; next } n >= 2' "$state")
sed "s/^iteration: .*/iteration: $next/" "$state" >"$state.tmp.$$"
mv "$state.tmp.$$" "$state"
jq -n --arg prompt "$prompt" --arg message "iteration $next" '{decision: "block", reason: $prompt, systemMessage: $message}'

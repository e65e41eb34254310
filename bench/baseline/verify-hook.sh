#!/bin/bash
# A stop hook that runs a command before it lets the agent go, as they are usually written. The bench compares ralph with it; nobody should use it.
#
# It has the peers' shape on purpose: the message comes with the event, one command has to pass, and its output goes into the answer.
set -euo pipefail

input=$(cat)
cd "$CLAUDE_PROJECT_DIR"
state=.claude/ralph-loop.local.md
[[ -f $state ]] || exit 0

front=$(sed -n '/^---$/,/^---$/{ /^---$/d; p; }' "$state")
value() { grep "^$1:" <<<"$front" | sed "s/^$1: *//; s/^\"\(.*\)\"\$/\1/" || true; }
iteration=$(value iteration)
promise=$(value completion_promise)
owner=$(value session_id)

session=$(jq -r '.session_id // ""' <<<"$input")
[[ -z $owner || $owner == "$session" ]] || exit 0

text=$(jq -r '.last_assistant_message // ""' <<<"$input")
failed=
if [[ $(sed -n 's/.*<promise>\(.*\)<\/promise>.*/\1/p' <<<"$text") == "$promise" ]]; then
    output=$(timeout 120 sh -c true 2>&1) || failed="the command fails: $(tail -c 500 <<<"$output")"
    [[ -f REPORT.md ]] || failed="REPORT.md is not there"
    if [[ -z $failed ]]; then
        rm "$state"
        exit 0
    fi
fi

next=$((iteration + 1))
prompt=$(awk '/^---$/ { n++; next } n >= 2' "$state")
sed "s/^iteration: .*/iteration: $next/" "$state" >"$state.tmp.$$"
mv "$state.tmp.$$" "$state"
jq -n --arg prompt "$prompt
$failed" --arg message "iteration $next" '{decision: "block", reason: $prompt, systemMessage: $message}'

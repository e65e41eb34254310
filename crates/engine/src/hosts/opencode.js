// Written by `ralph init --agent opencode`, and removed by `ralph uninstall`.
// opencode has no hooks that run a command: this plugin tells `ralph hook opencode` what happens, and does what it answers.
import { spawn } from "node:child_process";

const HOOK = [];

/** The hook's answer to an event; an empty one where it says nothing or cannot be run: then the agent stops as it would without ralph. */
const ask = (event) =>
  new Promise((resolve) => {
    const hook = spawn(HOOK[0], HOOK.slice(1), { cwd: event.cwd, stdio: ["pipe", "pipe", "ignore"] });
    let said = "";
    hook.on("error", () => resolve({}));
    hook.stdin.on("error", () => {});
    hook.stdout.setEncoding("utf8").on("data", (text) => (said += text));
    hook.on("close", () => {
      try {
        resolve(JSON.parse(said));
      } catch {
        resolve({});
      }
    });
    hook.stdin.end(JSON.stringify(event));
  });

/** The words of a message, without what a plugin added to it. */
const words = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic)
    .map((part) => part.text)
    .join("\n");

const context = (answer) => answer?.hookSpecificOutput?.additionalContext;

export const Ralph = async ({ client, directory }) => {
  // `opencode run` ends with its turn, so that nothing could go on.
  if (process.argv[2] === "run") return {};

  const subagents = new Set();
  /** By session: the answer to its start, until its first message. */
  const starts = new Map();
  /** By session: a message that needs no report, because ralph sent it, or was told of it as a command. */
  const known = new Map();
  /** Sessions whose last message is ralph's. */
  const sentBack = new Set();

  const show = (message) => client.tui.showToast({ body: { title: "ralph", message, variant: "info", duration: 10_000 } }).catch(() => {});

  const report = async (name, session, more) => {
    const answer = await ask({ hook_event_name: name, opencode: "plugin", session_id: session, cwd: directory, ...more });
    if (answer.systemMessage) await show(answer.systemMessage);
    return answer;
  };

  const stopped = async (session) => {
    const { data } = await client.session.messages({ path: { id: session } });
    const last = data?.at(-1);
    if (last?.info.role !== "assistant") return;
    if (last.info.error?.name === "MessageAbortedError") return report("Interrupt", session);
    if (last.info.error) return;
    const answer = await report("Stop", session, {
      prompt_id: last.info.parentID,
      stop_hook_active: sentBack.has(session),
      last_assistant_message: words(last.parts),
    });
    if (answer.decision !== "block") return;
    known.set(session, answer.reason);
    sentBack.add(session);
    await client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text: answer.reason }] } });
  };

  return {
    // What the agent's tools run has the plugin's variables, too: this one tells its events from the plugin's.
    "shell.env": async (_, { env }) => {
      env.RALPH_AGENTS_SHELL = "1";
    },

    event: async ({ event }) => {
      const { sessionID, info } = event.properties ?? {};
      if (event.type === "session.created" && info.parentID) subagents.add(info.id);
      else if (event.type === "session.created") starts.set(info.id, report("SessionStart", info.id, { source: "startup" }));
      else if (event.type === "session.idle" && !subagents.has(sessionID)) await stopped(sessionID);
    },

    "command.execute.before": async ({ command, sessionID, arguments: typed }, { parts }) => {
      const answer = await report("UserPromptExpansion", sessionID, { command_name: command, command_args: typed });
      if (answer.decision === "block") {
        await show(answer.reason);
        // The only way to keep a command from the model.
        throw new Error(answer.reason);
      }
      known.set(sessionID, words(parts));
      if (context(answer)) parts.push({ type: "text", text: context(answer), synthetic: true });
    },

    "chat.message": async ({ sessionID }, { parts }) => {
      if (subagents.has(sessionID)) return;
      const start = context(await starts.get(sessionID));
      starts.delete(sessionID);
      const text = words(parts);
      if (known.get(sessionID) === text) return;
      sentBack.delete(sessionID);
      const answer = await report("UserPromptSubmit", sessionID, { prompt: text });
      for (const [n, more] of [start, context(answer)].entries()) {
        if (more) parts.push({ ...parts[0], id: `${parts[0].id}${n}`, type: "text", text: more, synthetic: true });
      }
    },
  };
};

//! Tool calls of a session over ACP. An agent tells of one in pieces: that it is to come, with what, that it ended.

use std::collections::VecDeque;

use ralph_core::text::opening;
use serde_json::{Value, json};

use crate::hosts::{agent_stream::Says, claude::denials};

/// So many calls are remembered.
const MOST: usize = 256;

/// As much as anything of a call has to say.
const MOST_TEXT: usize = 2_000;

/// A tool call as far as it was told.
#[derive(Debug, Clone, Default)]
pub(super) struct Call {
    id: String,
    name: String,
    title: String,
    /// The protocol's word: `edit`, `execute`, `read`.
    pub(super) kind: String,
    /// The files that it is about.
    pub(super) places: Vec<String>,
    input: Value,
    is_told: bool,
    is_over: bool,
}

#[derive(Debug, Default)]
pub(super) struct ToolCalls(VecDeque<Call>);

impl ToolCalls {
    /// Takes what is told of a call, and says what follows from it.
    pub(super) fn update(&mut self, update: &Value, says: &mut Vec<Says>) {
        let status = update["status"].as_str().unwrap_or_default();
        let call = self.of(update);
        if status == "completed" || status == "failed" {
            call.ends(status == "failed", false, says);
        } else if status == "in_progress" || call.is_clear() {
            call.begins(says);
        }
    }

    /// The call that a request is about, with what the request says of it.
    pub(super) fn asked_about(&mut self, update: &Value, says: &mut Vec<Says>) -> Call {
        let call = self.of(update);
        call.begins(says);
        call.clone()
    }

    /// It was not allowed: that is its end, whatever comes.
    pub(super) fn denied(&mut self, id: &str, says: &mut Vec<Says>) {
        if let Some(call) = self.0.iter_mut().find(|call| call.id == id) {
            call.ends(true, true, says);
        }
    }

    fn of(&mut self, update: &Value) -> &mut Call {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        // What has no name is known from nowhere.
        let at = self.0.iter().position(|call| call.id == id && !id.is_empty()).unwrap_or_else(|| {
            if self.0.len() >= MOST {
                self.0.pop_front();
            }
            self.0.push_back(Call { id: id.to_owned(), ..Call::default() });
            self.0.len() - 1
        });
        let call = &mut self.0[at];
        call.learn(update);
        call
    }
}

impl Call {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The files that it is about, as far as any of its parts tells: some agents tell them among the tool's arguments only.
    pub(super) fn told_places(&self) -> Vec<String> {
        const NAMES: [&str; 15] = [
            "path",
            "new_path",
            "newPath",
            "old_path",
            "file",
            "file_path",
            "filePath",
            "filepath",
            "filename",
            "absolute_path",
            "absolutePath",
            "target_file",
            "notebook_path",
            "source",
            "destination",
        ];
        let named = NAMES.iter().filter_map(|name| self.input[*name].as_str()).map(str::to_owned);
        let changed = self.input["changes"].as_object().into_iter().flat_map(|changes| changes.keys().cloned());
        self.places.iter().cloned().chain(named).chain(changed).collect()
    }

    fn learn(&mut self, update: &Value) {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(|text| opening(text, MOST_TEXT));
        let meta = &update["_meta"];
        let name = [&meta["toolName"], &meta["goose"]["toolCall"]["toolName"], &meta["x.ai/tool"]["name"], &meta["claudeCode"]["toolName"]];
        for (field, told) in [
            (&mut self.name, name.into_iter().find_map(text)),
            (&mut self.title, text(&update["title"])),
            (&mut self.kind, text(&update["kind"]).or_else(|| text(&meta["x.ai/tool"]["kind"]))),
        ] {
            if let Some(told) = told {
                *field = told;
            }
        }
        let places = update["locations"].as_array().into_iter().flatten().filter_map(|place| text(&place["path"]));
        let changed = update["content"].as_array().into_iter().flatten().filter(|part| part["type"] == "diff");
        for place in places.chain(changed.filter_map(|part| text(&part["path"]))) {
            if !self.places.contains(&place) && self.places.len() < MOST {
                self.places.push(place);
            }
        }
        // opencode tells the folder first, and the command when it is whole.
        if let Some(input) = update["rawInput"].as_object() {
            let mut input = input.clone();
            input.remove("cwd");
            self.input = Value::Object(input);
        }
    }

    /// Whether it is told what it is about.
    fn is_clear(&self) -> bool {
        !denials::what(&self.input).is_empty()
    }

    fn begins(&mut self, says: &mut Vec<Says>) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let name = [&self.name, &self.kind, &self.title].into_iter().find(|name| !name.is_empty());
        let input = if self.is_clear() { self.input.clone() } else { json!({"title": self.title}) };
        says.push(Says::Tool { id: self.id.clone(), name: name.map_or_else(|| "tool".to_owned(), Clone::clone), input });
    }

    fn ends(&mut self, failed: bool, denied: bool, says: &mut Vec<Says>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.begins(says);
        says.push(Says::ToolEnded { id: self.id.clone(), failed, denied });
    }
}

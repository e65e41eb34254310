//! `[fleet]` in `ralph.toml`: how a job's folder is made ready.

use super::{
    Problem, env, inside_path,
    keys::{Kind, table},
    pull_requests::told,
    reader::Field,
};

table! {
    /// How `ralph fleet` makes a folder ready for a job. Counts once this file is trusted.
    pub struct Fleet = "[fleet]";
    /// A line for the shell that runs in each job's folder before its agent does, such as "npm ci".
    setup: Option<String> = None, Kind::Text, told;
    /// Files that git does not know, copied from your folder, such as ".env".
    copy: Vec<String> = Vec::new(), Kind::Texts, insides;
    /// Ignored files and folders that stay there from one job to the next, such as "target".
    keep: Vec<String> = Vec::new(), Kind::Texts, insides;
    /// Variables of the agents and gates there; {slot} in a value is the folder's number.
    env: Vec<(String, String)> = Vec::new(), Kind::Env, env;
    /// Files of which both sides are kept where two jobs changed them, such as "CHANGELOG.md".
    union: Vec<String> = Vec::new(), Kind::Texts, insides;
    /// How many commands of gates run at a time on this machine, for all fleets; 0 means as many as there are jobs.
    gates_at_once: u64 = 0, Kind::Count, Field::count;
}

/// Paths within the project.
fn insides(field: Field<'_>) -> Result<Vec<String>, Problem> {
    field.texts()?.into_iter().map(|path| inside_path(field, path)).collect()
}

//! The skill that a command is given, with its inputs.

use std::io::Read;
use std::path::PathBuf;

use super::session::Session;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{SubmitRequest, Unique};

/// Bytes of JSON inputs that are read.
const INPUTS_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A skill with its inputs.
#[derive(Debug, clap::Args)]
pub(crate) struct Invocation {
    /// `worker/skill`, or only the skill if it is unique
    pub(crate) skill: String,
    /// Inputs; a repeated name makes a list
    #[arg(value_name = "NAME=VALUE", value_parser = pair)]
    values: Vec<(String, String)>,
    /// An input, as the argument `NAME=VALUE`
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = pair)]
    input: Vec<(String, String)>,
    /// Read inputs from a file with a JSON object; `-` is standard input
    #[arg(long, value_name = "FILE")]
    inputs_json: Option<PathBuf>,
    /// A task for a skill without inputs; `-` reads it from standard input
    #[arg(short, long, value_name = "TEXT", conflicts_with_all = ["input", "values", "inputs_json"])]
    message: Option<String>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write `NAME=VALUE`".to_owned()),
    }
}

impl Invocation {
    /// The request, with its inputs read.
    pub(crate) fn request(&self, session: &mut Session<'_>) -> Result<SubmitRequest, Diagnostic> {
        Ok(SubmitRequest {
            skill: self.skill.clone(),
            input: [self.values.clone(), self.input.clone()].concat(),
            inputs: self.read_inputs(session)?,
            message: self.read_message(session)?,
            by: session.asked_by(),
            ..SubmitRequest::default()
        })
    }

    fn read_message(&self, session: &mut Session<'_>) -> Result<Option<String>, Diagnostic> {
        let Some(message) = self.message.as_ref().filter(|text| *text == "-") else {
            return Ok(self.message.clone());
        };
        let mut text = String::new();
        let limited = (&mut *session.io.input).take(INPUTS_BYTES_MAX);
        match { limited }.read_to_string(&mut text) {
            Ok(_) => Ok(Some(text)),
            Err(error) => Err(Diagnostic::new(
                Kind::Usage,
                "message_unreadable",
                format!("the message `{message}` cannot be read from standard input: {error}"),
            )),
        }
    }

    fn read_inputs(
        &self,
        session: &mut Session<'_>,
    ) -> Result<Option<serde_json::Map<String, serde_json::Value>>, Diagnostic> {
        let Some(path) = &self.inputs_json else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let (name, read) = if path.as_os_str() == "-" {
            let limited = (&mut *session.io.input).take(INPUTS_BYTES_MAX + 1);
            (
                "standard input".to_owned(),
                { limited }.read_to_end(&mut bytes),
            )
        } else {
            let file = std::fs::File::open(session.cwd.join(path));
            let read =
                file.and_then(|file| file.take(INPUTS_BYTES_MAX + 1).read_to_end(&mut bytes));
            (format!("`{}`", path.display()), read)
        };
        let refuse = |code, why: String| {
            Err(Diagnostic::new(
                Kind::Usage,
                code,
                format!("inputs cannot be read from {name}: {why}"),
            ))
        };
        if let Err(error) = read {
            return refuse("inputs_unreadable", error.to_string());
        }
        if u64::try_from(bytes.len()).is_ok_and(|count| count > INPUTS_BYTES_MAX) {
            return refuse(
                "inputs_too_large",
                format!("more than {INPUTS_BYTES_MAX} bytes"),
            );
        }
        match serde_json::from_slice(&bytes) {
            Ok(Unique(serde_json::Value::Object(map))) => Ok(Some(map)),
            Ok(Unique(_)) => refuse("inputs_not_object", "it is not a JSON object".to_owned()),
            Err(error) => refuse("inputs_not_json", error.to_string()),
        }
    }
}

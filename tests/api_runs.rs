//! What the API tells of one run: its log, its phases, who did what, and what it left; a real daemon and real commands.

use crate::workspace;

mod acts;
mod durations;
mod logs;
mod results;

use workspace::api::{Answer, Api};

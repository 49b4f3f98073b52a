//! The web page: a real daemon, asked as a browser asks, and as other pages and users of the machine would.

mod admission;
mod bounds;
mod command;
mod headers;
mod host;
mod logins;
mod wire;

//! The Handlebars registry of this program: strict, without escapes, partials and logging, with a
//! bound on what it writes.

use handlebars::{
    Context, Handlebars, Helper, Output, PathAndJson, RenderContext, RenderError,
    RenderErrorReason, Template, no_escape,
};
use serde_json::Value as Json;

/// Longest text that a template may become, in bytes.
pub const RENDERED_BYTES_MAX: usize = 256 * 1024;
/// The helper that stands for a placeholder inside a Handlebars text.
pub(super) const PLACEHOLDER: &str = "placeholder_value";

/// Fills in `template`; placeholder number `n` stands for `texts[n]`.
pub(super) fn write(
    template: &Template,
    texts: Vec<String>,
    context: &Json,
) -> Result<Vec<u8>, RenderError> {
    let mut registry = registry(texts);
    registry.register_template("text", template.clone());
    let mut output = Bounded { bytes: Vec::new() };
    let context = Context::wraps(context)?;
    registry.render_with_context_to_write("text", &context, &mut output)?;
    Ok(output.bytes)
}

fn registry(texts: Vec<String>) -> Handlebars<'static> {
    let mut registry = Handlebars::new();
    registry.set_strict_mode(true);
    registry.register_escape_fn(no_escape);
    registry.unregister_helper("log");
    registry.unregister_helper("raw");
    let placeholder = move |h: &Helper<'_>,
                            _: &Handlebars<'_>,
                            _: &Context,
                            _: &mut RenderContext<'_, '_>,
                            out: &mut dyn Output| {
        match h.param(0).map(PathAndJson::value) {
            Some(Json::String(text)) => out.write(text)?,
            Some(number) => {
                let index = number.as_u64().and_then(|n| usize::try_from(n).ok());
                out.write(
                    index
                        .and_then(|i| texts.get(i))
                        .map(String::as_str)
                        .unwrap_or_default(),
                )?;
            }
            None => {}
        }
        Ok(())
    };
    registry.register_helper(PLACEHOLDER, Box::new(placeholder));
    registry.register_helper("json", Box::new(json_helper));
    registry.register_helper("default", Box::new(default_helper));
    registry
}

/// `{{json x}}`: the value as JSON.
fn json_helper(
    h: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> Result<(), RenderError> {
    let missing = RenderErrorReason::ParamNotFoundForIndex("json", 0);
    let value = h.param(0).ok_or(missing)?.value();
    out.write(&value.to_string()).map_err(RenderError::from)
}

/// `{{default x "y"}}`: the first of its parameters that is not empty.
fn default_helper(
    h: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> Result<(), RenderError> {
    let filled = |json: &&Json| !json.is_null() && json.as_str() != Some("");
    match h.params().iter().map(PathAndJson::value).find(filled) {
        Some(Json::String(text)) => out.write(text)?,
        Some(other) => out.write(&other.to_string())?,
        None => {}
    }
    Ok(())
}

/// A buffer that refuses more than [`RENDERED_BYTES_MAX`].
struct Bounded {
    bytes: Vec<u8>,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > RENDERED_BYTES_MAX {
            return Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

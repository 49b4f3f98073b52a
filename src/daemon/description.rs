//! What types say of themselves in the OpenAPI document: inputs and outputs of handlers.

use axum::extract::State;
use schemars::JsonSchema;
use schemars::generate::SchemaGenerator;
use serde_json::{Map, Value, json};

/// One operation of the document, while its handler's types are asked.
pub(super) struct Description<'a> {
    /// Schemas of what is read.
    pub(super) requests: &'a mut SchemaGenerator,
    /// Schemas of what is written.
    pub(super) replies: &'a mut SchemaGenerator,
    /// One sentence for people.
    pub(super) summary: &'static str,
    pub(super) parameters: Vec<Value>,
    pub(super) body: Option<Value>,
    pub(super) responses: Map<String, Value>,
}

impl Description<'_> {
    /// A parameter of the path or a header.
    pub(super) fn parameter(&mut self, place: &str, name: &str, description: &str, schema: &Value) {
        self.parameters.push(json!({
            "name": name, "in": place, "required": place == "path",
            "description": description, "schema": schema
        }));
    }

    /// The fields of a query's type as parameters.
    pub(super) fn query<T: JsonSchema>(&mut self) {
        let schema = T::json_schema(self.requests);
        let required = schema.get("required").and_then(Value::as_array);
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
            self.parameters.push(json!({
                "name": name, "in": "query", "required": is_required,
                "description": schema.get("description").cloned().unwrap_or_default(),
                "schema": schema
            }));
        }
    }

    /// The request's body.
    pub(super) fn body<T: JsonSchema>(&mut self, required: bool) {
        let schema = self.requests.subschema_for::<T>();
        let content = json!({"application/json": {"schema": schema}});
        self.body = Some(json!({"required": required, "content": content}));
    }

    /// A reply with this content by media type; null: without any.
    pub(super) fn reply(&mut self, status: &str, description: &str, content: &Value) {
        let mut reply = json!({"description": description});
        if !content.is_null() {
            reply["content"] = content.clone();
        }
        self.responses.insert(status.to_owned(), reply);
    }

    /// What a reply in JSON holds.
    pub(super) fn json<T: JsonSchema>(&mut self) -> Value {
        json!({"application/json": {"schema": self.replies.subschema_for::<T>()}})
    }
}

/// What a handler takes.
pub(super) trait Input {
    /// Whether it reads the parameters of the query; they are refused where nothing does.
    const READS_QUERY: bool = false;

    /// What the document says of it.
    fn describe(_operation: &mut Description<'_>) {}
}

/// What a handler returns.
pub(super) trait Output {
    /// What the document says of it.
    fn describe(operation: &mut Description<'_>);
}

/// A handler whose types describe its operation; `Arguments` tells functions of different lengths apart, as in
/// [`axum::handler::Handler`].
pub(super) trait Endpoint<Arguments> {
    /// All that it takes.
    type Inputs: Input;
    /// What it returns.
    type Output: Output;
}

impl Input for () {}

impl<A: Input, Others: Input> Input for (A, Others) {
    const READS_QUERY: bool = A::READS_QUERY || Others::READS_QUERY;

    fn describe(operation: &mut Description<'_>) {
        A::describe(operation);
        Others::describe(operation);
    }
}

/// What need not be there is described where it is there.
impl<A> Input for Option<A> {}

/// The state is no part of the request.
impl<S> Input for State<S> {}

impl<F, Answer> Endpoint<()> for F
where
    F: Fn() -> Answer,
    Answer: Future<Output: Output>,
{
    type Inputs = ();
    type Output = Answer::Output;
}

impl<F, Answer, A> Endpoint<(A,)> for F
where
    F: Fn(A) -> Answer,
    Answer: Future<Output: Output>,
    A: Input,
{
    type Inputs = (A, ());
    type Output = Answer::Output;
}

impl<F, Answer, A, B> Endpoint<(A, B)> for F
where
    F: Fn(A, B) -> Answer,
    Answer: Future<Output: Output>,
    A: Input,
    B: Input,
{
    type Inputs = (A, (B, ()));
    type Output = Answer::Output;
}

impl<F, Answer, A, B, C> Endpoint<(A, B, C)> for F
where
    F: Fn(A, B, C) -> Answer,
    Answer: Future<Output: Output>,
    A: Input,
    B: Input,
    C: Input,
{
    type Inputs = (A, (B, (C, ())));
    type Output = Answer::Output;
}

impl<F, Answer, A, B, C, D> Endpoint<(A, B, C, D)> for F
where
    F: Fn(A, B, C, D) -> Answer,
    Answer: Future<Output: Output>,
    A: Input,
    B: Input,
    C: Input,
    D: Input,
{
    type Inputs = (A, (B, (C, (D, ()))));
    type Output = Answer::Output;
}

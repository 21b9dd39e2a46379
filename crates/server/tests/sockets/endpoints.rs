//! Every endpoint of the API, as its document lists them: one that is added is looked at here without a word.

use backstitch_server::http::document;
use serde_json::{Map, Value, json};

use crate::server::{Answer, Server};

/// One method of one path.
struct Endpoint {
    method: String,
    /// With an id that nothing has.
    path: String,
    has_id: bool,
    query: Vec<(String, Value)>,
    /// The schema of its body.
    body: Option<Value>,
}

/// What a schema refers to.
fn followed(document: &Value, schema: &Value) -> Value {
    match schema["$ref"].as_str() {
        Some(name) => document.pointer(&name[1..]).expect("it is there").clone(),
        None => schema.clone(),
    }
}

fn endpoints() -> Vec<Endpoint> {
    let document: Value = serde_json::from_str(&document()).expect("it is JSON");
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("it has paths") {
        for (method, what) in methods.as_object().expect("it has methods") {
            let parameters = what["parameters"].as_array().cloned().unwrap_or_default();
            let in_query = parameters.iter().filter(|parameter| parameter["in"] == "query");
            let query = in_query.map(|parameter| {
                let name = parameter["name"].as_str().expect("it has a name").to_owned();
                (name, followed(&document, &parameter["schema"]))
            });
            let body = &what["requestBody"]["content"]["application/json"]["schema"];
            let mut body = body.is_object().then(|| followed(&document, body));
            for field in body.iter_mut().flat_map(|body| body["properties"].as_object_mut()) {
                field.values_mut().for_each(|schema| *schema = followed(&document, schema));
            }
            all.push(Endpoint {
                method: method.to_uppercase(),
                path: path.replace("{id}", "none"),
                has_id: path.contains("{id}"),
                query: query.collect(),
                body,
            });
        }
    }
    assert!(all.len() > 20, "it lists all of them");
    all
}

/// Something that fits the schema.
fn good(schema: &Value) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    if let Some(either) = schema["oneOf"].as_array() {
        return good(&either[0]);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("string") => json!("a"),
        Some("integer") => json!(1),
        Some("boolean") => json!(true),
        Some("object") => json!({}),
        _ => Value::Null,
    }
}

/// Something that does not fit it; nothing, if everything does.
fn bad(schema: &Value) -> Option<Value> {
    let is_anything = schema.get("type").is_none() && schema.get("oneOf").is_none();
    (!is_anything).then(|| json!([[]]))
}

impl Endpoint {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// A body with everything that there has to be.
    fn good_body(&self) -> Option<Value> {
        let body = self.body.as_ref()?;
        let required = body["required"].as_array().cloned().unwrap_or_default();
        let field = |name: &Value| {
            let name = name.as_str().expect("names are texts");
            (name.to_owned(), good(&body["properties"][name]))
        };
        Some(Value::Object(required.iter().map(field).collect()))
    }

    async fn ask(&self, server: &Server, query: &str, body: &str) -> Answer {
        let target = format!("{}{query}", self.path);
        let headers: &[&str] = match self.body {
            Some(_) => &["content-type: application/json"],
            None => &[],
        };
        server.ask(&self.method, &target, headers, body).await
    }

    /// Sends a body without saying how long it is.
    async fn ask_in_chunks(&self, server: &Server, body: &str) -> Answer {
        let mut request = format!(
            "{} {} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             connection: close\r\ntransfer-encoding: chunked\r\n\r\n",
            self.method, self.path
        );
        for chunk in body.as_bytes().chunks(16 * 1024) {
            let chunk = std::str::from_utf8(chunk).expect("it is ASCII");
            request += &format!("{:x}\r\n{chunk}\r\n", chunk.len());
        }
        server.raw((request + "0\r\n\r\n").as_bytes()).await
    }
}

#[track_caller]
fn is_problem(what: &str, answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{what}: {answer:?}");
    assert!(answer.head.contains("content-type: application/problem+json"), "{what}: {answer:?}");
    assert_eq!(answer.at("/code"), code, "{what}: {answer:?}");
}

#[tokio::test]
async fn an_id_that_nothing_has_is_told_everywhere() {
    let server = Server::begin().await;
    for endpoint in endpoints().iter().filter(|endpoint| endpoint.has_id) {
        let body = endpoint.good_body().map(|body| body.to_string()).unwrap_or_default();
        let answer = endpoint.ask(&server, "", &body).await;
        is_problem(&endpoint.name(), &answer, 404, "not_found");
        assert!(answer.at("/detail").contains("\"none\""), "{answer:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_field_of_the_wrong_type_and_one_that_is_missing_are_named_everywhere() {
    let server = Server::begin().await;
    for endpoint in &endpoints() {
        let (Some(body), Some(Value::Object(good))) = (&endpoint.body, endpoint.good_body()) else {
            continue;
        };
        for (name, schema) in body["properties"].as_object().expect("it has fields") {
            let Some(wrong) = bad(schema) else { continue };
            let mut spoiled: Map<String, Value> = good.clone();
            spoiled.insert(name.clone(), wrong);
            let answer = endpoint.ask(&server, "", &Value::Object(spoiled).to_string()).await;
            is_problem(&format!("{} {name}", endpoint.name()), &answer, 400, "bad_body");
        }
        let fields = body["properties"].as_object().expect("it has fields");
        let in_order: Vec<Value> = fields.values().map(self::good).collect();
        let answer = endpoint.ask(&server, "", &Value::from(in_order).to_string()).await;
        is_problem(&format!("{} as a list", endpoint.name()), &answer, 400, "bad_body");
        assert!(answer.at("/detail").contains("the body is a list"), "{answer:?}");
        for missing in good.keys() {
            let mut spoiled = good.clone();
            spoiled.remove(missing);
            let answer = endpoint.ask(&server, "", &Value::Object(spoiled).to_string()).await;
            is_problem(&format!("{} without {missing}", endpoint.name()), &answer, 400, "bad_body");
            assert!(answer.at("/detail").contains(&format!("`{missing}`")), "{answer:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_parameter_of_the_wrong_type_is_refused_everywhere() {
    let server = Server::begin().await;
    for endpoint in &endpoints() {
        let body = endpoint.good_body().map(|body| body.to_string()).unwrap_or_default();
        for (name, schema) in &endpoint.query {
            let is_text = schema["type"] == "string";
            if is_text && schema.get("enum").is_none() && schema.get("format").is_none() {
                continue;
            }
            let answer = endpoint.ask(&server, &format!("?{name}=-1.5x"), &body).await;
            is_problem(&format!("{} {name}", endpoint.name()), &answer, 400, "bad_query");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn bodies_that_are_too_large_or_not_declared_are_refused_everywhere() {
    let server = Server::begin().await;
    let large = format!("{{\"by\":\"{}\"}}", "x".repeat(2_000_000));
    for endpoint in endpoints().iter().filter(|endpoint| endpoint.body.is_some()) {
        let what = endpoint.name();
        is_problem(&what, &endpoint.ask(&server, "", &large).await, 413, "body_too_large");
        let chunked = endpoint.ask_in_chunks(&server, &large).await;
        is_problem(&what, &chunked, 413, "body_too_large");
        // The same way with little in it is fine.
        let chunked = endpoint.ask_in_chunks(&server, "{").await;
        is_problem(&what, &chunked, 400, "bad_body");
        let form = ["content-type: application/x-www-form-urlencoded"];
        let undeclared = server.ask(&endpoint.method, &endpoint.path, &form, "by=me").await;
        is_problem(&what, &undeclared, 415, "unsupported_media_type");
    }
    server.stop().await;
}

#[tokio::test]
async fn heads_that_are_too_large_and_other_methods_are_refused_everywhere() {
    let server = Server::begin().await;
    let long = format!("x: {}", "y".repeat(64 * 1024));
    let many: Vec<String> = (0..65).map(|number| format!("x-{number}: y")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for endpoint in &endpoints() {
        let (method, path) = (&endpoint.method, &endpoint.path);
        for headers in [&[long.as_str()][..], &many] {
            let answer = server.ask(method, path, headers, "").await;
            assert_eq!(answer.status, 431, "{}: {answer:?}", endpoint.name());
        }
        for other in ["PUT", "PATCH", "BREW"] {
            let answer = server.ask(other, path, &[], "").await;
            is_problem(&format!("{other} {path}"), &answer, 405, "method_not_allowed");
        }
        let below = server.ask(method, &format!("{path}/none/such"), &[], "").await;
        is_problem(&format!("{method} below {path}"), &below, 404, "unknown_route");
    }
    server.stop().await;
}

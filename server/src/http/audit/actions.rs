//! Maps each changing route to its action in the audit log. The only place that names actions.

use axum::http::Method;

use super::routes;

/// A change on a route that is not listed here.
pub const OTHER: &str = "other";

/// What is known of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It changes something: the action.
    Change(&'static str),
    /// It has a changing method and changes nothing that is kept by the server's own will: an invocation, which has a
    /// history of its own.
    NoChange,
}

/// Every action there is, for filters.
pub const ALL: &[&str] = &[
    "function.create",
    "function.deploy",
    "function.settings",
    "function.activate",
    "function.add_version",
    "function.copy",
    "function.gate",
    "function.set_gate",
    "function.delete",
    "chain.create",
    "chain.settings",
    "chain.activate",
    "chain.delete",
    "experiment.create",
    "experiment.cancel",
    "experiment.delete",
    "event.save",
    "event.delete",
    "secret.create",
    "secret.replace",
    "secret.delete",
    "token.create",
    "token.revoke",
    "user.create",
    "user.role",
    "user.password",
    "user.disable",
    "user.enable",
    "user.change",
    "user.delete",
    "session.login",
    "session.login_failed",
    "session.confirm_failed",
    "session.logout",
    "session.end",
    "session.end_others",
    "account.password",
    "retention.change",
    "ingress.list",
    "ingress.unlist",
    OTHER,
];

/// What a changing route does.
pub fn of(method: &Method, pattern: &str) -> Known {
    listed(method, pattern).unwrap_or(Known::Change(OTHER))
}

fn listed(method: &Method, pattern: &str) -> Option<Known> {
    routes::all()
        .find(|(m, route, _)| m == method && *route == pattern)
        .map(|(_, _, known)| *known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_names_a_listed_action() {
        for (method, route, known) in routes::all() {
            if let Known::Change(action) = known {
                assert!(ALL.contains(action), "{method} {route}: {action}");
            }
        }
    }

    /// A changing route of the API that is missing above.
    #[test]
    fn every_changing_route_of_the_api_is_listed() {
        let document = crate::http::openapi::generated();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys() {
                let method: Method = method.to_uppercase().parse().unwrap();
                assert!(
                    method.is_safe() || listed(&method, path).is_some(),
                    "{method} {path} is not in the list of audited routes"
                );
            }
        }
    }

    /// The same for the console, whose router cannot be asked: its source is read.
    #[test]
    fn every_changing_route_of_the_console_is_listed() {
        let source = include_str!("../console/mod.rs");
        let mut found = 0;
        for route in source.split(".route(").skip(1) {
            let path = route.split('"').nth(1).unwrap();
            for (call, method) in [
                ("post(", Method::POST),
                ("put(", Method::PUT),
                ("patch(", Method::PATCH),
                ("delete(", Method::DELETE),
            ] {
                if handler_part(route).contains(call) {
                    found += 1;
                    assert!(
                        listed(&method, path).is_some(),
                        "{method} {path} is not in the list of audited routes"
                    );
                }
            }
        }
        assert!(found > 10, "the source was not understood");
    }

    /// From the path to the end of the call: handlers' own names are behind `::`.
    fn handler_part(route: &str) -> String {
        let mut depth = 1;
        let call = route
            .chars()
            .take_while(|c| {
                match c {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                depth > 0
            })
            .collect::<String>();
        call.split(['.', ',', ' ', '\n'])
            .map(|part| format!("{part} "))
            .collect()
    }
}

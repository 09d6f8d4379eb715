//! `context.chain`: calls between members, requests that end early or skip a part of their route.

use serde_json::json;

use super::path::{create, deploy_node, invoke};
use crate::support::Server;

const CALLER: &str = "\
import asyncio

def handler(event, context):
    chain = context.chain
    match event['do']:
        case 'call':
            return [chain.call('double', event['value']), chain.call('double', [1])]
        case 'together':
            async def both():
                return await asyncio.gather(*(chain.call_async('double', n) for n in range(3)))
            return asyncio.run(both())
        case 'undeclared':
            chain.call('other', 1)
        case 'unknown':
            chain.call('nobody\\nat all', 1)
        case 'failing':
            try:
                chain.call('double', None)
            except Exception as error:
                return [type(error).__name__, error.error_type, error.error['errorType']]
        case 'respond':
            chain.respond('early')
            return 'late'
        case 'send':
            chain.send('last', 'skipped')
            return 'late'
        case _:
            return event['value']
";
const NODE_CALLER: &str = "\
exports.handler = async (event, context) => {
    const { chain } = context;
    if (event.do === 'call') {
        return Promise.all([1, 2, 3].map((n) => chain.call('double', n)));
    }
    try {
        await chain.call('double', null);
    } catch (error) {
        return [error.name, error.errorType, error.error.errorType];
    }
};
";

/// A chain whose first member is the function `caller`.
async fn with_caller(caller: &str, runtime: &str) -> (Server, crate::support::Client) {
    let server = Server::start();
    let client = server.client();
    match runtime {
        "node" => deploy_node(&client, "caller", caller).await,
        _ => drop(client.deploy("caller", caller, json!({})).await),
    }
    let double = "def handler(event, context):\n    return event + event\n";
    client.deploy("double", double, json!({})).await;
    let wrap = "def handler(event, context):\n    return [context.function_name, event]\n";
    client.deploy("wrap", wrap, json!({})).await;
    create(
        &client,
        json!({
            "members": {
                "first": {"function": "caller"},
                "double": {"function": "double", "concurrency": 2},
                "other": {"function": "wrap"},
                "last": {"function": "wrap"},
            },
            "routes": {"r": ["first", "other", "last"], "only": ["first"]},
            "edges": [["first", "double"], ["first", "last"]],
        }),
    )
    .await;
    (server, client)
}

#[tokio::test]
async fn a_member_calls_another_and_waits() {
    let (_server, client) = with_caller(CALLER, "python3").await;
    let answer = invoke(&client, "only", &json!({"do": "call", "value": 21}))
        .await
        .expect(200);
    assert_eq!(answer.json(), json!([42, [1, 1]]));
    let timing = answer.header("server-timing");
    assert_eq!(timing.matches("double;dur=").count(), 2, "{timing}");
    let together = invoke(&client, "only", &json!({"do": "together"}))
        .await
        .expect(200);
    assert_eq!(together.json(), json!([0, 2, 4]));
    let failed = invoke(&client, "only", &json!({"do": "failing"}))
        .await
        .expect(200);
    assert_eq!(
        failed.json(),
        json!(["ChainError", "Chain.MemberFailed", "TypeError"])
    );
}

#[tokio::test]
async fn a_node_member_awaits_its_calls() {
    let (_server, client) = with_caller(NODE_CALLER, "node").await;
    let answer = invoke(&client, "only", &json!({"do": "call"}))
        .await
        .expect(200);
    assert_eq!(answer.json(), json!([2, 4, 6]));
    let failed = invoke(&client, "only", &json!({})).await.expect(200);
    assert_eq!(
        failed.json(),
        json!(["ChainError", "Chain.MemberFailed", "TypeError"])
    );
}

#[tokio::test]
async fn an_edge_that_is_not_declared_is_not_there() {
    let (_server, client) = with_caller(CALLER, "python3").await;
    for (what, member) in [("undeclared", "other"), ("unknown", "nobody")] {
        let problem = invoke(&client, "only", &json!({"do": what}))
            .await
            .problem(502, "function_error");
        assert_eq!(problem["errorType"], "ChainError");
        assert!(
            problem["errorMessage"].to_string().contains(member),
            "{problem}"
        );
    }
    let answer = invoke(&client, "only", &json!({"do": "", "value": 1}))
        .await
        .expect(200);
    assert_eq!(answer.json(), json!(1));
}

#[tokio::test]
async fn a_request_ends_early_or_skips_members() {
    let (_server, client) = with_caller(CALLER, "python3").await;
    let early = invoke(&client, "r", &json!({"do": "respond"}))
        .await
        .expect(200);
    assert_eq!(early.json(), json!("early"));
    let skipped = invoke(&client, "r", &json!({"do": "send"}))
        .await
        .expect(200);
    assert_eq!(skipped.json(), json!(["wrap", "skipped"]));
    let whole = invoke(&client, "r", &json!({"do": "", "value": 1}))
        .await
        .expect(200);
    assert_eq!(whole.json(), json!(["wrap", ["wrap", 1]]));
}

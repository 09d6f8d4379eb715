//! What a handler lives in: coroutines, context, environment, randomness, hooks.

use std::collections::HashSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn handlers_may_be_coroutines() {
    let server = Server::start();
    let client = server.client();
    let code = "import asyncio\n\
        lock = asyncio.Lock()\n\
        calls = 0\n\
        async def handler(event, context):\n    \
            global calls\n    \
            async with lock:\n        \
                await asyncio.sleep(0)\n        \
                calls += 1\n    \
            if event == 'raise': raise LookupError('async')\n    \
            both = await asyncio.gather(asyncio.sleep(0.001, 'a'), asyncio.to_thread(lambda: 'b'))\n    \
            return [calls, both]\n";
    client.deploy("awaits", code, json!({})).await;
    assert_eq!(
        client.invoke("awaits", &json!(0)).await.expect(200).json(),
        json!([1, ["a", "b"]])
    );
    let problem = client
        .invoke("awaits", &json!("raise"))
        .await
        .problem(502, "function_error");
    assert_eq!(problem["errorType"], "LookupError");
    let trace = problem["stackTrace"].to_string();
    assert!(
        trace.contains("main.py") && !trace.contains("asyncio"),
        "{trace}"
    );
    let again = client.invoke("awaits", &json!(0)).await.expect(200);
    assert_eq!(
        again.json(),
        json!([3, ["a", "b"]]),
        "one loop serves them all"
    );
}

#[tokio::test]
async fn the_context_has_lambdas_fields() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    \
        left = context.get_remaining_time_in_millis()\n    \
        return {name: getattr(context, name) for name in (\n        \
            'function_name', 'function_version', 'memory_limit_in_mb', 'aws_request_id', 'invoked_function_arn',\n        \
            'log_group_name', 'log_stream_name', 'identity', 'client_context')} | {'left': left, 'kind': type(left).__name__}\n";
    client
        .deploy("aware", code, json!({"memory_mb": 64, "timeout_ms": 20000}))
        .await;
    let answer = client.invoke("aware", &json!({})).await.expect(200);
    let context = answer.json();
    assert_eq!(context["function_name"], "aware");
    assert_eq!(context["function_version"], "1");
    assert_eq!(context["memory_limit_in_mb"], 64);
    assert_eq!(
        context["aws_request_id"],
        answer.header("x-hearth-invocation-id")
    );
    assert_eq!(context["log_group_name"], "/hearth/aware");
    assert!(
        context["log_stream_name"]
            .as_str()
            .unwrap()
            .starts_with("1/")
    );
    assert!(
        context["invoked_function_arn"]
            .as_str()
            .unwrap()
            .ends_with(":function:aware:1")
    );
    assert_eq!(context["identity"], Value::Null);
    assert_eq!(context["client_context"], Value::Null);
    assert_eq!(context["kind"], "int");
    let left = context["left"].as_i64().unwrap();
    assert!((1..=20_000).contains(&left), "{left}");

    client
        .patch("/api/v1/functions/aware", &json!({"memory_mb": 96}))
        .await
        .expect(200);
    let context = client.invoke("aware", &json!({})).await.expect(200).json();
    assert_eq!(context["function_version"], "2");
    assert_eq!(context["memory_limit_in_mb"], 96);
}

#[tokio::test]
async fn traceparent_goes_in_and_comes_out() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    return context.traceparent\n";
    client.deploy("traced", code, json!({})).await;
    let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (method, path) in [
        (Method::POST, "/api/v1/functions/traced/invoke"),
        (Method::GET, "/fn/traced"),
    ] {
        let request = client
            .request(method.clone(), path)
            .header("traceparent", good);
        let answer = client.send(request).await.expect(200);
        assert_eq!(answer.json(), good);
        assert_eq!(answer.header("traceparent"), good);
        for bad in [
            "",
            "x",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            &good.to_uppercase(),
        ] {
            let request = client
                .request(method.clone(), path)
                .header("traceparent", bad);
            let answer = client.send(request).await.expect(200);
            assert_eq!(answer.json(), Value::Null, "{bad:?}");
            assert!(!answer.headers.contains_key("traceparent"));
        }
        let without = client.send(client.request(method, path)).await.expect(200);
        assert_eq!(without.json(), Value::Null);
    }
}

#[tokio::test]
async fn the_environment_holds_the_functions_variables_and_nothing_of_the_servers() {
    let server = Server::start();
    let client = server.client();
    let code = "import os, subprocess\n\
        AT_IMPORT = dict(os.environ)\n\
        def handler(event, context):\n    \
            child = subprocess.run(['/usr/bin/env'], capture_output=True, text=True).stdout.splitlines()\n    \
            own = open('/proc/self/environ').read()\n    \
            return [dict(os.environ), AT_IMPORT, sorted(child), own]\n";
    let env = json!({"GREETING": "grüß dich", "EMPTY": "", "MULTI": "a\nb=c"});
    client
        .deploy("environed", code, json!({"env": env, "memory_mb": 64}))
        .await;
    let seen = client
        .invoke("environed", &json!({}))
        .await
        .expect(200)
        .json();
    let variables = seen[0].as_object().unwrap();
    assert_eq!(variables["GREETING"], "grüß dich");
    assert_eq!(variables["EMPTY"], "");
    assert_eq!(variables["MULTI"], "a\nb=c");
    assert_eq!(variables["HEARTH_FUNCTION"], "environed");
    assert_eq!(variables["HEARTH_VERSION"], "1");
    let foreign: Vec<_> = variables
        .keys()
        .filter(|name| {
            let ours = [
                "GREETING",
                "EMPTY",
                "MULTI",
                "HEARTH_FUNCTION",
                "HEARTH_VERSION",
            ];
            // What a process needs in any environment, with values of the sandbox's own.
            let usual = ["PATH", "HOME", "LANG", "LC_CTYPE", "TMPDIR", "TZ", "USER"];
            // What Lambda's functions find there.
            let is_lambdas = ["AWS_", "LAMBDA_", "_HANDLER"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
            !ours.contains(&name.as_str()) && !usual.contains(&name.as_str()) && !is_lambdas
        })
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    let stream = "AWS_LAMBDA_LOG_STREAM_NAME";
    let mut imported = seen[1].clone();
    assert_eq!(imported[stream], "1", "before there is an instance");
    imported[stream] = seen[0][stream].clone();
    assert_eq!(
        seen[0], imported,
        "the module sees them while it is imported, too"
    );
    for text in [
        seen[2].to_string(),
        seen[3].to_string(),
        seen[0].to_string(),
    ] {
        for secret in [
            "hth_test_token",
            "HEARTH_ADMIN",
            "HEARTH_DATA_DIR",
            "HEARTH_LISTEN",
            "CARGO",
        ] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
}

#[tokio::test]
async fn no_two_instances_draw_the_same_randomness() {
    let server = Server::start();
    let client = server.client();
    let code = "import os, random, secrets, ssl, tempfile, time, uuid\n\
        random.random()\n\
        uuid.uuid1()\n\
        ssl.RAND_bytes(8)\n\
        def handler(event, context):\n    \
            deadline = time.time() + 10\n    \
            open(f'/tmp/in-{os.getpid()}', 'w').close()\n    \
            while len([n for n in os.listdir('/tmp') if n.startswith('in-')]) < 4 and time.time() < deadline:\n        \
                time.sleep(0.005)\n    \
            return [os.getpid(), random.random(), random.getrandbits(64), str(uuid.uuid4()), str(uuid.uuid1()),\n            \
                os.urandom(8).hex(), ssl.RAND_bytes(8).hex(), secrets.token_hex(8), next(tempfile._get_candidate_names())]\n";
    client
        .deploy("dice", code, json!({"max_concurrency": 4}))
        .await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let client = client.clone();
        calls.spawn(async move { client.invoke("dice", &json!(0)).await.expect(200).json() });
    }
    let draws = calls.join_all().await;
    for source in 0..9 {
        let different: HashSet<String> =
            draws.iter().map(|draw| draw[source].to_string()).collect();
        assert_eq!(different.len(), 4, "source {source}: {draws:?}");
    }
}

#[tokio::test]
async fn snapshot_hooks_run_around_the_fork() {
    let server = Server::start();
    let client = server.client();
    let code = "from snapshot_restore_py import register_before_snapshot, register_after_restore\n\
        import os\n\
        seen = []\n\
        register_before_snapshot(lambda: seen.append(('before', os.getpid())))\n\
        @register_after_restore\n\
        def after():\n    seen.append(('after', os.getpid()))\n\
        def handler(event, context):\n    return [seen, os.getpid()]\n";
    client.deploy("hooked", code, json!({})).await;
    for _ in 0..2 {
        let answer = client.invoke("hooked", &json!(0)).await.expect(200).json();
        let (seen, pid) = (&answer[0], &answer[1]);
        assert_eq!(seen.as_array().unwrap().len(), 2, "{answer}");
        assert_eq!(seen[0][0], "before");
        assert_ne!(seen[0][1], *pid, "in the template");
        assert_eq!(seen[1], json!(["after", pid]), "in the instance, once");
    }
}

#[tokio::test]
async fn a_function_may_set_what_the_sandbox_sets_by_default() {
    let server = Server::start();
    let client = server.client();
    let code = "import os\ndef handler(event, context):\n    return [os.environ[name] for name in event]\n";
    let env = json!({"PATH": "/var/task/bin:/usr/bin", "HOME": "/tmp/home", "LANG": "C", "TZ": "Europe/Berlin"});
    client
        .deploy("own", code, json!({"env": env.clone()}))
        .await;
    let names: Vec<_> = env.as_object().unwrap().keys().collect();
    let values: Vec<_> = env.as_object().unwrap().values().collect();
    assert_eq!(
        client.invoke("own", &json!(names)).await.expect(200).json(),
        json!(values)
    );
}

/// V8 collects garbage in a heap that has been quiet for eight seconds. A template's has been: were it left to, each instance
/// would begin with that.
#[tokio::test]
async fn an_instance_does_not_begin_by_collecting_its_templates_garbage() {
    let server = Server::start();
    let client = server.client();
    // A weak reference holds until the whole heap is collected. Looking at it would keep what it refers to.
    let code = "import { setTimeout as sleep } from 'node:timers/promises';\n\
        let weak;\n\
        export const handler = async (look) => {\n  \
            weak ??= new WeakRef({});\n  \
            await sleep(5);\n  \
            return [process.pid, !look || weak.deref() !== undefined];\n\
        };\n";
    let settings = json!({"runtime": "node", "handler": "main.handler"});
    client.deploy("quiet", code, settings).await;
    // V8's own timer, which nothing tells of.
    tokio::time::sleep(Duration::from_secs(9)).await;
    let first = client
        .invoke("quiet", &json!(false))
        .await
        .expect(200)
        .json();
    for call in 1..=60 {
        let answer = client
            .invoke("quiet", &json!(call == 60))
            .await
            .expect(200)
            .json();
        assert_eq!(answer, json!([first[0], true]));
    }
}

use std::time::Duration;

use serde_json::{Value, json};

use super::*;

/// The example of STeLLAR's burst experiments, cut short; its provider is left out there.
const BURSTS: &str = r#"{
  "Sequential": false,
  "SubExperiments": [
    {
      "Title": "warm",
      "Function": "hellopy",
      "Handler": "hellopy/lambda_function.lambda_handler",
      "PackageType": "Zip",
      "PackagePattern": "hellopy/lambda_function.py",
      "Bursts": 6,
      "BurstSizes": [500],
      "IATSeconds": 25,
      "FunctionMemoryMB": 2048,
      "DesiredServiceTimes": ["0ms"]
    },
    {
      "Title": "cold",
      "Bursts": 3000,
      "BurstSizes": [1],
      "IATSeconds": 600,
      "SnapStartEnabled": true,
      "Parallelism": 147
    }
  ]
}"#;

#[test]
fn stellars_own_files_are_read_unchanged() {
    let experiment = Experiment::read(BURSTS.as_bytes(), false).expect("good");
    assert_eq!(
        (experiment.provider.as_str(), experiment.sequential),
        ("hearth", false)
    );
    let [warm, cold] = experiment.sub_experiments.as_slice() else {
        panic!("two of them");
    };
    assert_eq!(
        (warm.bursts, warm.burst_sizes.as_slice()),
        (6, [500].as_slice())
    );
    assert_eq!((warm.function_memory_mb, warm.iat_seconds), (2_048, 25.0));
    assert_eq!((cold.function.as_str(), cold.parallelism), ("hellopy", 147));
    assert_eq!(
        (cold.iat_type.as_str(), cold.function_memory_mb),
        ("stochastic", 128)
    );
    assert_eq!(cold.service_times(), Ok(vec![Duration::ZERO]));
}

fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = json!({"Provider": "hearth", "SubExperiments": [
        {"Title": "t", "Bursts": 1, "BurstSizes": [1], "IATSeconds": 1}
    ]});
    change(&mut value);
    value
}

fn refusal(value: &Value, has_endpoint: bool) -> String {
    let text = value.to_string();
    let read = Experiment::read(text.as_bytes(), has_endpoint);
    read.map(|_| String::new())
        .unwrap_or_else(|error| error.to_string())
}

/// The example of STeLLAR's own documentation, as it is.
#[test]
fn a_file_for_another_provider_is_read_as_it_is() {
    let text = r#"{"Sequential":true,"Provider":"aliyun","SubExperiments":[{"Title":"warm","Bursts":5,"BurstSizes":[1],"IATType":"deterministic","IATSeconds":1,"DesiredServiceTimes":["0ms"],"Routes":["invoke/hello"]}]}"#;
    let experiment = Experiment::read(text.as_bytes(), false).expect("it is read");
    assert_eq!(experiment.provider, "aliyun");
    assert_eq!(experiment.sub_experiments[0].function, "hellopy");
}

#[test]
fn what_would_take_the_host_is_refused() {
    let with = |fields: Value| {
        changed(|value| {
            let one = value["SubExperiments"][0]
                .as_object_mut()
                .expect("an object");
            one.extend(fields.as_object().expect("fields").clone());
        })
    };
    // 60 members each, of two instances.
    let chains = |parallelism: usize| {
        with(json!({"Parallelism": parallelism, "DataTransferChainLength": 60, "BurstSizes": [2]}))
    };
    assert_eq!(refusal(&chains(4), false), "");
    let text = refusal(&chains(5), false);
    assert!(
        text.contains("Parallelism") && text.contains("480 instances of chains"),
        "{text}"
    );
    let answers = |bursts: usize| with(json!({"Bursts": bursts, "BurstSizes": [100]}));
    assert_eq!(refusal(&answers(20_971), false), "");
    let text = refusal(&answers(20_972), false);
    assert!(text.contains("more than 2097152 requests"), "{text}");
}

#[test]
fn an_endpoint_stands_for_all_functions() {
    let at = |url: &str| changed(|value| value["Endpoint"] = json!(url));
    let text = at("https://a.b/x?y").to_string();
    let read = Experiment::read(text.as_bytes(), false).expect("an experiment");
    assert_eq!(read.endpoint.as_deref(), Some("https://a.b/x?y"));
    assert!(refusal(&at("a.b"), false).starts_with("Endpoint: must begin with http"));
    let mut stored = at("http://a.b/");
    stored["SubExperiments"][0]["StorageTransfer"] = json!(true);
    assert!(refusal(&stored, false).contains("StorageTransfer"));
}

#[test]
fn other_providers_are_refused_with_the_list() {
    let on = |provider: &str| changed(|value| value["Provider"] = json!(provider));
    let list = "known are: hearth, aws, azure, gcr, google, cloudflare, aliyun, vhive";
    for has_endpoint in [false, true] {
        for provider in ["Hearth", "lambda", "localhost:8080"] {
            let text = refusal(&on(provider), has_endpoint);
            assert!(text.contains(provider) && text.ends_with(list), "{text}");
        }
        for provider in ["", "aws", "aliyun", "vhive"] {
            assert_eq!(refusal(&on(provider), has_endpoint), "", "{provider}");
        }
    }
}

#[test]
fn bad_fields_are_named() {
    for (field, bad) in [
        ("Title", json!("")),
        ("Title", json!("../../etc")),
        ("Title", json!("..")),
        ("Title", json!("a\nb")),
        ("Title", json!("x".repeat(101))),
        ("Bursts", json!(0)),
        ("Bursts", json!(100_001)),
        ("BurstSizes", json!([])),
        ("BurstSizes", json!([1, 501])),
        ("IATSeconds", json!(-1)),
        ("IATSeconds", json!(86_401)),
        ("IATType", json!("poisson")),
        ("DesiredServiceTimes", json!(["soon"])),
        ("DesiredServiceTimes", json!(["6m"])),
        ("DesiredServiceTimes", json!(vec!["0ms"; 101])),
        ("BusySpinIncrements", json!(vec![1; 101])),
        ("PayloadLengthBytes", json!(1_u64 << 40)),
        ("Visualization", json!("pie")),
        ("Visualization", json!("bar-x")),
        ("Visualization", json!("bar-NaN")),
        ("Visualization", json!("bar--1")),
        ("Function", json!("producer-consumer")),
        ("PackageType", json!("Image")),
        ("Parallelism", json!(201)),
        ("FunctionMemoryMB", json!(16)),
        ("FunctionImageSizeMB", json!(201)),
        ("DataTransferChainLength", json!(65)),
        ("ConcurrencyLimit", json!(501)),
    ] {
        let value = changed(|value| value["SubExperiments"][0][field] = bad.clone());
        let text = refusal(&value, false);
        assert!(
            text.starts_with("SubExperiments[0]") && text.contains(field),
            "{field} {bad}: {text}"
        );
    }
    for (field, bad) in [
        ("Bursts", json!("many")),
        ("Bursts", json!(-1)),
        ("BurstSizes", json!(1)),
    ] {
        let value = changed(|value| value["SubExperiments"][0][field] = bad);
        assert!(
            refusal(&value, false).starts_with("not an experiment"),
            "{field}"
        );
    }
    assert!(refusal(&json!({"SubExperiments": []}), false).contains("SubExperiments"));
    assert!(refusal(&json!([1]), false).contains("not an experiment"));
    let large = " ".repeat(TEXT_MAX + 1);
    assert!(matches!(
        Experiment::read(large.as_bytes(), false),
        Err(ExperimentError::TooLarge)
    ));
}

#[test]
fn an_endpoint_has_a_route_for_each_replica_or_none() {
    let with = |parallelism: usize, routes: Value| {
        json!({"SubExperiments": [{
            "Title": "t", "Bursts": 1, "BurstSizes": [1], "Parallelism": parallelism, "Routes": routes,
        }]})
    };
    for routes in [json!([]), json!(["a", "/b?c=d"]), json!(["a", "b", "c"])] {
        assert_eq!(refusal(&with(2, routes), true), "");
    }
    let text = refusal(&with(2, json!(["a"])), true);
    assert!(
        text.contains("Routes: 1 for 2 replicas (Parallelism)"),
        "{text}"
    );
    for bad in ["a b", "a#b", "a\r\nb", "ä", &"a".repeat(1_025)] {
        let text = refusal(&with(1, json!([bad])), true);
        assert!(
            text.contains("Routes") && text.contains("is no path"),
            "{text}"
        );
    }
    // What is deployed has paths of its own.
    assert_eq!(refusal(&with(2, json!(["a b"])), false), "");
}

#[test]
fn a_compiled_function_has_no_transfers() {
    let with = |fields: Value| {
        let mut one =
            json!({"Title": "t", "Bursts": 1, "BurstSizes": [1], "Function": "hellorust"});
        let one_fields = one.as_object_mut().expect("an object");
        one_fields.extend(fields.as_object().expect("fields").clone());
        refusal(&json!({"SubExperiments": [one]}), false)
    };
    assert_eq!(with(json!({"DesiredServiceTimes": ["10ms"]})), "");
    for transfer in [
        json!({"DataTransferChainLength": 2}),
        json!({"StorageTransfer": true}),
    ] {
        let text = with(transfer);
        assert!(
            text.contains("Function: hellorust has no transfers"),
            "{text}"
        );
    }
}

#[test]
fn storage_transfers_may_be_as_large_as_an_object() {
    let with = |bytes: u64, length: usize| {
        json!({"SubExperiments": [{
            "Title": "t", "Bursts": 1, "BurstSizes": [1], "IATSeconds": 0, "StorageTransfer": true,
            "DataTransferChainLength": length, "PayloadLengthBytes": bytes,
        }]})
    };
    let read = |value: Value| Experiment::read(value.to_string().as_bytes(), false);
    for (bytes, length) in [(100 << 20, 2), (512 << 20, 2), (1 << 30, 1)] {
        let experiment = read(with(bytes, length)).expect("good");
        assert!(experiment.sub_experiments[0].storage_transfer);
    }
    for (bytes, length) in [((1 << 30) + 1, 1), (513 << 20, 2)] {
        let text = refusal(&with(bytes, length), false);
        assert!(text.contains("PayloadLengthBytes"), "{text}");
    }
    // What an endpoint's function does is its own affair.
    assert!(refusal(&with(1, 1), true).contains("StorageTransfer"));
}

#[test]
fn limits_hold_for_all_that_happens_at_once() {
    let one = |fields: Value| {
        let mut one = json!({"Title": "t", "Bursts": 2, "BurstSizes": [1], "IATSeconds": 1});
        for (field, value) in fields.as_object().expect("fields") {
            one[field] = value.clone();
        }
        one
    };
    let refused = |sequential: bool, all: &[Value], has_endpoint: bool| {
        let value = json!({"Sequential": sequential, "SubExperiments": all});
        refusal(&value, has_endpoint)
    };
    for (fields, expected) in [
        (json!({"BurstSizes": [500]}), "BurstSizes: at most 1000"),
        (json!({"Parallelism": 100}), "Parallelism: at most 200"),
        (
            json!({"PayloadLengthBytes": 4 << 20, "BurstSizes": [100]}),
            "PayloadLengthBytes: at most 1073741824",
        ),
    ] {
        let three = vec![one(fields); 3];
        assert_eq!(refused(true, &three, false), "", "{expected}");
        assert_eq!(refused(false, &three[..2], false), "", "{expected}");
        let text = refused(false, &three, false);
        assert!(
            text.starts_with(expected) && text.contains("Sequential"),
            "{text}"
        );
    }
    let large = one(json!({"PayloadLengthBytes": 64 << 20, "BurstSizes": [1, 20]}));
    let text = refused(true, &[large], false);
    assert!(text.starts_with("PayloadLengthBytes: at most"), "{text}");
    // What the load generator would refuse after everything is deployed.
    for (fields, expected) in [
        (
            json!({"Bursts": 20_000, "BurstSizes": [1, 500], "IATSeconds": 0}),
            "Bursts: with BurstSizes",
        ),
        (
            json!({"Bursts": 2, "IATSeconds": 50_000, "IATType": "deterministic"}),
            "IATSeconds: with Bursts more than 24 h",
        ),
    ] {
        let text = refused(true, &[one(fields)], true);
        assert!(text.contains(expected), "{text}");
    }
    let text = refused(true, &[one(json!({"Parallelism": 1_000_000}))], true);
    assert!(text.contains("Parallelism"), "{text}");
}

#[test]
fn an_endpoint_spins_only_by_given_increments() {
    let busy =
        changed(|value| value["SubExperiments"][0]["DesiredServiceTimes"] = json!(["100ms"]));
    assert_eq!(refusal(&busy, false), "");
    assert!(refusal(&busy, true).contains("DesiredServiceTimes"));
    let mut given = busy;
    given["SubExperiments"][0]["BusySpinIncrements"] = json!([1000]);
    given["SubExperiments"][0]["Function"] = json!("anything");
    assert_eq!(refusal(&given, true), "");
}

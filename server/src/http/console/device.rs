//! A browser's `User-Agent` in plain words.

/// Browsers by what gives them away, the most particular first: each also claims to be those below.
const BROWSERS: [(&str, &str); 9] = [
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];
/// Systems, likewise.
const SYSTEMS: [(&str, &str); 8] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
];
/// Longest name of a program that is no browser.
const MAX_PROGRAM_CHARS: usize = 30;

/// `Firefox on Linux`; of another program its name, `curl`.
pub fn in_words(agent: &str) -> String {
    let find = |list: &[(&str, &'static str)]| {
        list.iter()
            .find(|(sign, _)| agent.contains(sign))
            .map(|(_, name)| *name)
    };
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, system) => match (program(agent), system) {
            (Some(program), _) => program,
            (None, Some(system)) => format!("A browser on {system}"),
            (None, None) => "Unknown device".to_owned(),
        },
    }
}

/// The name before the first slash or space.
fn program(agent: &str) -> Option<String> {
    let name: String = agent
        .chars()
        .take_while(|c| !matches!(c, '/' | ' ') && !c.is_control())
        .take(MAX_PROGRAM_CHARS)
        .collect();
    (!name.is_empty() && name != "Mozilla").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_browsers_have_names() {
        for (agent, words) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
                "Firefox on Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 \
                 Safari/537.36 Edg/130.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 \
                 Safari/605.1.15",
                "Safari on macOS",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                 CriOS/126.0 Mobile/15E148 Safari/604.1",
                "Chrome on iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile \
                 Safari/537.36",
                "Chrome on Android",
            ),
            ("curl/8.5.0", "curl"),
            ("python-requests/2.31", "python-requests"),
            ("Mozilla/5.0 (Windows NT 10.0)", "A browser on Windows"),
            ("Mozilla/5.0", "Unknown device"),
            ("", "Unknown device"),
            ("\u{7}", "Unknown device"),
        ] {
            assert_eq!(in_words(agent), words, "{agent}");
        }
        assert_eq!(in_words(&"x".repeat(1000)).len(), MAX_PROGRAM_CHARS);
    }
}

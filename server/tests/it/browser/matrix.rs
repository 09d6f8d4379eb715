//! The same pages in every size and theme.

use super::driver::{Browser, DESKTOP, PHONE};

/// Size and whether it is dark, with its name in the pictures' files.
const VARIANTS: [((u32, u32), bool, &str); 4] = [
    (DESKTOP, false, "desktop-light"),
    (DESKTOP, true, "desktop-dark"),
    (PHONE, false, "phone-light"),
    (PHONE, true, "phone-dark"),
];

impl Browser {
    /// Opens each page (name of its picture, path) at desktop and phone width, light and dark; writes the pictures
    /// `NAME-desktop-light.png` and so on; and fails when a page scrolls sideways, when axe-core finds something serious
    /// on it, or when the browser complains of an error or of the content security policy.
    pub async fn pictures(&self, url: &str, pages: &[(&str, &str)]) {
        // What was complained of before is not these pages' fault.
        self.console().await;
        for (size, dark, variant) in VARIANTS {
            self.resize(size).await;
            self.prefer(dark).await;
            for (name, path) in pages {
                self.client
                    .goto(&format!("{url}{path}"))
                    .await
                    .expect("the page");
                self.find("main").await;
                self.look(&format!("{name}-{variant}")).await;
            }
        }
        self.resize(DESKTOP).await;
        self.prefer(false).await;
    }

    /// The same for the page that is open, as it is now.
    pub async fn looks(&self, name: &str) {
        self.console().await;
        for (size, dark, variant) in VARIANTS {
            self.resize(size).await;
            self.prefer(dark).await;
            self.look(&format!("{name}-{variant}")).await;
        }
        self.resize(DESKTOP).await;
        self.prefer(false).await;
    }

    /// The same for the page that is open, as it is now, in one size and theme: `name` is the picture's whole name.
    pub async fn look(&self, name: &str) {
        let script = "return document.querySelector('dialog[open]') !== null;";
        match self.client.execute(script, vec![]).await {
            // What lies over the window covers no more than it.
            Ok(serde_json::Value::Bool(true)) => self.picture(name).await,
            _ => self.whole_picture(name).await,
        }
        assert!(
            !self.scrolls_sideways().await,
            "{name} is wider than the window: {}",
            self.widest().await
        );
        self.check_accessibility(name).await;
        self.check_console(name).await;
    }

    /// The elements that reach beyond the window's right edge, to find what makes a page too wide.
    async fn widest(&self) -> String {
        let script = "return Array.from(document.querySelectorAll('body *')) \
            .filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1) \
            .slice(0, 5).map((element) => element.outerHTML.slice(0, 120)).join('\\n');";
        let found = self.client.execute(script, vec![]).await.expect("a script");
        found.as_str().unwrap_or_default().to_owned()
    }
}

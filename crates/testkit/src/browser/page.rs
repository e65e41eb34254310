//! One page of a browser: what it shows, at which size and in which light, and what it asked for.

use std::path::Path;

use serde_json::{Value, json};

use super::{Browser, base64, wire::Event};

/// What the person prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

/// What the page is shown on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    Screen,
    Print,
}

/// A page of its own; it closes on drop.
pub struct Page<'a> {
    browser: &'a Browser,
    target: String,
    session: String,
}

impl<'a> Page<'a> {
    pub(super) fn new(browser: &'a Browser) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        // A window of its own: a page behind another one is not painted.
        let made = browser.call("Target.createTarget", &json!({ "url": "about:blank", "newWindow": true }));
        let target = text(&made["targetId"]);
        let attached = browser.call("Target.attachToTarget", &json!({ "targetId": target, "flatten": true }));
        let page = Self { browser, target, session: text(&attached["sessionId"]) };
        for domain in ["Page", "Network", "Runtime", "Log"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        page.call("Page.setLifecycleEventsEnabled", &json!({ "enabled": true }));
        page.size(1280, 800);
        page.media(Theme::Light, Medium::Screen);
        page
    }

    /// Opens an address or a file, and waits until it is loaded. What was asked for before is forgotten.
    pub fn open(&self, place: impl AsRef<Path>) {
        let url = address(place.as_ref());
        self.browser.wire.forget(&self.session);
        let answer = self.call("Page.navigate", &json!({ "url": url }));
        assert!(answer.get("errorText").is_none(), "{url}: {}", answer["errorText"]);
        // Within the same document nothing is loaded.
        let Some(loader) = answer["loaderId"].as_str() else { return };
        let is_loaded =
            |event: &Event| event.method == "Page.lifecycleEvent" && event.params["name"] == "load" && event.params["loaderId"] == loader;
        let loaded = self.browser.wire.event(&self.session, is_loaded);
        loaded.unwrap_or_else(|why| self.browser.fail(&format!("{url} does not load: {why}")));
    }

    /// The size of the window's inside.
    pub fn size(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    pub fn media(&self, theme: Theme, medium: Medium) {
        let theme = if theme == Theme::Dark { "dark" } else { "light" };
        let medium = if medium == Medium::Print { "print" } else { "screen" };
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "media": medium, "features": features }));
    }

    /// What an expression says; a promise is waited for.
    pub fn eval(&self, script: &str) -> Value {
        let mut answer = self.call("Runtime.evaluate", &json!({ "expression": script, "returnByValue": true, "awaitPromise": true }));
        let problem = &answer["exceptionDetails"];
        assert!(problem.is_null(), "{script:.200}: {}", problem["exception"]["description"].as_str().unwrap_or_default());
        answer["result"]["value"].take()
    }

    /// A picture (PNG) of what the window shows, or of the whole page.
    pub fn screenshot(&self, full: bool) -> Vec<u8> {
        let mut wanted = json!({ "format": "png", "captureBeyondViewport": full });
        if full {
            let size = self.call("Page.getLayoutMetrics", &json!({}))["cssContentSize"].take();
            wanted["clip"] = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1 });
        }
        self.bytes("Page.captureScreenshot", &wanted)
    }

    /// The page as it is printed, on the paper that it asks for.
    pub fn pdf(&self) -> Vec<u8> {
        self.bytes("Page.printToPDF", &json!({ "printBackground": true, "preferCSSPageSize": true }))
    }

    /// All that the page asked for since it was opened, itself included.
    pub fn requests(&self) -> Vec<String> {
        let events = self.browser.wire.events(&self.session).into_iter();
        let asked = events.filter(|event| event.method == "Network.requestWillBeSent");
        asked.filter_map(|event| event.params["request"]["url"].as_str().map(str::to_owned)).collect()
    }

    /// What went wrong in the page since it was opened: errors that it logged, that nobody caught, and what could not be loaded.
    pub fn console_errors(&self) -> Vec<String> {
        self.browser.wire.events(&self.session).iter().filter_map(error).collect()
    }

    fn call(&self, method: &str, params: &Value) -> Value {
        self.browser.ask(Some(&self.session), method, params)
    }

    fn bytes(&self, method: &str, params: &Value) -> Vec<u8> {
        base64::decode(self.call(method, params)["data"].as_str().unwrap_or_default())
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        self.browser.wire.tell(None, "Target.closeTarget", &json!({ "targetId": self.target }));
        self.browser.wire.forget(&self.session);
    }
}

fn error(event: &Event) -> Option<String> {
    let (params, text) = (&event.params, |value: &Value| value.as_str().unwrap_or_default().to_owned());
    match event.method.as_str() {
        "Log.entryAdded" if params["entry"]["level"] == "error" => {
            Some(format!("{} {}", text(&params["entry"]["text"]), text(&params["entry"]["url"])).trim_end().to_owned())
        }
        "Runtime.consoleAPICalled" if params["type"] == "error" => {
            let words = params["args"]
                .as_array()?
                .iter()
                .map(|arg| if arg["value"].is_string() { text(&arg["value"]) } else { text(&arg["description"]) });
            Some(words.collect::<Vec<_>>().join(" "))
        }
        "Runtime.exceptionThrown" => Some(text(&params["exceptionDetails"]["exception"]["description"])),
        _ => None,
    }
}

/// An address as it is; a file as its address.
fn address(place: &Path) -> String {
    let text = place.to_string_lossy();
    if text.contains("://") || text.starts_with("data:") || text.starts_with("about:") {
        return text.into_owned();
    }
    let path = place.canonicalize().unwrap_or_else(|error| panic!("{text}: {error}"));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let escape = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    format!("file://{}", path.to_string_lossy().bytes().map(escape).collect::<String>())
}

//! The languages of functions, and the functions under test.

/// The languages that functions are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// CPython.
    Python,
    /// Node.js.
    Node,
}

impl Runtime {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Python, Self::Node];

    /// As the API calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Node => "node",
        }
    }

    /// Name of the file that a zip holds.
    pub fn file(self) -> &'static str {
        match self {
            Self::Python => "main.py",
            Self::Node => "main.mjs",
        }
    }

    /// A function that answers with its event.
    pub fn echo(self) -> &'static str {
        match self {
            Self::Python => "def handler(event, context):\n    return event\n",
            Self::Node => "export const handler = async (event) => event;\n",
        }
    }

    /// The same with what a function of its language usually imports.
    pub fn usual(self) -> &'static str {
        match self {
            Self::Python => {
                "import json, asyncio, http.client, http.server\n\
                 def handler(event, context):\n    return event\n"
            }
            Self::Node => {
                "import http from 'node:http';\nimport crypto from 'node:crypto';\n\
                 import fs from 'node:fs/promises';\n\
                 export const handler = async (event) => event;\n"
            }
        }
    }

    /// A function that reads a file off its thread, as its language does, and answers with the milliseconds that took.
    pub fn reader(self) -> &'static str {
        match self {
            Self::Python => {
                "import asyncio, pathlib, time\n\
                 async def handler(event, context):\n\
                 \x20   begun = time.perf_counter()\n\
                 \x20   await asyncio.to_thread(pathlib.Path('/proc/self/status').read_bytes)\n\
                 \x20   return {'ms': (time.perf_counter() - begun) * 1e3}\n"
            }
            Self::Node => {
                "import fs from 'node:fs';\n\
                 export const handler = async () => {\n\
                 \x20 const begun = performance.now();\n\
                 \x20 await fs.promises.readFile('/proc/self/status');\n\
                 \x20 return { ms: performance.now() - begun };\n};\n"
            }
        }
    }

    /// A function that takes as many seconds as its event says.
    pub fn sleeper(self) -> &'static str {
        match self {
            Self::Python => {
                "import time\ndef handler(event, context):\n    time.sleep(event['s'])\n    return event\n"
            }
            Self::Node => {
                "export const handler = async (event) => {\n\
                 await new Promise((done) => setTimeout(done, event.s * 1000));\n  return event;\n};\n"
            }
        }
    }
}

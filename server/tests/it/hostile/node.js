import { spawn, spawnSync } from "node:child_process";
import dns from "node:dns/promises";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";

const MIB = 1 << 20;
// Reads as much of the host as the Python attacks do.
const ROOTS = ["/proc/1/root", "/proc/1/cwd", "/proc/2/root", "/proc/self/root/..", "/..", "/proc/self/cwd/../.."];

/** What an attempt ended with: the error's code or name, or "done". */
function attempt(action) {
  try {
    action();
    return "done";
  } catch (error) {
    return error.code ?? error.name;
  }
}

const processes = () => fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name));
const descriptors = () => fs.readdirSync("/proc/self/fd").map(Number);

const attacks = {
  nothing: () => "nothing happened",

  read({ paths }) {
    const found = {};
    for (const wanted of paths) {
      fs.rmSync("/tmp/link", { force: true });
      fs.symlinkSync(wanted, "/tmp/link");
      for (const way of [wanted, "/tmp/link", ...ROOTS.map((root) => root + wanted)]) {
        const read = attempt(() => fs.readSync(fs.openSync(way, "r"), Buffer.alloc(1)));
        if (!["ENOENT", "EACCES", "EPERM", "ENOTDIR", "EISDIR"].includes(read)) {
          found[way] = read;
        }
        if (attempt(() => fs.readdirSync(way)) === "done") {
          found[`${way}/`] = "listed";
        }
      }
    }
    return found;
  },

  search({ needle }) {
    const hits = [];
    let seen = 0;
    const buffer = Buffer.alloc(MIB);
    const look = (file) => {
      attempt(() => {
        seen += 1;
        const descriptor = fs.openSync(file);
        const read = fs.readSync(descriptor, buffer);
        fs.closeSync(descriptor);
        if (buffer.subarray(0, read).includes(needle)) {
          hits.push(file);
        }
      });
    };
    const walk = (top) => {
      attempt(() => {
        for (const entry of fs.readdirSync(top, { withFileTypes: true })) {
          const where = path.join(top, entry.name);
          if (entry.isDirectory() && !["/usr", "/proc"].includes(where)) {
            walk(where);
          } else if (entry.isFile()) {
            look(where);
          }
        }
      });
    };
    walk("/");
    for (const pid of processes()) {
      for (const name of ["environ", "cmdline", "maps", "mountinfo", "cgroup"]) {
        look(`/proc/${pid}/${name}`);
      }
    }
    return { hits, seen };
  },

  change() {
    const code = "/var/task/main.js";
    return {
      rename: attempt(() => fs.renameSync(code, "/tmp/main.js")),
      unlink: attempt(() => fs.unlinkSync(code)),
      write: attempt(() => fs.writeFileSync(code, "")),
      chmod: attempt(() => fs.chmodSync(code, 0o777)),
      runtime: attempt(() => fs.writeFileSync("/opt/hearth/node/bootstrap.js", "")),
      addon: attempt(() => fs.writeFileSync("/opt/hearth/node/hearth_node.node", "")),
      interpreter: attempt(() => fs.openSync(process.execPath, "r+")),
      own_memory: attempt(() => fs.openSync("/proc/self/mem", "r+")),
      template_memory: attempt(() => fs.openSync(`/proc/${process.ppid}/mem`, "r+")),
      init_memory: attempt(() => fs.openSync("/proc/1/mem", "r")),
      init_environment: attempt(() => fs.readFileSync("/proc/1/environ")),
      init_descriptors: attempt(() => fs.readdirSync("/proc/1/fd")),
      core_pattern: attempt(() => fs.writeFileSync("/proc/sys/kernel/core_pattern", "|/tmp/x")),
      oom_score: attempt(() => fs.writeFileSync("/proc/self/oom_score_adj", "-1000")),
      uid_map: attempt(() => fs.writeFileSync("/proc/self/uid_map", "0 0 1")),
    };
  },

  /** What Node itself offers to become somebody else, or to be looked into. */
  identity: () => ({
    setuid: attempt(() => process.setuid(0)),
    seteuid: attempt(() => process.seteuid(0)),
    setgid: attempt(() => process.setgid(0)),
    setgroups: attempt(() => process.setgroups([0])),
    priority: attempt(() => os.setPriority(-5)),
    init: attempt(() => process.kill(1, "SIGKILL")),
    // After all that.
    user: [process.getuid(), process.geteuid(), process.getgid(), process.getegid(), process.getgroups()],
  }),

  /** System calls that only a native program can make: the Python attacks, in this sandbox. */
  kernel({ source }) {
    const script = `${source}\nprint(json.dumps({"calls": calls(), "namespaces": namespaces()}))`;
    const { stdout, stderr } = spawnSync("/usr/bin/python3", ["-I", "-c", script], { encoding: "utf8" });
    return stdout === "" ? stderr : JSON.parse(stdout);
  },

  async network({ url, abstract }) {
    const { port, hostname } = new URL(url);
    const connect = (to) =>
      new Promise((resolve) => {
        try {
          net
            .connect(to)
            .on("connect", () => resolve("connected"))
            .on("error", (error) => resolve(error.code));
        } catch (error) {
          resolve(error.code);
        }
      });
    return {
      tcp: await connect({ port, host: hostname }),
      elsewhere: await connect({ port: 53, host: "8.8.8.8" }),
      fetch: await fetch(url).then(
        ({ status }) => status,
        (error) => error.cause?.code ?? error.name,
      ),
      name: await dns.lookup("example.com").then(
        () => "found",
        (error) => error.code,
      ),
      abstract: await connect({ path: `\0${abstract}` }),
    };
  },

  objects() {
    const kept = [];
    for (;;) {
      kept.push({ index: kept.length, text: `entry ${kept.length}`, more: [kept.length] });
    }
  },

  buffers() {
    const kept = [];
    for (;;) {
      kept.push(Buffer.alloc(MIB, 1));
    }
  },

  shared() {
    const kept = [];
    for (;;) {
      kept.push(new Uint8Array(new SharedArrayBuffer(4 * MIB)).fill(1));
    }
  },

  wasm() {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536 });
    for (;;) {
      const before = memory.buffer.byteLength;
      memory.grow(16);
      new Uint8Array(memory.buffer, before).fill(1);
    }
  },

  text() {
    const kept = [];
    for (;;) {
      kept.push(Buffer.alloc(MIB, "x").toString());
    }
  },

  in_a_child() {
    const { status, signal } = spawnSync(process.execPath, ["-e", "const k = []; for (;;) k.push(Buffer.alloc(1 << 20, 1));"]);
    return status ?? signal;
  },

  count_children() {
    const children = [];
    let refused = "never";
    for (let n = 0; n < 5000 && refused === "never"; n += 1) {
      const child = spawn("/usr/bin/sleep", ["1000"]);
      child.on("error", () => {});
      if (child.pid === undefined) {
        refused = "refused";
      } else {
        children.push(child);
      }
    }
    for (const child of children) {
      child.kill("SIGKILL");
    }
    return { children: children.length, refused };
  },

  bomb() {
    const bomb = () => spawn("/bin/sh", ["-c", "while :; do sleep 1000 & done"]).on("error", () => {});
    return new Promise(() => setInterval(bomb, 1));
  },

  spin() {
    for (;;);
  },

  async microtasks() {
    for (;;) {
      await null;
    }
  },

  ticks: () =>
    new Promise(() => {
      const again = () => process.nextTick(again);
      again();
    }),

  ignore_everything() {
    for (const signal of Object.keys(os.constants.signals)) {
      attempt(() => process.on(signal, () => {}));
    }
    process.on("exit", () => {
      for (;;);
    });
    process.exit(0);
  },

  kill_template() {
    process.kill(process.ppid, "SIGKILL");
    return new Promise((resolve) => setTimeout(resolve, 20_000));
  },

  kill_everything() {
    process.kill(-1, "SIGKILL");
    return new Promise((resolve) => setTimeout(resolve, 20_000));
  },

  close_all() {
    for (const descriptor of descriptors()) {
      attempt(() => fs.closeSync(descriptor));
    }
    return "closed";
  },

  garbage_in_all() {
    const garbage = Buffer.from("garbage ".repeat(8));
    const results = {};
    for (const descriptor of descriptors()) {
      if (descriptor > 2) {
        results[descriptor] = [
          attempt(() => fs.writeSync(descriptor, garbage)),
          attempt(() => fs.writeSync(descriptor, garbage, 0, 64, 0)),
          attempt(() => fs.ftruncateSync(descriptor, 0)),
        ];
      }
    }
    return results;
  },

  /** Programs get what their parent hands them: here, everything. */
  given_to_a_child() {
    const all = descriptors().filter((descriptor) => attempt(() => fs.fstatSync(descriptor)) === "done");
    const script = "for n in $(ls /proc/self/fd); do head -c 4096 /dev/zero >&$n & done 2>/dev/null; wait; echo done";
    return spawnSync("/bin/sh", ["-c", script], { stdio: all, timeout: 3000 }).status;
  },

  exhaust() {
    const kept = [];
    const refused = attempt(() => {
      while (kept.length < 100_000) {
        kept.push(fs.openSync("/dev/null"));
      }
    });
    globalThis.kept = kept;
    return refused;
  },

  async wait() {
    await new Promise((resolve) => setTimeout(resolve, 500));
    return null;
  },

  /** What a shared file would bring to whoever has it, too. */
  write_garbage() {
    for (const descriptor of descriptors().filter((descriptor) => descriptor > 2)) {
      for (const garbage of [Buffer.alloc(8, 0x41), Buffer.alloc(64, 0x7f), Buffer.alloc(512, 0x13)]) {
        attempt(() => fs.writeSync(descriptor, garbage));
      }
    }
    return "written";
  },

  /** What Hearth's own code is made of. */
  sabotage() {
    for (const name of ["parse", "stringify"]) {
      JSON[name] = () => {
        throw new Error("sabotaged");
      };
    }
    for (const prototype of [Array.prototype, Promise.prototype, Function.prototype, String.prototype]) {
      for (const name of Object.getOwnPropertyNames(prototype)) {
        attempt(() => {
          prototype[name] = () => {
            throw new Error("sabotaged");
          };
        });
      }
    }
    globalThis.setImmediate = undefined;
    globalThis.Buffer = undefined;
    return 1;
  },
};

export const handler = async (event) => attacks[event.attack](event);

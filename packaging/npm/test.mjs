// What the npm packages promise, tried with the tarballs in a folder and real
// processes: installed, and by npx; stdin, exit statuses, signals, and that nothing
// is left when the launcher or npx is killed. Linux only: it looks into /proc.
// Usage: node packaging/npm/test.mjs TARBALLS FAKEMCP
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

const [tarballs, fakemcp] = process.argv.slice(2).map((p) => path.resolve(p));
const find = (pattern) => path.join(tarballs, fs.readdirSync(tarballs).find((n) => pattern.test(n)));
const packages = [find(/-dynmcp-\d/), find(new RegExp(`-${process.platform}-${process.arch}-\\d`))];
const dir = fs.mkdtempSync(path.join(os.tmpdir(), "dynmcp-npm-"));
const home = path.join(dir, "home");
const installed = path.join(dir, "node_modules", ".bin", "dynmcp");
const npx = ["npx", "--offline", "-y", ...packages.map((p) => `--package=${p}`), "dynmcp"];
const inPlace = typeof process.execve === "function"; // the binary takes the launcher's place
const ways = { installed: [installed], npx };
const patience = 60_000;
const started = [];
const trials = 5;
let marks = 0;

before(() => {
  fs.mkdirSync(home);
  fs.writeFileSync(path.join(dir, "package.json"), "{}");
  run("npm", "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", ...packages);
});
after(() => {
  for (const child of started) child.stdin.destroy(); // what a failed test left ends
  fs.rmSync(dir, { recursive: true, force: true });
});

function environment(mark) {
  const { npm_command, npm_config_user_agent, ...env } = process.env;
  return { ...env, HOME: home, npm_config_cache: path.join(dir, "npm"), DYNMCP_TEST_MARK: mark };
}
function run(command, ...args) {
  const result = spawnSync(command, args, { cwd: dir, env: environment("none"), encoding: "utf8", input: "" });
  assert.equal(result.status, 0, `${command} ${args}: ${result.error ?? result.stderr}`);
  return result.stdout;
}

// processes are those with a mark in their environment, but for zombies.
function processes(mark) {
  const found = [];
  for (const pid of fs.readdirSync("/proc").filter((n) => /^\d+$/.test(n))) {
    try {
      if (fs.readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`DYNMCP_TEST_MARK=${mark}`)) {
        found.push({ pid: +pid, command: fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") });
      }
    } catch {} // it has ended, or is not ours
  }
  return found;
}
async function vanished(mark) {
  const until = Date.now() + patience;
  while (Date.now() < until) {
    if (processes(mark).length === 0) return;
    await pause(50);
  }
  assert.fail(`left: ${JSON.stringify(processes(mark))}`);
}

// serve starts dynmcp in front of a server that forks, and greets it.
async function serve(way) {
  const mark = `mark-${process.pid}-${++marks}`;
  const [command, ...args] = [...ways[way], "--", fakemcp, "-fault", "double-fork"];
  const child = spawn(command, args, { cwd: dir, env: environment(mark), stdio: ["pipe", "pipe", "pipe"], detached: true });
  started.push(child);
  let stderr = "";
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = once(child, "exit");
  const ask = async (id, method, params) => {
    child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, `it ended: ${stderr}`);
      const answer = JSON.parse(value);
      if (answer.id === id) return answer;
    }
  };
  await ask(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "npm", version: "1" } });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  return { child, ask, ended, mark };
}

for (const way of Object.keys(ways)) {
  test(`${way}: a host is served, and the end of stdin is the end`, async () => {
    const { child, ask, ended, mark } = await serve(way);
    const { result } = await ask(2, "tools/call", { name: "use_tool", arguments: { tool_name: "echo", tool_input: { text: "é" } } });
    assert.match(JSON.stringify(result), /é/);
    child.stdin.end();
    assert.deepEqual(await ended, [0, null]);
    await vanished(mark);
  });
  for (const signal of ["SIGTERM", "SIGINT"]) {
    test(`${way}: ${signal} ends all`, async () => {
      const { child, ended, mark } = await serve(way);
      // npm forwards SIGINT to its shell only, which waits: a terminal sends it to all.
      if (way === "npx" && signal === "SIGINT") process.kill(-child.pid, signal);
      else child.kill(signal);
      await ended;
      await vanished(mark);
    });
  }
  test(`${way}: SIGKILL leaves nothing, though stdin stays open`, async () => {
    for (let i = 0; i < trials; i++) {
      const { child, ended, mark } = await serve(way);
      assert.ok(processes(mark).length >= 3, "dynmcp, its guard and the server");
      child.kill("SIGKILL");
      await ended;
      await vanished(mark);
    }
  });
  test(`${way}: exit statuses and what is printed pass`, () => {
    const [command, ...args] = ways[way];
    const go = (...more) => spawnSync(command, [...args, ...more], { cwd: dir, env: environment("none"), encoding: "utf8", input: "" });
    const version = go("version", "--json");
    assert.equal(version.status, 0, version.stderr);
    assert.ok(packages[0].endsWith(`-dynmcp-${JSON.parse(version.stdout).version}.tgz`));
    const bad = go("--no-such-flag");
    assert.equal(bad.status, 1);
    assert.match(bad.stderr, /no-such-flag/);
  });
}

test("a new config names the schema of the tag", () => {
  run(installed, "init", "--path", "schema/mcp.json");
  const { $schema } = JSON.parse(fs.readFileSync(path.join(dir, "schema", "mcp.json")));
  const { version } = JSON.parse(run(installed, "version", "--json"));
  assert.equal($schema, JSON.parse(run(installed, "schema")).$id);
  assert.match($schema, new RegExp(`^https://raw\\.githubusercontent\\.com/.+/v${version}/schema/dynmcp\\.schema\\.json$`));
  assert.deepEqual(fs.readdirSync(path.join(dir, "schema")), ["mcp.json"]);
});

test("installed: a signal that kills dynmcp kills the launcher", { skip: inPlace && "there is no launcher" }, async () => {
  const { ended, mark, child } = await serve("installed");
  const binary = processes(mark).find(({ pid, command }) => pid !== child.pid && /bin\/dynmcp -- /.test(command));
  process.kill(binary.pid, "SIGKILL");
  assert.deepEqual(await ended, [null, "SIGKILL"]);
  await vanished(mark);
});

test("installed: the launcher is gone where the binary can take its place", { skip: !inPlace }, async () => {
  const { child, ended, mark } = await serve("installed");
  assert.match(fs.readlinkSync(`/proc/${child.pid}/exe`), /bin\/dynmcp$/);
  child.stdin.end();
  await ended;
});

test("without the package of the platform it says so", () => {
  const lone = fs.mkdtempSync(path.join(os.tmpdir(), "dynmcp-npm-lone-"));
  after(() => fs.rmSync(lone, { recursive: true, force: true }));
  fs.writeFileSync(path.join(lone, "package.json"), "{}");
  const env = environment("none");
  spawnSync("npm", ["install", "--offline", "--omit=optional", "--no-audit", "--no-fund", packages[0]], { cwd: lone, env });
  const { status, stderr } = spawnSync(path.join(lone, "node_modules/.bin/dynmcp"), ["version"], { cwd: lone, env, encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stderr, /dynmcp-linux-.* is not there: .*\nhint: /s);
});

test("what the launcher adds to the start, for people to read", () => {
  const median = (command, ...args) => {
    const times = [];
    for (let i = 0; i < 15; i++) {
      const start = performance.now();
      spawnSync(command, args, { cwd: dir, env: environment("none"), input: "" });
      times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[times.length >> 1];
  };
  const node = median(process.execPath, "-e", "0");
  const all = median(process.execPath, installed, "version");
  console.log(`node ${process.version} alone ${node.toFixed(0)} ms, with launcher and dynmcp version ${all.toFixed(0)} ms: ${(all - node).toFixed(0)} ms more`);
});

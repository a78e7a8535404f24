// What is published must have names that are free or ours, tried with a registry of its own.
// Usage: node --test packaging/npm/check-test.mjs
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";

const here = import.meta.dirname;
const { launcher, platforms, repository } = createRequire(import.meta.url)("./names.js");
const dir = fs.mkdtempSync(path.join(os.tmpdir(), "dynmcp-names-"));
after(() => fs.rmSync(dir, { recursive: true, force: true }));

const from = (url) => (name) => ({ name, "dist-tags": { latest: "0.0.1" }, versions: { "0.0.1": { name, version: "0.0.1", ...(url && { repository: { type: "git", url } }) } } });
const ours = from(`git+https://github.com/${repository}.git`);

// run runs a program with a registry that has these packages, and counts what is sent to it.
async function run(packages, program, ...args) {
  let sent = 0;
  const registry = createServer((request, response) => {
    if (request.method !== "GET") sent++;
    const name = decodeURIComponent(request.url.slice(1));
    const found = packages[name]?.(name);
    response.writeHead(typeof found === "number" ? found : found ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify(found ?? {}));
  });
  await new Promise((done) => registry.listen(0, "127.0.0.1", done));
  const child = spawn(process.execPath, [path.join(here, program), ...args], {
    env: { ...process.env, npm_config_registry: `http://127.0.0.1:${registry.address().port}/`, npm_config_cache: fs.mkdtempSync(path.join(dir, "cache-")), npm_config_fetch_retries: "0" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => (said += chunk));
  const status = await new Promise((done) => child.on("close", done));
  registry.close();
  return { status, said, sent };
}

const cases = {
  "free names": [{}, 0, /^$/],
  "our names": [Object.fromEntries([launcher, ...platforms].map((name) => [name, ours])), 0, /^$/],
  "a launcher of others": [{ [launcher]: from("git+https://github.com/someone/else.git") }, 1, new RegExp(`${launcher} belongs to another program, from https://github.com/someone/else;`)],
  "a repository whose name begins as ours": [{ [launcher]: from(`git+https://github.com/${repository}-more.git`) }, 1, /belongs to another program/],
  "a launcher of nobody": [{ [launcher]: from("") }, 1, /belongs to another program, from no repository/],
  "a platform of others": [{ [launcher]: ours, [platforms[5]]: from("https://example.com/x") }, 1, new RegExp(`^\\w+: ${platforms[5]} belongs`)],
  "a registry that fails": [{ [launcher]: () => 500 }, 1, /npm does not say whose it is/],
  "a registry that refuses": [{ [launcher]: () => 403 }, 1, /npm does not say whose it is/],
};
for (const [name, [packages, status, said]] of Object.entries(cases)) {
  test(`check: ${name}`, async () => {
    const got = await run(packages, "check");
    assert.equal(got.status, status, got.said);
    assert.match(got.said, said);
  });
}

test("publish: nothing is published if one name is refused", async () => {
  const tarballs = path.join(dir, "tarballs");
  fs.mkdirSync(path.join(dir, "package"));
  fs.mkdirSync(tarballs);
  for (const name of [launcher, ...platforms]) {
    fs.writeFileSync(path.join(dir, "package", "package.json"), JSON.stringify({ name, version: "9.9.9" }));
    execFileSync("tar", ["czf", path.join(tarballs, `${name.slice(1).replace("/", "-")}-9.9.9.tgz`), "-C", dir, "package"]);
  }
  const { status, said, sent } = await run({ [launcher]: from("https://example.com/x") }, "publish", tarballs);
  assert.equal(status, 1);
  assert.match(said, /^publish: .* belongs to another program/);
  assert.equal(sent, 0);
  const dry = await run({}, "publish", tarballs, "--dry-run");
  assert.equal(dry.status, 0, dry.said);
});

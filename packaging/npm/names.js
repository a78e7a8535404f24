// The names of dynmcp's packages on npm, which follow from packaging/repository, and whose they are.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { spawnSync } = require("node:child_process");

const repository = fs.readFileSync(path.join(__dirname, "..", "repository"), "utf8").trim();
const scope = `@${repository.split("/")[0].toLowerCase()}`;
const systems = { linux: "linux", darwin: "darwin", windows: "win32" };
const processors = { amd64: "x64", arm64: "arm64" };
const launcher = `${scope}/dynmcp`;
const nameOf = (goos, goarch) => `${launcher}-${systems[goos]}-${processors[goarch]}`;
const platforms = Object.keys(systems).flatMap((goos) => Object.keys(processors).map((goarch) => nameOf(goos, goarch)));

// refusal says why a name cannot be published under, or "". A name is free if npm does not know it, and ours
// if its newest version says that it comes from our repository.
function refusal(name) {
  const { stdout, stderr, error } = spawnSync("npm", ["view", name, "repository.url", "--json"], { encoding: "utf8", shell: process.platform === "win32" });
  let said;
  try {
    said = JSON.parse(stdout || '""');
  } catch {
    said = { error: { summary: stdout } };
  }
  if (said.error?.code === "E404") return "";
  if (error || said.error) return `${name}: npm does not say whose it is: ${error?.message ?? said.error.summary ?? stderr}`;
  const from = String(said).replace(/^git\+|\.git$/g, "");
  if (from.toLowerCase() === `https://github.com/${repository}`.toLowerCase()) return "";
  return `${name} belongs to another program, from ${from || "no repository"}; the owner in packaging/repository decides the name`;
}

module.exports = { repository, launcher, platforms, nameOf, systems, processors, refusal };

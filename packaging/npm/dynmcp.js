#!/usr/bin/env node
// Starts dynmcp's binary, which the package for this platform holds. Where Node can
// (22.15 and newer, not on Windows) the binary takes this process's place, and there
// is nothing between it and the host. Elsewhere it is a child on the same stdin,
// stdout and stderr, to which signals go, and whose exit status is ours.
"use strict";

const { accessSync, constants, readFileSync } = require("node:fs");
const { spawn, spawnSync } = require("node:child_process");

function binary() {
  const wanted = `-${process.platform}-${process.arch}`;
  const name = Object.keys(require("./package.json").optionalDependencies).find((n) => n.endsWith(wanted));
  if (!name) fail(`there is no binary for ${process.platform} on ${process.arch}`);
  try {
    const path = require.resolve(`${name}/bin/dynmcp${process.platform === "win32" ? ".exe" : ""}`);
    accessSync(path, constants.X_OK);
    return path;
  } catch (err) {
    fail(`${name} is not there: ${err.message.split("\n")[0]}\nhint: install dynmcp without --no-optional and --omit=optional`);
  }
}

function fail(text) {
  console.error(`dynmcp: ${text}`);
  process.exit(1);
}

// npx starts us by way of a shell, which may have given us its place and may not.
// Killed with SIGKILL, npx leaves both behind.
function npxAbove() {
  if (process.env.npm_command !== "exec") return [];
  const parent = process.ppid;
  try {
    const [comm, above] =
      process.platform === "linux"
        ? /\((.*)\) \S+ (\d+)/s.exec(readFileSync(`/proc/${parent}/stat`, "latin1")).slice(1)
        : /(.*?)\s+(\d+)\s*$/s.exec(spawnSync("ps", ["-o", "comm=,ppid=", "-p", parent], { encoding: "latin1" }).stdout).slice(1);
    return /(^|[/-])(ba|da|z|k)?sh$/.test(comm) ? [parent, +above] : [parent];
  } catch {
    return [parent]; // Windows, or no ps
  }
}

// What npx was told of packages is for that npx, and not for one that starts a server:
// that would look for the server in these packages.
const { npm_config_package, npm_config_call, ...env } = process.env;

// The processes with whose end dynmcp ends, however they end.
const wrappers = npxAbove();
const path = binary();
const args = process.argv.slice(2);

if (process.execve && process.platform !== "win32") {
  process.execve(path, [path, ...args], { ...env, DYNMCP_WRAPPERS: wrappers.join(" ") });
}

wrappers.push(process.pid);
const child = spawn(path, args, {
  stdio: "inherit",
  env: { ...env, DYNMCP_WRAPPERS: wrappers.join(" ") },
  windowsHide: true,
});
// Control-C reaches the child by itself: a terminal sends it to both.
const terminal = [0, 1, 2].some((fd) => require("node:tty").isatty(fd));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"]) {
  const own = terminal && (signal === "SIGINT" || signal === "SIGQUIT");
  process.on(signal, () => own || child.kill(signal));
}
child.on("error", (err) => fail(err.message));
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});

// Hosts that others wrote, with dynmcp as `dynmcp install` puts it there, against a scripted
// model on this machine: what the first request of each session to the model holds, and that
// a call of use_tool comes back, in Claude Code one of run_script, and with --direct a call of a
// tool under its own name. Usage: hosts.mjs BIN NPM WORK [--all | HOST…], where BIN has dynmcp
// and fakemcp, NPM the hosts' programs (directories, with colons between), and WORK is a directory
// for homes. A home is used for two sessions, alone or shared: the second finds what the first
// has left.
import {spawn, execFileSync} from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import {calls, startModel} from "./hosts-model.mjs";

const [bin, npm, work, ...only] = process.argv.slice(2);
const places = npm.split(":").filter(directory => directory);
const program = name => places.map(place => path.join(place, "node_modules", ".bin", name)).find(file => fs.existsSync(file));
const write = (file, text) => { fs.mkdirSync(path.dirname(file), {recursive: true}); fs.writeFileSync(file, text); };
const merge = (file, more) => write(file, JSON.stringify({...JSON.parse(fs.readFileSync(file, "utf8")), ...more}));

const names = "Finds tools of fast, late, quiet"; // in the first sentence, all that some hosts show

// env and prepare tell a host where the model is; start is its command. byHand writes dynmcp's entry
// for a host that `dynmcp install` does not know. Where a host defers tools, steps has the calls that
// its model makes for one, and hides the words that the first request lacks. Those that are nightly
// are tried with --all, or if they are named.
const hosts = {
  "claude-code": {
    showsInstructions: true,
    env: model => ({ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "sk-scripted", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1"}),
    start: () => [program("claude"), "-p", "say done", "--allowedTools", "mcp__dynmcp__use_tool,mcp__dynmcp__run_script,mcp__dynmcp__fast__echo,mcp__dynmcp__lost__vanish"],
  },
  codex: {
    showsInstructions: true,
    start: model => [program("codex"), "exec", ...["model_provider=\"scripted\"", 'model="m"', 'model_providers.scripted.name="scripted"',
      `model_providers.scripted.base_url="${model.url}/v1"`, 'model_providers.scripted.wire_api="responses"'].flatMap(c => ["-c", c]),
    "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "say done"],
  },
  gemini: {
    env: model => ({GEMINI_API_KEY: "scripted", GOOGLE_GEMINI_BASE_URL: model.url, TERM: "xterm-256color"}),
    prepare: home => merge(path.join(home, ".gemini/settings.json"), {security: {auth: {selectedType: "gemini-api-key"}}}),
    start: () => [program("gemini"), "--skip-trust", "--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-p", "say done"],
  },
  opencode: {
    env: () => ({OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1"}),
    prepare: (home, model) => merge(path.join(home, ".config/opencode/opencode.json"), {
      provider: {scripted: {npm: "@ai-sdk/openai-compatible", name: "scripted", options: {baseURL: model.url + "/v1", apiKey: "scripted"}, models: {m: {name: "m"}}}}}),
    start: () => [program("opencode"), "run", "--model", "scripted/m", "say done"],
  },
  copilot: {
    lags: true, // it shows the tools of the session before, and refuses a call if the list has changed since
    env: model => ({COPILOT_PROVIDER_BASE_URL: model.url + "/v1", COPILOT_PROVIDER_API_KEY: "scripted", COPILOT_MODEL: "m"}),
    start: () => [program("copilot"), "-p", "say done", "--allow-all-tools"],
  },
  cline: {
    nightly: true,
    env: () => ({CLINE_SESSION_BACKEND_MODE: "local", CLINE_NO_AUTO_UPDATE: "1", DO_NOT_TRACK: "1"}), // or a daemon stays
    prepare: (home, model) => write(path.join(home, ".cline/data/settings/providers.json"), JSON.stringify({version: 1, lastUsedProvider: "openai-compatible", modes: {}, providers: {
      "openai-compatible": {settings: {provider: "openai-compatible", apiKey: "scripted", model: "m", baseUrl: model.url + "/v1"}, updatedAt: new Date().toISOString(), tokenSource: "manual"}}})),
    start: () => [program("cline"), "say done"],
  },
  continue: {
    nightly: true,
    byHand: (home, entry) => write(path.join(home, ".continue/config.yaml"), JSON.stringify({name: "scripted", version: "1.0.0", schema: "v1", mcpServers: [{name: "dynmcp", ...entry}]})),
    env: () => ({CONTINUE_CLI_ENABLE_TELEMETRY: "0", CONTINUE_METRICS_ENABLED: "0"}),
    prepare: (home, model) => merge(path.join(home, ".continue/config.yaml"), {
      models: [{name: "m", provider: "openai", model: "m", apiBase: model.url + "/v1", apiKey: "scripted", roles: ["chat"], capabilities: ["tool_use"]}]}),
    start: (model, home) => [program("cn"), "--config", path.join(home, ".continue/config.yaml"), "--auto", "-p", "say done"],
  },
  // Without blockOnMcpLoad it does not wait for any server, not even for one that answers in a
  // millisecond. The first request has only names of tools; its search reads their descriptions.
  droid: {
    nightly: true,
    hides: [names, "quiet", "late", "Keeps quiet until it is asked", "fast/echo", "late/toast"],
    byHand: (home, entry) => write(path.join(home, ".factory/mcp.json"), JSON.stringify({mcpServers: {dynmcp: {type: "stdio", ...entry}}})),
    env: () => ({FACTORY_AIRGAP_ENABLED: "1"}),
    prepare: (home, model) => write(path.join(home, ".factory/settings.json"), JSON.stringify({
      blockOnMcpLoad: true, customModels: [{model: "m", displayName: "m", baseUrl: model.url + "/v1", apiKey: "scripted", provider: "generic-chat-completion-api", maxOutputTokens: 4096}]})),
    start: () => [program("droid"), "exec", "--auto", "high", "-m", "custom:m", "say done"],
    steps: calls => calls.flatMap(call => [{tool: "ToolSearch", input: {query: call.tool === "discover_tool" ? "fast" : "select:dynmcp___" + call.tool}}, call]),
  },
  // It shows the first sentence of a tool that it defers, and calls it by another.
  qwen: {
    nightly: true,
    showsInstructions: true,
    hides: ["Keeps quiet until it is asked", "fast/echo", "late/toast"],
    byHand: (home, entry) => write(path.join(home, ".qwen/settings.json"), JSON.stringify({privacy: {usageStatisticsEnabled: false}, mcpServers: {dynmcp: entry}})),
    env: model => ({OPENAI_BASE_URL: model.url + "/v1", OPENAI_API_KEY: "scripted", OPENAI_MODEL: "m"}),
    start: () => [program("qwen"), "--auth-type", "openai", "--approval-mode", "yolo", "-p", "say done"],
    steps: calls => calls.map(call => ({tool: "tool_call", input: {name: "mcp__dynmcp__" + call.tool, arguments: call.input}})),
  },
};

// install puts dynmcp with a config into a host, and returns the environment that it had.
function install(host, home, file, way) {
  const env = {PATH: bin + path.delimiter + process.env.PATH, HOME: home};
  const {byHand} = hosts[host];
  if (byHand) {
    byHand(home, {command: path.join(bin, "dynmcp"), args: [...(way === "shared" ? ["connect"] : []), "-c", file, ...(way === "direct" ? ["--expose", "direct"] : [])]});
    return env;
  }
  execFileSync(path.join(bin, "dynmcp"), ["install", host, "-c", file, "--yes", ...(way === "shared" ? ["--share"] : []), ...(way === "direct" ? ["--direct"] : [])], {env, stdio: "ignore"});
  return env;
}

// A server that is there at once, one that takes its time, and one that is not started
// before it is used.
const slow = 6000;
const config = {mcp: {
  fast: {command: path.join(bin, "fakemcp"), args: ["-name", "fast", "-bare", "-tool", '{"name":"echo","description":"Says it again.","inputSchema":{"type":"object"}}']},
  late: {command: path.join(bin, "fakemcp"), args: ["-name", "late", "-bare", "-fault", `slow-init:${slow}`, "-tool", '{"name":"toast","description":"Makes toast.","inputSchema":{"type":"object"}}']},
  quiet: {command: path.join(bin, "fakemcp"), args: ["-name", "quiet"], description: "Keeps quiet until it is asked."},
}};

// A port of which the system has just said that it is free refuses connections.
const refused = await new Promise(resolve => { const s = net.createServer().listen(0, "127.0.0.1", () => { const {port} = s.address(); s.close(() => resolve(port)); }); });
const directConfig = {mcp: {
  fast: config.mcp.fast, late: config.mcp.late,
  lost: {command: path.join(bin, "fakemcp"), args: ["-name", "lost", "-bare", "-fault", "crash-call", "-tool", '{"name":"vanish","description":"Does not come back.","inputSchema":{"type":"object"}}']},
  dead: {command: path.join(bin, "fakemcp"), args: ["-name", "dead", "-fault", "hang-init"], load_timeout: "10s"},
  refused: {url: `http://127.0.0.1:${refused}/mcp`},
}};

const failures = [];

async function session(host, home, model, call) {
  const {env, start} = hosts[host];
  const project = path.join(home, "project");
  fs.mkdirSync(project, {recursive: true});
  const [command, ...args] = start(model, home);
  const began = Date.now();
  const child = spawn(command, args, {cwd: project, stdio: ["ignore", "pipe", "pipe"], detached: true, env: {
    PATH: bin + path.delimiter + process.env.PATH, HOME: home, XDG_RUNTIME_DIR: path.join(home, "run"), TERM: "dumb", ...env?.(model), ...([calls.direct, calls.lost].includes(call) && {ENABLE_TOOL_SEARCH: "false"})}}); // or Claude Code offers only names
  let said = "";
  for (const out of [child.stdout, child.stderr]) out.on("data", d => { said += d; });
  const ended = new Promise(resolve => child.on("close", resolve));
  const limit = setTimeout(() => process.kill(-child.pid, "SIGKILL"), 120_000);
  const status = await ended;
  clearTimeout(limit);
  return {status, said, took: Date.now() - began};
}

// attempt runs one session and judges what the model was asked.
async function attempt(host, home, name, wants, call = calls.use_tool) {
  const {hides = [], steps} = hosts[host];
  const model = await startModel(!steps ? [call] : steps(call === calls.use_tool ? [calls.discover_tool, call] : [call]));
  hosts[host].prepare?.(home, model);
  const {status, said, took} = await session(host, home, model, call);
  model.close();
  const complain = what => failures.push(`${host}, ${name}: ${what}\n${said.slice(-1500)}`);
  const called = model.requests.filter(r => r.called);
  const first = called[0] ?? model.requests.find(r => r.text.includes(call.tool));
  const main = model.requests.filter(r => r.text.includes('"tools"'));
  if (status !== 0) complain(`it ended with status ${status}`);
  if (!first) return complain(`none of ${model.requests.length} requests offers ${call.tool}`);
  if (main[0] !== first) complain(`its first request with tools does not offer ${call.tool}`);
  for (const word of wants.holds) if (!hides.includes(word) && !first.text.includes(word)) complain(`the first request does not hold ${JSON.stringify(word)}`);
  for (const word of wants.lacks ?? []) if (first.text.includes(word)) complain(`the first request holds ${JSON.stringify(word)}`);
  if (wants.found && !called.at(-1)?.text.includes(wants.found)) complain(`the request before the call does not hold ${wants.found}`);
  const answered = model.requests.some(r => r !== first && call.answer.test(r.text));
  if (!answered && !wants.refused) complain("no later request has the result of the call");
  console.log(`${host.padEnd(12)} ${name.padEnd(22)} ${String(took).padStart(6)} ms, ${model.requests.length} requests, first ${first.text.length} B`);
}

const everySession = [names, "discover_tool", "use_tool", "load_mcp", "quiet", "Keeps quiet until it is asked", "fast/echo"];
const unknown = {holds: [...everySession, "late"], lacks: ["No tools are currently loaded"], found: "fast/echo"};
const known = {holds: [...everySession, "late/toast"], lacks: ["No tools are currently loaded"], found: "fast/echo"};

// script has one host run a script, with a config that lets it.
async function script(host) {
  const home = fs.mkdtempSync(path.join(work, `${host}-`));
  const file = path.join(home, "mcp.json");
  fs.mkdirSync(path.join(home, "run"), {mode: 0o700});
  write(file, JSON.stringify({...config, scripts: {tools: ["fast/*"]}}));
  install(host, home, file, "alone");
  await attempt(host, home, "a script", {holds: ["run_script", "Runs JavaScript"]}, calls.run_script);
  fs.rmSync(home, {recursive: true, force: true, maxRetries: 10});
}

// direct has one host see each tool as itself, with a slow, a dead and a refused server beside the
// fast one: those delay nothing. What was listed before is there in the second session; a host that
// lags has it in the third, and until then it may refuse the call. Claude Code shows its model
// whether a call that failed ran.
async function direct(host) {
  const home = fs.mkdtempSync(path.join(work, `${host}-`));
  const file = path.join(home, "mcp.json");
  fs.mkdirSync(path.join(home, "run"), {mode: 0o700});
  write(file, JSON.stringify(directConfig));
  const env = install(host, home, file, "direct");
  const {showsInstructions, lags} = hosts[host];
  const named = showsInstructions ? ["have started: ", "late"] : [];
  await attempt(host, home, "direct, first session", {holds: ["fast__echo", ...named], refused: lags}, calls.direct);
  execFileSync(path.join(bin, "dynmcp"), ["warm", "-c", file, "late"], {env, stdio: "ignore"});
  if (lags) await attempt(host, home, "direct, second session", {holds: ["fast__echo"], refused: true}, calls.direct);
  await attempt(host, home, `direct, ${lags ? "third" : "second"} session`, {holds: ["fast__echo", "late__toast"]}, calls.direct);
  if (host === "claude-code") await attempt(host, home, "direct, a lost call", {holds: ["lost__vanish"]}, calls.lost);
  fs.rmSync(home, {recursive: true, force: true, maxRetries: 10});
}

// runs lists the runs that hosts with this HOME share.
function runs(home) {
  const found = [];
  for (const pid of fs.readdirSync("/proc").filter(name => /^\d+$/.test(name))) {
    try {
      const args = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      if (args.includes("--socket") && fs.readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes("HOME=" + home)) found.push(Number(pid));
    } catch { /* it has ended */ }
  }
  return found;
}

const tried = only.includes("--all") ? Object.keys(hosts) : only.length ? only : Object.keys(hosts).filter(host => !hosts[host].nightly);
for (const host of tried.filter(host => hosts[host].start({}, "")[0])) { // of what npm did not bring .ci/hosts has said so
  for (const way of ["alone", "shared"]) {
    const home = fs.mkdtempSync(path.join(work, `${host}-`));
    const file = path.join(home, "mcp.json");
    fs.mkdirSync(path.join(home, "run"), {mode: 0o700});
    write(file, JSON.stringify(config));
    const env = install(host, home, file, way);
    await attempt(host, home, `${way}, first session`, unknown);
    if (way === "alone") execFileSync(path.join(bin, "dynmcp"), ["warm", "-c", file], {env, stdio: "ignore"});
    else await listed(home);
    await attempt(host, home, `${way}, second session`, known);
    const left = runs(home);
    if (way === "shared" && left.length !== 1) failures.push(`${host}: ${left.length} runs are there after two shared sessions, want one`);
    for (const pid of left) process.kill(pid, "SIGTERM");
    while (runs(home).length > 0) await new Promise(resolve => setTimeout(resolve, 100));
    fs.rmSync(home, {recursive: true, force: true, maxRetries: 10});
  }
  await direct(host);
  if (host === "claude-code") await script(host);
}

// listed waits until both servers that a shared run starts are listed, which is kept.
async function listed(home) {
  const kept = path.join(home, ".local/state/dynmcp/catalog");
  const has = tool => fs.existsSync(kept) && fs.readdirSync(kept).some(name => fs.readFileSync(path.join(kept, name), "utf8").includes(`"${tool}"`));
  for (let i = 0; i < 300 && !(has("echo") && has("toast")); i++) await new Promise(resolve => setTimeout(resolve, 100)); // what did not start in time is kept, too
}

if (failures.length) {
  console.error(failures.map(f => "FAIL: " + f).join("\n"));
  process.exit(1);
}
console.log("each host has in its first request what it should");

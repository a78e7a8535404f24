// The view of a gateway's run: its servers, sessions and messages as they pass.
const most = 500;
const live = {messages: [], paused: false, waiting: []};

// A number that JavaScript would show as another one (1.0, or beyond 2^53) stays as it came,
// where the browser can.
const parse = text => JSON.parse(text, (_, value, {source} = {}) =>
  typeof value === "number" && source !== undefined && String(value) !== source && JSON.rawJSON ? JSON.rawJSON(source) : value);
const plain = value => typeof value === "string" ? value : JSON.stringify(value);
const clock = at => new Date(at).toLocaleTimeString([], {hour12: false, hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3});
const pretty = m => typeof m.message === "string" && m.cut ? m.message + "\n… (" + m.size + " bytes in all)" : JSON.stringify(m.message, null, 2);

// about says what a request is about: a tool, also one that is called through a tool of ours, or a resource.
function about(j) {
  const params = j.params || {}, inside = params.arguments || {};
  return [params.name || params.uri, inside.tool_name || inside.mcp_name || inside.path].filter(e => e !== undefined).map(plain).join(" ");
}

// pair finds the request of an answer, which has the other direction.
const asked = new Map();
function pair(m) {
  const j = m.message, keyOf = direction => m.session + " " + direction + " " + plain(j.id);
  if (j === null || typeof j !== "object" || j.id === undefined) return;
  if (j.method) {
    asked.set(keyOf(m.direction), m);
    if (asked.size > 2 * most) asked.delete(asked.keys().next().value);
    return;
  }
  const key = keyOf(m.direction === "in" ? "out" : "in");
  m.request = asked.get(key);
  asked.delete(key);
}

function summaryOf(m) {
  const j = m.message;
  if (j === null || typeof j !== "object") return String(j);
  if (Array.isArray(j)) return "batch of " + j.length;
  const id = j.id === undefined ? "" : " #" + plain(j.id);
  if (j.method) return [plain(j.method) + id, about(j)].filter(Boolean).join(" ");
  const how = j.error ? j.error.data?.outcome || "error" : j.result?.isError ? "tool error" : "done";
  return [(j.error ? "error" : "result") + id, m.request && [about(m.request.message) || plain(m.request.message.method), how, new Date(m.at) - new Date(m.request.at) + " ms"],
    j.error && plain(j.error.message)].flat().filter(Boolean).join(" · ");
}

function messageRow(m) {
  const fault = m.message?.error || m.message?.result?.isError ? " fault" : "", sign = m.direction === "in" ? ["→", "from the host: "] : ["←", "to the host: "];
  return folded("message" + m.seq, "message", [el("span.soft.mono", clock(m.at)), el("span", {className: fault, label: sign[1]}, sign[0]), el("span", {className: "what" + fault}, summaryOf(m)),
    el("span.soft.wide", m.namespace || m.session), el("span.soft.wide", m.size + " B")], () => el("pre", pretty(m)));
}

function matches(m) {
  const words = $("search").value.toLowerCase();
  return (!$("direction").value || m.direction === $("direction").value) && (!$("session").value || m.session === $("session").value) &&
    (!words || JSON.stringify(m.message).toLowerCase().includes(words));
}

function add(m) {
  pair(m);
  live.messages.push(m);
  const gone = live.messages.length > most && live.messages.shift();
  if (!$("messages")) return;
  if (gone && $("messages").lastElementChild?.dataset.key === "message" + gone.seq) $("messages").lastElementChild.remove();
  if (matches(m)) $("messages").prepend(messageRow(m));
}
const redraw = () => $("messages")?.replaceChildren(...live.messages.filter(matches).reverse().map(messageRow));
const note = () => $("note")?.replaceChildren(live.paused ? live.waiting.length + " more since the pause." : "");

// follow reads the stream of messages once, until the page is gone.
function follow() {
  if (live.source) return;
  live.source = new EventSource("/debug/stream");
  live.source.onopen = () => { Object.assign(live, {messages: [], waiting: []}); redraw(); };
  live.source.addEventListener("message", e => {
    const m = parse(e.data);
    if (!live.paused) return add(m);
    live.waiting.push(m);
    if (live.waiting.length > most) live.waiting.shift();
    note();
  });
  live.source.addEventListener("connection", () => refresh());
}

function controls() {
  const pause = button("Pause", () => {
    live.paused = !live.paused;
    pause.setAttribute("aria-pressed", live.paused);
    if (!live.paused) live.waiting.splice(0).forEach(add);
    note();
  }, {id: "pause", "aria-pressed": String(live.paused)});
  return el("form.bar", {onsubmit: e => e.preventDefault(), oninput: redraw}, searchBox("search", "Search in messages", new URLSearchParams()),
    el("select", {id: "direction", label: "Direction"}, [["", "both ways"], ["in", "from hosts"], ["out", "to hosts"]].map(([value, text]) => el("option", {value}, text))),
    el("select", {id: "session", label: "Session"}, el("option", {value: ""}, "all sessions")), pause, button("Clear", () => { live.messages = []; redraw(); }, {id: "clear"}));
}

// showState shows the state of the run, of which nothing can be changed here.
function showState(state) {
  const place = {id: "live", fixed: true, calls: true, run: {servers: state.upstreams}, servers: state.upstreams.map(u => ({...u, calls: u.calls ? {calls: u.calls, errors: u.errors, errors_by_kind: u.errors_by_kind, p99_ms: u.p99_ms, p50_sent_ms: u.p50_ms, p99_sent_ms: u.p99_ms} : undefined}))};
  const now = state.sessions.map(s => s.id), chosen = $("session").value, ids = chosen && !now.includes(chosen) ? [...now, chosen] : now;
  if ([...$("session").options].slice(1).map(o => o.value).join() !== ids.join()) {
    $("session").replaceChildren($("session").options[0], ...ids.map(id => el("option", {value: id, selected: id === chosen}, id)));
  }
  drawIn("state",
    el("p.soft", state.version + (state.replica ? " · " + state.replica : "") + ", up " + duration(Date.now() - state.uptime_seconds * 1000) + ", " + state.messages + " messages"),
    el("h2", "Servers"), listOf("server", serverHeads, serversOf(place).map(s => serverRow(place, s)), "The config has no server."),
    state.failures.length > 0 && [el("h2", "Failures whose cause hosts were not told"), tableOf("failures", ["Reference", "Server", "First at", "Cause"], state.failures.toReversed().map(f => [f.reference, f.upstream, clock(f.at), f.text]))],
    el("h2", "Sessions"), state.sessions.length ? tableOf("sessions", ["Session", "Host", "User", "Server", "#In", "#Out"], state.sessions.map(s => [s.id, s.host, s.user, s.namespace || "all", s.in, s.out])) : empty("No host is connected.")
  );
}

views.live = {title: "Live", own: true, poll: true, show: async (_, fresh) => {
  const resp = await fetch("/debug/state", {cache: "no-store"});
  if (!resp.ok) throw Object.assign(new Error("HTTP " + resp.status), {status: resp.status});
  const state = await resp.json();
  if (where().view !== "live") return;
  if (fresh || !$("state")) {
    draw(el("div", {id: "state"}), el("h2", "Messages"), controls(), el("p", {id: "note", className: "soft", role: "status"}), el("ul.list", {id: "messages"}));
    redraw();
    note();
  }
  showState(state);
  follow();
}};

// The view of recorded calls.
const calls = {place: "", last: 0, lines: []};
const outcome = l => l.kind + (l.outcome === "done" ? "" : " (" + l.outcome + ")");
const nameOf = l => l.tool ? (l.server ? l.server + "/" : "") + l.tool : ((l.server || "") + " " + (l.method || "")).trim();

async function followCalls(place) {
  if (calls.place !== place.id) Object.assign(calls, {place: place.id, last: 0, lines: []});
  const after = calls.last, got = await api("calls", {place: place.id, after});
  if (calls.place !== place.id) return 0;
  // Requests overlap when the view changes during a poll: another answer may have brought some of these lines.
  const fresh = got.lines.slice(Math.max(0, got.lines.length - Math.max(0, got.last - calls.last)));
  calls.last = Math.max(calls.last, got.last);
  calls.lines.push(...fresh);
  if (calls.lines.length > 10000) calls.lines.splice(0, calls.lines.length - 10000);
  return fresh.length;
}

function picked(query) {
  const words = (query.get("q") || "").toLowerCase(), list = calls.lines.filter(l =>
    (!query.get("server") || l.server === query.get("server")) && (!query.get("session") || l.run + " " + l.session === query.get("session")) && (!query.get("failed") || l.kind !== "ok") &&
    (!words || [nameOf(l), l.host, l.principal, l.kind, l.outcome].join(" ").toLowerCase().includes(words)));
  return list.reverse();
}

// foldedCalls joins calls that follow each other and differ in time only. A fold is called by its first call, so that it stays the same as more are made.
function foldedCalls(list, query) {
  const folds = [];
  for (const l of list) {
    const like = [nameOf(l), outcome(l), l.host, l.principal, l.run, l.session].join("\n"), last = folds.at(-1);
    if (last?.like === like) last.lines.push(l); else folds.push({like, lines: [l]});
  }
  return query.get("order") === "failed" ? folds.sort((a, b) => (b.lines[0].kind !== "ok") - (a.lines[0].kind !== "ok")) : folds;
}

// moment is a time of today, or a date and a time.
function moment(at) {
  const t = new Date(at), time = t.toLocaleTimeString([], {hour12: false});
  return t.toDateString() === new Date().toDateString() ? time : t.toLocaleDateString([], {day: "numeric", month: "short"}) + ", " + time;
}

// barOf shows how long a call took: from 1 ms to 10 s, each tenfold is a quarter.
const barOf = l => drawing({class: "wide", "aria-hidden": "true"}, 0, Math.min(1, Math.log10(Math.max(l.ms, 1)) / 4), l.kind === "ok" ? "" : "fault");

const callHeads = [["Time"], ["Tool"], ["Outcome"], ["Took", "number"], ["1 ms to 10 s", "wide"], ["Asked → answered", "number wide"], ["Host", "wide"]];
const idOf = l => "call" + l.run + l.session + l.time + nameOf(l);

function callRow(place, lines, inner) {
  const l = lines[0], many = lines.length > 1;
  return folded((many ? "fold" : "") + idOf(lines.at(-1)) + (inner || ""), "call", [
    el("span.time.soft", moment(l.time)), el("span.name", nameOf(l), many && el("span.times", "× " + lines.length)),
    el("span", {className: "one " + (l.kind === "ok" ? "ok" : "fault"), title: outcome(l)}, outcome(l)), el("span.number", ms(l.ms)), barOf(l),
    el("span.number.wide.soft", bytes(l.bytes_in) + " → " + bytes(l.bytes_out)), el("span.wide.soft.one", l.host || ""),
  ], () => many ? [el("p.soft", lines.length + " calls, one after the other, from " + moment(lines.at(-1).time) + " to " + moment(l.time)), listOf("call", undefined, lines.slice(0, 50).map(one => callRow(place, [one], "in")))] : callInside(place, l));
}

const callInside = (place, l) => [facts([["Time", new Date(l.time).toLocaleString()], ["Host", l.host], ["User", l.principal], ["Session", l.session], ["Surface", l.surface], ["Outcome", outcome(l)],
  ["Took", ms(l.ms) + (l.start_ms ? ", of which " + ms(l.start_ms) + " until the server was there" : "")], ["Sizes", bytes(l.bytes_in) + " asked, " + bytes(l.bytes_out) + " answered"],
  ["Tokens", l.tokens_in + " asked, " + l.tokens_out + " answered"], ["Rule", l.rule]]),
button("Waterfall of this session", () => go({session: l.run + " " + l.session})),
l.kept ? later(idOf(l), async () => {
  const whole = await api("call", {place: place.id, run: l.run, session: l.session, time: l.time});
  return ["query", "arguments", "result"].filter(k => whole[k] !== undefined).map(k => [el("h2", k), el("pre", typeof whole[k] === "string" ? whole[k] : JSON.stringify(whole[k], null, 2))]);
}) : el("p.soft", "Arguments and results are kept where the config says \"activity\": {\"arguments\": true, \"results\": true}.")];

// waterfall draws the calls of one session on a time axis.
function waterfall(list) {
  const all = list.toSorted((a, b) => new Date(a.time) - new Date(b.time)).slice(-200);
  if (!all.length) return [];
  const from = new Date(all[0].time), until = Math.max(...all.map(l => +new Date(l.time) + l.ms)), wide = Math.max(until - from, 1);
  return el("section", {label: "Waterfall"}, el("p.soft", all.length + " calls in " + ms(wide)), all.map(l => {
    const at = new Date(l.time) - from, svg = drawing({role: "img", "aria-label": nameOf(l) + ", after " + (ms(at) || "0 ms") + ", " + ms(l.ms) + ", " + outcome(l)}, at / wide, l.ms / wide, l.kind === "ok" ? "" : "fault");
    return el("div.lane", el("span.mono", nameOf(l)), svg);
  }));
}

views.calls = {title: "Calls", poll: true, show: async (query, fresh, draw) => {
    const place = placeNow();
    if (!await followCalls(place) && !fresh) return;
    const servers = [...new Set(calls.lines.map(l => l.server).filter(Boolean))].sort(), box = searchBox("filter", "Search in names, hosts and outcomes", query);
    box.addEventListener("input", e => { go({q: e.target.value}, true); refresh(true); });
    const toggle = (key, value, text) => button(text, () => go({[key]: where().query.get(key) ? "" : value}), {"aria-pressed": String(!!query.get(key)), key});
    const all = picked(query), folds = foldedCalls(all, query);
    draw(el("div.bar", box, el("select", {label: "Server", key: "server", onchange: e => go({server: e.target.value})}, el("option", {value: ""}, "all servers"), servers.map(s => el("option", {value: s, selected: s === query.get("server")}, s))),
      toggle("failed", "1", "Failed only"), toggle("order", "failed", "Failed first"), query.get("session") && button("All sessions", () => go({session: ""}))),
    el("p.soft", {role: "status"}, calls.lines.length ? count(all.length) + " of " + plural(calls.lines.length, "call") + (folds.length > 200 ? ", the first 200 rows are shown" : "") : ""),
    query.get("session") && waterfall(all), listOf("call", callHeads, folds.slice(0, 200).map(f => callRow(place, f.lines)),
      calls.lines.length ? "No call is like that." : place.calls ? "No calls yet: ask a host something that needs a tool, or try one on the view Tools." : "Calls are not recorded: \"activity\": {} in the config does that."));
  }};

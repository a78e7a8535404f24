
const costs = new Map(); // the readings of places, fetched again after a minute
async function costOf(place) {
  const known = costs.get(place.id);
  if (known && Date.now() - known.at < 60000) return known.reading;
  const reading = await api("reads", {place: place.id}).catch(() => undefined);
  costs.set(place.id, {at: Date.now(), reading});
  return reading;
}

// serversOf joins the servers of the config with their state in the run.
function serversOf(place) {
  const running = new Map((place.run?.servers || []).map(s => [s.name, s]));
  const all = place.servers.map(e => ({...e, now: running.get(e.name)}));
  for (const s of running.values()) if (!place.servers.some(e => e.name === s.name)) all.push({name: s.name, transport: s.transport, lazy: s.lazy, now: s});
  return all.map(s => ({...s, state: s.off ? "off" : s.disabled ? "disabled" : s.now ? s.now.state : "not running"}))
    .sort((a, b) => failed(b) - failed(a));
}
const failed = s => !!(s.off || s.now?.error);

// totalsOf is the head line of a place.
function totalsOf(place) {
  const all = serversOf(place), n = (count, text) => count && count.toLocaleString("en") + " " + text, sum = of => all.reduce((total, s) => total + (of(s) || 0), 0);
  const states = [n(all.filter(s => s.state === "ready").length, "ready"), n(all.filter(failed).length, "failed"), n(all.filter(s => s.disabled).length, "disabled")].filter(Boolean);
  const asked = sum(s => s.calls?.calls), errors = sum(s => s.calls?.errors), cost = costs.get(place.id)?.reading?.tokens;
  return el("p", {className: "totals"}, [all.length + (all.length === 1 ? " server" : " servers") + (states.length ? ": " + states.join(", ") : ""),
    asked && n(asked, asked === 1 ? "call" : "calls") + (errors ? ", " + n(errors, "failed") : ""), cost && cost.direct.toLocaleString("en") + " → " + n(cost.dynmcp, "tokens")].filter(Boolean).join(" · "));
}

// sandboxOf says what a sandbox let pass and what not.
const sandboxOf = box => box && [box.missing && "not limited by this system: " + box.missing.join(", "), box.proxy_bytes && box.proxy_bytes + " bytes by its proxy",
  box.refused && box.refused + (box.refused === 1 ? " connection" : " connections") + " refused, last: " + box.last_refused.at(-1)].filter(Boolean).join("; ");

function serverRow(place, s) {
  const now = s.now || {}, calls = s.calls, cost = costs.get(place.id)?.reading?.tokens?.servers?.find(t => t.name === s.name);
  const since = now.since || now.failed_at;
  const hidden = s.denied ? ", " + s.denied + " hidden by the policy" : "";
  const below = [now.error || s.off, Object.entries(calls?.errors_by_kind || {}).map(([kind, n]) => kind + " × " + n).join(", "), sandboxOf(now.sandbox)].filter(Boolean).join("; ");
  const tools = now.tools ? now.tools + " tools" + hidden : s.known ? s.known + " tools known" + hidden : "";
  return folded(place.id + "/" + s.name, "server", [
    el("span", {className: "name"}, s.name),
    el("span", {className: s.state}, s.state + (since && s.state !== "idle" ? " " + duration(since) : "")),
    el("span", {className: "wide soft"}, (s.lazy ? "lazy" : "eager") + (now.era ? ", " + now.era : "")),
    el("span", {className: "number"}, tools),
    el("span", {className: "number wide"}, calls ? calls.calls + (calls.calls === 1 ? " call" : " calls") : ""),
    el("span", {className: "number" + (calls?.errors ? " fault" : " soft") + (calls ? "" : " wide")}, calls ? [calls.errors && calls.errors + (calls.errors === 1 ? " error" : " errors"), calls.p99_ms && "p99 " + ms(calls.p99_ms)].filter(Boolean).join(", ") : ""),
    el("span", {className: "number wide soft"}, cost ? cost.direct + " → " + cost.dynmcp + " tokens" : ""),
    below && el("span", {className: "below " + (now.error || s.off ? "fault" : "soft")}, below),
  ], () => serverInside(place, s, now, calls, cost));
}

function serverInside(place, s, now, calls, cost) {
  const doing = (text, order, edits) => button(text, () => act(place, {act: order, server: s.name}, edits), {"data-focus": order + place.id + s.name, "aria-label": text.replace("…", "") + " " + s.name});
  const may = !place.fixed && place.config && place.id !== "config" && !s.disabled && !s.off && now.name, edits = place.config && !place.fixed;
  return [
    el("div", {className: "bar"}, may && [doing("Start", "start"), doing("Stop", "stop"), doing("Restart", "restart")],
      edits && (s.disabled ? doing("Enable…", "enable", true) : doing("Disable…", "disable", true)),
      edits && button("Edit description…", () => editDescription(place, s), {"data-focus": "describe" + place.id + s.name, "aria-label": "Edit description of " + s.name})),
    facts([["Description", s.description], ["Transport", s.transport + (now.pid ? ", process " + now.pid : "")], ["Loaded", s.lazy ? "lazily, when it is used" : "eagerly, with the run"],
      ["Protocol", now.protocol && now.protocol + ", " + now.era], ["Starts", now.starts !== undefined ? now.starts + (now.starts_failed ? ", and " + now.starts_failed + " failed" : "") : ""],
      ["In flight", now.in_flight || now.waiting ? now.in_flight + ", " + now.waiting + " waiting" : ""],
      ["Calls", calls && calls.calls + ", " + calls.errors + " failed"],
      ["Took", calls && (calls.p50_ms === undefined ? "" : "p50 " + ms(calls.p50_ms) + ", p99 " + ms(calls.p99_ms) + "; ") + "without the start p50 " + ms(calls.p50_sent_ms) + ", p99 " + ms(calls.p99_sent_ms)],
      ["Tokens", cost && cost.direct + " directly, " + cost.dynmcp + " through dynmcp"], ["Pins", s.pins]]),
    now.stderr && [el("h3", {}, "Last lines of stderr"), el("pre", {tabindex: 0, role: "region", "aria-label": "stderr of " + s.name}, now.stderr)],
  ].flat().filter(Boolean);
}

// questionsOf shows the calls of a run that wait for an answer of a person, because of the policy.
const questionsOf = place => (place.run?.questions || []).map(q => el("section", {className: "question", "aria-label": "Question about " + q.tool},
  el("p", {}, el("strong", {}, q.tool), " has been waiting for " + duration(q.since) + ". Allow this call?"), el("pre", {}, q.arguments),
  !place.fixed && el("div", {className: "bar"}, [["once", "Allow it once"], q.lasts && ["session", "Allow for this session"], ["no", "Refuse it"]].filter(Boolean)
    .map(([text, label]) => button(label, () => act(place, {act: "answer", server: q.id, text}), {"data-focus": text + q.id, "aria-label": label + ": " + q.tool})))));

// editDescription edits a description, and shows what the model will read of it.
function editDescription(place, s) {
  const text = el("textarea", {id: "description", rows: 4}), preview = el("pre", {"aria-live": "polite"}, "…"), count = el("p", {className: "soft"});
  text.value = s.description;
  let asked = 0, timer;
  const look = async () => {
    const mine = ++asked;
    try {
      const r = await api("reads", {place: place.id, server: s.name, description: text.value.trim()});
      if (mine !== asked) return;
      const all = r.tools.map(t => t.description).join("\n").split("\n");
      const lines = all.filter(line => line.replace(/^- /, "").startsWith(s.name) && /^[/: ]|^$/.test(line.replace(/^- /, "").slice(s.name.length)));
      preview.replaceChildren(lines.join("\n") || "The model reads no line of this server.");
      count.textContent = r.tokens.dynmcp + " tokens at the start of a session in all; " + r.tokens.direct + " directly.";
    } catch (err) { if (mine === asked) preview.replaceChildren(err.message); }
  };
  text.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, 150); });
  ask("Description of " + s.name, el("div", {className: "field"}, el("label", {for: "description"}, "What the server is good for"), text),
    el("h3", {}, "What the model reads of it"), preview, count,
    el("div", {className: "bar"}, button("Show the change…", () => act(place, {act: "describe", server: s.name, text: text.value.trim()}, true), {className: "main", id: "show-change"})));
  text.focus();
  look();
}

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
  list.reverse();
  if (query.get("order") !== "time") list.sort((a, b) => (b.kind !== "ok") - (a.kind !== "ok"));
  return list;
}

function callRow(place, l) {
  return folded("call" + l.run + l.session + l.time + nameOf(l), "call", [
    el("span", {className: "number soft"}, new Date(l.time).toLocaleTimeString([], {hour12: false})),
    el("span", {className: "name"}, nameOf(l)), el("span", {className: l.kind === "ok" ? "ok" : "fault"}, outcome(l)),
    el("span", {className: "number"}, ms(l.ms)), el("span", {className: "number wide soft"}, bytes(l.bytes_in) + " → " + bytes(l.bytes_out)), el("span", {className: "wide soft"}, l.host || ""),
  ], () => {
    const bodies = el("div", {}, l.kept ? "…" : el("p", {className: "soft"}, "Arguments and results are kept where the config says \"activity\": {\"arguments\": true, \"results\": true}."));
    if (l.kept) api("call", {place: place.id, run: l.run, session: l.session, time: l.time}).then(whole => bodies.replaceChildren(...["query", "arguments", "result"].filter(k => whole[k] !== undefined)
      .map(k => [el("h2", {}, k), el("pre", {}, typeof whole[k] === "string" ? whole[k] : JSON.stringify(whole[k], null, 2))]).flat())).catch(err => bodies.replaceChildren(failure(err)));
    return [facts([["Time", new Date(l.time).toLocaleString()], ["Host", l.host], ["User", l.principal], ["Session", l.session], ["Surface", l.surface], ["Outcome", outcome(l)],
      ["Took", ms(l.ms) + (l.start_ms ? ", of which " + ms(l.start_ms) + " until the server was there" : "")], ["Sizes", bytes(l.bytes_in) + " asked, " + bytes(l.bytes_out) + " answered"],
      ["Tokens", l.tokens_in + " asked, " + l.tokens_out + " answered"], ["Rule", l.rule]]),
    button("Waterfall of this session", () => go({session: l.run + " " + l.session})), bodies];
  });
}

// waterfall draws the calls of one session on a time axis.
function waterfall(list) {
  const all = list.toSorted((a, b) => new Date(a.time) - new Date(b.time)).slice(-200);
  if (!all.length) return [];
  const from = new Date(all[0].time), until = Math.max(...all.map(l => +new Date(l.time) + l.ms)), wide = Math.max(until - from, 1);
  return el("section", {"aria-label": "Waterfall"}, el("p", {className: "soft"}, all.length + " calls in " + ms(wide)), all.map(l => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [k, v] of Object.entries({x: (new Date(l.time) - from) / wide * 99.5 + "%", width: Math.max(l.ms / wide * 99.5, .5) + "%", height: "100%"})) bar.setAttribute(k, v);
    if (l.kind !== "ok") bar.setAttribute("class", "fault");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", nameOf(l) + ", after " + ms(new Date(l.time) - from) + ", " + ms(l.ms) + ", " + outcome(l));
    svg.append(bar);
    return el("div", {className: "lane"}, el("span", {className: "mono"}, nameOf(l)), svg);
  }));
}

// inputOf returns a field for a property of a schema, with functions that read and set its value.
function inputOf(name, schema, required, wholes) {
  const id = "arg-" + name, type = Array.isArray(schema.type) ? schema.type.find(t => t !== "null") : schema.type;
  const example = schema.default ?? schema.examples?.[0];
  let input, read;
  if (Array.isArray(schema.enum)) {
    input = el("select", {id}, el("option", {value: ""}, ""), schema.enum.map((v, i) => el("option", {value: i}, typeof v === "string" ? v : JSON.stringify(v))));
    read = () => input.value === "" ? undefined : schema.enum[input.value];
  } else if (type === "boolean") {
    input = el("select", {id}, ["", "true", "false"].map(v => el("option", {value: v}, v)));
    read = () => input.value === "" ? undefined : input.value === "true";
  } else if (type === "integer" || type === "number") {
    input = el("input", {id, type: "number", step: type === "integer" ? 1 : "any", min: schema.minimum, max: schema.maximum});
    read = () => input.value === "" ? undefined : Number(input.value);
  } else if (type === "string") {
    input = el("textarea", {id, rows: 1, minlength: schema.minLength, maxlength: schema.maxLength});
    read = () => input.value === "" && !required ? undefined : input.value;
  } else {
    input = el("textarea", {id, rows: 2, placeholder: "JSON"});
    read = () => input.value.trim() === "" ? undefined : JSON.parse(input.value);
  }
  if (required && type !== "string") input.required = true;
  const set = v => { input.value = v === undefined ? "" : Array.isArray(schema.enum) ? String(schema.enum.indexOf(v)) : typeof v === "object" ? JSON.stringify(v) : String(v); };
  set(example);
  input.addEventListener("input", wholes);
  const file = type === "string" && el("input", {type: "file", "aria-label": "A file for " + name, onchange: async e => { set(await e.target.files[0].text()); wholes(); }});
  return {name, read, set, node: el("div", {className: "field"}, el("label", {for: id}, name + (required ? " (required)" : "") + (type ? ", " + type : "")), input, file, schema.description && el("div", {className: "soft"}, schema.description)), input};
}

// tryForm returns a form for a call, made from the input schema of a tool.
function tryForm(place, t) {
  const schema = t.input || {}, required = schema.required || [], json = el("textarea", {id: "json", rows: 5, className: "mono"}), out = el("div", {id: "result"});
  const fields = Object.entries(schema.properties || {}).map(([name, s]) => inputOf(name, s && typeof s === "object" ? s : {}, required.includes(name), () => write()));
  const write = () => {
    const all = {};
    try {
      for (const f of fields) { const v = f.read(); if (v !== undefined) all[f.name] = v; }
      json.value = JSON.stringify(all, null, 2);
      out.replaceChildren();
    } catch (err) { out.replaceChildren(failure(err)); }
  };
  json.addEventListener("change", () => { try { const all = JSON.parse(json.value); for (const f of fields) f.set(all[f.name]); } catch (err) { out.replaceChildren(failure(err)); } });
  const form = el("form", {onsubmit: async e => {
    e.preventDefault();
    out.replaceChildren(el("p", {role: "status"}, "Calling…"));
    try {
      const d = await api("do", {place: place.id, act: "call", server: t.server, tool: t.tool, arguments: JSON.stringify(JSON.parse(json.value))});
      let parts = [];
      try { parts = contentOf(JSON.parse(d.output)); } catch { parts = result(d); }
      out.replaceChildren(el("h3", {}, "The result"), ...parts, el("h3", {}, "The command"), el("pre", {className: "command"}, d.command), d.errors && !d.output ? el("pre", {className: "fault"}, d.errors.trim()) : "");
    } catch (err) { out.replaceChildren(failure(err)); }
  }}, fields.map(f => f.node), el("div", {className: "field"}, el("label", {for: "json"}, "The arguments as JSON"), json), el("div", {className: "bar"}, el("button", {className: "main", id: "call"}, "Call " + t.tool)), out);
  write();
  return form;
}

// contentOf returns the elements that show a result: text, images and resources.
const contentOf = r => [r.isError && el("p", {className: "fault"}, "The tool reports an error."), ...(r.content || []).map(c => {
  if (c.type === "text") return el("pre", {tabindex: 0}, c.text);
  if (c.type === "image" && /^image\/(png|jpeg|gif|webp)$/.test(c.mimeType) && /^[A-Za-z0-9+/=]*$/.test(c.data)) return el("img", {src: "data:" + c.mimeType + ";base64," + c.data, alt: "The image that the tool returned"});
  if (c.type === "resource") return [el("p", {className: "mono"}, c.resource?.uri || ""), el("pre", {}, c.resource?.text ?? "(" + (c.resource?.mimeType || "binary") + ")")];
  return el("pre", {}, JSON.stringify(c, null, 2));
}).flat(), r.structuredContent && el("pre", {}, JSON.stringify(r.structuredContent, null, 2))].filter(Boolean);

// addForm shows a form for adding a server of a registry.
function addForm(place, f, way) {
  const field = (id, label, input, about) => el("div", {className: "field"}, el("label", {for: id}, label), Object.assign(input, {id}), about && el("div", {className: "soft"}, about));
  const name = el("input", {required: true, pattern: "[a-z0-9][a-z0-9\\-]*"}), sandbox = el("input", {type: "checkbox"});
  name.value = f.name.split("/").pop().toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  const needs = (way.needs || []).map(n => {
    const input = n.choices ? el("select", {required: n.required}, el("option", {value: ""}, ""), n.choices.map(c => el("option", {value: c}, c)))
      : el("input", {type: n.secret ? "password" : "text", required: n.required, placeholder: n.placeholder, autocomplete: "off"});
    input.value = n.default || "";
    return {name: n.name, input, node: field("need-" + n.name, n.name + (n.required ? " (required)" : "") + (n.secret ? ", secret" : ""), input, n.description)};
  });
  const secrets = el("select", {}, [["", "the keyring, or .env without one"], ["keyring", "the keyring"], ["env", ".env beside the config"]].map(([v, t]) => el("option", {value: v}, t)));
  ask("Add " + f.name, el("form", {onsubmit: e => {
    e.preventDefault();
    const order = {act: "add", server: f.name, version: f.version, via: way.via, as: name.value, secrets: needs.some(n => n.input.type === "password") ? secrets.value : "", sandbox: sandbox.checked,
      answers: Object.fromEntries(needs.filter(n => n.input.value !== "").map(n => [n.name, n.input.value]))};
    act(place, order, true, [el("div", {className: "bar"}, button("Start it…", () => act(place, {act: "test", server: name.value}), {className: "main", id: "start-it"}))]);
  }}, el("p", {className: "mono"}, way.via + " " + way.what), field("as", "Name of the entry", name), needs.map(n => n.node),
  needs.some(n => n.input.type === "password") && field("secrets", "Where secrets are kept", secrets), way.via !== "remote" && way.via !== "oci" && field("sandbox", "Run it in a sandbox: it can then change nothing outside its own directories", sandbox),
  el("div", {className: "bar"}, el("button", {className: "main", id: "show-add"}, "Show what will run…"))));
  name.focus();
}

const searchBox = (id, label, query) => el("input", {id, type: "search", placeholder: label, "aria-label": label, "data-focus": id, value: query.get("q") || ""});

const views = {
  servers: {title: "Servers", live: true, show: async () => {
    const sections = () => places.map(p => el("section", {}, el("h2", {}, titleOf(p), " ", el("small", {className: "soft"}, aboutOf(p))), totalsOf(p), p.error && el("p", {className: "fault"}, p.error), questionsOf(p),
      el("div", {className: "list"}, serversOf(p).map(s => serverRow(p, s))), !p.calls && p.config && el("p", {className: "soft"}, "Calls are not recorded: the config has \"activity\": false.")));
    draw(places.length ? sections() : [el("h2", {}, "No run and no config was found"), el("p", {}, "dynmcp init writes a config.")]);
    for (const p of places) if (p.config && !costs.has(p.id)) costOf(p).then(() => { shown = ""; });
  }},
  tools: {title: "Tools", show: async query => {
    const place = placeNow(), box = searchBox("search", "Search as the model does", query);
    const form = el("form", {className: "bar", role: "search", onsubmit: e => { e.preventDefault(); go({q: box.value.trim()}); }}, box, el("button", {className: "main"}, "Search"));
    draw(form, el("p", {role: "status"}, "…"));
    const a = await api("search", {place: place.id, query: query.get("q") || ""});
    draw(form, a.answer && el("details", {}, el("summary", {}, "The model's answer: " + a.tokens + " tokens"), el("pre", {id: "answer"}, a.answer)),
      el("h2", {}, query.get("q") ? a.tools.length + " found of " + a.all + " tools" : a.all + " tools"),
      el("div", {className: "list"}, a.tools.slice(0, 300).map(t => folded("tool" + place.id + t.name, "tool", [el("span", {className: "name"}, t.name), el("span", {className: "soft"}, t.summary)], () => {
        const inside = el("div", {}, "…");
        api("tool", {place: place.id, name: t.name}).then(d => inside.replaceChildren(el("div", {className: "bar"}, !place.fixed && button("Try it…", () => ask("Try " + t.name, tryForm(place, d)), {"aria-label": "Try it… " + t.name})),
          el("h3", {}, "TypeScript" + (d.whole ? "" : ", not all of the schema")), el("pre", {className: "typescript"}, d.typescript), el("h3", {}, "JSON"), el("pre", {}, JSON.stringify(d.definition, null, 2)))).catch(err => inside.replaceChildren(failure(err)));
        return inside;
      }))), a.tools.length === 0 && el("p", {}, a.all ? "Nothing was found." : "No tool is known yet: a server is listed when it is first started."));
  }},
  calls: {title: "Calls", poll: true, show: async (query, fresh) => {
    const place = placeNow();
    if (!await followCalls(place) && !fresh) return;
    const box = searchBox("filter", "Search in names, hosts and outcomes", where().query), servers = [...new Set(calls.lines.map(l => l.server).filter(Boolean))].sort();
    box.addEventListener("input", () => { go({q: box.value}, true); list(); });
    const server = el("select", {"aria-label": "Server", "data-focus": "server", onchange: e => go({server: e.target.value})}, el("option", {value: ""}, "all servers"), servers.map(s => el("option", {value: s, selected: s === query.get("server")}, s)));
    const toggle = (key, value, text) => button(text, () => go({[key]: query.get(key) ? "" : value}), {"aria-pressed": String(!!query.get(key)), className: query.get(key) ? "main" : "", "data-focus": key});
    const body = el("div", {}), note = el("p", {className: "soft", role: "status"});
    const list = () => {
      const all = picked(where().query);
      note.textContent = all.length + " of " + calls.lines.length + " calls" + (all.length > 200 ? ", the first 200 are shown" : "");
      body.replaceChildren(...[query.get("session") ? waterfall(all) : ""].flat(), el("div", {className: "list"}, all.slice(0, 200).map(l => callRow(place, l))));
    };
    list();
    draw(el("div", {className: "bar"}, box, server, toggle("failed", "1", "Failed only"), toggle("order", "time", "Newest first"), query.get("session") && button("All sessions", () => go({session: ""}))), note, body);
  }},
  decisions: {title: "Decisions", show: async () => {
    const place = placeNow(), out = el("div", {}, el("p", {role: "status"}, "Looking…"));
    draw(out);
    const run = (order, server = "") => api("do", {place: place.id, act: order, server});
    const pinned = place.servers.filter(s => s.pins !== "off" && !s.disabled);
    const [logins, doctor, ...diffs] = await Promise.all([run("logins"), run("doctor"), ...pinned.map(s => run("diff", s.name))]);
    const parsed = (d, or) => { try { return JSON.parse(d.output); } catch { return or; } };
    const waiting = parsed(logins, []).filter(s => s.auth.startsWith("oauth") && !/logged in|valid/.test(s.auth));
    const findings = (parsed(doctor, {findings: []}).findings || []).filter(f => f.level === "problem" || f.level === "warning");
    draw(place.run && [el("h2", {}, "Calls that wait for an answer"), questionsOf(place), !place.run.questions.length && el("p", {className: "soft"}, "No call waits.")],
      el("h2", {}, "Tools that are not as they were approved"), pinned.length === 0 && el("p", {className: "soft"}, "No server has pins: \"defaults\": {\"pins\": \"warn\"} in the config turns them on."),
      pinned.map((s, i) => el("section", {}, el("h3", {}, s.name), diffs[i].output || diffs[i].errors ? diffOf((diffs[i].output + diffs[i].errors).trimEnd()) : "", !place.fixed && !diffs[i].ok && diffs[i].output &&
        button("Approve all of " + s.name + "…", () => ask("Approve " + s.name, el("p", {}, "All that is shown of this server is written into dynmcp.lock."), diffOf(diffs[i].output.trimEnd()),
          el("div", {className: "bar"}, button("Approve", () => act(place, {act: "approve", server: s.name}), {className: "main", id: "approve"}))), {"aria-label": "Approve all of " + s.name}))),
      el("h2", {}, "Logins"), waiting.length ? waiting.map(s => el("p", {}, s.name + ": " + s.auth + ". ", el("code", {}, "dynmcp login " + s.name))) : el("p", {className: "soft"}, "No login is due."),
      el("h2", {}, "Findings of doctor"), findings.length ? findings.map(f => el("section", {}, el("h3", {className: f.level === "problem" ? "fault" : "waiting"}, f.level + (f.server ? ": " + f.server : "")), el("p", {}, f.message), f.hint && el("pre", {}, f.hint))) : el("p", {className: "soft"}, "Nothing was found."),
      el("p", {className: "soft"}, doctor.command));
  }},
  add: {title: "Add a server", show: async query => {
    const place = placeNow(), box = searchBox("find", "Search registries", query);
    const form = el("form", {className: "bar", role: "search", onsubmit: e => { e.preventDefault(); go({q: box.value.trim()}); }}, box, el("button", {className: "main"}, "Search"));
    if (!place.config || place.fixed) return draw(el("p", {}, place.fixed ? "This page changes nothing." : "This run has no config to which a server can be added."));
    if (!query.get("q")) return draw(form, apiForm(place), el("p", {className: "soft"}, "The registries of your own config are asked, or the official one. Nothing runs before you have seen its command."));
    draw(form, el("p", {role: "status"}, "Asking…"));
    const d = await api("do", {place: place.id, act: "find", text: query.get("q")});
    if (!d.ok) return draw(form, ...result(d));
    const all = JSON.parse(d.output);
    draw(form, el("p", {className: "soft", role: "status"}, all.length + " found"), d.errors && el("p", {className: "fault"}, d.errors.trim()), el("div", {className: "list"}, all.map(f => folded("found" + f.registry + f.name, "tool",
      [el("span", {className: "name"}, f.name + " " + f.version), el("span", {className: f.status === "deprecated" ? "fault" : "soft"}, (f.status === "deprecated" ? "deprecated. " : "") + f.description)],
      () => [facts([["Registry", f.registry], ["Note", f.message]]), el("div", {className: "bar"}, f.ways.map(w => w.missing ? el("p", {className: "soft"}, w.via + " " + w.what + ": " + w.missing)
        : button("Add by " + w.via + "…", () => addForm(place, f, w), {"aria-label": "Add " + f.name + " by " + w.via})))]))));
  }},
  reads: {title: "What the model reads", show: async query => {
    const place = placeNow();
    draw(el("p", {role: "status"}, "…"));
    const r = await api("reads", {place: place.id, profile: query.get("profile") || "", host: query.get("host") || ""}), t = r.tokens;
    const choice = (key, label, none, all) => el("select", {"aria-label": label, "data-focus": key, onchange: e => go({[key]: e.target.value})},
      el("option", {value: ""}, none), all.map(v => el("option", {value: v, selected: v === query.get(key)}, v)));
    draw(el("div", {className: "bar"}, r.profiles.length > 0 && choice("profile", "Profile", "the config's profile", ["all", ...r.profiles]), choice("host", "Host", "any host", r.hosts)), el("h2", {}, t.dynmcp + " tokens at the start of a session, " + t.direct + " directly"), facts((t.servers || []).map(s => [s.name, s.tools + " tools: " + s.direct + " directly, " + s.dynmcp + " through dynmcp"])),
      el("p", {className: "soft"}, t.tokenizer + "; servers that were never listed are not counted."), r.instructions && [el("h2", {}, "Instructions"), el("pre", {tabindex: 0}, r.instructions)],
      r.tools.map(d => [el("h2", {}, d.name + ": " + d.tokens + " tokens"), el("pre", {tabindex: 0, role: "region", "aria-label": d.name}, d.description), el("details", {}, el("summary", {}, "Definition"), el("pre", {}, JSON.stringify(d.definition, null, 2)))]).flat());
  }},
};

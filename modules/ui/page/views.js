
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

const count = n => (n ?? 0).toLocaleString("en"), plural = (n, one) => count(n) + " " + one + (n === 1 ? "" : "s");

// totalsOf is the head line of a place: each number with what it counts.
function totalsOf(place) {
  const all = serversOf(place), sum = of => all.reduce((total, s) => total + (of(s) || 0), 0), n = of => all.filter(of).length;
  const asked = sum(s => s.calls?.calls), errors = sum(s => s.calls?.errors), cost = costs.get(place.id)?.reading?.tokens;
  const of = (what, number, className, more) => number !== undefined && el("div", el("dt", what), el("dd", {className}, number, more && el("small", more)));
  return el("dl.totals", of(all.length === 1 ? "server" : "servers", count(all.length)), of("ready", count(n(s => s.state === "ready")), n(s => s.state === "ready") ? "ok" : "soft"),
    n(failed) > 0 && of("failed", count(n(failed)), "fault"), n(s => s.disabled) > 0 && of("disabled", count(n(s => s.disabled)), "soft"), of("tools", count(sum(s => s.now?.tools || s.known))),
    place.calls && of(asked === 1 ? "call" : "calls", count(asked)), errors > 0 && of(errors === 1 ? "call failed" : "calls failed", count(errors), "fault"),
    cost && of("tokens at the start, of " + count(cost.direct) + " directly", count(cost.dynmcp), "", cost.direct > cost.dynmcp && "−" + Math.round(100 - cost.dynmcp / cost.direct * 100) + " %"));
}

// sandboxOf says what a sandbox let pass and what not.
const sandboxOf = box => box && [box.missing && "not limited by this system: " + box.missing.join(", "), box.proxy_bytes && box.proxy_bytes + " bytes by its proxy",
  box.refused && box.refused + (box.refused === 1 ? " connection" : " connections") + " refused, last: " + box.last_refused.at(-1)].filter(Boolean).join("; ");

const serverHeads = [["Server"], ["State"], ["Good for", "wide"], ["Tools", "number"], ["Calls", "number"], ["Failed", "number"], ["p50", "number"], ["Tokens", "number"]];

// reasonOf says why a server failed: what dynmcp knows, and the last line that the server wrote.
function reasonOf(s) {
  const why = (s.now?.error || s.off || "").replace(s.name + ": ", ""), line = s.now?.error && s.now.stderr?.trimEnd().split("\n").at(-1);
  return line && !why.includes(line) ? why + ": " + line : why;
}

function serverRow(place, s) {
  const now = s.now || {}, calls = s.calls, cost = costs.get(place.id)?.reading?.tokens?.servers?.find(t => t.name === s.name), since = now.since || now.failed_at, tools = now.tools || s.known;
  const kinds = !failed(s) && Object.entries(calls?.errors_by_kind || {}).map(([kind, n]) => kind + " × " + n).join(", ");
  const below = [reasonOf(s), kinds, sandboxOf(now.sandbox)].filter(Boolean).join("; ");
  const number = (n, one, className = "") => el("span", {className: "number " + (n ? className : "wide " + className)}, n ? [typeof n === "number" ? count(n) : n, one && el("span.narrow", " " + one + (n === 1 ? "" : "s"))] : "");
  return folded(place.id + "/" + s.name, "server", [
    el("span.name", s.name, !s.lazy && s.state !== "disabled" && el("span.tag", {title: "It starts with the run; a description makes it lazy"}, "eager")),
    el("span", {className: "state " + s.state.replace(" ", "-")}, s.state + (since && s.state !== "idle" ? " " + duration(since) : "")),
    el("span.wide.soft.one", s.description || ""),
    number(tools, "tool"), number(calls?.calls, "call"), number(calls?.errors, "failed call", "fault"), number(ms(calls?.p50_ms ?? calls?.p50_sent_ms), "", "wide soft"),
    number(cost && cost.direct && count(cost.direct) + " → " + count(cost.dynmcp), "", "wide soft"),
    below && el("span", {className: "below " + (failed(s) ? "fault" : "soft")}, below),
  ], () => serverInside(place, s, now, calls, cost));
}

function serverInside(place, s, now, calls, cost) {
  const doing = (text, order, edits) => button(text, () => act(place, {act: order, server: s.name}, edits), {key: order + place.id + s.name, label: text.replace("…", "") + " " + s.name});
  const may = !place.fixed && place.config && place.id !== "config" && !s.disabled && !s.off && now.name, edits = place.config && !place.fixed;
  return [
    el("div.bar", may && [doing("Start", "start"), doing("Stop", "stop"), doing("Restart", "restart")],
      edits && (s.disabled ? doing("Enable…", "enable", true) : doing("Disable…", "disable", true)),
      edits && [button("Edit description…", () => editDescription(place, s), {key: "describe" + place.id + s.name, label: "Edit description of " + s.name}),
        button("Change a key…", () => changeKey(place, s), {key: "set" + place.id + s.name, label: "Change a key of " + s.name}),
        button("Remove…", () => act(place, {act: "remove", server: s.name}, true), {className: "danger end", key: "remove" + place.id + s.name, label: "Remove " + s.name})]),
    facts([["Description", s.description], ["Transport", s.transport + (now.pid ? ", process " + now.pid : "")], ["Loaded", s.lazy ? "lazily, when it is used" : "eagerly, with the run"],
      ["Protocol", now.protocol && now.protocol + ", " + now.era], ["Starts", now.starts !== undefined ? now.starts + (now.starts_failed ? ", and " + now.starts_failed + " failed" : "") : ""],
      ["In flight", now.in_flight || now.waiting ? now.in_flight + ", " + now.waiting + " waiting" : ""],
      ["Calls", calls && calls.calls + ", " + calls.errors + " failed"],
      ["Took", calls?.p50_ms > 0 && "p50 " + ms(calls.p50_ms) + ", p99 " + ms(calls.p99_ms)], ["Without start", calls?.p50_sent_ms > 0 && "p50 " + ms(calls.p50_sent_ms) + ", p99 " + ms(calls.p99_sent_ms)],
      ["Hidden", s.denied && s.denied + (s.denied === 1 ? " tool" : " tools") + ", by the policy"], ["Tokens", cost && cost.direct + " directly, " + cost.dynmcp + " through dynmcp"], ["Pins", s.pins]]),
    now.stderr && [el("h3", "Last lines of stderr"), el("pre", {role: "region", label: "stderr of " + s.name}, now.stderr)],
  ].flat().filter(Boolean);
}

// profileOf is a switch of the profile that a run serves.
const profileOf = p => p.run && !p.fixed && p.profiles?.length > 0 && el("label", "Profile ", el("select", {key: "profile" + p.id, onchange: e => act(p, {act: "use", server: "", text: e.target.value})},
  [...new Set(["all", ...p.profiles])].map(name => el("option", {value: name, selected: name === (p.run.profile || "all")}, name === "all" ? "all servers" : name))));

const field = (id, label, input, about) => el("div.field", el("label", {for: id}, label), Object.assign(input, {id}), about && el("div.soft", about));

// changeKey changes any key of an entry, as the verb set does.
async function changeKey(place, s) {
  const key = el("input", {required: true, list: "paths", autocomplete: "off", placeholder: "timeout, env.TOKEN, args[0]"}), value = el("textarea", {rows: 2}), paths = el("datalist", {id: "paths"}), text = el("pre", {role: "region", label: "The entry"}, "…");
  const title = "Change " + s.name, out = button("Take the key out…", () => key.reportValidity() && act(place, {act: "unset", server: s.name, text: key.value.trim()}, true));
  ask(title, el("form", {onsubmit: e => { e.preventDefault(); act(place, {act: "set", server: s.name, text: key.value.trim() + "=" + value.value}, true); }}, field("key", "Key", key), paths,
    field("value", "Value", value, "Text, a number, a time or true; a list as words, an object as JSON. A secret is better a reference: ${keyring:NAME} or ${NAME}."),
    el("div.bar", el("button.main", {id: "show-set"}, "Show the change…"), out)), el("h3", "The entry now"), text);
  key.focus();
  try {
    const entry = await api("entry", {place: place.id, server: s.name});
    text.replaceChildren(visible(entry.text));
    paths.replaceChildren(...entry.paths.map(p => el("option", {value: p})));
  } catch (err) { text.replaceWith(failure(err)); }
}

// questionsOf shows the calls of a run that wait for an answer of a person, because of the policy.
const questionsOf = place => (place.run?.questions || []).map(q => {
  const [server, ...tool] = q.tool.split("/"), answer = (text, label) => button(label, () => act(place, {act: "answer", server: q.id, text}), {key: text + q.id, label: label + ": " + q.tool});
  return el("section.question", {key: "question" + q.id, label: "Question about " + q.tool}, el("p", el("strong", q.tool), " has been waiting for " + duration(q.since) + ". Allow this call?"), el("pre", q.arguments),
    !place.fixed && el("div.bar", answer("once", "Allow it once"), q.lasts && answer("session", "Allow for this session"),
      place.config && tool.length > 0 && button("Always allow…", () => act(place, {act: "set", server, text: "policy." + tool.join("/") + "=allow"}, true, [el("div.bar", answer("once", "Allow this call, too"))]), {key: "always" + q.id, label: "Always allow " + q.tool}),
      answer("no", "Refuse it")));
});

// editDescription edits a description, and shows what the model will read of it.
function editDescription(place, s) {
  const text = el("textarea", {id: "description", rows: 4}), preview = el("pre", {"aria-live": "polite"}, "…"), count = el("p.soft");
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
  ask("Description of " + s.name, el("div.field", el("label", {for: "description"}, "What the server is good for"), text),
    el("h3", "What the model reads of it"), preview, count,
    el("div.bar", button("Show the change…", () => act(place, {act: "describe", server: s.name, text: text.value.trim()}, true), {className: "main", id: "show-change"})));
  text.focus();
  look();
}

// drawing returns an SVG with a bar from one share of its width over another one.
function drawing(attributes, from, share, className = "") {
  const make = (tag, all) => { const e = document.createElementNS("http://www.w3.org/2000/svg", tag); for (const [k, v] of Object.entries(all)) e.setAttribute(k, v); return e; };
  const svg = make("svg", attributes);
  svg.append(make("rect", {x: from * 99 + "%", width: Math.max(share * 99, 1) + "%", height: "100%", rx: 2, class: className}));
  return svg;
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
  const file = type === "string" && el("input", {type: "file", label: "A file for " + name, onchange: async e => { set(await e.target.files[0].text()); wholes(); }});
  return {name, read, set, node: el("div.field", el("label", {for: id}, name + (required ? " (required)" : "") + (type ? ", " + type : "")), input, file, schema.description && el("div.soft", schema.description)), input};
}

// tryForm returns a form for a call, made from the input schema of a tool.
function tryForm(place, t) {
  const schema = t.input || {}, required = schema.required || [], json = el("textarea.mono", {id: "json", rows: 5}), out = el("div", {id: "result"});
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
      out.replaceChildren(el("h3", "The result"), ...parts, ...commandOf(d), d.errors && !d.output ? el("pre.fault", d.errors.trim()) : "");
    } catch (err) { out.replaceChildren(failure(err)); }
  }}, fields.map(f => f.node), el("div.field", el("label", {for: "json"}, "The arguments as JSON"), json), el("div.bar", el("button.main", {id: "call"}, "Call " + t.tool)), out);
  write();
  return form;
}

// addOwn has forms for a server of a command, of an address, and of the configs of hosts.
function addOwn(place) {
  const form = (title, kind, input, about) => el("form", {onsubmit: e => {
    e.preventDefault();
    const name = $(kind + "-name").value.trim();
    act(place, {act: "add" + kind, server: name, description: $(kind + "-about").value.trim(), [kind === "url" ? "url" : "text"]: $(kind + "-what").value.trim()}, true,
      [el("div.bar", button("Start it…", () => act(place, {act: "test", server: name}), {className: "main", id: "start-it"}))]);
  }}, el("h2", title), el("div.fields", field(kind + "-name", "Name", el("input", {required: true, pattern: "[a-z0-9][a-z0-9\\-]*", autocomplete: "off"})), field(kind + "-what", about, input),
    field(kind + "-about", "What it is good for; the model reads it, and the server starts when it is used", el("input", {autocomplete: "off"})), el("button", {key: kind + "-show"}, "Show the change…")));
  return [form("By its command", "command", el("input", {required: true, autocomplete: "off", placeholder: "npx -y @modelcontextprotocol/server-filesystem /tmp"}), "Command and arguments, as in a shell"),
    form("By its address", "url", el("input", {type: "url", required: true, autocomplete: "off", placeholder: "address of its MCP endpoint"}), "Address"),
    el("form", {onsubmit: e => { e.preventDefault(); act(place, {act: "import", server: $("host").value}, true); }}, el("h2", "From a host's config"), el("div.fields", field("host", "Host; its secrets go to .env", el("select", hosts.map(h => el("option", {value: h}, hostOf(h))))), el("button", {key: "import-show"}, "Show the change…")))];
}
const hosts = "claude-code claude-desktop cursor vscode codex gemini opencode zed windsurf cline copilot lmstudio kiro junie roo continue amp goose crush".split(" ");

// contentOf returns the elements that show a result: text, images and resources.
const contentOf = r => [r.isError && el("p.fault", "The tool reports an error."), ...(r.content || []).map(c => {
  if (c.type === "text") return el("pre", c.text);
  if (c.type === "image" && /^image\/(png|jpeg|gif|webp)$/.test(c.mimeType) && /^[A-Za-z0-9+/=]*$/.test(c.data)) return el("img", {src: "data:" + c.mimeType + ";base64," + c.data, alt: "The image that the tool returned"});
  if (c.type === "resource") return [el("p.mono", c.resource?.uri || ""), el("pre", c.resource?.text ?? "(" + (c.resource?.mimeType || "binary") + ")")];
  return el("pre", JSON.stringify(c, null, 2));
}).flat(), r.structuredContent && el("pre", JSON.stringify(r.structuredContent, null, 2))].filter(Boolean);

function toolRow(place, t) {
  return folded("tool" + place.id + t.name, "tool", [el("span.name", t.name), el("span.soft.one", t.summary)], () => later("tool" + place.id + t.name, async () => {
    const d = await api("tool", {place: place.id, name: t.name}), rule = (text, label) => button(label, () => act(place, {act: "set", server: d.server, text: "policy." + d.tool + "=" + text}, true), {label: label.replace("…", "") + " " + t.name, title: "policy." + d.tool + " = " + text});
    return [!place.fixed && el("div.bar", button("Try it…", () => ask("Try " + t.name, tryForm(place, d)), {label: "Try it… " + t.name, className: "main"}), place.config && [rule("ask", "Ask before each call…"), rule("deny", "Switch off…"), rule("allow", "Always allow…")]),
      el("h3", "TypeScript" + (d.whole ? "" : ", not all of the schema")), el("pre.typescript", d.typescript), el("h3", "JSON"), el("pre", JSON.stringify(d.definition, null, 2))];
  }));
}

const searchBox = (id, label, query) => el("input", {id, type: "search", placeholder: label, label: label, value: query.get("q") || ""});

// Modules add parts to these views: a part of decisions returns what is to be decided, and says when nothing is; one of
// add draws what its query asks for, and has what is shown without one.
const parts = {decisions: [], add: []};

const views = {
  servers: {title: "Servers", live: true, show: async (query, _, draw) => {
    const words = (query.get("q") || "").toLowerCase(), many = places.reduce((n, p) => n + p.servers.length, 0) > 5;
    const chosen = all => all.filter(s => !words || [s.name, s.state, s.description, s.transport].join(" ").toLowerCase().includes(words));
    const box = searchBox("filter", "Filter by name, state or description", query);
    box.addEventListener("input", e => { go({q: e.target.value}, true); refresh(true); });
    const sections = places.map(p => { const all = serversOf(p), shown = chosen(all); return el("section", {key: "place" + p.id}, el("div.title", el("h2", titleOf(p), el("small.soft", aboutOf(p))), profileOf(p)), totalsOf(p),
      p.error && el("p.fault", p.error), questionsOf(p), listOf("server", serverHeads, shown.map(s => serverRow(p, s)), all.length ? "No server of this run is like that." : "No server yet: add one on the view Add a server."),
      !p.calls && p.config && el("p.soft", "Calls are not recorded: the config has \"activity\": false.")); });
    draw(many && el("div.bar", {key: "bar"}, box), ...places.length ? sections : [el("h2", "No run and no config was found"), empty("No run yet: dynmcp init writes a config, dynmcp install adds dynmcp to a host.")]);
    for (const p of places) if (p.config && !costs.has(p.id)) costOf(p).then(() => { shown = ""; });
  }},
  tools: {title: "Tools", show: async (query, _, draw) => {
    const place = placeNow(), form = el("form.bar", {role: "search", onsubmit: e => { e.preventDefault(); go({q: $("search").value.trim(), from: ""}); }}, searchBox("search", "Search as the model does", query), el("button.main", "Search"));
    waitFor(form);
    const a = await api("search", {place: place.id, query: query.get("q") || ""}), from = +query.get("from") || 0;
    const page = (text, at) => button(text, () => go({from: at}), {id: text.toLowerCase(), disabled: at < 0 || at >= a.tools.length});
    draw(form, a.answer && el("details.list", el("summary", "The model's answer: " + a.tokens + " tokens"), el("div.inside", el("pre", {id: "answer"}, a.answer))),
      el("div.title", el("h2", query.get("q") ? a.tools.length + " found of " + plural(a.all, "tool") : plural(a.all, "tool"), a.tools.length > 100 && el("small.soft", count(from + 1) + " to " + count(Math.min(from + 100, a.tools.length)))), a.tools.length > 100 && [page("Previous", from - 100), page("Next", from + 100)]),
      listOf("tool", [["Tool"], ["What it does", "wide"]], a.tools.slice(from, from + 100).map(t => toolRow(place, t)), a.all ? "No tool is found: the model would search with other words, too." : "No tool is known yet: a server is listed when it is first started."));
  }},
  decisions: {title: "Decisions", show: async (query, _, draw) => {
    const place = placeNow();
    waitFor();
    const run = (order, server = "") => api("do", {place: place.id, act: order, server});
    const [logins, doctor, ...more] = await Promise.all([run("logins"), run("doctor"), ...parts.decisions.map(part => part(place, run))]);
    const parsed = (d, or) => { try { return JSON.parse(d.output); } catch { return or; } };
    const waiting = parsed(logins, []).filter(s => s.auth.startsWith("oauth") && !/logged in|valid/.test(s.auth));
    const findings = (parsed(doctor, {findings: []}).findings || []).filter(f => f.level === "problem" || f.level === "warning");
    const asked = place.run?.questions || [], nothing = [!asked.length && "no call waits for an answer", ...more.map(m => m.nothing),
      !waiting.length && "no login is due", !findings.length && "doctor finds nothing"].filter(Boolean);
    draw(asked.length > 0 && [el("h2", "Calls that wait for an answer"), questionsOf(place)],
      more.map(m => m.content),
      waiting.length > 0 && [el("h2", "Logins"), waiting.map(s => el("p", s.name + ": " + s.auth + ". ", el("code", "dynmcp login " + s.name)))],
      findings.length > 0 && [el("h2", "Findings of doctor"), findings.map(f => el("section.card", el("h3", {className: f.level === "problem" ? "fault" : "waiting"}, f.level + (f.server ? ": " + f.server : "")), el("p", f.message), f.hint && el("pre", f.hint)))],
      nothing.length > 0 && [el("h2", nothing.length === 3 + more.length ? "Nothing is to be decided" : "Nothing else"), empty(nothing.join("; ").replace(/^./, c => c.toUpperCase()) + ".")], el("p.soft", el("code", doctor.command)));
  }},
  add: {title: "Add a server", show: async (query, _, draw) => {
    const place = placeNow();
    if (!place.config || place.fixed) return draw(empty(place.fixed ? "This page changes nothing." : "This run has no config to which a server can be added."));
    for (const part of parts.add) if (await part(place, query, draw)) return;
    draw(...parts.add.map(part => part.idle(query)), addOwn(place));
  }},
  reads: {title: "What the model reads", show: async (query, _, draw) => {
    const place = placeNow();
    waitFor();
    const r = await api("reads", {place: place.id, profile: query.get("profile") || "", host: query.get("host") || ""}), t = r.tokens;
    const choice = (key, label, none, all, name = v => v) => el("select", {label: label, key, onchange: e => go({[key]: e.target.value})},
      el("option", {value: ""}, none), all.map(v => el("option", {value: v, selected: v === query.get(key)}, name(v))));
    const tools = r.tools.reduce((sum, d) => sum + d.tokens, 0), parts = [["Instructions", Math.max(0, t.dynmcp - tools)], ...r.tools.map(d => [d.name, d.tokens])].filter(([, n]) => n > 0);
    draw(el("div.bar", r.profiles.length > 0 && choice("profile", "Profile", "the config's profile", ["all", ...r.profiles]), choice("host", "Host", "any host", r.hosts, hostOf)),
      el("h2", count(t.dynmcp) + " tokens at the start of a session, " + count(t.direct) + " directly"),
      el("p.soft", "The model reads the texts below, and nothing else, before its first answer. It finds a tool with discover_tool, by words, and calls it with use_tool: definitions come when they are asked for. A description is what the model knows of a server until then."),
      el("div", {className: "two"},
        el("div", el("h3", "What these tokens are"), tableOf("parts", ["Part", "#Tokens", "Share"], parts.map(([name, n]) => [name, count(n), shareOf(n / t.dynmcp)]))),
        (t.servers || []).length > 0 && el("div", el("h3", "What servers take"), tableOf("costs", ["Server", "#Tools", "#Directly", "#Here"], t.servers.map(s => [s.name, count(s.tools), count(s.direct), count(s.dynmcp)])))),
      el("p.soft", t.tokenizer + "; servers that were never listed are not counted."),
      lesson(place), r.instructions && [el("h2", "Instructions"), el("pre", r.instructions)],
      r.tools.map(d => [el("h2", d.name + ": " + d.tokens + " tokens"), el("pre", {role: "region", label: d.name}, d.description), el("details.list", el("summary", "Definition"), el("pre", JSON.stringify(d.definition, null, 2)))]));
  }},
};

const shareOf = share => drawing({"aria-hidden": "true"}, 0, share);

// lesson shows what a change of a description does to a query, while it is written.
function lesson(place) {
  const all = place.servers.filter(s => !s.disabled);
  if (!all.length) return;
  const found = a => a.tools.length ? el("ol", a.tools.slice(0, 5).map(t => el("li", t.name))) : el("p.soft", "Nothing is found.");
  let asked = 0, timer;
  const look = async () => {
    const mine = ++asked, q = $("lesson-query").value.trim();
    if (!q) return $("lesson-now").replaceChildren();
    try {
      const [before, after] = await Promise.all([api("search", {place: place.id, query: q}), api("search", {place: place.id, query: q, server: $("lesson-server").value, description: $("lesson-text").value.trim()})]);
      if (mine === asked) $("lesson-now").replaceChildren(el("div", el("h3", "As it is: " + before.tokens + " tokens"), found(before)), el("div", el("h3", "With this description: " + after.tokens + " tokens"), found(after)));
    } catch (err) { if (mine === asked) $("lesson-now").replaceChildren(failure(err)); }
  };
  const soon = () => { clearTimeout(timer); timer = setTimeout(look, 200); };
  const text = el("textarea", {rows: 2, oninput: soon});
  text.value = all[0].description;
  return el("section", {"data-once": "lesson" + place.id}, el("h2", "What a description does"), el("form.fields", {onsubmit: e => { e.preventDefault(); act(place, {act: "describe", server: $("lesson-server").value, text: $("lesson-text").value.trim()}, true); }},
    field("lesson-query", "A task in the model's words", el("input", {type: "search", autocomplete: "off", oninput: soon})),
    field("lesson-server", "Server", el("select", {onchange: e => { $("lesson-text").value = all.find(s => s.name === e.target.value).description; look(); }}, all.map(s => el("option", {value: s.name}, s.name)))),
    field("lesson-text", "Its description, as it might be", text), !place.fixed && place.config && el("button", {key: "lesson-show"}, "Show the change…")),
  el("div", {id: "lesson-now", className: "two", "aria-live": "polite"}));
}

// tableOf returns a table. The heads of columns with numbers begin with #.
const tableOf = (id, head, rows) => el("div.scroll", {tabindex: 0, role: "region", label: id, key: id}, el("table", {id}, el("tr", head.map(h => el("th", {className: h[0] === "#" && "number"}, h.replace("#", "")))),
  rows.map(cells => el("tr", cells.map((c, i) => el("td", {className: head[i][0] === "#" && "number"}, c ?? ""))))));

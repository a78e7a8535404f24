
"use strict";
const $ = id => document.getElementById(id);
const store = "dynmcp-ui-token";
let places = [], open = new Set(), shown = "", serial = 0;

// el returns an element. Its classes follow its tag, and attributes come before its children, if it has any; key names it
// for merge, and label for those who do not see it. Texts from servers and hosts become text nodes, never markup.
function el(name, ...children) {
  const [tag, ...classes] = name.split("."), e = document.createElement(tag), attributes = children[0]?.constructor === Object ? children.shift() : {};
  if (classes.length) e.className = classes.join(" ");
  if (tag === "pre") e.tabIndex = 0; // so that it can be scrolled with the keyboard
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) listen(e, name.slice(2), value);
    else e.setAttribute({className: "class", key: "data-key", label: "aria-label"}[name] || name, value === true ? "" : value);
  }
  e.append(...children.flat(Infinity).filter(c => c !== undefined && c !== null && c !== "" && c !== false).map(c => c instanceof Node ? c : visible(String(c))));
  return e;
}

// listen keeps the handler beside the element, so that an element that stays gets the newest one.
function listen(e, type, handler) {
  e.handlers ??= {};
  if (!e.handlers[type]) e.addEventListener(type, event => e.handlers[type](event));
  e.handlers[type] = handler;
}

// Characters that are invisible or change the direction of text are escaped.
const hidden = /(?![\t\n])[\p{Cc}\p{DI}\u2028\u2029]/gu;
const visible = text => text.replace(hidden, c => "\\u{" + c.codePointAt(0).toString(16) + "}");

async function api(name, query = {}) {
  const token = localStorage.getItem(store), headers = {"Content-Type": "application/json"};
  if (token) headers.Authorization = "Bearer " + token; // otherwise the browser sends the credentials that serve asked for
  const resp = await fetch("api/" + name, {method: "POST", body: JSON.stringify(query), cache: "no-store", credentials: "same-origin", headers});
  if (resp.ok) return resp.json();
  const why = (await resp.text()).trim();
  if (resp.status === 401) localStorage.removeItem(store);
  throw Object.assign(new Error(why), {status: resp.status});
}

// The fragment of the address holds the view and its query, so that links lead to them.
const offered = document.body.dataset.views.split(" ");
function where() {
  const [view, query] = location.hash.slice(1).split("?");
  return {view: offered.includes(view) ? view : offered[0], query: new URLSearchParams(query)};
}
function go(changes, replace) {
  const {view, query} = where();
  for (const [key, value] of Object.entries(changes)) value ? query.set(key, value) : query.delete(key);
  const address = "#" + view + (query.size ? "?" + query : "");
  replace ? history.replaceState(null, "", address) : location.hash = address;
}
const placeNow = () => places.find(p => p.id === where().query.get("place")) || places[0];

// titleOf calls a run by its hosts and its project, the folder of its config; aboutOf has the rest.
const projectOf = p => (p.config || "").split(/[\\/]/).at(-2) || "";
const hostOf = name => name.split("-").map(w => w.charAt(0).toUpperCase() + w.slice(1)).join(" ");
const titleOf = p => [p.run ? p.run.hosts.map(hostOf).join(", ") + (p.run.more_hosts ? " and " + p.run.more_hosts + " more" : "") || p.run.kind : "no run", projectOf(p)].filter(Boolean).join(", ");
const aboutOf = p => [p.run && p.run.kind + " " + p.run.pid, p.config].filter(Boolean).join(" · ");

function duration(at) {
  const s = Math.max(0, (Date.now() - new Date(at)) / 1000);
  return s < 60 ? Math.floor(s) + " s" : s < 3600 ? Math.floor(s / 60) + " min" : s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d";
}
const ms = n => !n ? "" : n >= 10 ? n.toFixed(0) + " ms" : n.toFixed(1) + " ms";
const bytes = n => n < 1024 ? n + " B" : n < 1048576 ? (n / 1024).toFixed(1) + " KB" : (n / 1048576).toFixed(1) + " MB";

// folded returns a row of a list that can be opened. It stays open when the view is drawn again.
function folded(key, className, cells, content) {
  const note = isOpen => isOpen ? open.add(key) : open.delete(key), inside = () => el("div.inside", content());
  // A click is noted at once: the view may be drawn again before the toggle event.
  return el("li", {key: key}, el("details", {className, key: key, open: open.has(key), ontoggle: ({currentTarget: d}) => {
    note(d.open);
    if (d.open && d.children.length === 1) d.append(inside());
  }}, el("summary", {key: key, onclick: e => note(!e.currentTarget.parentNode.open)}, cells), open.has(key) && inside()));
}

// later returns an element that load fills. One that is drawn again stays as it is.
function later(key, load) {
  const e = el("div", {"data-once": key}, el("p.soft", "…"));
  load().then(content => e.replaceChildren(...content.flat(Infinity).filter(Boolean))).catch(err => e.replaceChildren(failure(err)));
  return e;
}

// listOf returns a list with heads over its columns. An empty one says what would be in it.
const listOf = (className, heads, rows, none) => rows.length ? el("ul.list", heads && el("li", {className: "heads for-" + className, "aria-hidden": "true"}, heads.map(([text, cell]) => el("span", {className: cell}, text))), rows) : empty(none);
const empty = (...text) => el("p.empty", text);

const facts = pairs => el("dl.facts", pairs.filter(([, v]) => v !== undefined && v !== "" && v !== null && v !== false).map(([k, v]) => el("div", el("dt", k), el("dd", v))));
const button = (text, onclick, more = {}) => el("button", {type: "button", onclick, ...more}, text);
const failure = err => el("p.fault", {role: "alert"}, err.message);

// diffOf colours the lines of a diff, and the words of a comparison.
function diffOf(text) {
  return el("pre", {role: "region", label: "Output"}, text.split("\n").map(line => {
    const kind = /^(\+|\s+new )/.test(line) ? "add" : /^(-|\s+gone )/.test(line) ? "del" : undefined;
    const parts = line.split(/(\[-.*?-\]|\{\+.*?\+\})/).map(w => w.startsWith("[-") ? el("span.del", w) : w.startsWith("{+") ? el("span.add", w) : w);
    return [el("span", {className: kind}, parts), "\n"];
  }).flat());
}

// ask shows a dialog with a button that closes it.
function ask(title, ...content) {
  const close = button("Close", () => $("dialog").close());
  $("dialog").replaceChildren(el("h2", {id: "dialog-title"}, title), ...content.flat(Infinity).filter(Boolean), el("div.bar", close));
  if (!$("dialog").open) $("dialog").showModal();
}

const commandOf = d => [el("h3", "The command"), el("pre.command", d.command)];

// result returns the elements that show the result of a command. A diff that was shown before is not shown again.
const result = (d, before) => [
  el("p", {className: d.ok ? "ok" : "fault", role: "status"}, d.ok ? "Done" : "It failed"),
  ...commandOf(d),
  d.output && diffOf(before && d.output.startsWith(before) ? d.output.slice(before.length).trim() : d.output.trimEnd()), d.errors && el("pre.fault", d.errors.trimEnd()),
].filter(Boolean);

const titles = {set: "Change", unset: "Change", describe: "Describe", addurl: "Add", addcommand: "Add", answer: "Answer question", import: "Import from", use: "Switch profile"};

// act runs an order at a place. A change of the config is shown before it is written. then holds
// elements to show after that.
async function act(place, order, changesConfig, then) {
  const title = (titles[order.act] || hostOf(order.act)) + " " + order.server;
  ask(title, el("p", {role: "status"}, "Working…"));
  try {
    const d = await api("do", {place: place.id, ...order, show: changesConfig});
    if (!changesConfig || !d.ok) return ask(title, ...result(d));
    const apply = button("Write this change", async () => {
      apply.disabled = true;
      try {
        const made = await api("do", {place: place.id, ...order});
        ask(title, ...result(made, d.output), ...(made.ok && then || []));
      } catch (err) { ask(title, failure(err)); }
      refresh(true);
    }, {className: "main", id: "apply"});
    ask(title, el("p", "The change of the config:"), diffOf(d.output.trimEnd()), d.errors && el("p.waiting", d.errors.trimEnd()), commandOf(d), el("div.bar", apply));
    apply.focus();
  } catch (err) { ask(title, failure(err)); } finally { refresh(true); }
}

function chrome() {
  const {view, query} = where();
  // The links are made once: a link that is replaced loses the focus.
  if (!$("views").children.length) $("views").append(...offered.map(name => el("a", {key: "view-" + name}, views[name].title)));
  offered.forEach((name, i) => {
    const link = $("views").children[i];
    link.href = "#" + name + (query.get("place") ? "?place=" + encodeURIComponent(query.get("place")) : "");
    name === view ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  });
  $("place-label").hidden = view === "servers" || views[view].own;
  const ids = places.map(p => p.id + titleOf(p)).join();
  if ($("place").dataset.ids !== ids) {
    $("place").replaceChildren(...places.map(p => el("option", {value: p.id, title: aboutOf(p)}, titleOf(p) + (p.run ? " · " + p.run.pid : ""))));
    $("place").dataset.ids = ids;
  }
  if (placeNow()) $("place").value = placeNow().id;
}

// keyOf names a node among its siblings, for merge.
const keyOf = n => n.id || n.dataset?.key;

// merge makes what is shown like what was drawn now. Elements stay, and with them focus, selection and scroll positions.
function merge(old, now) {
  if (old.nodeType === Node.TEXT_NODE) return old.data === now.data || (old.data = now.data);
  if (old.dataset.once && old.dataset.once === now.dataset.once) return;
  // Whether a row is open is what a person did last.
  for (const {name} of [...old.attributes]) if (name !== "open" && !now.hasAttribute(name)) old.removeAttribute(name);
  for (const {name, value} of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const [type, handler] of Object.entries(now.handlers || {})) listen(old, type, handler);
  mergeChildren(old, now.childNodes);
  if (old.tagName === "SELECT" && old.handlers?.change && old !== document.activeElement) old.value = now.value; // a field of a form keeps what was chosen
}

function mergeChildren(root, nodes) {
  const keyed = new Map([...root.childNodes].filter(keyOf).map(n => [keyOf(n), n]));
  let at = root.firstChild;
  for (const n of [...nodes]) {
    let old = keyOf(n) ? keyed.get(keyOf(n)) : at;
    while (old && !keyOf(n) && (keyOf(old) || old.nodeName !== n.nodeName)) old = old.nextSibling;
    if (!old || old.nodeName !== n.nodeName) { root.insertBefore(n, at); continue; }
    if (old === at) at = at.nextSibling;
    else (root.moveBefore || root.insertBefore).call(root, old, at);
    merge(old, n);
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next; }
}

// drawIn merges content into an element.
function drawIn(id, ...content) {
  const had = document.activeElement;
  mergeChildren($(id), content.flat(Infinity).filter(Boolean));
  if (had.isConnected && had !== document.activeElement) had.focus({preventScroll: true}); // it was moved
}
function draw(...content) {
  const {view} = where();
  if ($("main").dataset.view !== view) $("main").replaceChildren();
  $("main").dataset.view = view;
  drawIn("main", ...content);
}
// waitFor shows that a view is being made, unless an older state of it is shown.
const waitFor = (...content) => $("main").dataset.view === where().view || draw(...content, el("p.soft", {role: "status"}, "…"));

let due = false; // a forced refresh stays due if a poll overtakes it
async function refresh(force) {
  force = due ||= !!force;
  const mine = ++serial, {view, query} = where();
  try {
    if (!views[view].own && (views[view].live || force || !places.length)) places = await api("places");
    if (mine !== serial) return;
    $("link").textContent = "";
    chrome();
    const key = view + query + JSON.stringify(views[view].live ? places : places.map(p => p.id));
    if (key === shown && !force && !views[view].poll) return;
    // A view that has been left is not drawn over the one that is looked at.
    await views[view].show(query, key !== shown || force, (...content) => where().view + where().query === view + query && draw(...content));
    shown = key;
    due = mine !== serial && due;
  } catch (err) {
    if (mine !== serial) return;
    if (err.status === 401) return draw(el("h2", "This page needs its code"), el("p", "Start ", el("code", "dynmcp ui"), " and open the address that it prints."), failure(err));
    if (err.status) return draw(failure(err));
    $("link").textContent = "dynmcp does not answer";
  }
}

async function start() {
  const code = /^#code=(.+)$/.exec(location.hash);
  if (code) {
    history.replaceState(null, "", "#servers");
    try { localStorage.setItem(store, (await api("login", {code: code[1]})).token); } catch (err) { if (!localStorage.getItem(store)) return draw(failure(err)); }
  }
  $("place").addEventListener("change", () => go({place: $("place").value}));
  addEventListener("hashchange", () => { if (location.hash !== "#main") { shown = ""; refresh(true); } });
  $("dialog").addEventListener("close", () => refresh(true));
  await refresh(true);
  setInterval(() => { if (!document.hidden && !$("dialog").open) refresh(); }, 2000);
}

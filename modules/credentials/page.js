"use strict";
const $ = id => document.getElementById(id);
// The token stays in this page: it is neither stored nor in an address.
let token = "";

// Texts of servers become text nodes, never markup.
function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(name === "className" ? "class" : name, value);
  }
  e.append(...children.flat(Infinity).filter(c => c || c === 0).map(c => c instanceof Node ? c : visible(String(c))));
  return e;
}

// Characters that are invisible or change the direction of text are escaped.
const hidden = /(?![\t\n])[\p{Cc}\p{DI}\u2028\u2029]/gu;
const visible = text => text.replace(hidden, c => "\\u{" + c.codePointAt(0).toString(16) + "}");

async function ask(path = "", method = "GET", body) {
  const resp = await fetch("credentials" + path, {method, body, cache: "no-store", credentials: "omit", headers: {Authorization: "Bearer " + token, Accept: "application/json"}});
  const text = await resp.text();
  if (resp.ok) return text ? JSON.parse(text) : {};
  let why = text.trim();
  try { why = JSON.parse(text).error.message; } catch { /* it is text */ }
  throw Object.assign(new Error(resp.status === 401 ? "The gateway does not know this token." : why), {status: resp.status});
}

const field = (id, label, more) => el("label", {for: id}, label, el("input", {id, required: "", autocomplete: "off", ...more}));
const failure = err => el("p", {className: "fault", role: "alert"}, err.message);
const tableOf = (name, head, rows, none) => rows.length ? el("div", {className: "scroll", tabindex: 0, role: "region", "aria-label": name}, el("table", {}, el("tr", {}, head.map(h => el("th", {}, h))), rows.map(r => el("tr", {}, r.map(c => el("td", {}, c)))))) : el("p", {className: "empty"}, none);

function enter(err) {
  $("who").replaceChildren();
  $("main").replaceChildren(el("h2", {}, "What is yours at this gateway"), el("form", {onsubmit: e => { e.preventDefault(); token = $("token").value.trim(); show(); }}, field("token", "Your token for the gateway", {type: "password"}), el("button", {className: "main"}, "Show")),
    el("p", {className: "soft"}, "It is what your host sends. The page keeps it until it is closed, and shows nobody else's."), err ? failure(err) : "");
  $("token").focus();
}

async function change(path, method, body) {
  let failed;
  try { const done = await ask(path, method, body); if (done.warning) failed = new Error(done.warning); } catch (err) { failed = err; }
  await show(failed);
}

// logIn shows a link to the login page of a server, and the state anew when the user has logged in.
async function logIn(server, button) {
  const path = "/login/" + encodeURIComponent(server), link = el("a", {target: "_blank", rel: "noopener noreferrer"}, "Log in to " + server + " (another tab)");
  button.disabled = true;
  try {
    link.href = (await ask(path, "POST")).address;
    button.replaceWith(link);
    link.focus();
    while (link.isConnected) {
      await new Promise(done => setTimeout(done, 1000));
      if ((await ask()).logins.includes(server) && link.isConnected) return show();
    }
  } catch (err) { show(err); }
}

// needsOf says what a server still needs of this user.
function needsOf(s, mine) {
  const missing = (s.values || []).filter(v => !mine.names.includes(v));
  if (missing.length) return el("span", {className: "due"}, "needs " + missing.join(", "));
  if (!s.login) return el("span", {className: "ok"}, "ready");
  return mine.logins.includes(s.name) ? [el("span", {className: "ok"}, "logged in "), el("button", {onclick: () => change("/login/" + encodeURIComponent(s.name), "DELETE"), "aria-label": "Log out of " + s.name}, "Log out")]
    : el("span", {className: "due"}, "not logged in ", el("button", {onclick: e => logIn(s.name, e.currentTarget), "aria-label": "Log in to " + s.name}, "Log in…"));
}

async function show(failed) {
  try {
    const mine = await ask("?page=1");
    $("who").replaceChildren(visible(mine.user));
    $("main").replaceChildren(failed ? failure(failed) : "",
      el("h2", {}, "Servers"), tableOf("Servers", ["Server", "Good for", "For you"], mine.servers.map(s => [s.name, s.description, needsOf(s, mine)]), "The gateway has no server yet."),
      el("h2", {}, "Values"), tableOf("Values", ["Name", "Change"], mine.names.map(n => [n, el("button", {onclick: () => change("/" + encodeURIComponent(n), "DELETE"), "aria-label": "Remove " + n}, "Remove")]), "You keep no value yet: servers that need one say so above."),
      el("form", {onsubmit: e => { e.preventDefault(); change("/" + encodeURIComponent($("name").value.trim()), "PUT", $("value").value); }}, field("name", "Name", {pattern: "[A-Za-z_][A-Za-z0-9_]*"}), field("value", "Value; nobody is shown it again", {type: "password"}), el("button", {className: "main"}, "Keep")),
      el("h2", {}, "Your calls"), tableOf("Calls", ["Time", "Tool", "Outcome", "Took"], mine.calls.map(c => [new Date(c.time).toLocaleString(), [c.server, c.tool || c.method].filter(Boolean).join("/"), el("span", {className: c.kind === "ok" ? "ok" : "fault"}, c.kind), c.ms.toFixed(c.ms < 10 ? 1 : 0) + " ms"]),
        mine.recorded ? "No calls of yours yet." : "This gateway does not record calls."));
  } catch (err) { if (err.status === 401) enter(err); else $("main").replaceChildren(failure(err)); }
}
enter();

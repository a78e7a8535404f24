// Servers of registries, on the view that adds servers.
// addForm shows a form for adding a server of a registry.
function addForm(place, f, way) {
  const name = el("input", {required: true, pattern: "[a-z0-9][a-z0-9\\-]*"}), sandbox = el("input", {type: "checkbox"});
  name.value = f.name.split("/").pop().toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  const needs = (way.needs || []).map(n => {
    const input = n.choices ? el("select", {required: n.required}, el("option", {value: ""}, ""), n.choices.map(c => el("option", {value: c}, c)))
      : el("input", {type: n.secret ? "password" : "text", required: n.required, placeholder: n.placeholder, autocomplete: "off"});
    input.value = n.default || "";
    return {name: n.name, input, node: field("need-" + n.name, n.name + (n.required ? " (required)" : "") + (n.secret ? ", secret" : ""), input, n.description)};
  });
  const secrets = el("select", [["", "the keyring, or .env without one"], ["keyring", "the keyring"], ["env", ".env beside the config"]].map(([v, t]) => el("option", {value: v}, t)));
  ask("Add " + f.name, el("form", {onsubmit: e => {
    e.preventDefault();
    const order = {act: "add", server: f.name, version: f.version, via: way.via, as: name.value, secrets: needs.some(n => n.input.type === "password") ? secrets.value : "", sandbox: sandbox.checked,
      answers: Object.fromEntries(needs.filter(n => n.input.value !== "").map(n => [n.name, n.input.value]))};
    act(place, order, true, [el("div.bar", button("Start it…", () => act(place, {act: "test", server: name.value}), {className: "main", id: "start-it"}))]);
  }}, el("p.mono", way.via + " " + way.what), field("as", "Name of the entry", name), needs.map(n => n.node),
  needs.some(n => n.input.type === "password") && field("secrets", "Where secrets are kept", secrets), way.via !== "remote" && way.via !== "oci" && field("sandbox", "Run it in a sandbox: it can then change nothing outside its own directories", sandbox),
  el("div.bar", el("button.main", {id: "show-add"}, "Show what will run…"))));
  name.focus();
}

const registrySearch = query => el("form.bar", {role: "search", onsubmit: e => { e.preventDefault(); go({q: $("find").value.trim()}); }}, searchBox("find", "Search registries", query), el("button.main", "Search"));

// The search shows what it finds alone, and returns whether there is a search.
parts.add.push(Object.assign(async (place, query, draw) => {
  if (!query.get("q")) return false;
  const form = registrySearch(query);
  draw(form, el("p.soft", {role: "status"}, "Asking…"));
  const d = await api("do", {place: place.id, act: "find", text: query.get("q")});
  if (!d.ok) return draw(form, ...result(d)) || true;
  const all = JSON.parse(d.output);
  draw(form, el("p.soft", {role: "status"}, all.length + " found"), d.errors && el("p.fault", d.errors.trim()), listOf("tool", [["Server"], ["What it is", "wide"]], all.map(f => folded("found" + f.registry + f.name, "tool",
    [el("span.name", f.name + " " + f.version), el("span", {className: f.status === "deprecated" ? "fault" : "soft"}, (f.status === "deprecated" ? "deprecated. " : "") + f.description)],
    () => [facts([["Registry", f.registry], ["Note", f.message]]), el("div.bar", f.ways.map(w => w.missing ? el("p.soft", w.via + " " + w.what + ": " + w.missing)
      : button("Add by " + w.via + "…", () => addForm(place, f, w), {label: "Add " + f.name + " by " + w.via})))])), "No registry has a server like that."));
  return true;
}, {idle: query => [el("h2", "From a registry"), registrySearch(query), el("p.soft", "The registries of your own config are asked, or the official one. Nothing runs before you have seen its command.")]}));

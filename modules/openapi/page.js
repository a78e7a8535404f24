// Adding an HTTP API, on the view that adds servers.
// apiForm returns a form for adding the operations of an OpenAPI document. What is shown before anything is
// written has the operations by tag.
function apiForm(place) {
  const name = el("input", {required: true, pattern: "[a-z0-9][a-z0-9\\-]*"}), openapi = el("input", {required: true, autocomplete: "off"}), url = el("input", {type: "url", autocomplete: "off"}), tags = el("input", {autocomplete: "off"});
  return [el("h2", "From an OpenAPI document"), el("details.list", {id: "api"}, el("summary", "Add an HTTP API by its OpenAPI document"), el("form.inside", {onsubmit: e => {
    e.preventDefault();
    act(place, {act: "add api", server: name.value, openapi: openapi.value, url: url.value, tags: tags.value}, true);
  }}, field("api-document", "Address or file of the document", openapi), field("api-name", "Name of the entry", name), field("api-url", "Address of the API", url, "If it is not the one in the document."),
  field("api-tags", "Tags to take", tags, "With commas. Without any, all operations are taken; the next step shows the tags with their tokens."), el("div.bar", el("button.main", {id: "show-api"}, "Show its operations…"))))];
}

parts.add.push(Object.assign(() => false, {idle: () => apiForm(placeNow())}));

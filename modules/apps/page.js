// The host of one view, in a page for a person whose own host shows no views.
const frame = document.getElementById("view"), here = location.pathname.replace(/\/$/, "");

async function request(path, options) {
  const answer = await (await fetch(here + path, options)).json();
  if (answer.error) throw answer.error;
  return answer.result;
}

// say shows a person what the view has said. Texts of the view are never markup.
function say(about, text) {
  const title = document.createElement("p"), body = document.createElement("pre");
  title.textContent = about;
  body.textContent = text;
  document.getElementById("said").append(title, body);
}

const call = (method, params) => request("/call", {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ method, params }),
});

async function answer(data, method, params) {
  switch (method) {
    case "ping": return {};
    case "tools/call": case "resources/read": return call(method, params);
    case "ui/request-display-mode": return { mode: "inline" };
    case "ui/message": case "ui/update-model-context":
      say("The view has this for the model. The page cannot pass it on: copy it, if you want.", JSON.stringify(params, null, 1));
      return {};
    case "ui/open-link":
      if (!/^https?:\/\//i.test(params.url) || !confirm("The view opens " + params.url)) throw { code: -32000, message: "the user did not open it" };
      open(params.url, "_blank", "noopener,noreferrer");
      return {};
    case "ui/initialize": return {
      protocolVersion: "2026-01-26", hostInfo: { name: "dynmcp", version: data.version },
      hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, message: { text: {} } },
      hostContext: {
        toolInfo: { tool: data.tool }, displayMode: "inline", availableDisplayModes: ["inline"], platform: "web", locale: navigator.language,
        theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light", timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      },
    };
  }
  throw { code: -32601, message: "this page does not know " + method };
}

async function main() {
  const data = await request("/data");
  document.title = document.getElementById("title").textContent = data.tool.name + " of " + data.server;
  const send = message => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  addEventListener("message", async ({ source, data: m }) => {
    if (source !== frame.contentWindow || m?.jsonrpc !== "2.0" || !m.method) return;
    if (m.id !== undefined) {
      try {
        send({ id: m.id, result: await answer(data, m.method, m.params ?? {}) });
      } catch (e) {
        send({ id: m.id, error: { code: e.code ?? -32603, message: String(e.message ?? e) } });
      }
    } else if (m.method === "ui/notifications/initialized") {
      send({ method: "ui/notifications/tool-input", params: { arguments: data.arguments } });
      send({ method: "ui/notifications/tool-result", params: data.result });
    } else if (m.method === "ui/notifications/size-changed" && m.params?.height > 0) {
      frame.style.height = Math.min(m.params.height, 4000) + "px";
    }
  });
  const allowed = { camera: "camera", microphone: "microphone", geolocation: "geolocation", clipboardWrite: "clipboard-write" };
  frame.setAttribute("sandbox", "allow-scripts allow-forms");
  frame.allow = Object.keys(data.permissions).map(p => allowed[p]).filter(Boolean).join("; ");
  frame.src = data.frame;
}

main().catch(e => say("The view cannot be shown.", String(e.message ?? e)));

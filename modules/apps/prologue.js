// The beginning of a view that dynmcp serves. The view's calls become calls with the token of its server and
// session, and the URIs that it reads have its server in them.
(() => {
  const { view, server } = DYNMCP, host = window.parent, reads = new Set();
  if (host === window) return;
  const prefixes = [["ui://", "ui://"], ["skill://", "skill://"], ["", "dynmcp+"]];
  const scoped = uri => {
    if (prefixes.some(([, begin]) => uri.startsWith(begin + server + "+"))) return uri;
    const [own, begin] = prefixes.find(([own]) => uri.startsWith(own));
    return begin + server + "+" + uri.slice(own.length);
  };
  const plain = uri => {
    for (const [own, begin] of prefixes) if (uri.startsWith(begin + server + "+")) return own + uri.slice(begin.length + server.length + 1);
    return uri;
  };
  const sent = m => {
    if (m?.jsonrpc !== "2.0" || !m.params) return m;
    if (m.method === "tools/call") {
      const call = { view, tool_name: m.params.name, tool_input: m.params.arguments ?? {} };
      return { ...m, params: { ...m.params, name: "view_call", arguments: call } };
    }
    if (server && m.method === "resources/read" && typeof m.params.uri === "string") {
      reads.add(m.id);
      return { ...m, params: { ...m.params, uri: scoped(m.params.uri) } };
    }
    return m;
  };
  const shim = new Proxy({}, {
    get(_, key) {
      if (key === "postMessage") return (message, ...rest) => host.postMessage(sent(message), ...rest);
      if (key === "window" || key === "self") return shim;
      const value = host[key];
      return typeof value === "function" ? value.bind(host) : value;
    },
  });
  Object.defineProperty(window, "parent", { get: () => shim, configurable: true });
  addEventListener("message", e => {
    if (e.source !== host) return;
    Object.defineProperty(e, "source", { get: () => shim });
    if (e.data && !e.data.method && reads.delete(e.data.id)) {
      for (const c of e.data.result?.contents ?? []) if (typeof c.uri === "string") c.uri = plain(c.uri);
    }
  }, true);
})();

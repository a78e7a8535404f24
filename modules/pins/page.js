// Tools that are not as they were approved, among what is to be decided.
const approveOf = (place, s, d, tool) => { const name = tool ? s.name + "/" + tool : "all of " + s.name; return button("Approve " + (tool || "all") + "…", () => ask("Approve " + name, el("p", {}, "What is shown here of " + name + " is written into dynmcp.lock."), diffOf(d.output.trimEnd()),
  el("div", {className: "bar"}, button("Approve", () => act(place, {act: "approve", server: s.name, tool}), {className: "main", id: "approve"}))), {"aria-label": "Approve " + name, className: tool ? "" : "main"}); };

// toolsIn are the tools that the output of diff names.
const toolsIn = output => [...output.matchAll(/^\s+(?:changed|new|gone)\s+([^\s:]+)/gm)].map(m => m[1]);

parts.decisions.push(async (place, run) => {
  const pinned = place.servers.filter(s => s.pins !== "off" && !s.disabled), diffs = await Promise.all(pinned.map(s => run("diff", s.name)));
  const changed = pinned.map((s, i) => ({s, d: diffs[i]})).filter(({d}) => !d.ok || d.errors.trim());
  return {
    nothing: !changed.length && (pinned.length ? "the tools of " + pinned.map(s => s.name).join(", ") + " are as they were approved" : "no server has pins (\"defaults\": {\"pins\": \"warn\"} turns them on)"),
    content: [changed.length > 0 && el("h2", {}, "Tools that are not as they were approved"),
      changed.map(({s, d}) => el("section", {"data-key": "pins" + s.name}, el("h3", {}, s.name), diffOf((d.output + d.errors).trimEnd()), !place.fixed && !d.ok && d.output && el("div", {className: "bar"}, approveOf(place, s, d, ""),
        toolsIn(d.output).length > 1 && toolsIn(d.output).map(tool => approveOf(place, s, d, tool)))))],
  };
});

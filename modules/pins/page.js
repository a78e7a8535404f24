// Tools that are not as they were approved, among what is to be decided.
const approveOf = (place, s, d, text, tool) => {
  const name = tool ? s.name + "/" + tool : "all of " + s.name;
  return button(text, () => ask("Approve " + name, el("p", "What is shown here of " + name + " is written into dynmcp.lock."), diffOf(d.output.trimEnd()),
    el("div.bar", button("Approve", () => act(place, {act: "approve", server: s.name, tool}), {className: "main", id: "approve"}))), {key: "approve" + name, label: "Approve " + name, className: tool ? "end" : "main"});
};

// changesIn are the tools that the output of diff names, each with what happened to it.
const changesIn = output => [...output.matchAll(/^\s+(changed|new|gone)\s+([^\s:]+)/gm)].map(m => m.slice(1));

// changesOf lists changes, of which each can be approved, and all at once.
const changesOf = (place, s, d, all) => [el("div.bar", approveOf(place, s, d, all.length > 1 ? "Approve all " + all.length + "…" : "Approve…")),
  all.length > 1 && el("ul.list", all.map(([how, tool]) => el("li.change", {key: tool}, el("strong", tool), el("span.soft", how), approveOf(place, s, d, "Approve…", tool))))];

parts.decisions.push(async (place, run) => {
  const pinned = place.servers.filter(s => s.pins !== "off" && !s.disabled), diffs = await Promise.all(pinned.map(s => run("diff", s.name)));
  const changed = pinned.map((s, i) => ({s, d: diffs[i]})).filter(({d}) => !d.ok || d.errors.trim());
  return {
    nothing: !changed.length && (pinned.length ? "the tools of " + pinned.map(s => s.name).join(", ") + " are as they were approved" : "no server has pins (\"defaults\": {\"pins\": \"warn\"} turns them on)"),
    content: [changed.length > 0 && el("h2", "Tools that are not as they were approved"),
      changed.map(({s, d}) => el("section", {key: "pins" + s.name}, el("h3", s.name), diffOf((d.output + d.errors).trimEnd()), !place.fixed && !d.ok && d.output && changesOf(place, s, d, changesIn(d.output))))],
  };
});

package aggregator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// An owned upstream is one of three with random lists and results.
type owned struct {
	*actor
	uris, templates, linked []string
}

// owns reports whether a URI may be the server's, without looking at the others.
func (o *owned) owns(uri string) bool {
	at := func(uri string) string {
		scheme, rest, _ := strings.Cut(uri, "://")
		host, _, _ := strings.Cut(rest, "/")
		return scheme + "://" + host
	}
	for _, template := range o.templates {
		if literal, _, _ := strings.Cut(template, "{"); strings.HasPrefix(uri, literal) || at(literal) == at(uri) {
			return true
		}
	}
	return slices.Contains(o.linked, uri) || slices.ContainsFunc(o.uris, func(own string) bool { return at(own) == at(uri) })
}

// Whatever three servers list and show, no read and no subscription reaches a server that does not own
// the URI, and a link is read from the server that gave it.
func TestReadsReachOwnersOnly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		uri := func() string {
			pick := func(from ...string) string { return from[random.IntN(len(from))] }
			return pick("x", "ui", "skill", "https") + "://" + pick("h", "i", "b+h") + "/" + pick("1", "2", "3/4")
		}
		setup := "-- setup --\nhost 2025-11-25 {}\n"
		var lists string
		servers := map[string]*owned{"a": {}, "b": {}, "c": {}}
		names := []string{"a", "b", "c"}
		for _, name := range names {
			o := servers[name]
			setup += "upstream " + name + ` 2025-11-25 {"tools":{},"resources":{"subscribe":true}}` + "\n"
			var listed, templates []string
			for range random.IntN(4) {
				o.uris = append(o.uris, uri())
				listed = append(listed, fmt.Sprintf(`{"uri":%q,"name":"n"}`, o.uris[len(o.uris)-1]))
			}
			for range random.IntN(2) {
				o.templates = append(o.templates, uri()+"/{v}")
				templates = append(templates, fmt.Sprintf(`{"uriTemplate":%q,"name":"n"}`, o.templates[len(o.templates)-1]))
			}
			lists += fmt.Sprintf("-- upstream %s resources/list --\n{\"resources\":[%s]}\n-- upstream %s resources/templates/list --\n{\"resourceTemplates\":[%s]}\n-- upstream %s tools/list --\n",
				name, strings.Join(listed, ","), name, strings.Join(templates, ","), name) + `{"tools":[{"name":"make","inputSchema":{"type":"object"}}]}` + "\n"
		}
		onStage(t, setup+"expose direct\n"+lists, func(t *testing.T, st *stage) {
			host, id := st.hosts[0], 0
			for i, name := range names {
				servers[name].actor = st.upstreams[i]
			}
			ask := func(method, params string) {
				id++
				host.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
				quiesce()
			}
			// reached returns the server that was sent a request, and the URI in it.
			reached := func() (name, uri string) {
				for _, of := range names {
					for _, m := range servers[of].messages() {
						if name != "" {
							t.Fatalf("%d: %s and %s were asked", seed, name, of)
						}
						name = of
						uri, _ = wire.Text(wire.Get(m.Params, "uri"))
						servers[of].send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
					}
				}
				quiesce()
				host.take()
				return name, uri
			}
			reached()
			read := func(asked, of string) {
				method := []string{"resources/read", "resources/subscribe", "resources/unsubscribe"}[random.IntN(3)]
				if method == "resources/unsubscribe" {
					ask("resources/subscribe", fmt.Sprintf(`{"uri":%q}`, asked))
					reached()
				}
				ask(method, fmt.Sprintf(`{"uri":%q}`, asked))
				name, own := reached()
				scoped := name != "" && (strings.HasPrefix(asked, "dynmcp+"+name+"+") || strings.Contains(asked, "://"+name+"+"))
				if name != "" && !scoped && !servers[name].owns(own) {
					t.Fatalf("%d: %s %s was sent to %s", seed, method, asked, name)
				}
				kept := name == "" && method == "resources/unsubscribe" // for the URI without the server
				if of != "" && name != of && !kept {
					t.Fatalf("%d: %s %s, a link of %s, was sent to %q", seed, method, asked, of, name)
				}
			}
			for range 12 {
				if random.IntN(3) > 0 {
					read(uri(), "")
					continue
				}
				of := names[random.IntN(3)]
				link := uri()
				ask("tools/call", fmt.Sprintf(`{"name":"%s__make"}`, of))
				call := servers[of].messages()[0]
				servers[of].send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"resource_link","uri":%q,"name":"n"}]}}`, call.ID, link))
				quiesce()
				answer, _ := wire.Parse([]byte(host.take()[0]))
				var shown string
				for item := range wire.Elements(wire.Get(answer.Result, "content")) {
					shown, _ = wire.Text(wire.Get(item, "uri"))
				}
				servers[of].linked = append(servers[of].linked, link)
				read(shown, of)
			}
		})
	}
}

// Requests that are sessions of their own know what the results of their user showed, and of nobody else.
func TestLinksOfAUser(t *testing.T) {
	t.Parallel()
	agg := withDocument(t, `{"mcp":{"a":{"command":"none"},"b":{"command":"none"}}}`)
	result := []byte(`{"content":[{"type":"resource_link","uri":"x://1","name":"n"}]}`)
	owner := func(user string) (server string) {
		u, own, _ := agg.fleet.Names.Resource(agg.openSession(Identity{User: user}).Session, "x://1")
		if u != nil {
			server = u.Server.Name + " " + own
		}
		return server
	}
	show := func(server string) string {
		return string(agg.fleet.Names.Show(agg.openSession(Identity{User: "ann"}).Session, server, result, false))
	}
	if got := show("b"); got != string(result) {
		t.Errorf("got %s", got)
	}
	if ann, bob := owner("ann"), owner("bob"); ann != "b x://1" || bob != "" {
		t.Errorf("for ann it is of %q, for bob of %q", ann, bob)
	}
	if got, want := show("a"), strings.Replace(string(result), "x://1", "dynmcp+a+x://1", 1); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What results showed counts against the memory of the session's account, until the session ends. Without
// memory it is forgotten, and the result is unchanged. The test is not parallel: large messages of all tests count.
func TestLinksAreCounted(t *testing.T) {
	agg := withDocument(t, `{"mcp":{"a":{"command":"none"},"b":{"command":"none"}},"gateway":{"max_held_bytes":1048576}}`)
	held := func() int64 { total, _ := agg.Status().Memory(); return total }
	var open []session
	forgotten := 0
	for range 20 {
		s := agg.openSession(Identity{Account: "greedy", Persistent: true})
		open = append(open, s)
		for i := range 60 {
			uri := fmt.Sprintf("x://%d/%s", i, strings.Repeat("u", 1000))
			result := fmt.Sprintf(`{"contents":[{"uri":%q}]}`, uri)
			if got := agg.fleet.Names.Show(s.Session, "a", []byte(result), false); string(got) != result {
				t.Fatalf("got %s", got)
			}
			if u, _, _ := agg.fleet.Names.Resource(s.Session, uri); u == nil {
				forgotten++
			}
		}
	}
	if got := held(); got < 100_000 || got > 1<<20 || forgotten == 0 {
		t.Errorf("%d bytes are held, %d URIs were forgotten", got, forgotten)
	}
	for _, s := range open {
		s.end()
	}
	if got := held(); got != 0 {
		t.Errorf("%d bytes are held after the end of all sessions", got)
	}
}

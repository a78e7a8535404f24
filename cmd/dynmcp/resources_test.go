package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports"
)

// Resources pass with their URIs as they are; those that two servers list have the server in them.

// direct runs a fake without a proxy, to compare with.
func direct(t *testing.T, name string, args ...string) *mcptest.Host {
	host := mcptest.StartFake(t, append([]string{"-name", name}, args...)...)
	host.Initialize(handshake, nil)
	return host
}

// join joins the arrays called key of some results.
func join(key string, results ...mcptest.Message) string {
	var all []string
	for _, m := range results {
		if array := string(m.Member(key)); len(array) > 2 {
			all = append(all, array[1:len(array)-1])
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestListsAreJoinedInConfigOrder(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "zebra"), fake(t, "ant", "-resource", "fake://x/1", "-prompt", "p1", "-prompt", "p2"))
	zebra, ant := direct(t, "zebra"), direct(t, "ant", "-resource", "fake://x/1", "-prompt", "p1", "-prompt", "p2")
	for method, key := range map[string]string{
		"resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts",
	} {
		want := join(key, zebra.Call(method, nil), ant.Call(method, nil))
		if got := string(host.Call(method, nil).Member(key)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", method, got, want)
		}
	}
}

func TestReadGoesToTheOwner(t *testing.T) {
	t.Parallel()
	alpha, beta := fake(t, "alpha"), fake(t, "beta")
	host := serve(t, alpha, beta)
	want := direct(t, "beta")
	for _, uri := range []string{"fake://beta/text", "fake://beta/blob", "fake://beta/item/7"} {
		params := `{"uri":` + quote(uri) + `,"_meta":{"k":1.0}}`
		if got, want := host.Call("resources/read", params), want.Call("resources/read", params); string(got.Result) != string(want.Result) {
			t.Errorf("%s: got\n%s\nwant\n%s", uri, got.Raw, want.Result)
		}
		if beta.Count("resources/read "+uri) != 1 {
			t.Errorf("%s: got %q", uri, beta.Events())
		}
	}
	if n := alpha.Count("resources/read"); n > 0 {
		t.Errorf("alpha was asked %d times", n)
	}
}

func TestListedURIBeatsTemplate(t *testing.T) {
	t.Parallel()
	template := fake(t, "template", "-uri-prefix", "fake://shared/")
	listed := fake(t, "listed", "-resource", "fake://shared/item/1")
	host := serve(t, template, listed)
	host.Call("resources/read", `{"uri":"fake://shared/item/1"}`)
	host.Call("resources/read", `{"uri":"fake://shared/item/2"}`)
	if listed.Count("resources/read fake://shared/item/1") != 1 || template.Count("resources/read fake://shared/item/2") != 1 ||
		listed.Count("resources/read")+template.Count("resources/read") != 2 {
		t.Errorf("got %q and %q", listed.Events(), template.Events())
	}
}

func TestUnknownResource(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-uri-prefix", "{anything}/"), deferred(t, "later", "Later"))
	for _, uri := range []string{"fake://nobody/text", "zzz/item/1", "fake://later/text"} {
		m := host.Call("resources/read", `{"uri":`+quote(uri)+`}`)
		if m.Code() != transports.CodeNotListed { // later may have it
			t.Errorf("got %s, want an error %d", m.Raw, transports.CodeNotListed)
		}
		contains(t, m.Text(), "Unknown resource: "+uri)
		contains(t, string(m.Data()), quote(uri))
	}
	if m := host.Call("resources/read", `{}`); m.Code() != -32602 {
		t.Errorf("got %s", m.Raw)
	}
}

func TestLoadedServerBringsItsResources(t *testing.T) {
	t.Parallel()
	later := deferred(t, "later", "Later")
	host := serve(t, later)
	load(host, "later")
	if got := host.Call("resources/read", `{"uri":"fake://later/text"}`); got.Error != nil {
		t.Error(got.Raw)
	}
	if got := names(host.Call("resources/list", nil).Member("resources"), "uri"); !slices.Equal(got, []string{"fake://later/text", "fake://later/blob"}) {
		t.Errorf("got %q", got)
	}
}

func TestSameURIOfTwoServersIsWarnedAbout(t *testing.T) {
	t.Parallel()
	first, second := fake(t, "first", "-resource", "fake://same"), fake(t, "second", "-resource", "fake://same", "-resource", "fake://other")
	host := serve(t, first, second)
	contains(t, host.WaitStderr("resource URI collision"), "fake://same", "second", "first", "level=WARN")
	if got := names(host.Call("resources/list", nil).Member("resources"), "uri"); !slices.Equal(got, []string{"dynmcp+first+fake://same", "dynmcp+second+fake://same", "fake://other"}) {
		t.Errorf("got %q", got)
	}
	if m := host.Call("resources/read", `{"uri":"fake://same"}`); m.Code() != transports.CodeAmbiguous {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, host.Call("resources/read", `{"uri":"dynmcp+second+fake://same"}`).Raw, `"uri":"dynmcp+second+fake://same"`, "contents of fake://same")
	if first.Count("resources/read") != 0 || second.Count("resources/read fake://same") != 1 {
		t.Errorf("got %q and %q", first.Events(), second.Events())
	}
}

func TestSubscriptionGoesToTheOwnerAndUpdatesComeBack(t *testing.T) {
	t.Parallel()
	alpha, beta := fake(t, "alpha"), fake(t, "beta")
	host := serve(t, alpha, beta)
	const uri = "fake://beta/text"
	if m := host.Call("resources/subscribe", `{"uri":"`+uri+`"}`); m.Error != nil || m.Result == nil {
		t.Errorf("got %s", m.Raw)
	}
	use(host, "beta/touch", `{"uri":"`+uri+`"}`)
	m := host.WaitMethod("notifications/resources/updated", 1)
	if string(m.Member("uri")) != `"`+uri+`"` {
		t.Errorf("got %s", m.Raw)
	}
	contains(t, m.Raw, grease)
	if m := host.Call("resources/unsubscribe", `{"uri":"`+uri+`"}`); m.Error != nil {
		t.Errorf("got %s", m.Raw)
	}
	if got := use(host, "beta/touch", `{"uri":"`+uri+`"}`).Text(); got != "told 0" {
		t.Errorf("after unsubscribe: %s", got)
	}
	if beta.Count("resources/subscribe "+uri) != 1 || beta.Count("resources/unsubscribe "+uri) != 1 || alpha.Count("resources/subscribe") != 0 {
		t.Errorf("got %q and %q", alpha.Events(), beta.Events())
	}
}

func TestOurFailureOnAResourceIsAJSONRPCError(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-fault", "crash-call", "-fault-on", "resources/read"))
	m := host.Call("resources/read", `{"uri":"fake://alpha/text"}`)
	if m.Code() == 0 || m.Code() >= -32768 && m.Code() <= -32000 {
		t.Errorf("got code %d in %s", m.Code(), m.Raw)
	}
	contains(t, string(m.Data()), `"outcome":"unknown"`, `"server":"alpha"`, "as asked")
}

func TestResourceChangesAreSeen(t *testing.T) {
	t.Parallel()
	alpha, beta := fake(t, "alpha"), fake(t, "beta")
	host := serve(t, alpha, beta)
	told := mark(t, host)
	lists := beta.Count("list")
	next := host.Count(resourcesChanged) + 1
	use(host, "alpha/add_resource", `{"name":"fake://alpha/new"}`)
	host.WaitMethod(resourcesChanged, next)
	contains(t, host.Call("resources/list", nil).Raw, "fake://alpha/new")
	contains(t, host.Call("resources/read", `{"uri":"fake://alpha/new"}`).Raw, "contents of fake://alpha/new")
	told(toolsChanged, 0)
	told(promptsChanged, 0)
	if got := beta.Count("list"); got != lists {
		t.Errorf("the other server was asked again: %q", beta.Events())
	}
}

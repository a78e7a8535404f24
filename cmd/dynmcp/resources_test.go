package main_test

import (
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/transports"
)

// Resources pass with their URIs as they are; those that two servers list have the server in them.

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

func TestOurFailureOnAResourceIsAJSONRPCError(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha", "-fault", "crash-call", "-fault-on", "resources/read"))
	m := host.Call("resources/read", `{"uri":"fake://alpha/text"}`)
	if m.Code() == 0 || m.Code() >= -32768 && m.Code() <= -32000 {
		t.Errorf("got code %d in %s", m.Code(), m.Raw)
	}
	contains(t, string(m.Data()), `"outcome":"unknown"`, `"server":"alpha"`, "as asked")
}

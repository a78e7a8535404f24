package aggregator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/taskowner"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A notification on a shared stream goes to every host if all are of one principal, otherwise
// to those with a call in flight there. An update goes to the hosts that subscribed to it.
func TestPrincipalsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	const (
		log     = `notifications/message {"data":1.0,"logger":"up"}`
		unknown = `notifications/x-unknown {}`
		updated = `notifications/resources/updated {"uri":"x://1"}`
	)
	for _, test := range []struct {
		name       string
		second     string // principal of the second session; the first is ann
		calling    bool   // the first has a call in flight
		subscribed bool   // the first has subscribed
		one, two   []string
	}{
		{"of one", "ann", false, false, []string{log, unknown}, []string{log, unknown}},
		{"of one that calls", "ann", true, true, []string{log, unknown, updated}, []string{log, unknown}},
		{"of two", "bob", false, false, nil, nil},
		{"of two of which one calls", "bob", true, false, []string{log, unknown}, nil},
		{"of two of which one has subscribed", "bob", false, true, []string{updated}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			agg := newQuiet(t, Options{})
			ann, one := join(agg, "ann")
			_, two := join(agg, test.second)
			_, three := join(agg, "ann")
			p := agg.fleet.Of(agg.set.Get("up"))
			if test.calling {
				p.Calls.Add(&callOf(&forward.Call{Env: &agg.calls, Server: p}, ann.Session, &host.Request{Method: "tools/call", Peer: one}).Flight)
			}
			if test.subscribed {
				ann.Recipient.SetSubscribed("x://1", true)
			}
			p.Notify("notifications/message", []byte(`{"data":1.0}`))
			p.Notify("notifications/x-unknown", []byte(`{}`))
			p.Notify("notifications/resources/updated", []byte(`{"uri":"x://1"}`))
			if got := one.take(); !slices.Equal(got, test.one) {
				t.Errorf("the first got %q, want %q", got, test.one)
			}
			if got := two.take(); !slices.Equal(got, test.two) {
				t.Errorf("the second got %q, want %q", got, test.two)
			}
			// Another session of ann gets the same, except for subscriptions.
			want := slices.DeleteFunc(slices.Clone(test.one), func(s string) bool { return test.subscribed && s == updated })
			if got := three.take(); !slices.Equal(got, want) {
				t.Errorf("the third got %q, want %q", got, want)
			}
		})
	}
}

// The status of a task of the handshake era goes to the sessions of the user whose call made
// it, and to no others with a call in flight there. That of a task of an earlier run goes to
// the user of stdio.
func TestTasksAreTheirUsers(t *testing.T) {
	t.Parallel()
	agg := newQuiet(t, Options{})
	p := agg.fleet.Of(agg.set.Get("up"))
	hosts := map[string]*listener{}
	for _, name := range []string{"", "ann", "bob"} {
		s, sees := join(agg, name)
		hosts[name] = sees
		p.Calls.Add(&callOf(&forward.Call{Env: &agg.calls, Server: p}, s.Session, &host.Request{Method: "tools/call", Peer: sees}).Flight)
		if name != "" {
			p.AddTask(s.Session, []byte(`"of-`+name+`"`), nil)
		}
	}
	for name, task := range map[string]string{"": "earlier", "ann": "of-ann", "bob": "of-bob"} {
		p.Notify("notifications/tasks/status", []byte(`{"taskId":"`+task+`"}`))
		for other, sees := range hosts {
			want := []string(nil)
			if other == name {
				want = []string{`notifications/tasks/status {"taskId":"up/` + task + `"}`}
			}
			if got := sees.take(); !slices.Equal(got, want) {
				t.Errorf("%q's task: %q got %q, want %q", name, other, got, want)
			}
		}
	}
	ann, _ := join(agg, "ann")
	again, _ := join(agg, "bob")
	p.AddTask(again.Session, []byte(`"of-ann"`), nil) // a restarted server uses ids again
	if ann.agg.fleet.HasTask(ann.Session, p.Upstream, "of-ann") || !again.agg.fleet.HasTask(again.Session, p.Upstream, "of-ann") {
		t.Error("the id is still another's")
	}
	for n := range taskowner.MaxOfUser {
		p.AddTask(ann.Session, fmt.Appendf(nil, "%q", fmt.Sprint(n)), nil)
	}
	p.AddTask(ann.Session, []byte(`"last"`), nil)
	if ann.agg.fleet.HasTask(ann.Session, p.Upstream, "0") || !ann.agg.fleet.HasTask(ann.Session, p.Upstream, "last") || !again.agg.fleet.HasTask(again.Session, p.Upstream, "of-bob") {
		t.Error("not the oldest of hers went")
	}
}

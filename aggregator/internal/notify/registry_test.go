package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

type everything struct{}

func (everything) Sees(string) bool { return true }

// join returns a session of a shared run that uses a server, "" for all.
func join(r *Registry[string], name, server string) *Recipient[string] {
	to := r.New(name)
	to.Initialize()
	to.Join(nil, Audience{Server: server, User: name, Shared: true})
	return to
}

func sourceOf(r *Registry[string]) Source[string] {
	return Source[string]{Registry: r, Server: "up", Sight: everything{}}
}

// Nothing that a session requested is left after its end.
func TestNothingIsLeftOfSessions(t *testing.T) {
	r := NewRegistry[string]()
	all := []*Recipient[string]{join(r, "a", ""), join(r, "b", "up"), join(r, "c", "other")}
	for _, to := range all {
		to.SetLevel(Level{json.RawMessage(`{"level":"error"}`), 4})
		for n := range 2 * maxElicitations {
			to.Elicited("up", fmt.Sprint(n))
		}
		to.SetSubscribed("x://1", true)
		stream := Stream{ID: json.RawMessage(`1`), URIs: map[string]bool{"x://1": true, "x://2": true}, Tasks: map[string]bool{"up/1": true}}
		to.AddStream(stream)
	}
	src := sourceOf(r)
	if got := src.Subscribers("x://1/part"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("subscribed are %q", got)
	}
	if got := src.Verbose(); got.Severity != 4 {
		t.Errorf("the most verbose level is %v", got)
	}
	for id, want := range map[string]int{"0": 0, fmt.Sprint(2*maxElicitations - 1): 3} {
		if got := src.Elicited(id); len(got) != want {
			t.Errorf("asked for %s are %q, want %d", id, got, want)
		}
	}
	for _, to := range all {
		to.Leave()
		to.Elicited("up", "late")
		to.End()
		to.RemoveStream(Stream{ID: json.RawMessage(`1`), URIs: map[string]bool{"x://1": true, "x://2": true}, Tasks: map[string]bool{"up/1": true}})
		to.SetLevel(Level{json.RawMessage(`{"level":"debug"}`), 0})
		to.SetSubscribed("x://3", true)
	}
	if len(r.groups)+len(r.users)+len(r.byID)+len(r.elicited) > 0 {
		t.Errorf("%d groups, %d users and %d sessions are left", len(r.groups), len(r.users), len(r.byID))
	}
}

// A notification does not touch other sessions, which are locked meanwhile.
func TestOthersAreNotTouched(t *testing.T) {
	r := NewRegistry[string]()
	for range 100 {
		other := join(r, "other", "")
		other.mu.Lock()
		defer other.mu.Unlock()
	}
	one := join(r, "one", "up")
	one.SetSubscribed("x://1", true)
	one.Elicited("up", "1")
	done := make(chan struct{})
	go func() {
		defer close(done)
		src := sourceOf(r)
		if got := src.Elicited("1"); !slices.Equal(got, []string{"one"}) {
			t.Errorf("asked were %q", got)
		}
		if got := src.Subscribers("x://1"); !slices.Equal(got, []string{"one"}) {
			t.Errorf("subscribed are %q", got)
		}
		if got := src.Unsolicited([]*Recipient[string]{one}, false); !slices.Equal(got, []string{"one"}) {
			t.Errorf("calling are %q", got)
		}
		src.Verbose()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("it waits for a session that does not hear it")
	}
}

// BenchmarkLogMessage finds the recipients of a log message, the calling sessions, among many
// sessions.
func BenchmarkLogMessage(b *testing.B) {
	amongMany(b, func(src Source[string], some []*Recipient[string]) int {
		src.Verbose()
		src.Replicas()
		return len(src.Unsolicited(some, false))
	})
}

// BenchmarkUpdate finds the recipients of an update, the subscribed sessions, among many
// sessions.
func BenchmarkUpdate(b *testing.B) {
	amongMany(b, func(src Source[string], _ []*Recipient[string]) int { return len(src.Subscribers("x://1")) })
}

// amongMany runs find with many sessions, some of which are subscribed to x://1.
func amongMany(b *testing.B, find func(src Source[string], some []*Recipient[string]) int) {
	for _, sessions := range []int{1_000, 10_000} {
		for _, some := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("sessions=%d/for=%d", sessions, some), func(b *testing.B) {
				r := NewRegistry[string]()
				var all []*Recipient[string]
				for i := range sessions {
					to := join(r, fmt.Sprint(i), "")
					to.SetSubscribed(fmt.Sprintf("x://%d", 1+i/some), true)
					all = append(all, to)
				}
				src := sourceOf(r)
				for b.Loop() {
					if got := find(src, all[:some]); got != some {
						b.Fatalf("it is for %d sessions, want %d", got, some)
					}
				}
			})
		}
	}
}

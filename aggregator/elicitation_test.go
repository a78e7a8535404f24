package aggregator

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// The completion of an elicitation by URL goes to the session that was asked, by a request
// or an error. The completion of an unknown one goes to sessions with a call in flight there.
func TestCompletionIsForWhoWasAsked(t *testing.T) {
	t.Parallel()
	agg := newQuiet(t, Options{})
	p, _, calls := calling(agg)
	var sessions []session
	var hosts []*listener
	for range 3 {
		s, sees := enter(agg, "ann", "")
		s.declare(json.RawMessage(`{"elicitation":{"url":{}}}`), transports.Handshake)
		sessions, hosts = append(sessions, s), append(hosts, sees)
	}
	for n, s := range sessions {
		p.RequestHost(t.Context(), s.Session, hosts[n], "elicitation/create", fmt.Appendf(nil, `{"mode":"url","elicitationId":"of-%d"}`, n))
		p.NoteURLElicitations(s.Session, &wire.Error{Code: fleet.CodeURLElicitation, Data: fmt.Appendf(nil, `{"elicitations":[{"elicitationId":"too-%d"}]}`, n)})
		hosts[n].take()
	}
	sessions[2].end()
	complete := func(id string) string {
		return `notifications/elicitation/complete {"elicitationId":"` + id + `"}`
	}
	for _, id := range []string{"of-0", "of-1", "too-1", "of-2", "other"} {
		p.Notify("notifications/elicitation/complete", []byte(`{"elicitationId":"`+id+`"}`))
	}
	for n, want := range [][]string{{complete("of-0")}, {complete("of-1"), complete("too-1")}, nil} {
		if got := hosts[n].take(); !slices.Equal(got, want) {
			t.Errorf("%d got %q, want %q", n, got, want)
		}
	}
	if got, want := calls.take(), []string{complete("of-2"), complete("other")}; !slices.Equal(got, want) {
		t.Errorf("the caller got %q, want %q", got, want)
	}
	for _, c := range p.Calls.All() {
		p.Calls.Remove(c)
	}
	p.Notify("notifications/elicitation/complete", []byte(`{"elicitationId":"other"}`))
	for n, sees := range append(hosts, calls) {
		if got := sees.take(); len(got) > 0 {
			t.Errorf("%d got %q without a call", n, got)
		}
	}
}

// completion returns a function that notifies one host of the end of its elicitation. The
// other hosts have elicitations of their own.
func completion(tb testing.TB, others int) func() {
	agg := newQuiet(tb, Options{})
	p, _, _ := calling(agg)
	for n := range others + 1 {
		s, _ := enter(agg, "ann", "")
		s.declare(json.RawMessage(`{"elicitation":{"url":{}}}`), transports.Handshake)
		p.NoteURLElicitations(s.Session, &wire.Error{Code: fleet.CodeURLElicitation, Data: fmt.Appendf(nil, `{"elicitations":[{"elicitationId":"of-%d"}]}`, n)})
	}
	params := json.RawMessage(`{"elicitationId":"of-0"}`)
	return func() { p.Notify("notifications/elicitation/complete", params) }
}

// The cost of a completion does not grow with the number of other sessions.
func TestCompletionCostsTheSameBesideManySessions(t *testing.T) {
	few, many := testing.AllocsPerRun(100, completion(t, 2)), testing.AllocsPerRun(100, completion(t, 2000))
	if many > few+1 {
		t.Errorf("%v allocations beside 2 sessions, %v beside 2,000", few, many)
	}
}

func BenchmarkCompletion(b *testing.B) {
	for _, others := range []int{2, 2000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			complete := completion(b, others)
			for b.Loop() {
				complete()
			}
		})
	}
}

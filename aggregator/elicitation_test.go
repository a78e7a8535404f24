package aggregator

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// The completion of an elicitation by URL goes to the session that was asked, by a request
// or an error. One that nobody was asked for goes to sessions with a call in flight there.
func TestCompletionIsForWhoWasAsked(t *testing.T) {
	agg := newQuiet(t, Options{})
	p, _, calls := calling(agg)
	var sessions []*session
	var hosts []*listener
	for range 3 {
		s, sees := enter(agg, principal{"ann"}, "")
		s.declare(json.RawMessage(`{"elicitation":{"url":{}}}`), transports.Handshake)
		sessions, hosts = append(sessions, s), append(hosts, sees)
	}
	for n, s := range sessions {
		p.requestHost(t.Context(), s, hosts[n], "elicitation/create", fmt.Appendf(nil, `{"mode":"url","elicitationId":"of-%d"}`, n))
		p.noteURLsFirst(s, &wire.Error{Code: codeURLFirst, Data: fmt.Appendf(nil, `{"elicitations":[{"elicitationId":"too-%d"}]}`, n)})
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
	for _, c := range p.calls.all() {
		p.calls.remove(c)
	}
	p.Notify("notifications/elicitation/complete", []byte(`{"elicitationId":"other"}`))
	for n, sees := range append(hosts, calls) {
		if got := sees.take(); len(got) > 0 {
			t.Errorf("%d got %q without a call", n, got)
		}
	}
}

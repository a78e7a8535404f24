package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/transports"
)

// The body of a request that is passed on keeps its two ends, and no more, in whatever pieces
// it comes. Its end is told while the request goes on.
func TestAPassedBodyKeepsItsEnds(t *testing.T) {
	var text strings.Builder
	for n := 0; text.Len() < 10*keptOfBody; n++ {
		fmt.Fprintf(&text, "%d,", n)
	}
	for _, piece := range []int{1, 1000, keptOfBody - 1, keptOfBody, keptOfBody + 1, 3 * keptOfBody, text.Len()} {
		for _, over := range []bool{false, true} {
			whole := 0
			b := &passedBody{ReadCloser: io.NopCloser(strings.NewReader(text.String())), whole: func() { whole++ }}
			for p := make([]byte, piece); ; {
				if over {
					b.end()
				}
				if _, err := b.Read(p); err != nil {
					break
				}
				if whole > 0 {
					t.Error("its end was told before")
				}
			}
			if string(b.head) != text.String()[:keptOfBody] || string(b.tail) != text.String()[text.Len()-keptOfBody:] {
				t.Errorf("in pieces of %d: %d and %d bytes are kept", piece, len(b.head), len(b.tail))
			}
			if (whole == 1) == over {
				t.Errorf("the request is over: %t, the end was told %d times", over, whole)
			}
		}
	}
}

// A large request of which a part was sent to a replica that does not take it is not served
// here: the rest of it would be.
func TestALargeRequestThatWasBegunIsNotServed(t *testing.T) {
	keys := seal.Random()
	gone := roundTrip(func(r *http.Request) (*http.Response, error) {
		if _, err := io.ReadFull(r.Body, make([]byte, 100)); err != nil {
			t.Error(err)
		}
		return nil, &transports.Failure{Outcome: transports.NotSent, Cause: io.ErrUnexpectedEOF}
	})
	tg := newTestGateway(t, Options{MaxRequestBytes: 4 * heldBody, Replicas: &Replicas{
		ID: "a", Keys: keys, Degraded: func() bool { return false },
		Pass: func(string, string) (http.RoundTripper, bool) { return gone, true },
	}}, nil)
	of := keys.SealText(purposeSession, append(make([]byte, sessionRandom), "gone"...))
	body := call(7, strings.Repeat("x", 2*heldBody))
	if a := tg.do("POST", "/mcp", body, "Mcp-Session-Id", of); a.status != 200 || !strings.Contains(a.body, `"id":7,"error"`) || !strings.Contains(a.body, "the replica that had the request") {
		t.Errorf("got %d %.300s", a.status, a.body)
	}
}

// A request that continues a call goes to the replica that has it, and no further: also where
// the two do not agree whose it is.
func TestAContinuedCallGoesToItsReplica(t *testing.T) {
	rs := newTestReplicas(t)
	a, b := rs.add("a", nil), rs.add("b", nil)
	owned := errors.New("asked")
	of := func(owner string, asked chan<- error) func(string) (string, bool) {
		return func(state string) (string, bool) {
			asked <- owned
			return owner, state == "ours"
		}
	}
	askedA, askedB := make(chan error, 9), make(chan error, 9)
	a.g.redirect.OwnerOf, b.g.redirect.OwnerOf = of("b", askedA), of("a", askedB)
	for state, there := range map[string]int64{"ours": 1, "others'": 0} {
		before := [2]int64{a.opened.Load(), b.opened.Load()}
		body, headers := modern(1, "tools/call", `"name":"x","requestState":"`+state+`",`)
		headers[5] = "x"
		if got := a.do("POST", "/mcp", body, headers...); got.status != 200 || !strings.Contains(got.body, `"id":1,"result"`) {
			t.Errorf("%s: got %+v", state, got)
		}
		if here, got := a.opened.Load()-before[0], b.opened.Load()-before[1]; got != there || here != 1-there {
			t.Errorf("%s: %d were served there, %d here", state, got, here)
		}
	}
	if len(askedA) != 2 || len(askedB) != 0 {
		t.Errorf("asked %d and %d times whose a state is", len(askedA), len(askedB))
	}
}

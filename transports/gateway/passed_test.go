package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/transports"
)

// The body of a request that is passed on keeps its two ends, and no more, in whatever pieces
// it comes. Its end is told while the request goes on.
func TestAPassedBodyKeepsItsEnds(t *testing.T) {
	var text strings.Builder
	for n := 0; text.Len() < 10*excerptBytes; n++ {
		fmt.Fprintf(&text, "%d,", n)
	}
	for _, piece := range []int{1, 1000, excerptBytes - 1, excerptBytes, excerptBytes + 1, 3 * excerptBytes, text.Len()} {
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
				if whole > 0 || len(b.head) > excerptBytes || len(b.tail) > excerptBytes {
					t.Fatalf("in pieces of %d: %d and %d bytes are kept, its end was told %d times", piece, len(b.head), len(b.tail), whole)
				}
			}
			if string(b.head) != text.String()[:excerptBytes] || string(b.tail) != text.String()[text.Len()-excerptBytes:] {
				t.Errorf("in pieces of %d: %d and %d bytes are kept", piece, len(b.head), len(b.tail))
			}
			if (whole == 1) == over {
				t.Errorf("the request is over: %t, the end was told %d times", over, whole)
			}
		}
	}
}

// A large request that was sent to a replica which does not take it is not served here: it is
// gone.
func TestALargeRequestThatWasSentIsNotServed(t *testing.T) {
	keys := seal.Random()
	gone := roundTrip(func(r *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
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
	tg := newTestGateway(t, Options{Replicas: &Replicas{
		ID: "a", Keys: seal.Random(), Degraded: func() bool { return false },
		OwnerOf: func(state string) (string, bool) { return "b", state == "of b" },
		Pass: func(id, _ string) (http.RoundTripper, bool) {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{"Served-By": {id}}, Body: r.Body, Request: r}, nil
			}), true
		},
	}}, nil)
	for state, replica := range map[string]string{"of b": "b", "of others": ""} {
		body, headers := modern(1, "tools/call", `"name":"x","requestState":"`+state+`",`)
		if a := tg.do("POST", "/mcp", body, headers...); a.header.Get("Served-By") != replica || (a.body == body) != (replica != "") {
			t.Errorf("%s: got %+v, want it of replica %q", state, a, replica)
		}
		w := httptest.NewRecorder()
		tg.g.ServePassed(w, tg.request(t.Context(), "POST", "/mcp", body, headers...), anybody)
		if w.Header().Get("Served-By") != "" || !strings.Contains(w.Body.String(), `"id":1,"result"`) {
			t.Errorf("%s, passed on: got %s", state, w.Body)
		}
	}
}

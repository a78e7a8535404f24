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

// A passedBody keeps the beginning and the end of the body and no more, whatever the sizes of
// the reads. It calls whole at the end, unless the request is over.
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
					t.Fatalf("in pieces of %d: %d and %d bytes are kept, whole was called %d times", piece, len(b.head), len(b.tail), whole)
				}
			}
			if string(b.head) != text.String()[:excerptBytes] || string(b.tail) != text.String()[text.Len()-excerptBytes:] {
				t.Errorf("in pieces of %d: %d and %d bytes are kept", piece, len(b.head), len(b.tail))
			}
			if (whole == 1) == over {
				t.Errorf("the request is over: %t, whole was called %d times", over, whole)
			}
		}
	}
}

// A large request that a replica does not take cannot be served here, because its body is gone.
func TestALargeRequestThatWasSentIsNotServed(t *testing.T) {
	keys := seal.Random()
	gone := roundTrip(func(r *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		return nil, &transports.Failure{Outcome: transports.NotSent, Cause: io.ErrUnexpectedEOF}
	})
	tg := newTestGateway(t, GatewayOptions{MaxRequestBytes: 4 * heldBody, Replicas: &Replicas{
		ID: "a", Keys: keys, Degraded: func() bool { return false },
		Pass: func(string, string) (http.RoundTripper, bool) { return gone, true },
	}}, nil)
	of := keys.SealText(purposeSession, append(make([]byte, sessionRandom), "gone"...))
	body := call(7, strings.Repeat("x", 2*heldBody))
	if a := tg.do("POST", "/mcp", body, "Mcp-Session-Id", of); a.status != 200 || !strings.Contains(a.body, `"id":7,"error"`) || !strings.Contains(a.body, "the replica that had the request") {
		t.Errorf("got %d %.300s", a.status, a.body)
	}
}

// A request that continues a call is passed to the replica that has the call. That replica
// does not pass it on again, even if it names another replica.
func TestAContinuedCallGoesToItsReplica(t *testing.T) {
	tg := newTestGateway(t, GatewayOptions{Replicas: &Replicas{
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
			t.Errorf("%s: got %+v, want it from replica %q", state, a, replica)
		}
		w := httptest.NewRecorder()
		tg.g.ServePassed(w, tg.request(t.Context(), "POST", "/mcp", body, headers...), anybody)
		if w.Header().Get("Served-By") != "" || !strings.Contains(w.Body.String(), `"id":1,"result"`) {
			t.Errorf("%s, passed on: got %s", state, w.Body)
		}
	}
}

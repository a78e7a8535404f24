package ask

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A state can be opened only with the key that sealed it, and unchanged.
func TestStatesAreSealed(t *testing.T) {
	keys := seal.Random()
	ours, other := &States{Keys: keys, Replica: "a"}, &States{Keys: seal.Random()}
	want := State{Owner: "a", Call: "c", Principal: "p", Upstream: "u", Request: Digest("m", []byte(`{"n":1}`)), State: []byte(`"\u00e9"`)}
	text := ours.Seal(want)
	got, ok := ours.Open(text)
	want.Expires = got.Expires
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, ok)
	}
	if again := ours.Seal(want); again == text {
		t.Error("two states are the same text")
	}
	if _, ok := other.Open(text); ok {
		t.Error("another key opens it")
	}
	for i := range len(text) {
		changed := []byte(text)
		changed[i] ^= 1
		if _, ok := ours.Open(string(changed)); ok {
			t.Errorf("changed at %d it is opened", i)
		}
		if _, ok := ours.Open(text[:i]); ok {
			t.Errorf("cut at %d it is opened", i)
		}
	}
	replica := &States{Keys: keys, Replica: "b"}
	if owner, ok := replica.OwnerOf(text); owner != "a" || !ok {
		t.Errorf("another replica reads that it is of %q, %v", owner, ok)
	}
	bare := strings.TrimPrefix(text, statePrefix)
	for _, text := range []string{bare, statePrefix, offerPrefix + "x.e30", offerPrefix + "x.e30." + bare[1:], "its own"} {
		if owner, ok := replica.OwnerOf(text); ok {
			t.Errorf("%q is of %q", text, owner)
		}
	}
	asked := (&Offers{States: replica}).Result(&Offer{id: "x"}, nil)
	state, _ := wire.Text(wire.Get(asked, "requestState"))
	if owner, ok := ours.OwnerOf(state); owner != "b" || !ok {
		t.Errorf("the offer of a login is of %q, %v", owner, ok)
	}
}

// The state of an upstream is valid once, and for ten minutes.
func TestAStateIsGoodForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		states := &States{Keys: seal.Random()}
		issue := func() State {
			t.Helper()
			text, _ := wire.Text(wire.Get(states.SealRequestState([]byte(`{"requestState":"its own"}`), State{Principal: "ann", Upstream: "up"}), "requestState"))
			state, ours := states.Open(text)
			if !ours {
				t.Fatalf("got %s", text)
			}
			return state
		}
		used, unused := issue(), issue()
		time.Sleep(10*time.Minute - time.Second)
		if time.Now().Unix() > used.Expires || !states.Take(used) {
			t.Error("it is not good for ten minutes")
		}
		if states.Take(used) {
			t.Error("it is good twice")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if time.Now().Unix() <= unused.Expires || states.Take(unused) {
			t.Error("it is good for more than ten minutes")
		}
	})
}

// A digest depends on the content of a request, not on how it is written.
func TestDigest(t *testing.T) {
	const params = `{"name":"x","arguments":{"a":1.0,"b":[9007199254740993]}}`
	same := []string{
		`{ "arguments":{"b":[9007199254740993],"a":1.0}, "name":"x" }`,
		`{"name":"x","arguments":{"a":1.0,"b":[9007199254740993]},"_meta":{"x":1},"inputResponses":{},"requestState":"s"}`,
	}
	for _, other := range same {
		if Digest("m", []byte(other)) != Digest("m", []byte(params)) {
			t.Errorf("%s is another request", other)
		}
	}
	for _, other := range []string{`{}`, ``, `[1]`, strings.Replace(params, "993", "992", 1), strings.Replace(params, "1.0", "1", 1), strings.Replace(params, `"x"`, `"y"`, 1)} {
		if Digest("m", []byte(other)) == Digest("m", []byte(params)) {
			t.Errorf("%s is the same request", other)
		}
	}
	if Digest("m", []byte(params)) == Digest("n", []byte(params)) {
		t.Error("the method makes no difference")
	}
}

// Params of the stateless era lose the members of that era for an upstream of the handshake
// era. A requestState is refused. Names in other cases belong to the method.
func TestParamsForTheHandshakeEra(t *testing.T) {
	for text, want := range map[string]string{
		`{"ref":1,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","a":1}}`: `{"ref":1,"_meta":{"a":1}}`,
		`{"ref":1,"task":{},"inputResponses":{}}`:                                          `{"ref":1}`,
		`{"ref":1,"RequestState":"x","InputResponses":{}}`:                                 `{"ref":1,"RequestState":"x","InputResponses":{}}`,
		`{"ref":1,"requestState":"x"}`:                                                     "",
	} {
		got, err := HandshakeParams(wire.Object{Text: []byte(text)})
		if (err != nil) != (want == "") || err == nil && string(got.Text) != want {
			t.Errorf("%s: got %s (%v), want %q", text, got.Text, err, want)
		}
	}
}

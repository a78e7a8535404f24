package ask

import (
	"encoding/json"
	"fmt"
	"testing"
)

type waitingTest struct{ name string }

func (*waitingTest) Abandon(json.RawMessage) {}

// Unanswered calls of one holder do not displace those of others.
func TestWaitingCallsHaveAShare(t *testing.T) {
	var w Waiting[*waitingTest]
	up := new(int)
	for range 10 {
		w.Add(&waitingTest{"bob"}, up, "bob", nil)
	}
	for n := range 2 * maxWaiting {
		spare, want := (*waitingTest)(nil), fmt.Sprint("ann ", n+10-maxWaiting)
		_, spare, full := w.Add(&waitingTest{fmt.Sprint("ann ", n)}, up, "ann", nil)
		if full != (n >= maxWaiting-10) || full && spare.name != want {
			t.Fatalf("ann's call %d: %v is given up, want %s", n, spare, want)
		}
	}
	for range maxWaiting/2 - 10 { // as many as ann has then
		if _, spare, full := w.Add(&waitingTest{"bob"}, up, "bob", nil); !full || spare.name == "bob" {
			t.Fatalf("bob's call: %v is given up, want one of ann's", spare)
		}
	}
	if _, spare, full := w.Add(&waitingTest{"bob"}, up, "bob", nil); !full || spare.name != "bob" {
		t.Errorf("%v is given up, want bob's own", spare)
	}
	if _, _, full := w.Add(&waitingTest{"carol"}, new(int), "ann", nil); full {
		t.Error("a call of another upstream has no place")
	}
}

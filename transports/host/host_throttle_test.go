package host

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// The answers to the messages of one read are limited if the host does not read.
func TestHostThatDoesNotReadAsksForMuchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := 0
		host := newPipedHost(t.Context(), t, SessionOptions{HandleRequest: func(r *Request) {
			taken++
			r.Reply(json.RawMessage(`"`+strings.Repeat("x", 1<<20)+`"`), nil)
		}})
		_, _ = io.WriteString(host.stdin, initialize("2025-11-25")+"\n")
		if _, err := io.ReadFull(host.stdout, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		var calls strings.Builder
		for n := range 100 {
			fmt.Fprintf(&calls, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`+"\n", n)
		}
		_, _ = io.WriteString(host.stdin, calls.String())
		synctest.Wait()
		if most := stdioMaxUnread>>20 + 8; taken > most {
			t.Errorf("%d requests were answered with a MiB each, want at most %d", taken, most)
		}
		host.stdout.Close()
		<-host.served
	})
}

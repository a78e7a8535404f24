package host

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A host that does not read has few updates of a resource waiting, and when it reads again
// gets the last one. Of resources that a server makes up only so many wait.
func TestOneUpdateOfAResourceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, stdin := io.Pipe()
		stdout, out := io.Pipe()
		dropped := 0
		stdio := NewStdio(in, out, nil)
		host := NewSession("h1", stdio, Options{Control: newControl(), HandleNotification: func(string, json.RawMessage) {}, Dropped: func() { dropped++ }})
		served := make(chan error, 1)
		go func() { served <- stdio.Serve(t.Context(), host) }()
		lines := bufio.NewReader(stdout)
		_, _ = io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		padding := strings.Repeat("x", 1000)
		update := func(uri string, n int) {
			host.Notify("notifications/resources/updated", fmt.Appendf(nil, `{"uri":%q,"n":%d,"_meta":{"x":%q}}`, uri, n, padding))
		}
		for n := range 400 {
			update("x://a", n)
			time.Sleep(mergeFor)
		}
		if got := stdio.out.Waiting(); got > 2*MaxLatest {
			t.Errorf("%d bytes wait", got)
		}
		heard, last := 0, ""
		reading := make(chan struct{})
		go func() {
			defer close(reading)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				heard, last = heard+1, line
			}
		}()
		time.Sleep(2 * mergePause)
		synctest.Wait()
		if heard > 100 || !strings.Contains(last, `"n":399,`) {
			t.Errorf("%d updates were heard, the last one %.80s", heard, last)
		}
		heard = 0
		for n := range 20_000 {
			update(fmt.Sprintf("x://a/%d", n), n)
		}
		stdin.Close()
		<-served
		stdout.Close()
		out.Close()
		<-reading
		if heard == 0 || heard > maxAtOnce+maxMerged || heard+dropped != 20_000 {
			t.Errorf("%d updates were heard and %d dropped", heard, dropped)
		}
		in.Close()
	})
}

package upstream

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// The progress of a call that was answered with a task is forwarded after the answer, under the
// host's token. The progress of a call in flight goes to that call.
func TestProgressOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := make(chan string, 2)
		c, p := inMemory(t, schema.Server{}, ConnOptions{}, func(p *puppet, m wire.Message) { ids <- string(m.ID) })
		peer := &recorder{}
		var ofTask []string
		answered := make(chan struct{})
		begin := func(done func(call *Call)) (id string) {
			call := &Call{Method: "tools/call", Params: []byte(`{"_meta":{"progressToken":"host"}}`), Peer: peer}
			call.Done = func(json.RawMessage, error) { done(call) }
			c.Start(call)
			return <-ids
		}
		progress := func(id string) {
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + id + `,"progress":1}}`)
			synctest.Wait()
		}
		task := begin(func(call *Call) {
			c.ForwardTaskProgress(call, func(params json.RawMessage) { ofTask = append(ofTask, string(params)) })
			close(answered)
		})
		running := begin(func(*Call) {})
		progress(running)
		p.say(`{"jsonrpc":"2.0","id":` + task + `,"result":{}}`)
		<-answered
		if progress("99"); len(ofTask) != 0 {
			t.Errorf("progress of another call: got %q", ofTask)
		}
		progress(task)
		const want = `{"progressToken":"host","progress":1}`
		if got := strings.Join(ofTask, ","); got != want {
			t.Errorf("progress of the task: got %s, want %s", got, want)
		}
		if got := strings.Join(peer.all(), ","); got != "notifications/progress "+want {
			t.Errorf("progress of the call: got %s", got)
		}
	})
}

//go:build e2e

package replica

import (
	"bufio"
	"fmt"
	"io"
	"testing"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
)

// The reported load includes servers that other replicas use here, but not the sessions of those
// replicas.
func TestLoadCountsHosts(t *testing.T) {
	t.Parallel()
	file := mcptest.Config(t, fmt.Sprintf(`{"mcp":{"up":{"command":%q,"description":"A fake."}}}`, mcptest.Fake(t)))
	cfg, err := schema.ReadFiles(t.Context(), []string{file}, schema.LoadOptions{}).Load()
	if err != nil {
		t.Fatal(err)
	}
	agg, err := aggregator.New(cfg, aggregator.Options{Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer agg.Close()
	agg.StartShared()
	c := &Replica{}
	c.agg.Store(agg)

	ours, theirs := mcptest.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = agg.ServeReplica(t.Context(), theirs, "up", "", aggregator.Placement{})
	}()
	defer func() {
		ours.Close()
		<-served
	}()
	if _, err := io.WriteString(ours, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := bufio.NewReader(ours).ReadString('\n'); err != nil {
		t.Fatalf("got %q, %v", answer, err)
	}
	if sessions, load := len(agg.Status().Sessions()), c.load(); sessions != 1 || load.Sessions != 0 || load.Servers != 1 {
		t.Errorf("%d sessions, and the others are told of %+v", sessions, load)
	}
}

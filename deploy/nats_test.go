package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// startNATS starts the three nodes of the compose file, with its config and secrets, in this process
// and on free ports. It returns their addresses.
func startNATS(t *testing.T, dir string) (urls []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	routes := `["tls://127.0.0.1:1"]` // no node; later the first one, to which the others connect
	for i := range 3 {
		data := t.TempDir()
		changed := text
		for _, c := range [][2]string{
			{"$NATS_NAME", fmt.Sprintf("nats-%d", i+1)},
			{"port: 4222", `host: "127.0.0.1", port: -1`},
			{"port: 6222", `host: "127.0.0.1", port: -1`},
			{"http: \"127.0.0.1:8222\"", "# no http"},
			{"store_dir: /data", fmt.Sprintf("store_dir: %q", data)},
			{`["tls://nats-1:6222", "tls://nats-2:6222", "tls://nats-3:6222"]`, routes},
			{"include /run/secrets/", "include ./secrets/"},
			{"/run/secrets/", filepath.Join(dir, "secrets") + "/"},
		} {
			if !bytes.Contains(changed, []byte(c[0])) {
				t.Fatalf("nats.conf has no %s", c[0])
			}
			changed = bytes.ReplaceAll(changed, []byte(c[0]), []byte(c[1]))
		}
		path := filepath.Join(dir, fmt.Sprintf("nats-%d.conf", i+1)) // it includes the directory secrets beside it
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		options, err := server.ProcessConfigFile(path)
		if err != nil {
			t.Fatal(err)
		}
		options.NoSigs = true
		node, err := server.NewServer(options)
		if err != nil {
			t.Fatal(err)
		}
		node.Start()
		t.Cleanup(func() {
			node.Shutdown()
			node.WaitForShutdown()
		})
		if !node.ReadyForConnections(time.Minute) {
			t.Fatal("a node of NATS does not start")
		}
		urls = append(urls, strings.Replace(node.ClientURL(), "nats://", "tls://", 1))
		if i == 0 {
			routes = fmt.Sprintf(`["tls://%s"]`, node.ClusterAddr())
		}
	}
	return urls
}

// Nodes and clients connect with the generated secrets, and not without them.
func TestNodesOfNATS(t *testing.T) {
	dir := filepath.Join(example(t), "compose")
	urls := startNATS(t, dir)
	secret := func(name string) string { return filepath.Join(dir, "secrets", name) }
	if conn, err := nats.Connect(urls[0], nats.RootCAs(secret("ca.crt"))); err == nil {
		conn.Close()
		t.Error("a client without credentials was accepted")
	}
	if conn, err := nats.Connect(urls[0], nats.UserCredentials(secret("nats.creds"))); err == nil {
		conn.Close()
		t.Error("the nodes' certificate is trusted without their authority")
	}
	conn, err := nats.Connect(strings.Join(urls, ","), nats.Timeout(time.Minute), nats.RootCAs(secret("ca.crt")), nats.UserCredentials(secret("nats.creds")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for ctx.Err() == nil { // the nodes find each other, and elect a leader
		try, done := context.WithTimeout(ctx, 5*time.Second)
		_, err = js.CreateKeyValue(try, jetstream.KeyValueConfig{Bucket: "test", Replicas: 3})
		if done(); err == nil {
			return
		}
	}
	t.Error(errors.Join(err, ctx.Err()))
}

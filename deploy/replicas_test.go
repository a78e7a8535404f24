package deploy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
)

// The replicas of the compose file find each other through its NATS, with its command lines, config
// and secrets, and a session works at all of them. They run as processes without containers, on ports
// of this machine.
func TestReplicasOfCompose(t *testing.T) {
	dir := filepath.Join(example(t), "compose")
	urls := startNATS(t, dir)
	options, err := cli.NewProjectOptions([]string{filepath.Join(dir, "compose.yaml")}, cli.WithName("dynmcp"), cli.WithEnv([]string{"DYNMCP_GROUP=1000"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "secrets/dynmcp.env"), filepath.Join(dir, ".env")); err != nil { // where it is mounted
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, ".env"))
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(strings.TrimSpace(string(text)), "=")

	var replicas []string
	for _, name := range []string{"replica-1", "replica-2", "replica-3"} {
		var words []string
		for _, word := range project.Services[name].Command {
			flag, value, _ := strings.Cut(word, "=")
			switch flag {
			case "--config":
				value = filepath.Join(dir, "mcp.json")
			case "--http":
				value = "127.0.0.1:0"
			case "--cluster":
				value = strings.Join(urls, ",")
			case "--cluster-ca", "--cluster-creds", "--cluster-key":
				value = filepath.Join(dir, "secrets", filepath.Base(value))
			case "--peer-addr", "--peer-advertise":
				continue // a free port
			case "--replica":
			default:
				words = append(words, word)
				continue
			}
			words = append(words, flag+"="+value)
		}
		replicas = append(replicas, serve(t, words))
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		var shown struct{ Replicas []struct{ Name string } }
		show := exec.CommandContext(ctx, dynmcp, "cluster", "--json", "--cluster", strings.Join(urls, ","),
			"--cluster-ca", filepath.Join(dir, "secrets/ca.crt"), "--cluster-creds", filepath.Join(dir, "secrets/nats.creds"), "--cluster-key", filepath.Join(dir, "secrets/cluster.key"))
		out, err := show.Output() // a degraded cluster is an exit status, with output
		if json.Unmarshal(out, &shown) == nil && len(shown.Replicas) == 3 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the replicas do not find each other: %v: %s", err, out)
		}
	}

	session := ""
	post := func(url, body string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode/100 != 2 {
			t.Fatalf("%s of %s: %v %s", body, url, err, answer)
		}
		return resp
	}
	began := post(replicas[0], `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	session = began.Header.Get("Mcp-Session-Id")
	for _, url := range replicas { // the first has the session, the others ask it
		post(url, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	}
	for _, url := range replicas {
		resp, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/health") // like the balancer
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("%s is not healthy: %s", url, resp.Status)
		}
	}
}

// serve starts a replica and returns its URL for hosts.
func serve(t *testing.T, words []string) (url string) {
	t.Helper()
	cmd := exec.Command(dynmcp, words...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(said)
	var log bytes.Buffer
	read := make(chan struct{}) // closed at the end of its output
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-read
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("%s: %v\n%s", words, err, &log)
		}
	})
	for {
		line, err := lines.ReadString('\n')
		log.WriteString(line)
		if err != nil {
			close(read)
			t.Fatalf("it does not serve: %s", &log)
		}
		if _, rest, ok := strings.Cut(line, `msg="serving HTTP" url=`); ok {
			url = strings.TrimSpace(rest)
			break
		}
	}
	go func() {
		defer close(read)
		_, _ = io.Copy(&log, lines)
	}()
	return url
}

package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// hook returns the address of a web server, and what it is told. It refuses what is not signed with
// the key "key".
func hook(t *testing.T) (address string, told <-chan string) {
	messages := make(chan string, 100)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mac := hmac.New(sha256.New, []byte("key"))
		mac.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "."))
		mac.Write(body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("webhook-signature") != want {
			http.Error(w, "the signature is wrong", http.StatusUnauthorized)
			return
		}
		messages <- string(body)
	}))
	t.Cleanup(web.Close)
	return web.URL + "/T0", messages
}

// Hosts' calls that fail or are denied, and changed tools, are told to the addresses of the config.
// What waits is sent before the run ends.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	address, told := hook(t)
	files, notes := updatable(t, "files"), fake(t, "notes")
	files.offer(pathTool)
	dir := filepath.Join(t.TempDir(), "catalog")
	m := remembered{t, mcptest.Config(t, document([]entry{files.entry, notes},
		`"catalog": {"dir": `+quote(dir)+`, "on_change": "ignore"}`,
		`"policy": [{"match": "notes/echo", "do": "deny"}, {"do": "allow"}]`,
		`"webhooks": [{"url": `+quote(address)+`, "secret": "key"}]`)), dir}
	m.verb("warm")
	files.offer(filesTool)
	host := m.run()
	greet(host)
	next := func(want map[string]any) {
		t.Helper()
		var text string
		select {
		case text = <-told:
		case <-time.After(time.Minute):
			t.Fatal("nothing is told")
		}
		var m struct {
			Type string
			Data map[string]any
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		m.Data["type"] = m.Type
		for key, value := range want {
			if got, wanted := quoted(t, m.Data[key]), quoted(t, value); got != wanted {
				t.Errorf("%s of %s: got %s, want %s", key, text, got, wanted)
			}
		}
	}
	use(host, "files/read", map[string]any{"paths": []string{"/private"}})
	next(map[string]any{"type": "tools.changed", "server": "files", "changed": []string{"read"}, "added": nil})
	use(host, "notes/echo", map[string]any{})
	next(map[string]any{"type": "call.denied", "server": "notes", "tool": "echo", "rule": 1, "outcome": "not_sent"})
	use(host, "notes/fail", map[string]any{})
	end(t, host) // no call is told twice, and the last one is not lost
	next(map[string]any{"type": "call.failed", "server": "notes", "tool": "fail", "outcome": "done"})
	select {
	case text := <-told:
		t.Errorf("then %s", text)
	default:
	}
}

func quoted(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The verb sends one message to each address, and fails if one is not there. Verbs tell no webhook of
// their calls.
func TestWebhookVerb(t *testing.T) {
	t.Parallel()
	address, told := hook(t)
	files := fake(t, "files")
	config := func(key string, addresses ...string) string {
		var hooks []map[string]string
		for _, a := range addresses {
			hooks = append(hooks, map[string]string{"url": a, "secret": key})
		}
		return mcptest.Config(t, document([]entry{files}, `"webhooks": `+quoted(t, hooks)))
	}
	contains(t, runVerb(t, nil, 0, "webhook", "test", "-c", config("key", address)), ": 200 OK in ")
	if text := <-told; len(text) == 0 {
		t.Error("nothing was sent")
	}
	said := runVerb(t, nil, 1, "webhook", "test", "-c", config("another", address, nobodyListens(t)+"/very-secret"))
	contains(t, said, "the address answered 401 Unauthorized", "refused", "not all webhooks were delivered")
	lacks(t, said, "very-secret", "/T0")
	runVerb(t, nil, 1, "call", "files/fail", "-c", config("key", address))
	select {
	case text := <-told:
		t.Errorf("a verb's call was told: %s", text)
	default:
	}
	contains(t, runVerb(t, nil, 1, "webhook", "test", "-c", mcptest.Config(t, document([]entry{files}))), "the config has no webhooks")
}

package credentials_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A service is an MCP server with its authorization server. It knows each user by what he is called
// with, and answers with his name. It counts what must not be: a session of one user that is used with
// the credentials of another, and refresh tokens that are used twice.
type service struct {
	*httptest.Server
	name string
	life time.Duration // of access tokens

	mu       sync.Mutex
	issued   int
	access   map[string]issue
	refresh  map[string]issue
	family   map[string]int    // by user: tokens of earlier families are void
	sessions map[string]string // users by session
	lists    map[string]string // by user: a word in all that only he is listed; nil lists the same to all

	crossed, reused, refreshed atomic.Int64
}

type issue struct {
	user    string
	family  int
	expires time.Time
	used    bool
}

func newService(t *testing.T, name string, life time.Duration) *service {
	s := &service{name: name, life: life, access: map[string]issue{}, refresh: map[string]issue{}, family: map[string]int{}, sessions: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// issue issues tokens to a user. With begins, his earlier ones become void.
func (s *service) issue(user string, begins bool) (access, refresh string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issueLocked(user, begins)
}

func (s *service) issueLocked(user string, begins bool) (access, refresh string) {
	if begins {
		s.family[user]++
	}
	s.issued++
	access, refresh = fmt.Sprintf("access-%s-%s-%d", s.name, user, s.issued), fmt.Sprintf("refresh-%s-%s-%d", s.name, user, s.issued)
	s.access[access] = issue{user: user, family: s.family[user], expires: time.Now().Add(s.life)}
	s.refresh[refresh] = issue{user: user, family: s.family[user]}
	return access, refresh
}

// revoke makes all tokens of a user void.
func (s *service) revoke(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.family[user]++
}

// crash forgets all sessions.
func (s *service) crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// caller returns the user of a request, "" for nobody.
func (s *service) caller(r *http.Request) string {
	if user, _, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("X-Key"), "key-"), "/"); ok {
		return user
	}
	token := s.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if token.user == "" || token.family != s.family[token.user] || time.Now().After(token.expires) {
		return ""
	}
	return token.user
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/token":
		s.serveToken(w, r)
	case r.URL.Path != "/mcp":
		http.NotFound(w, r)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		s.serveMCP(w, r)
	}
}

func (s *service) serveToken(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var user string
	if subject := r.PostForm.Get("subject_token"); subject != "" {
		user = subjectOf(subject)
	} else {
		token := r.PostForm.Get("refresh_token")
		was := s.refresh[token]
		if was.used {
			s.reused.Add(1)
		}
		if was.user != "" && !was.used && was.family == s.family[was.user] {
			user = was.user
			was.used = true
			s.refresh[token] = was
			s.refreshed.Add(1)
		}
	}
	if user == "" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	access, refresh := s.issueLocked(user, false)
	fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"token_type":"Bearer","expires_in":%d}`, access, refresh, int(s.life.Seconds()))
}

func (s *service) serveMCP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	user, session := s.caller(r), r.Header.Get("Mcp-Session-Id")
	of, known := s.sessions[session]
	switch {
	case user == "":
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		return
	case session != "" && !known:
		w.WriteHeader(http.StatusNotFound)
		return
	case session != "" && of != user:
		s.crossed.Add(1)
	}
	var result string
	switch m.Method {
	case "initialize":
		id := rand.Text() // never again, also after a crash
		s.sessions[id] = user
		w.Header().Set("Mcp-Session-Id", id)
		result = fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":%q,"version":"1"}}`, s.name)
		if word := s.lists[user]; word != "" {
			result = fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{},"prompts":{}},"serverInfo":{"name":%q,"version":"1"},"instructions":"Words of %s."}`, s.name, word)
		}
	case "tools/list":
		own := ""
		if word := s.lists[user]; word != "" {
			own = fmt.Sprintf(`,{"name":"read_%s","description":"Read the notes of %[1]s.","inputSchema":{"type":"object"}}`, word)
		}
		result = `{"tools":[{"name":"whoami","description":"Say who calls.","inputSchema":{"type":"object"}}` + own + `]}`
	case "prompts/list":
		result = fmt.Sprintf(`{"prompts":[{"name":"ask_%s"}]}`, s.lists[user])
	case "resources/list":
		result = fmt.Sprintf(`{"resources":[{"uri":"notes://%s","name":"n"}]}`, s.lists[user])
	case "resources/templates/list":
		result = fmt.Sprintf(`{"resourceTemplates":[{"uriTemplate":"notes://%s/{x}","name":"n"}]}`, s.lists[user])
	case "tools/call":
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"<%s at %s>"}]}`, user, s.name)
	case "ping":
		result = `{}`
	}
	if m.Method == "tools/call" && s.lists != nil { // it may have other tools now
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, result)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case result == "":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
}

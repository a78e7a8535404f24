package aggregator

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A moody server runs a call or not, and answers it with a status that MCP and HTTP allow
// for that. It counts the calls that it ran, and forgets sessions.
type moody struct {
	mu      sync.Mutex
	newest  int
	session string
	ran     map[string]int // by nonce
}

func (s *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) { serveEcho(w, r, s.open, s.run) }

func (s *moody) open() (session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest++
	s.session = fmt.Sprint("s", s.newest)
	return s.session
}

// run runs a call, or not, and returns the answer.
func (s *moody) run(nonce, session string) (status int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session != s.session {
		return http.StatusNotFound, ""
	}
	switch mood := rand.N(20); {
	case mood < 8:
		refused := []int{401, 405, 406, 413, 415, 429}
		return refused[rand.N(len(refused))], ""
	case mood == 8:
		s.session = ""
		return http.StatusNotFound, ""
	}
	s.ran[nonce]++
	switch mood := rand.N(4); mood {
	case 0:
		after := []int{302, 304, 400, 403, 408, 409, 410, 422, 500, 502, 503, 504}
		return after[rand.N(len(after))], ""
	case 1:
		return http.StatusBadRequest, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"the session ended meanwhile"},"id":null}`
	}
	return http.StatusOK, ""
}

// Whatever the status of its answer, a call runs at most once, and never if its outcome is
// not_sent.
func TestNoStatusMakesACallRunTwice(t *testing.T) {
	t.Parallel()
	const calls, atOnce = 2000, 20
	s := &moody{ran: map[string]int{}}
	send, answers := talkTo(t, s)
	outcomes := map[string]int{}
	for first := 0; first < calls; first += atOnce {
		for n := range atOnce {
			send(useEcho, first+n)
		}
		for range atOnce {
			m := next(t, answers)
			s.mu.Lock()
			ran := s.ran[string(m.ID)]
			s.mu.Unlock()
			outcome := "none"
			for _, word := range []string{"outcome not_sent", "outcome unknown", `"text":"ran"`} {
				if strings.Contains(string(m.Raw), word) {
					outcome = word
				}
			}
			outcomes[outcome]++
			if ran > 1 || outcome == "outcome not_sent" && ran > 0 || outcome == `"text":"ran"` && ran != 1 {
				t.Errorf("it ran %d times: %s", ran, m.Raw)
			}
		}
	}
	if len(outcomes) != 3 || outcomes["none"] > 0 {
		t.Errorf("got outcomes %v, want three kinds", outcomes)
	}
}

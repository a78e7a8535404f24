package notify

import (
	"strings"
	"time"
)

// The notifications of one server for one host are limited by a token bucket, because a server
// can send millions, and answers of other servers would wait behind them. A token stands for
// one notification, or for a part of tokenBytes of a long one.
const (
	maxTokens  = 1000 // that can be used at once
	perSecond  = 500  // that are added
	tokenBytes = 1 << 10
)

// An allowance is the token bucket of one server.
type allowance struct {
	tokens float64
	at     time.Time
}

// take reports whether there are tokens for a notification whose params have size bytes, and
// uses them.
func (a *allowance) take(size int, now time.Time) bool {
	a.tokens = min(maxTokens, a.tokens+now.Sub(a.at).Seconds()*perSecond)
	a.at = now
	n := float64(1 + size/tokenBytes)
	if a.tokens < min(n, maxTokens) {
		return false
	}
	a.tokens -= min(n, maxTokens)
	return true
}

// Accepts reports whether the host may be sent one more notification of a server. Merged ones, of
// which only the last counts, are not limited.
func (to *Recipient[S]) Accepts(server, method string, size int) bool {
	if isMerged(method) || to.Replica { // the other replica limits what its hosts get
		return true
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	now, a := time.Now(), to.allowances[server]
	if a == nil {
		a = &allowance{maxTokens, now}
		if to.allowances == nil {
			to.allowances = map[string]*allowance{}
		}
		to.allowances[server] = a
	}
	return a.take(size, now)
}

// isMerged reports whether only the last notification of each subject counts.
func isMerged(method string) bool {
	switch method {
	case "notifications/resources/updated", "notifications/tasks", "notifications/tasks/status", "notifications/elicitation/complete":
		return true
	}
	return false
}

// IsMisdirected reports whether only a host, or dynmcp itself, sends such a notification. Hosts
// would take that of a server for dynmcp's.
func IsMisdirected(method string) bool {
	switch method {
	case "notifications/initialized", "notifications/roots/list_changed":
		return true
	}
	return strings.HasPrefix(method, "notifications/dynmcp/")
}

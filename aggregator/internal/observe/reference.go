package observe

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/transports"
)

// maxFailures is how many failures are kept.
const maxFailures = 64

// References assign references to failures for hosts of other users. Equal failures have equal
// references, so that a host which repeats its call adds nothing to the log.
type References struct {
	log      *slog.Logger
	reserved bool   // the catalogue, which all hosts read, has no causes
	key      []byte // without it a reference would reveal a cause that can be guessed

	mu     sync.Mutex
	recent []event.Failure // the last ones, oldest first
}

func NewReferences(log *slog.Logger, reserved bool) *References {
	key := make([]byte, sha256.Size)
	rand.Read(key)
	return &References{log: log, reserved: reserved, key: key}
}

// Reserve returns the version of a failure for hosts of other users, and logs its cause when its
// reference is new. A call that this side ends, because its host cancels it for example, has no
// cause to log.
func (rs *References) Reserve(f *transports.Failure) *transports.Failure {
	if f.Code == transports.CodeShuttingDown || f.Personal {
		return f.Reserved("")
	}
	cause := f.Cause
	if f.Code == transports.CodeBackingOff { // its text contains the time of the next attempt
		if inner := errors.Unwrap(cause); inner != nil {
			cause = inner
		}
	}
	sum := hmac.New(sha256.New, rs.key)
	fmt.Fprintf(sum, "%s\x00%v\x00%s", f.Upstream, cause, f.Stderr)
	reference := strings.ToLower(base32.StdEncoding.EncodeToString(sum.Sum(nil))[:8])
	if rs.keep(event.Failure{Reference: reference, Upstream: f.Upstream, At: time.Now(), Text: f.Text()}) {
		rs.log.Warn("a host was not told why its call failed", "ref", reference, "upstream", f.Upstream, "err", f.Cause, "stderr", f.Stderr)
	}
	return f.Reserved(reference)
}

// keep reports whether a failure is new, and keeps it then.
func (rs *References) keep(info event.Failure) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, known := range rs.recent {
		if known.Reference == info.Reference {
			return false
		}
	}
	rs.recent = append(rs.recent, info)
	if len(rs.recent) > maxFailures {
		rs.recent = rs.recent[1:]
	}
	return true
}

// All returns the kept failures, oldest first.
func (rs *References) All() []event.Failure {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return slices.Clone(rs.recent)
}

// Reason returns an upstream's last failure in one line, as all hosts may read it.
func (rs *References) Reason(err error) string {
	if failure, ok := errors.AsType[*transports.Failure](err); ok {
		if rs.reserved {
			failure = failure.Reserved("")
		}
		err = failure.Cause
	}
	if err == nil {
		return "it does not start"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return transports.Printable([]byte(strings.TrimRight(line, ".")), 200)
}

package permit

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/internal/display"
)

// A Waiting is an unanswered question to a host of the handshake era.
type Waiting struct {
	ID         string    `json:"id"`
	Tool       string    `json:"tool"`
	Arguments  string    `json:"arguments"` // for display
	Since      time.Time `json:"since"`
	Persistent bool      `json:"lasts"` // an answer may be valid for the session
}

// A posed is a question that may be answered by somebody other than the host.
type posed struct {
	Waiting

	answered context.CancelCauseFunc // withdraws the question from the host
	said     *answer                 // nil until it was answered elsewhere
}

// errElsewhere means that a question was not answered by the host.
var errElsewhere = errors.New("the question was answered elsewhere")

// pose lists a question until withdraw is called. The context ends when the question was answered
// elsewhere.
func (ps *Permits) pose(ctx context.Context, q *Question) (*posed, context.Context) {
	ctx, answered := context.WithCancelCause(ctx)
	w := &posed{Waiting{rand.Text()[:8], display.Cut(display.Fold(q.Tool), 200), q.visible(), time.Now(), q.Persistent}, answered, nil}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.waiting = append(ps.waiting, w)
	return w, ctx
}

// withdraw removes a question from the list, and returns the answer from elsewhere, nil if there is
// none.
func (ps *Permits) withdraw(w *posed) *answer {
	w.answered(nil)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.waiting = slices.DeleteFunc(ps.waiting, func(other *posed) bool { return other == w })
	return w.said
}

// Waiting returns the unanswered questions, the oldest first.
func (ps *Permits) Waiting() []Waiting {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all := []Waiting{}
	for _, w := range ps.waiting {
		all = append(all, w.Waiting)
	}
	return all
}

// Answer answers a question in place of the host, and reports whether it was waiting. session extends
// the answer to the session, if the question permits that.
func (ps *Permits) Answer(id string, yes, session bool) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	i := slices.IndexFunc(ps.waiting, func(w *posed) bool { return w.ID == id && w.said == nil })
	if i < 0 {
		return false
	}
	w := ps.waiting[i]
	w.said = &answer{yes: yes, session: session}
	w.answered(errElsewhere)
	return true
}

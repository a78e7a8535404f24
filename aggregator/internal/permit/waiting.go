package permit

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/internal/display"
)

// A Waiting is a question that a host of the handshake era has not answered.
type Waiting struct {
	ID        string    `json:"id"`
	Tool      string    `json:"tool"`
	Arguments string    `json:"arguments"` // as people are shown them
	Since     time.Time `json:"since"`
	Lasts     bool      `json:"lasts"` // an answer may hold for the session
}

// A posed is a question with the place for another answer than the host's.
type posed struct {
	Waiting

	answered context.CancelCauseFunc // withdraws the question from the host
	said     *answer                 // nil until somebody else has answered
}

// errElsewhere says that a question was answered by somebody else than the host.
var errElsewhere = errors.New("the question was answered elsewhere")

// pose lists a question until withdraw is called. The context ends when another than the
// host has answered.
func (ps *Permits) pose(ctx context.Context, q *Question) (*posed, context.Context) {
	ctx, answered := context.WithCancelCause(ctx)
	w := &posed{Waiting{rand.Text()[:8], display.Cut(display.Fold(q.Tool), 200), q.visible(), time.Now(), q.Lasts}, answered, nil}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.waiting = append(ps.waiting, w)
	return w, ctx
}

// withdraw takes a question from the list, and returns what another than the host has
// answered, nil if nobody has.
func (ps *Permits) withdraw(w *posed) *answer {
	w.answered(nil)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.waiting = slices.DeleteFunc(ps.waiting, func(other *posed) bool { return other == w })
	return w.said
}

// Waiting returns the questions without an answer, the oldest first.
func (ps *Permits) Waiting() []Waiting {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all := []Waiting{}
	for _, w := range ps.waiting {
		all = append(all, w.Waiting)
	}
	return all
}

// Answer answers a question in the place of the host, and reports whether it was waiting.
// session allows what the question allows for a session.
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

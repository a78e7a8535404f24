package aggregator

import (
	"context"
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/internal/taskowner"
	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
)

// CheckTask returns an error if the keys do not open a record of Options.Tasks.
func CheckTask(keys *seal.Keys, e kv.Entry) error { return taskowner.Check(keys, e) }

// mayLearnTask reports whether learnTask may find out whose a task is.
func (p *peer) mayLearnTask(own string) bool {
	return !isolated(&p.upstream.Server) && p.agg.taskOwners.MayLearn(p.upstream.Server.Name, own)
}

// learnTask finds out whose a task is of which this replica does not know. It may block.
func (p *peer) learnTask(ctx context.Context, own string) {
	if p.mayLearnTask(own) {
		p.agg.taskOwners.Learn(ctx, p.upstream.Server.Name, own)
	}
}

// addTask says that a call of a session became a task, by the upstream's id, a JSON string,
// and for how long. stored is closed when other replicas can know; nil is that none ask.
func (p *peer) addTask(s *session, id, ttl json.RawMessage) (stored <-chan struct{}) {
	own, ok := wire.Text(id)
	if !ok || isolated(&p.upstream.Server) || s.replica {
		return nil
	}
	return p.agg.taskOwners.Set(s.principal.name, p.upstream.Server.Name, own, ttl)
}

// hasTask reports whether a task of an upstream, by its id there, is for a session's user.
func (s *session) hasTask(u *lazy.Upstream, own string) bool {
	user, _ := s.agg.taskOwners.Of(u.Server.Name, own)
	return isolated(&u.Server) || user == s.principal.name
}

package aggregator

import (
	"context"
	"errors"

	"github.com/dynmcp/dynmcp/aggregator/internal/permit"
	"github.com/dynmcp/dynmcp/transports"
)

// Stderr returns the last lines that a server wrote to stderr, as it runs or as it failed; ""
// where there are none. The secrets of the config are not in them.
func (st Status) Stderr(server string) string {
	u := st.agg.set.Get(server)
	if u == nil {
		return ""
	}
	if conn := u.Conn(); conn != nil {
		return conn.Stderr()
	}
	if failure, ok := errors.AsType[*transports.Failure](u.Status().Err); ok {
		return failure.Stderr
	}
	return ""
}

// Start starts a server unless it runs, without waiting for the end of a pause. Nobody uses
// it then, so that an idle timeout ends it.
func (st Status) Start(ctx context.Context, server string) error {
	u := st.agg.set.Get(server)
	if u == nil {
		return &UnknownServerError{Name: server}
	}
	_, release, err := u.Load(ctx)
	if err == nil {
		release()
	}
	return err
}

// Stop has the processes of a server end when their calls have ended. Its next use starts it
// again.
func (st Status) Stop(server string) error {
	if st.agg.set.Get(server) == nil {
		return &UnknownServerError{Name: server}
	}
	for _, u := range st.agg.set.Everything() {
		if conn := u.Conn(); conn != nil && u.Server.Name == server {
			u.Retire(conn)
		}
	}
	return nil
}

// A Question is a call that a person is asked about.
type Question = permit.Waiting

// Questions returns the calls that the policy has persons asked about, and that no host has
// answered, the oldest first. Hosts of the stateless era answer with another request: their
// calls do not wait.
func (st Status) Questions() []Question { return st.agg.permits.Waiting() }

// Answer answers a question in the place of its host. session allows the tool for the session.
func (st Status) Answer(id string, yes, session bool) error {
	if !st.agg.permits.Answer(id, yes, session) {
		return errors.New("no question waits under this id: it was answered, or withdrawn")
	}
	return nil
}

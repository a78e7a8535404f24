package fleet

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A server may be called with what each user keeps for it: a login, values in its env or headers.
// Then each principal has an upstream of his own, and what its connection is opened with is that
// principal's. It never depends on the session that happened to be the first.

// PrincipalOf returns the principal that an upstream is for. ok is false for an upstream that others
// share.
func PrincipalOf(u *lazy.Upstream) (principal string, ok bool) {
	return strings.CutPrefix(u.Owner, PrincipalOwner)
}

// ListsTo returns the principal to whom alone an upstream lists, "" if others may see the same: a server
// that is called with what is a principal's may list what is for him.
func ListsTo(u *lazy.Upstream) string {
	if !u.Server.IsPersonal() {
		return ""
	}
	principal, _ := PrincipalOf(u)
	return principal
}

// entryPause is the time between looks at the values of a user. Another replica, or a verb, may have
// changed them.
const entryPause = 3 * time.Second

// followEntry replaces a connection when the values that it was opened with have changed. Calls in
// flight are answered first.
func (f *Fleet) followEntry(u *lazy.Upstream, opened schema.Server, conn *upstream.Conn) {
	if len(u.Server.UserValues()) == 0 || conn.Remote() { // the other replica follows it
		return
	}
	f.Work.Go(func() {
		for {
			select {
			case <-time.After(entryPause + rand.N(entryPause/3)):
			case <-conn.Done():
				return
			case <-f.Context.Done():
				return
			}
			if hasChanged(f, u, opened) {
				f.Log.Info("a user has changed what he keeps for it", "upstream", u.Server.Name)
				u.Retire(conn)
				return
			}
		}
	})
}

// hasChanged reports whether an upstream would now be opened with other values. One that is missing
// has changed; a store that cannot be read says nothing.
func hasChanged(f *Fleet, u *lazy.Upstream, opened schema.Server) bool {
	ctx, cancel := context.WithTimeout(f.Context, entryPause)
	defer cancel()
	now, err := f.Run.Entry(ctx, u, u.Server)
	if err != nil {
		return isMissing(err)
	}
	return !maps.Equal(now.Env, opened.Env) || !maps.Equal(now.Headers, opened.Headers)
}

// isMissing reports whether a user has not, or no longer, what a server is called with.
func isMissing(err error) bool {
	failure, ok := errors.AsType[*transports.Failure](err)
	return ok && failure.Personal
}

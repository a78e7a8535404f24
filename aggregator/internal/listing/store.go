package listing

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/schema"
)

// A LoggingStore keeps the listings of servers between runs: it is read when a config is applied, and
// written after each listing. Read and write errors are logged, and have no other effect.
type LoggingStore struct {
	*store.Listings
	Log    *slog.Logger
	failed atomic.Bool // a failed write was logged
}

// LoadAll returns the listings of earlier runs, by server.
func (s *LoggingStore) LoadAll(servers []schema.Server) map[string]*catalog.Stored {
	all := map[string]*catalog.Stored{}
	for _, server := range servers {
		if server.Disabled {
			continue
		}
		stored, err := s.Load(server)
		if err != nil {
			s.Log.Warn("a stored listing is not used", "upstream", server.Name, "err", err)
			if errors.Is(err, records.ErrUnavailable) {
				break // the others are unreachable too: Follow delivers them later
			}
		}
		if stored != nil {
			all[server.Name] = stored
		}
	}
	return all
}

// Follow calls listed with the listings that other replicas store, until ctx ends.
func (s *LoggingStore) Follow(ctx context.Context, servers []schema.Server, listed func(name string, stored *catalog.Stored)) {
	names := map[string]string{} // by key
	for _, server := range servers {
		if !server.Disabled {
			names[store.Key(server)] = server.Name
		}
	}
	for ctx.Err() == nil {
		err := s.Watch(ctx, func(key string, stored *catalog.Stored, err error) {
			switch name, ok := names[key]; {
			case !ok:
			case err != nil:
				s.Log.Warn("a stored listing is broken: it is replaced when the server is listed", "upstream", name, "key", key, "err", err)
			default:
				listed(name, stored)
			}
		})
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			s.Log.Warn("listings of other replicas are not watched, trying again", "err", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// NoteFailure stores how the start of a server failed.
func (s *LoggingStore) NoteFailure(server schema.Server, f store.Failure) {
	if err := s.KeepFailure(server, f); err != nil {
		s.Log.Debug("the failure of a start is not kept", "upstream", server.Name, "err", err)
	}
}

// KeepListing stores the listing of a server.
func (s *LoggingStore) KeepListing(server schema.Server, l *catalog.Listing) {
	switch err := s.Keep(server, l); {
	case err == nil:
	case s.failed.Swap(true):
		s.Log.Debug("a listing is not kept", "upstream", server.Name, "err", err)
	default:
		s.Log.Warn("a listing is not kept: this server, and maybe others, will not be known before it is started", "upstream", server.Name, "err", err)
	}
}

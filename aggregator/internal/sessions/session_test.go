package sessions

import (
	"testing"

	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/internal/membudget"
)

// Sessions of one account have one share. The hosts of a run that is shared have no account, and each a
// share of its own.
func TestSharesOfSessions(t *testing.T) {
	share := func(id, account string) string {
		s := Open(&notify.Registry[*Session]{}, Identity{Account: account}, membudget.New(0, nil))
		s.ID = id
		return s.Info().Share
	}
	if a, b := share("1", "192.0.2.1"), share("2", "192.0.2.1"); a != b || a != "192.0.2.1" {
		t.Errorf("two sessions of an account have the shares %q and %q", a, b)
	}
	if a, b := share("1", ""), share("2", ""); a == b || a == "" {
		t.Errorf("two sessions without an account have the shares %q and %q", a, b)
	}
}

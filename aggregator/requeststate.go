package aggregator

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A requestState says what a host's request continues: a parked call (bridge.go), or
// what an upstream of the stateless era answered with questions, whose own state it
// holds. The host sends it back as it is, but so may anybody send anything: it is
// sealed, and good for one request of one principal.
type requestState struct {
	Owner     string            `json:"owner,omitempty"` // the replica that knows Call; "" where there is but one
	Call      string            `json:"call"`            // in the table of parked calls, or of issued states; new in each round
	Principal string            `json:"principal"`
	Upstream  string            `json:"upstream"`
	Request   [sha256.Size]byte `json:"request"`         // of digest
	Expires   int64             `json:"expires"`         // Unix time, in seconds
	State     []byte            `json:"state,omitempty"` // the upstream's own, raw JSON; nil of a parked call
}

// statePrefix begins every requestState that hosts get.
const statePrefix = "dynmcp1."

// statePurpose is what our states are sealed for.
const statePurpose = "requestState"

func (a *Aggregator) sealState(state requestState) string {
	plain, err := json.Marshal(state)
	if err != nil {
		panic(err) // not reached: it is strings and numbers
	}
	return a.opts.Keys.SealText(statePurpose, plain)
}

func (a *Aggregator) openState(sealed string) (state requestState, err error) {
	plain, err := a.opts.Keys.OpenText(statePurpose, sealed)
	if err != nil {
		return state, err
	}
	return state, json.Unmarshal(plain, &state)
}

// newState returns the state that a host brings back with the request which continues
// the call. id is that of the parked call, or of what is issued; own is the upstream's
// own state, nil of a parked call.
func (c *forwardedCall) newState(id string, own []byte) string {
	return statePrefix + c.agg.sealState(requestState{
		Owner: c.agg.opts.Replica, Call: id, Principal: c.session.principal.name, Upstream: c.route.upstream.Server.Name,
		Request: digest(c.Method, c.route.params), Expires: time.Now().Add(parkedFor).Unix(), State: own,
	})
}

// withSealedState returns an object, a result for a host of the stateless era or the
// params of a call that such a host is to repeat, with the upstream's own requestState
// in it sealed.
func (c *forwardedCall) withSealedState(object json.RawMessage) json.RawMessage {
	own := wire.Get(object, "requestState")
	if own == nil {
		return object
	}
	id := c.agg.issued.add(stateUser{c.session.principal, c.route.upstream.Server.Name})
	return wire.Set(object, "requestState", wire.Quote(c.newState(id, own)))
}

// resume takes a request that brings a requestState, and reports whether it is done
// with. If not it goes on to its upstream, with that upstream's own state in the place
// of the sealed one.
func (s *session) resume(r *host.Request, to route) (_ route, done bool) {
	if to.opened || !ask.MayNeedInput(r.Method) {
		return to, false
	}
	raw, responses, err := wire.GetStrict(to.params, "requestState", "inputResponses")
	if err != nil {
		r.Reply(nil, invalid("%s: %v", r.Method, err))
		return to, true
	}
	if raw == nil {
		return to, false
	}
	text, _ := wire.Text(raw)
	sealed, ours := strings.CutPrefix(text, statePrefix)
	state, err := s.agg.openState(sealed)
	elsewhere := state.Upstream != to.upstream.Server.Name
	switch {
	case ours && err == nil && elsewhere && to.refused != nil: // its upstream is among those that come next
		to.refused(staleState())
		return to, true
	case !ours, err != nil, elsewhere, state.Principal != s.principal.name, state.Request != digest(r.Method, to.params), time.Now().Unix() > state.Expires:
		r.Reply(nil, staleState())
		return to, true
	}
	if state.State != nil && s.agg.issued.take(stateUser{s.principal, state.Upstream}, state.Call) {
		to.params, to.opened = wire.Set(to.params, "requestState", state.State), true
		return to, false
	}
	if c := s.agg.parked.take(state.Call); c != nil {
		c.continueWith(r, bytes.Clone(responses)) // they are lent
	} else {
		r.Reply(nil, staleState())
	}
	return to, true
}

// staleState is the answer to a request whose state is not one that we gave for it,
// or was used already, or is of a call that waits no more.
func staleState() *wire.Error {
	return invalid("requestState is not valid for this request, or no longer: call again without it")
}

// maxIssued is how many states of one upstream a user may have that no request brought
// back. The oldest is not good any more when one more is issued.
const maxIssued = 1024

// A stateUser is whom a state of an upstream was issued to.
type stateUser struct {
	principal
	upstream string
}

// issuedStates are the ids of the sealed states of upstreams that hosts have not
// brought back, and which have not expired.
type issuedStates struct {
	mu sync.Mutex
	of map[stateUser][]issuedState // the oldest first; none is empty
}

type issuedState struct {
	id       string
	deadline *time.Timer
}

// add returns the id of a new state.
func (is *issuedStates) add(user stateUser) (id string) {
	id = rand.Text()
	is.mu.Lock()
	defer is.mu.Unlock()
	if is.of == nil {
		is.of = map[stateUser][]issuedState{}
	}
	if full := is.of[user]; len(full) >= maxIssued {
		is.removeLocked(user, full[0].id)
	}
	is.of[user] = append(is.of[user], issuedState{id, time.AfterFunc(parkedFor, func() { is.take(user, id) })})
	return id
}

// take forgets a state, and reports false if there is none.
func (is *issuedStates) take(user stateUser, id string) bool {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.removeLocked(user, id)
}

func (is *issuedStates) removeLocked(user stateUser, id string) bool {
	i := slices.IndexFunc(is.of[user], func(s issuedState) bool { return s.id == id })
	if i < 0 {
		return false
	}
	is.of[user][i].deadline.Stop()
	if is.of[user] = slices.Delete(is.of[user], i, i+1); len(is.of[user]) == 0 {
		delete(is.of, user)
	}
	return true
}

// OwnerOf returns the replica that has what a requestState of a host continues, as its
// Options.Replica: a call, or the offer of a login. ok is false of a state that no
// replica of this cluster made, and where there is but one.
func (a *Aggregator) OwnerOf(text string) (replica string, ok bool) {
	sealed, parked := strings.CutPrefix(text, statePrefix)
	if !parked {
		offer, ours := strings.CutPrefix(text, statePrefixOffer)
		if parts := strings.Split(offer, "."); ours && len(parts) == 3 {
			sealed, parked = parts[2], true
		}
	}
	if !parked {
		return "", false
	}
	state, err := a.openState(sealed)
	return state.Owner, err == nil && state.Owner != ""
}

// digest stands for what a request wants of its upstream: the method and the params,
// but for those members that differ from round to round. Hosts may write the same
// params in another order.
func digest(method string, params json.RawMessage) [sha256.Size]byte {
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(params))
	d.UseNumber()
	if err := d.Decode(&members); err != nil {
		return sha256.Sum256(params) // no object: it has none of those members
	}
	delete(members, "_meta")
	delete(members, "inputResponses")
	delete(members, "requestState")
	same, err := json.Marshal([]any{method, members})
	if err != nil {
		return sha256.Sum256(params)
	}
	return sha256.Sum256(same)
}

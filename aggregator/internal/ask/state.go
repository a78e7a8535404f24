package ask

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A State identifies the call that a host's request continues: a call that waits for input, or a
// call that an upstream of the stateless era answered with questions, with that upstream's own
// state. The host returns it unchanged. It is sealed, so that no host can make one, and valid
// for one request of one principal.
type State struct {
	Owner     string            `json:"owner,omitempty"` // the replica that knows Call; "" if there is only one
	Call      string            `json:"call"`            // in the table of waiting calls, or of issued states; new in each round
	Principal string            `json:"principal"`
	Upstream  string            `json:"upstream"`
	Request   [sha256.Size]byte `json:"request"`         // of Digest
	Expires   int64             `json:"expires"`         // Unix time, in seconds
	State     []byte            `json:"state,omitempty"` // the upstream's own, raw JSON; nil for a waiting call
}

// statePrefix begins every requestState of a call for hosts, offerPrefix that of a request that
// was answered with a login. After offerPrefix follow the id of the offer, in base64 the state of
// earlier rounds in the request, with its sealed requestState unchanged, and in a cluster,
// sealed, the replica that has the offer.
const (
	statePrefix = "dynmcp1."
	offerPrefix = "dynmcp-login."

	permitPrefix = "dynmcp-permit." // of a call for which a person was asked
)

// statePurpose is the purpose for which states are sealed.
const statePurpose = "requestState"

// States seals the states for hosts, and records which states of upstreams have not come
// back.
type States struct {
	Keys    *seal.Keys
	Replica string // this one, "" if there is only one

	issued issuedStates
}

// Seal returns the form of a state for hosts, which is valid for InputWait.
func (s *States) Seal(state State) string { return statePrefix + s.seal(state) }

func (s *States) seal(state State) string {
	state.Owner, state.Expires = s.Replica, time.Now().Add(InputWait).Unix()
	plain, err := json.Marshal(state)
	if err != nil {
		panic(err) // not reached: strings and numbers
	}
	return s.Keys.SealText(statePurpose, plain)
}

// SealRequestState returns an object, a result for a host or the params of a request that a host is to
// repeat, with the upstream's own requestState in it sealed. state describes the call.
func (s *States) SealRequestState(object json.RawMessage, state State) json.RawMessage {
	own := wire.Get(object, "requestState")
	if own == nil {
		return object
	}
	state.State, state.Call = own, s.issued.add(stateUser{state.Principal, state.Upstream})
	return wire.Set(object, "requestState", wire.Quote(s.Seal(state)))
}

// Open opens a state from Seal; ours is false for any other text.
func (s *States) Open(text string) (state State, ours bool) {
	sealed, ours := strings.CutPrefix(text, statePrefix)
	if !ours {
		return state, false
	}
	state, err := s.open(sealed)
	return state, err == nil
}

func (s *States) open(sealed string) (state State, err error) {
	plain, err := s.Keys.OpenText(statePurpose, sealed)
	if err != nil {
		return state, err
	}
	return state, json.Unmarshal(plain, &state)
}

// SealPermit returns the state of a call for which a person is asked.
func (s *States) SealPermit(state State) string {
	state.Call = s.issued.add(stateUser{state.Principal, state.Upstream})
	return permitPrefix + s.seal(state)
}

// OpenPermit opens a state of SealPermit, which is valid once and for its user; ours is false for
// any other text.
func (s *States) OpenPermit(text, principal string) (state State, ours, ok bool) {
	sealed, ours := strings.CutPrefix(text, permitPrefix)
	if !ours {
		return state, false, false
	}
	state, err := s.open(sealed)
	return state, true, err == nil && state.Principal == principal && s.Take(state) && time.Now().Unix() <= state.Expires
}

// Continues reports whether a text may be the state of a call that was already permitted for an
// upstream. Whether it belongs to the request is checked when the request is sent.
func (s *States) Continues(text, principal, upstream string) bool {
	state, ours := s.Open(text)
	return ours && state.Principal == principal && state.Upstream == upstream
}

// Take forgets the state of an upstream, and reports false if it was already forgotten.
func (s *States) Take(state State) bool {
	return s.issued.take(stateUser{state.Principal, state.Upstream}, state.Call)
}

// OwnerOf returns the replica that holds the state behind a requestState: a call, or the offer of
// a login. ok is false for a state that no replica of this cluster made, and if there is only
// one replica.
func (s *States) OwnerOf(text string) (replica string, ok bool) {
	sealed, ours := strings.CutPrefix(text, statePrefix)
	if !ours {
		sealed, ours = strings.CutPrefix(text, permitPrefix)
	}
	if !ours {
		offer, isOffer := strings.CutPrefix(text, offerPrefix)
		parts := strings.Split(offer, ".")
		if !isOffer || len(parts) != 3 {
			return "", false
		}
		sealed = parts[2]
	}
	state, err := s.open(sealed)
	return state.Owner, err == nil && state.Owner != ""
}

// Stale is the answer to a request whose state was not issued for it, was already used, or belongs
// to a call that no longer waits.
func Stale() *wire.Error {
	return transports.InvalidParams("requestState is not valid for this request, or has expired: call again without it")
}

// HandshakeParams returns params of the stateless era for an upstream of the handshake era. The error
// is [Stale].
func HandshakeParams(params wire.Object) (wire.Object, error) {
	if params.Get("requestState") != nil { // such an upstream issues none
		return params, Stale()
	}
	if params.Get("inputResponses") != nil || params.Get("task") != nil {
		params = params.Delete("inputResponses", "task") // the host knows no such task
	}
	return transports.WithoutMeta(params, transports.EraMeta...), nil
}

// maxIssued limits the unused states of one upstream per user. Issuing one more invalidates the
// oldest.
const maxIssued = 1024

// A stateUser is the recipient of a state of an upstream.
type stateUser struct {
	principal, upstream string
}

// issuedStates are the ids of the sealed states of upstreams that hosts have not returned, and
// that have not expired.
type issuedStates struct {
	mu sync.Mutex
	of map[stateUser][]issuedState // the oldest first; no list is empty
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
	is.of[user] = append(is.of[user], issuedState{id, time.AfterFunc(InputWait, func() { is.take(user, id) })})
	return id
}

// take forgets a state, and reports false if absent.
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

// Digest identifies the content of a request to its upstream: the method and the params, except
// for members that differ from round to round. Hosts may write the same params in another
// order.
func Digest(method string, params json.RawMessage) [sha256.Size]byte {
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(params))
	d.UseNumber()
	if err := d.Decode(&members); err != nil {
		return sha256.Sum256(params) // not an object: it has none of those members
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

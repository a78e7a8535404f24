package aggregator

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"
)

// A requestState says which parked call a host's request continues. The host sends
// it back as it is, but so may anybody send anything: it is sealed, and good for one
// request of one principal.
type requestState struct {
	Owner     string            `json:"owner,omitempty"` // the replica that has the call; "" where there is but one
	Call      string            `json:"call"`            // in the table of parked calls, new in each round
	Principal string            `json:"principal"`
	Upstream  string            `json:"upstream"`
	Request   [sha256.Size]byte `json:"request"` // of digest
	Expires   int64             `json:"expires"` // Unix time, in seconds
}

// statePrefix begins every requestState of ours. Those of upstreams of the
// stateless era pass as they are.
const statePrefix = "dynmcp1."

// statePurpose is what our states are sealed for.
const statePurpose = "requestState"

func (a *Aggregator) sealState(state requestState) (string, error) {
	plain, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	return a.opts.Keys.SealText(statePurpose, plain), nil
}

func (a *Aggregator) openState(sealed string) (state requestState, err error) {
	plain, err := a.opts.Keys.OpenText(statePurpose, sealed)
	if err != nil {
		return state, err
	}
	return state, json.Unmarshal(plain, &state)
}

// OwnerOf returns the replica that has what a requestState of a host continues, as its
// Options.Replica: a parked call, or the offer of a login. ok is false of a state that no
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

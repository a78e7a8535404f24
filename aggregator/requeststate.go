package aggregator

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// A requestState says which parked call a host's request continues. The host sends
// it back as it is, but so may anybody send anything: it is sealed, and good for one
// request of one principal.
type requestState struct {
	Call      string            `json:"call"` // in the table of parked calls, new in each round
	Principal string            `json:"principal"`
	Upstream  string            `json:"upstream"`
	Request   [sha256.Size]byte `json:"request"` // of digest
	Expires   int64             `json:"expires"` // Unix time, in seconds
}

// statePrefix begins every requestState of ours. Those of upstreams of the
// stateless era pass as they are.
const statePrefix = "dynmcp1."

var errState = errors.New("requestState was not made here, or was changed")

// A sealer seals states with a key that ends with the process, like the calls that
// they are about.
type sealer struct{ aead cipher.AEAD }

func newSealer() (sealer, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{aead}, err
}

func (s sealer) seal(state requestState) (string, error) {
	plain, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	return statePrefix + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, []byte(statePrefix))), nil
}

func (s sealer) open(text string) (state requestState, err error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(text, statePrefix))
	if err != nil {
		return state, errState
	}
	plain, err := s.aead.Open(nil, nil, sealed, []byte(statePrefix))
	if err != nil {
		return state, errState
	}
	return state, json.Unmarshal(plain, &state)
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

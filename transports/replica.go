package transports

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A server that another replica runs is reached over a stream on which that replica forwards
// everything unchanged, in both directions. The replica's own data is in a member of the
// messages' envelopes. The server cannot write there, because envelopes are rebuilt.

// MemberReplica is the name of that member. In the answer to a failed call its value is the
// Record of the failure, in the notification MethodReplicaEnded a [ReplicaEnd].
const MemberReplica = "dynmcp"

// MethodReplicaRetired means that the server takes no more calls on this replica, and
// MethodReplicaEnded is the last message of a replica.
const (
	MethodReplicaRetired = "notifications/dynmcp/retired"
	MethodReplicaEnded   = "notifications/dynmcp/ended"
)

// A ReplicaEnd explains why a replica forwards nothing more.
type ReplicaEnd struct {
	// Failure is the Record of the failure that ended the server; nil if the server is not
	// at fault, and may run elsewhere.
	Failure json.RawMessage `json:"failure,omitempty"`
	// Last is the id of the last request that was accepted, and NotSent are the ids of earlier
	// ones that did not reach the server.
	Last    int64   `json:"last"`
	NotSent []int64 `json:"not_sent,omitempty"`
}

// A failureRecord is a failure in the protocol between replicas.
type failureRecord struct {
	Code       int64   `json:"code"`
	Outcome    Outcome `json:"outcome"`
	Cause      string  `json:"cause"`
	Stderr     string  `json:"stderr,omitempty"`
	Hint       string  `json:"hint,omitempty"`
	Login      bool    `json:"login,omitempty"`
	Details    string  `json:"details,omitempty"`
	RetryAfter int64   `json:"retry_after_ms,omitempty"`
}

// Record returns the whole failure as JSON for ReadFailure.
func (f *Failure) Record() json.RawMessage {
	// Texts and numbers always marshal.
	record, _ := json.Marshal(failureRecord{f.Code, f.Outcome, f.Cause.Error(), f.Stderr, f.Hint, f.Login, f.Details, f.RetryAfter.Milliseconds()})
	return record
}

// ReadFailure returns the failure in a record. An unreadable record is a failure of its own.
func ReadFailure(upstream string, record json.RawMessage) *Failure {
	var r failureRecord
	if err := json.Unmarshal(record, &r); err != nil {
		return &Failure{Upstream: upstream, Code: CodeProtocol, Outcome: Unknown, Cause: fmt.Errorf("the failure of another replica cannot be read: %w", err)}
	}
	return &Failure{Upstream: upstream, Code: r.Code, Outcome: r.Outcome, Cause: errors.New(r.Cause), Stderr: r.Stderr, Hint: r.Hint, Login: r.Login,
		Details: r.Details, RetryAfter: time.Duration(r.RetryAfter) * time.Millisecond}
}

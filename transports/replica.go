package transports

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A server that another replica runs is reached over a stream on which that replica
// passes everything on as it is, in both directions. What the replica itself has to say
// is beside the messages, in a member of their envelopes: nothing of the server's gets
// there, because envelopes are written again.

// MemberReplica is that member: of the answer to a call that failed the Record of its
// failure, of the notification MethodReplicaEnded a [ReplicaEnd].
const MemberReplica = "dynmcp"

// MethodReplicaRetired says that the server takes no more calls here, and MethodReplicaEnded
// is the last message of a replica.
const (
	MethodReplicaRetired = "notifications/dynmcp/retired"
	MethodReplicaEnded   = "notifications/dynmcp/ended"
)

// A ReplicaEnd says why a replica passes on no more.
type ReplicaEnd struct {
	// Failure is the Record of why the server ended; nil is that it is not to blame, and
	// may run elsewhere.
	Failure json.RawMessage `json:"failure,omitempty"`
	// Last is the id of the last request that was taken, and NotSent are those of earlier
	// ones which did not reach the server.
	Last    int64   `json:"last"`
	NotSent []int64 `json:"not_sent,omitempty"`
}

// A failureRecord is a failure as replicas tell each other of it.
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

// Record returns all that a failure says, as JSON for ReadFailure.
func (f *Failure) Record() json.RawMessage {
	// Texts and numbers always marshal.
	record, _ := json.Marshal(failureRecord{f.Code, f.Outcome, f.Cause.Error(), f.Stderr, f.Hint, f.Login, f.Details, f.RetryAfter.Milliseconds()})
	return record
}

// ReadFailure returns the failure of an upstream that a record is of. One that cannot be
// read is a failure of its own.
func ReadFailure(upstream string, record json.RawMessage) *Failure {
	var r failureRecord
	if err := json.Unmarshal(record, &r); err != nil {
		return &Failure{Upstream: upstream, Code: CodeProtocol, Outcome: Unknown, Cause: fmt.Errorf("another replica failed, and says in no known words why: %w", err)}
	}
	return &Failure{Upstream: upstream, Code: r.Code, Outcome: r.Outcome, Cause: errors.New(r.Cause), Stderr: r.Stderr, Hint: r.Hint, Login: r.Login,
		Details: r.Details, RetryAfter: time.Duration(r.RetryAfter) * time.Millisecond}
}

package natskv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/records"
)

// Error codes of the server that the library does not name.
const (
	noPeers              jetstream.ErrorCode = 10005 // JSClusterNoPeersErrF: a node knows too few others so far
	memoryExceeded       jetstream.ErrorCode = 10028 // JSMemoryResourcesExceededErr
	storageExceeded      jetstream.ErrorCode = 10047 // JSStorageResourcesExceededErr
	replicasNotSupported jetstream.ErrorCode = 10074 // JSStreamReplicasNotSupportedErr: not clustered
	streamStoreFailed    jetstream.ErrorCode = 10077 // JSStreamStoreFailedF: the stream is full
)

// failure converts an error of NATS to one of package records.
func failure(err error) error {
	switch code := codeOf(err); {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch),
		// A node answers the second one while another change of the record is in progress.
		code == jetstream.JSErrCodeStreamWrongLastSequence, code == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return records.ErrConflict
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrMsgNotFound):
		return records.ErrNotFound
	case refused(err):
		return fmt.Errorf("NATS refuses it: %w", err)
	case errors.Is(err, nats.ErrReconnectBufExceeded): // the buffer is off
		err = errors.New("not connected to NATS")
	}
	return fmt.Errorf("%w: %w", records.ErrUnavailable, err)
}

// codeOf returns the code of an error answer, 0 if there is none.
func codeOf(err error) jetstream.ErrorCode {
	if answer, ok := errors.AsType[*jetstream.APIError](err); ok {
		return answer.ErrorCode
	}
	return 0
}

// refused reports whether NATS refuses a request permanently, until its configuration is fixed.
// Errors with a code of 5xx are temporary, except for limits.
func refused(err error) bool {
	if errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrPermissionViolation) {
		return true
	}
	answer, ok := errors.AsType[*jetstream.APIError](err)
	if !ok || answer.ErrorCode == jetstream.JSErrCodeStreamNotFound || answer.ErrorCode == noPeers {
		return false
	}
	return answer.Code < 500 || slices.Contains([]jetstream.ErrorCode{streamStoreFailed, memoryExceeded, storageExceeded}, answer.ErrorCode)
}

// tooFewNodes reports whether a stream was refused because there are too few nodes now.
func tooFewNodes(err error) bool {
	code := codeOf(err)
	return code == noPeers || code == replicasNotSupported
}

// A denial is a missing permission that NATS reports separately, not as an answer.
type denial struct {
	err error
	at  time.Time
}

// ask sends a request to NATS with a time limit. The error is one of package records.
func ask[T any](ctx context.Context, s *Store, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := s.asking(ctx, s.opts.answer)
	defer cancel()
	asked := time.Now()
	answer, err := question(ctx)
	if d := s.denied.Load(); errors.Is(err, context.DeadlineExceeded) && d != nil && d.at.After(asked) {
		err = d.err // a request without permission gets no answer
	}
	return answer, failure(err)
}

// read is ask for requests that may be repeated. A node that has just become the leader of a
// stream, or has just stopped being it, drops requests without an answer.
func read[T any](ctx context.Context, s *Store, question func(context.Context) (T, error)) (T, error) {
	first, cancel := context.WithTimeout(ctx, s.opts.answer/4)
	defer cancel()
	answer, err := ask(first, s, question)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		answer, err = ask(ctx, s, question)
	}
	return answer, err
}

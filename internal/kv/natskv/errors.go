package natskv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// Codes of the server that the library has no name for.
const (
	noPeers              jetstream.ErrorCode = 10005 // JSClusterNoPeersErrF: a node knows too few others, as yet
	memoryExceeded       jetstream.ErrorCode = 10028 // JSMemoryResourcesExceededErr
	storageExceeded      jetstream.ErrorCode = 10047 // JSStorageResourcesExceededErr
	replicasNotSupported jetstream.ErrorCode = 10074 // JSStreamReplicasNotSupportedErr: it is not clustered
	streamStoreFailed    jetstream.ErrorCode = 10077 // JSStreamStoreFailedF: the stream has no room
)

// failure returns an error of NATS as one of package kv.
func failure(err error) error {
	switch code := codeOf(err); {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch),
		// The second is what a node says while another change of the record is being made.
		code == jetstream.JSErrCodeStreamWrongLastSequence, code == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return kv.ErrConflict
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrMsgNotFound):
		return kv.ErrNotFound
	case refused(err):
		return fmt.Errorf("NATS refuses it: %w", err)
	case errors.Is(err, nats.ErrReconnectBufExceeded): // the buffer is off
		err = errors.New("not connected to NATS")
	}
	return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
}

// codeOf returns the code of an answer that is an error, 0 if absent.
func codeOf(err error) jetstream.ErrorCode {
	if answer, ok := errors.AsType[*jetstream.APIError](err); ok {
		return answer.ErrorCode
	}
	return 0
}

// refused reports whether NATS does not do what it was asked, however often that is: what
// is wrong has to be mended there. What it says with a code of 5xx passes, but for limits.
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

// tooFewNodes reports whether a stream was refused because there are not as many nodes
// now as it wants.
func tooFewNodes(err error) bool {
	code := codeOf(err)
	return code == noPeers || code == replicasNotSupported
}

// A denial is a permission that NATS reports to be missing on its own, not as an answer.
type denial struct {
	err error
	at  time.Time
}

// ask asks NATS a question that is to be answered in time. The error is one of package kv.
func ask[T any](ctx context.Context, s *Store, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := s.asking(ctx, s.opts.answer)
	defer cancel()
	asked := time.Now()
	answer, err := question(ctx)
	if d := s.denied.Load(); errors.Is(err, context.DeadlineExceeded) && d != nil && d.at.After(asked) {
		err = d.err // what is not permitted has no answer
	}
	return answer, failure(err)
}

// read is ask for what may be asked twice. A node that has just become the leader of a
// stream, or has just ceased to be, drops questions without an answer.
func read[T any](ctx context.Context, s *Store, question func(context.Context) (T, error)) (T, error) {
	first, cancel := context.WithTimeout(ctx, s.opts.answer/4)
	defer cancel()
	answer, err := ask(first, s, question)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		answer, err = ask(ctx, s, question)
	}
	return answer, err
}

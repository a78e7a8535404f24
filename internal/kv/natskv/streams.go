package natskv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// nodes is on how many nodes a bucket is kept: one of them may be lost.
const nodes = 3

// remembered is how long the deletion of a record is kept for those who watch.
const remembered = 7 * 24 * time.Hour

func (b *bucket) config(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        "KV_" + b.name,
		Description: "state that replicas of dynmcp share",
		// The parts of large values have a name of their own, so that who watches the
		// records is not sent them.
		Subjects:          []string{b.subject(">"), b.partSubject(">")},
		MaxMsgsPerSubject: 1,
		Discard:           jetstream.DiscardNew,
		DenyDelete:        true,
		AllowRollup:       true,
		AllowMsgTTL:       true,
		// What is read is what the leader has: any node may answer a direct get, one that
		// has not heard of the last change too.
		AllowDirect: false,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
	}
}

// open finds the stream of a bucket, or makes it.
func (b *bucket) open(ctx context.Context) error {
	js := b.store.js
	// A stream on three nodes is there when they have elected its leader.
	ctx, cancel := b.store.asking(ctx, 5*b.store.opts.answer)
	defer cancel()
	stream, err := js.Stream(ctx, "KV_"+b.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, b.config(nodes))
		if tooFewNodes(err) {
			stream, err = js.CreateStream(ctx, b.config(1))
		}
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was faster
			stream, err = js.Stream(ctx, "KV_"+b.name)
		}
	}
	if err != nil {
		return failure(err)
	}
	info := stream.CachedInfo()
	if c := info.Config; c.AllowDirect || c.MaxMsgsPerSubject != 1 || !slices.Equal(c.Subjects, b.config(0).Subjects) {
		return fmt.Errorf("there is a stream %s in NATS that dynmcp has not made", c.Name)
	}
	b.stream = stream
	b.replicas.Store(int64(info.Config.Replicas))
	return nil
}

// tooFewNodes reports whether a stream was refused because there are not as many nodes
// now as it wants.
func tooFewNodes(err error) bool {
	const (
		noPeers      = 10005 // JSClusterNoPeersErrF: of the nodes of a cluster too few can be reached
		notClustered = 10074 // JSStreamReplicasNotSupportedErr
	)
	var answer *jetstream.APIError
	return errors.As(err, &answer) && (answer.ErrorCode == noPeers || answer.ErrorCode == notClustered)
}

// tend puts buckets on three nodes that were made when there were not as many, makes
// those that NATS has lost, and removes parts of values that nobody needs, until the
// store is closed.
func (s *Store) tend() {
	defer close(s.done)
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("buckets are not tended any more", "err", fmt.Errorf("internal error: %v", p))
		}
	}()
	tick := time.NewTicker(s.opts.tend)
	defer tick.Stop()
	swept := time.Now()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		case <-tick.C:
		}
		if !s.conn.IsConnected() {
			continue
		}
		s.mu.Lock()
		var all []*bucket
		for _, b := range s.buckets {
			all = append(all, b)
		}
		s.mu.Unlock()
		sweep := time.Since(swept) > abandoned
		if sweep {
			swept = time.Now()
		}
		for _, b := range all {
			if b.missing.Load() {
				b.remake(s.ctx)
			}
			if b.replicas.Load() < nodes && s.conn.ConnectedClusterName() != "" {
				b.raise(s.ctx)
			}
			if sweep {
				if err := b.sweep(s.ctx, abandoned); err != nil {
					s.log.Debug("parts of values that nobody needs may be left", "bucket", b.name, "err", err)
				}
			}
		}
	}
}

// raise puts the bucket on three nodes, if there are as many now.
func (b *bucket) raise(ctx context.Context) {
	ctx, cancel := b.store.asking(ctx, 5*b.store.opts.answer)
	defer cancel()
	stream, err := b.store.js.Stream(ctx, "KV_"+b.name)
	if err == nil && stream.CachedInfo().Config.Replicas < nodes {
		c := stream.CachedInfo().Config
		c.Replicas = nodes
		stream, err = b.store.js.UpdateStream(ctx, c)
	}
	if err != nil {
		b.store.log.Debug("a bucket stays on fewer nodes", "bucket", b.name, "err", err)
		return
	}
	b.replicas.Store(int64(stream.CachedInfo().Config.Replicas))
	b.store.log.Info("a bucket is kept on more nodes now", "bucket", b.name, "nodes", stream.CachedInfo().Config.Replicas)
}

// remake makes the bucket again after NATS was said to have no such stream: one whose
// disks are gone starts with nothing, and so do we.
func (b *bucket) remake(ctx context.Context) {
	again := &bucket{store: b.store, name: b.name}
	if err := again.open(ctx); err != nil {
		b.store.log.Debug("a bucket that is missing is not made yet", "bucket", b.name, "err", err)
		return
	}
	b.missing.Store(false)
	b.replicas.Store(again.replicas.Load())
	b.store.log.Warn("a bucket was missing in NATS, and is empty now", "bucket", b.name)
}

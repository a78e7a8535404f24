package natskv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// A message has at most 1 MB. A value that is larger is put in parts first, a set that
// nobody knows of, and then the record is changed: it names the set. So a reader has one
// value or another. The parts of the value before are removed after that; who reads them
// at that moment finds one missing, and the record changed.
//
// A set is PREFIX_parts.SET.0 and so on, and PREFIX_parts.SET.key says what record it was
// made for.

// abandoned is how old a set is that no record names when it is removed.
const abandoned = time.Hour

// errReplaced says that a record was changed while it was read.
var errReplaced = errors.New("it was changed while it was read")

func (b *bucket) partSubject(part string) string { return "$KV." + b.name + "_parts." + part }

// partSize is how large a message of ours is at most. The leader answers with the bytes
// in base64, and that is one message too.
func (b *bucket) partSize() int {
	if most := int(b.store.conn.MaxPayload()) / 2; most > 0 {
		return min(most, 512<<10)
	}
	return 512 << 10
}

// split puts the parts of a value, and returns the name of the set: when it was made, a
// text that no other has, the number and the size of the parts.
func (b *bucket) split(ctx context.Context, key string, value []byte) (set string, err error) {
	size := b.partSize()
	n := (len(value) + size - 1) / size
	set = fmt.Sprintf("%x-%s-%d", time.Now().Unix(), rand.Text(), n)
	m := nats.NewMsg(b.partSubject(set + ".key"))
	m.Data = []byte(key)
	if _, err := b.publish(ctx, m, "0"); err != nil {
		return "", err
	}
	for i := range n {
		m := nats.NewMsg(b.partSubject(fmt.Sprint(set, ".", i)))
		m.Data = value[i*size : min((i+1)*size, len(value))]
		if _, err := b.publish(ctx, m, "0"); err != nil {
			return "", err
		}
	}
	return set, nil
}

// join returns the value of a record that was put in parts, or errReplaced.
func (b *bucket) join(ctx context.Context, key string, revision uint64, header string) ([]byte, error) {
	set, sizeText, _ := strings.Cut(header, " ")
	size, err := strconv.Atoi(sizeText)
	n, numErr := strconv.Atoi(set[strings.LastIndexByte(set, '-')+1:])
	if err != nil || numErr != nil || size < 0 || size > kv.MaxValue {
		return nil, fmt.Errorf("the record %s names no parts: %q", key, header)
	}
	value := make([]byte, 0, size)
	for i := range n {
		m, err := b.last(ctx, b.partSubject(fmt.Sprint(set, ".", i)))
		if errors.Is(err, kv.ErrNotFound) {
			now, err := b.last(ctx, b.subject(key))
			if errors.Is(err, kv.ErrNotFound) || err == nil && now.Sequence != revision {
				return nil, errReplaced
			}
			if err == nil {
				err = fmt.Errorf("part %d of %d of the value of %s is missing", i+1, n, key)
			}
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		value = append(value, m.Data...)
	}
	if len(value) != size {
		return nil, fmt.Errorf("the value of %s has %d bytes in its parts, not %d", key, len(value), size)
	}
	return value, nil
}

// drop removes a set of parts, none for "". If it cannot, sweep does.
func (b *bucket) drop(ctx context.Context, set string) {
	if set == "" {
		return
	}
	ctx, cancel := b.store.asking(ctx, b.store.opts.answer)
	defer cancel()
	if err := b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.partSubject(set+".>"))); err != nil {
		b.store.log.Debug("the parts of an older value are removed later", "bucket", b.name, "err", err)
	}
}

// sweep removes sets of an age that no record names: those of a writer that died, and of
// values that were replaced by somebody who did not know them.
func (b *bucket) sweep(ctx context.Context, age time.Duration) error {
	ask, cancel := b.store.asking(ctx, b.store.opts.answer)
	defer cancel()
	info, err := b.stream.Info(ask, jetstream.WithSubjectFilter(b.partSubject("*.key")))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		set := strings.TrimSuffix(strings.TrimPrefix(subject, b.partSubject("")), ".key")
		made, _, _ := strings.Cut(set, "-")
		seconds, err := strconv.ParseInt(made, 16, 64)
		if err != nil || time.Since(time.Unix(seconds, 0)) < age {
			continue
		}
		of, err := b.last(ctx, subject)
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		record, err := b.last(ctx, b.subject(string(of.Data)))
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		if err == nil && strings.HasPrefix(record.Header.Get(partsHeader), set+" ") {
			continue
		}
		b.drop(ctx, set)
	}
	return nil
}

// Package listing fetches the lists of upstreams and keeps the catalogue current: when a server is
// loaded, when it announces a change, and between runs. It knows no session; [Env] notifies
// the aggregator of each change.
//
// The connection's reader passes a notification of the server to [Cache.Invalidate]. One goroutine fetches
// the list and publishes it in the catalogue, and another tells the hosts (aggregator/journeys_unix_test.go
// compares):
//
//	Cache.fetchAll                  until no list is stale           [listing/cache.go]
//	└ Cache.fetchStale              all pages, within a time limit   [listing/cache.go]
//	  └ List.fetch                  one list                         [listing/list.go]
//	    └ Conn.List                 one page after the other         [upstream/list.go]
//	      └ Conn.Call               waits for the answer             [upstream/start.go]
//	        └ Conn.Start            gives it an id                   [upstream/start.go]
//	          └ lineLink.sendRequest  to a server over stdio         [upstream/lines.go]
//	            └ Writer.SendRequest  writes it to the upstream      [wire/writer.go]
//
//	Aggregator.announce             to each session                  [aggregator/sessions.go]
//	└ Recipient.Announce            lists that it read otherwise     [notify/snapshot.go]
//	  └ Recipient.Notify            if the host listens              [notify/recipient.go]
//	    └ Session.Notify            as a message                     [host/outgoing.go]
//	      └ Session.notify          may be dropped for a slow host   [host/outgoing.go]
//	        └ Session.write         in order, after initialize       [host/outgoing.go]
//	          └ Stdio.Write         to a host over stdio             [host/stdio.go]
//	            └ Writer.SendWithin writes it to the host            [wire/writer.go]
package listing

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A List is one of the lists of a listing.
type List struct {
	Capability string // that offers it
	Method     string
	Key        string // of the entries in a result
	Changed    string // the notification that announces a change
	of         func(*catalog.Listing) *[]json.RawMessage
}

// Lists begins with the tools, without which an upstream is useless.
var Lists = []List{
	{"tools", "tools/list", "tools", "notifications/tools/list_changed",
		func(l *catalog.Listing) *[]json.RawMessage { return &l.Tools }},
	{"resources", "resources/list", "resources", "notifications/resources/list_changed",
		func(l *catalog.Listing) *[]json.RawMessage { return &l.Resources }},
	{"resources", "resources/templates/list", "resourceTemplates", "notifications/resources/list_changed",
		func(l *catalog.Listing) *[]json.RawMessage { return &l.Templates }},
	{"prompts", "prompts/list", "prompts", "notifications/prompts/list_changed",
		func(l *catalog.Listing) *[]json.RawMessage { return &l.Prompts }},
}

// Of returns the list of a method.
func Of(method string) (_ List, ok bool) {
	for _, list := range Lists {
		if list.Method == method {
			return list, true
		}
	}
	return List{}, false
}

// otherLists limits how long a load waits for resources and prompts once it has the tools, at most
// half of the rest of load_timeout.
const otherLists = 5 * time.Second

// Fetch requests all advertised lists of an upstream concurrently, with more of extensions. Only its
// tools determine whether it can be used: any other list that fails, or takes much longer, is empty
// and named in Failed.
func Fetch(loading context.Context, conn *upstream.Conn, more []extension.List, log *slog.Logger) (*catalog.Listing, error) {
	return FetchFor(loading, conn, nil, more, log)
}

// FetchFor is Fetch for a host that declares other capabilities, in the stateless era.
func FetchFor(loading context.Context, conn *upstream.Conn, declared json.RawMessage, more []extension.List, log *slog.Logger) (*catalog.Listing, error) {
	info := conn.ServerInfo()
	l := &catalog.Listing{Protocol: info.ProtocolVersion, Capabilities: info.Capabilities, Info: info.Implementation, Instructions: info.Instructions, Rest: info.Extra, Failed: map[string]string{}}
	ctx, cancel := context.WithCancel(loading)
	defer cancel()
	errs := make([]error, len(Lists))
	var others sync.WaitGroup
	for i, list := range Lists[1:] {
		others.Go(func() { *list.of(l), errs[1+i] = list.fetch(ctx, conn, declared, log) })
	}
	added := make([][]json.RawMessage, len(more))
	for i, list := range more {
		if wire.IsObject(wire.Get(info.Capabilities, "extensions", list.Extension)) {
			others.Go(func() { added[i] = fetchMore(ctx, conn, list, log) })
		}
	}
	l.Tools, errs[0] = Lists[0].fetch(ctx, conn, declared, log)
	timeout := time.Duration(0)
	if errs[0] == nil {
		timeout = otherListsTimeout(ctx)
	}
	defer time.AfterFunc(timeout, cancel).Stop()
	others.Wait()
	if err := cmp.Or(errs...); errs[0] != nil || err != nil && (conn.Err() != nil || loading.Err() != nil) {
		return nil, err
	}
	for i, err := range errs {
		switch {
		case errors.Is(err, context.Canceled):
			l.Failed[Lists[i].Method] = Lists[i].Method + ": no answer in time"
		case err != nil:
			l.Failed[Lists[i].Method] = err.Error()
		}
	}
	for i, entries := range added {
		if entries != nil {
			l.AddMore(more[i].Method, entries)
		}
	}
	return l, nil
}

// fetchMore returns the entries of a list of an extension. One that fails is empty.
func fetchMore(ctx context.Context, conn *upstream.Conn, list extension.List, log *slog.Logger) []json.RawMessage {
	entries, err := conn.List(ctx, list.Method, list.Key, nil)
	if err != nil {
		log.Warn("a list is taken as empty", "upstream", conn.Name(), "method", list.Method, "err", err)
	}
	return entries
}

// otherListsTimeout returns how long to wait for the other lists after that of the tools.
func otherListsTimeout(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(otherLists, time.Until(end)/2)
	}
	return otherLists
}

// fetch returns the entries of a list for what the connection or the request declares. A list whose
// capability is not advertised is empty, and so is one that is advertised but unknown: real servers
// do this. A panic is an error, because the caller waits for the goroutine.
func (list List) fetch(ctx context.Context, conn *upstream.Conn, declared json.RawMessage, log *slog.Logger) (entries []json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic", "panic", p, "stack", string(debug.Stack()))
			entries, err = nil, fmt.Errorf("%s: internal error: %v", list.Method, p)
		}
	}()
	if !conn.ServerInfo().Has(list.Capability) {
		return nil, nil
	}
	entries, err = conn.List(ctx, list.Method, list.Key, declared)
	if rpc, ok := errors.AsType[*wire.Error](err); ok && rpc.Code == wire.CodeMethodNotFound {
		log.Warn("advertised but not known, taken as empty", "upstream", conn.Name(), "method", list.Method)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list.Method, err)
	}
	return entries, nil
}

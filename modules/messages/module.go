// Package messages has the verbs that record messages of hosts and servers, show them and play them again.
package messages

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/messages/inspect"
	"github.com/dynmcp/dynmcp/modules/messages/record"
	"github.com/dynmcp/dynmcp/modules/messages/replay"
)

// Module has the verbs record, replay and inspect.
var Module = module.Module{Name: "messages", Verbs: []cli.Verb{record.Verb, replay.Verb, inspect.Verb}}

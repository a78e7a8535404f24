// Package openapi makes a server of an HTTP API: the operations of its OpenAPI document are the tools.
//
//	adapter, server    server.go     requests of MCP; the document is fetched, stored and compared
//	document           document.go   a document as a tree, references
//	operation          operation.go  names, addresses, the tool as it is listed
//	param, body        input.go      what an operation takes
//	converter          schema.go     schemas of OpenAPI as JSON Schema; keywords.go: their keywords
//	                   request.go    arguments become an HTTP request
//	                   result.go     an answer becomes a result
//	adding             adding.go     add NAME --openapi
package openapi

import (
	_ "embed"

	"github.com/dynmcp/dynmcp/module"
)

//go:embed page.js
var page string

// Module makes servers of entries with an OpenAPI document, and a form of add for them, also on the page.
var Module = module.Module{Name: "openapi", Adapter: adapter{}, Adder: newAdder, Tabs: []module.Tab{{Script: page}}}

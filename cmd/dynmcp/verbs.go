package main

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/call"
	"github.com/dynmcp/dynmcp/internal/cli/described"
	"github.com/dynmcp/dynmcp/internal/cli/doctor"
	"github.com/dynmcp/dynmcp/internal/cli/entries"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/internal/cli/runs"
	"github.com/dynmcp/dynmcp/internal/cli/serve"
	"github.com/dynmcp/dynmcp/internal/cli/warm"
)

//go:generate go run -tags keys . keys ../..

// verbs are the commands of the core. A new one is declared in a package below internal and
// listed here. Those of modules are in modules.go.
var verbs = []cli.Verb{
	entries.List,
	warm.Test,
	warm.Warm,
	call.Call,
	call.Find,
	call.Describe,
	described.Verb,
	call.Read,
	call.Prompt,
	doctor.Verb,
	versionVerb,
	entries.Init,
	entries.Add,
	entries.Remove,
	entries.Set,
	schemaVerb,
	login.Login,
	login.Logout,
	serve.Verb,
	connectVerb,
	runs.List,
	runs.Answer,
	runs.Start,
	runs.Stop,
	runs.Restart,
	runs.Use,
}

package main

import (
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/call"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/configcmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/confine"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/described"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/doctor"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/importcmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/inspect"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/install"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/registrycmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/replay"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/script"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/secret"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/serve"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/testcmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/tokenscmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/trustcmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/ui"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/updatecmd"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/internal/cli/runs"
)

//go:generate go run -tags keys . keys ../..

// verbs are the commands of the core. A new one is declared in a package below internal and
// listed here. Those of modules are in modules.go.
var verbs = []cli.Verb{
	configcmd.List,
	testcmd.Test,
	testcmd.Warm,
	trustcmd.Diff,
	trustcmd.Approve,
	call.Call,
	call.Find,
	call.Describe,
	described.Verb,
	call.Read,
	call.Prompt,
	script.Run,
	confine.Verb,
	recordVerb,
	replay.Verb,
	inspect.Verb,
	call.Policy,
	doctor.Verb,
	tokenscmd.Tokens,
	versionVerb,
	configcmd.Init,
	configcmd.Add,
	configcmd.Remove,
	configcmd.Set,
	registrycmd.Search,
	registrycmd.Outdated,
	updatecmd.Update,
	schemaVerb,
	importcmd.Verb,
	install.Verb,
	login.Login,
	login.Logout,
	secret.Verb,
	serve.Verb,
	connectVerb,
	ui.Verb,
	runs.List,
	runs.Answer,
	runs.Start,
	runs.Stop,
	runs.Restart,
	runs.Use,
}

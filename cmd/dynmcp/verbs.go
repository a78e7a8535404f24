package main

import (
	"slices"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/call"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/clustercmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/configcmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/confine"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/described"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/doctor"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/historycmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/importcmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/inspect"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/install"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/login"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/registrycmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/replay"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/runs"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/script"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/secret"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/serve"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/testcmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/tokenscmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/trustcmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/ui"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/updatecmd"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/verify"
)

// verbs are the commands of dynmcp. A new one has its declaration in a package below
// internal, and a line here.
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
	verify.Verb,
	recordVerb,
	replay.Verb,
	inspect.Verb,
	call.Policy,
	historycmd.Log,
	historycmd.Stats,
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
	secretVerb(),
	serve.Verb,
	connectVerb,
	ui.Verb,
	runs.List,
	runs.Answer,
	runs.Start,
	runs.Stop,
	runs.Restart,
	runs.Use,
	clustercmd.Verb,
}

// secretVerb returns the verb secret with one that needs more than the keyring.
func secretVerb() cli.Verb {
	v := secret.Verb
	v.Verbs = append(slices.Clone(v.Verbs), importcmd.Move)
	return v
}

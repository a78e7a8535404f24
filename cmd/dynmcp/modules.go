//go:build !core

package main

import (
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/activity"
	"github.com/dynmcp/dynmcp/modules/apps"
	"github.com/dynmcp/dynmcp/modules/browser"
	"github.com/dynmcp/dynmcp/modules/cluster"
	"github.com/dynmcp/dynmcp/modules/credentials"
	"github.com/dynmcp/dynmcp/modules/hosts"
	"github.com/dynmcp/dynmcp/modules/messages"
	"github.com/dynmcp/dynmcp/modules/metrics"
	"github.com/dynmcp/dynmcp/modules/openapi"
	"github.com/dynmcp/dynmcp/modules/pins"
	"github.com/dynmcp/dynmcp/modules/policy"
	"github.com/dynmcp/dynmcp/modules/proxy"
	"github.com/dynmcp/dynmcp/modules/registry"
	"github.com/dynmcp/dynmcp/modules/sandbox"
	"github.com/dynmcp/dynmcp/modules/scripts"
	"github.com/dynmcp/dynmcp/modules/secrets"
	"github.com/dynmcp/dynmcp/modules/skills"
	"github.com/dynmcp/dynmcp/modules/tokens"
	"github.com/dynmcp/dynmcp/modules/tree"
	"github.com/dynmcp/dynmcp/modules/ui"
	"github.com/dynmcp/dynmcp/modules/verify"
	"github.com/dynmcp/dynmcp/modules/webhook"
)

// modules are the features that the core does not know, a line each. Their order has no meaning.
var modules = []module.Module{
	activity.Module,
	apps.Module,
	browser.Module,
	cluster.Module,
	credentials.Module,
	hosts.Module,
	messages.Module,
	metrics.Module,
	openapi.Module,
	pins.Module,
	policy.Module,
	proxy.Module,
	registry.Module,
	sandbox.Module,
	scripts.Module,
	secrets.Module,
	skills.Module,
	tokens.Module,
	tree.Module,
	ui.Module,
	verify.Module,
	webhook.Module,
}

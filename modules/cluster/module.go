package cluster

import (
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/cluster/replica"
)

// Module has the verb cluster, and makes runs of serve replicas.
var Module = module.Module{Name: "cluster", Verbs: []cli.Verb{verb}, Cluster: replica.New}
